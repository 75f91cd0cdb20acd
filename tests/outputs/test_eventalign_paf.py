"""PAF and summary of event alignment: strings and counts that lead back to the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.batch import Cause, ReadStatus
from f5py.outputs.events.events_sinks import EventalignPaf, EventalignSummary

from ..examples import examples
from .made_rows import CONTIG_LENGTHS, CONTIGS, SAMPLING_RATE, K, MadeRead, made_reads, parse_paf, rows_batch, walk_ends


@pytest.mark.parametrize("rna", [False, True])
@settings(deadline=None, max_examples=examples(150))
@given(data=st.data())
def test_strings_lead_back_to_the_rows(rna, data):
    reads = data.draw(st.lists(made_reads(rna), min_size=1, max_size=4))
    batch = rows_batch(reads)
    text = EventalignPaf(CONTIGS, CONTIG_LENGTHS, K, rna).format(batch, 0, len(batch))
    lines = parse_paf(text)
    with_rows = [i for i, read in enumerate(reads) if read.rows]
    assert [line.name for line in lines] == [batch.names[i] for i in with_rows]
    for i, line in zip(with_rows, lines, strict=True):
        read = reads[i]
        positions = [position for _, position, _ in read.rows]
        ends = (positions[0], positions[-1] + 1)
        assert (line.kmer_start, line.kmer_end) == (ends[::-1] if rna else ends)
        assert line.block == ends[1] - ends[0]
        pieces, passed = walk_ends(line.tags["ss:Z"], line.raw_start, line.kmer_start, line.kmer_end, rna, read.reverse)
        assert pieces == read.intervals(rna)
        assert passed == line.block
        assert pieces[-1][2] == line.raw_end
        assert line.strand == ("-" if read.reverse else "+")
        assert (line.target, line.target_length) == (CONTIGS[i % 2], CONTIG_LENGTHS[i % 2] - K + 1)
        assert (line.n_samples, line.quality, line.matches) == (9000, 255, len(pieces))
        assert line.tags["sc:f"] == f"{batch.scale[i]:.2f}"
        assert line.tags["sh:f"] == f"{batch.shift[i]:.2f}"


def test_reads_without_rows_are_noted_with_their_index():
    empty = MadeRead(False, [5], [10], [])
    batch = rows_batch([empty, MadeRead(False, [5], [10], [(0, 7, False)]), empty, empty])
    batch.drop(np.array([False, False, False, True]), ReadStatus.QC_FAIL, Cause.MANY_ALIGNED_EVENTS)
    paf = EventalignPaf(CONTIGS, CONTIG_LENGTHS, K, rna=False)
    assert paf.notes(batch) == ["INFO: No align 1", "INFO: No align 5"]
    assert paf.format(batch, 0, 4).count(b"\n") == 1


@pytest.mark.parametrize("rna", [False, True])
@settings(deadline=None, max_examples=examples(60))
@given(data=st.data())
def test_counts_are_those_of_the_rows(rna, data):
    reads = data.draw(st.lists(made_reads(rna), min_size=1, max_size=4))
    batch = rows_batch(reads)
    summary = EventalignSummary("-", 1, rna, "slow5")
    columns = summary.header.decode().rstrip("\n").split("\t")
    lines = summary.format(batch).decode().splitlines()
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
