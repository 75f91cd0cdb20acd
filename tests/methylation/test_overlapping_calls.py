"""Calls of a read where an earlier alignment of it lies."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.batch import Calls
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.methylation.overlapping_calls import OverlappingCalls

from ..made_data import ReadSet, run_command

_reads = st.tuples(
    st.sampled_from(["a", "b", "ab", ""]), st.integers(0, 1), st.integers(0, 20), st.integers(1, 15),
    st.sampled_from([0, 0, 0, 2]), st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3)), max_size=4),
)  # fmt: skip


class _Batch(SimpleNamespace):
    def __len__(self) -> int:
        return len(self.names)


def _batch(reads: list) -> _Batch:
    calls = [call for read in reads for call in read[5]]
    first = np.array([one[0] for one in calls], np.int64)
    n_calls = np.array([len(read[5]) for read in reads], np.int64)
    batch = _Batch(
        names=Names.of([read[0] for read in reads]), contig=np.array([read[1] for read in reads], np.int32),
        reference_start=np.array([read[2] for read in reads], np.int64), by_motif=[],
        reference_end=np.array([read[2] + read[3] for read in reads], np.int64),
        status=np.array([read[4] for read in reads], np.uint8), calls=Calls(
            offsets_of(n_calls), n_calls, first, first + np.array([one[1] for one in calls], np.int64),
            np.ones(len(calls), np.int32), np.arange(len(calls), dtype=np.float32), np.zeros(len(calls), np.float32),
        ),
    )  # fmt: skip

    return batch


@settings(deadline=None)
@given(st.lists(st.lists(_reads, max_size=6), max_size=4))
def test_any_alignments_equal_plain_search(batches: list):
    covered, seen, n_dropped = OverlappingCalls(), [], 0
    for reads in batches:
        batch = _batch(reads)
        covered.drop(batch)
        place = 0
        for i, (name, contig, start, length, status, calls) in enumerate(reads):
            kept = []
            for first, extent in calls:
                hit = any(
                    one[:2] == (name, contig) and first < one[3] and first + extent >= one[2] for one in seen
                ) and status == 0  # fmt: skip
                n_dropped += hit
                kept += [] if hit else [(first, place)]
                place += 1
            begin = batch.calls.offsets[i]
            rows = slice(begin, begin + batch.calls.n[i])
            assert list(zip(batch.calls.first[rows], batch.calls.methylated[rows], strict=True)) == kept
            if status == 0:
                seen.append((name, contig, start, start + length))
    assert covered.n_sites == n_dropped


def test_room_for_many_alignments():
    covered = OverlappingCalls()
    names = [str(i) for i in range(5000)]
    for _ in range(2):
        batch = _batch([(name, 0, 5, 10, 0, [(6, 0)]) for name in names])
        covered.drop(batch)
    assert batch.calls.n.sum() == 0
    assert covered.n_sites == 5000


@pytest.mark.parametrize("more", [(), ("-q", "cpg,gpc")])
def test_a_read_counts_once(made: ReadSet, tmp_path: Path, more: tuple, capfd: pytest.CaptureFixture[str]):
    """Each alignment comes again, as one of the other half of the read would."""
    header, records = made.records()
    doubled = tmp_path / "doubled.bam"
    with pysam.AlignmentFile(str(doubled), "wb", header=header) as out:
        for record in records:
            out.write(record)
            record.flag |= 2048
            out.write(record)
    once, twice, skipped = (tmp_path / f"{name}.tsv" for name in ("once", "twice", "skipped"))
    options = [*made.options(), *more]
    assert run_command("call-methylation", *options, "-o", once) == 0
    options[options.index("-b") + 1] = str(doubled)
    assert run_command("call-methylation", *options, "-o", twice) == 0
    sites = tmp_path / "sites.bed"
    with_sites = [] if more else ["--bedmethyl", sites]
    with_sites += ["--report", tmp_path / "report.json"]
    capfd.readouterr()
    assert run_command("call-methylation", *options, "-o", skipped, "--skip-overlaps", *with_sites) == 0
    n_sites = sum(int(line.split("\t")[-2]) for line in once.read_text().splitlines()[1:]) if not more else None
    (closing,) = [line for line in capfd.readouterr().err.splitlines() if "written:" in line]
    counts = json.loads((tmp_path / "report.json").read_text())["run"]["counts"]
    found = re.search(r"; ([\d,]+) sites skipped that an earlier alignment of the same read covers", closing)
    assert found
    assert int(found[1].replace(",", "")) == counts["skipped_overlapping_sites"]
    assert counts["skipped_overlapping_sites"] == n_sites or more
    assert counts["skipped_overlapping_sites"] > 0
    assert skipped.read_bytes() == once.read_bytes()
    assert twice.read_bytes().count(b"\n") == 2 * once.read_bytes().count(b"\n") - 1
    if not more:
        counted = tmp_path / "counted.bed"
        assert run_command("meth-freq", once, "--bedmethyl", "-o", counted) == 0
        assert sites.read_text() == counted.read_text()
