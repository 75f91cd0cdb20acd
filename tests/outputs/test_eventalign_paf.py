"""PAF of event alignment: f5c's bytes, and strings that lead back to the rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.batch import Cause, ReadStatus
from f5py.outputs.events.events_sinks import EventalignPaf

from ..examples import examples
from .made_rows import CONTIG_LENGTHS, CONTIGS, K, MadeRead, made_reads, parse_paf, rows_batch, walk_ends


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
