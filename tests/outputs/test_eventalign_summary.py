"""The summary of event alignment."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.outputs.events.events_sinks import EventalignSummary

from ..examples import examples
from .made_rows import SAMPLING_RATE, made_reads, rows_batch


@pytest.mark.parametrize("rna", [False, True])
@settings(deadline=None, max_examples=examples(60))
@given(data=st.data())
def test_counts_are_those_of_the_rows(rna, data):
    reads = data.draw(st.lists(made_reads(rna), min_size=1, max_size=4))
    batch = rows_batch(reads)
    summary = EventalignSummary(rna, "slow5")
    columns = summary.header().decode().rstrip("\n").split("\t")
    lines = summary.format(batch, 0, len(batch)).decode().splitlines()
    for i, read in enumerate(reads):
        if not read.rows:
            continue
        line = dict(zip(columns, lines.pop(0).split("\t"), strict=True))
        jumps = [b[1] - a[1] for a, b in zip(read.rows, read.rows[1:], strict=False)]
        samples = sum(read.event_length[event] for event, _, _ in read.rows)
        assert line == {
            "read_index": str(2 * i + 1),
            "read_name": batch.names[i],
            "fast5_path": "slow5",
            "model_name": "rna" if rna else "dna",
            "strand": "template",
            "num_events": str(len(read.rows)),
            "num_steps": str(jumps.count(1)),
            "num_skips": str(sum(jump > 1 for jump in jumps)),
            "num_stays": str(jumps.count(0)),
            "total_duration": f"{samples / SAMPLING_RATE:.2f}",
            "shift": f"{batch.shift[i]:.3f}",
            "scale": f"{batch.scale[i]:.3f}",
            "drift": "0.000",
            "var": f"{batch.var[i]:.3f}",
        }
    assert not lines
