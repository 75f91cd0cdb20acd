"""bedMethyl tables."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pysam
import pytest

from f5py.core.batch import Alignments, Calls
from f5py.core.motifs import Motif, motif_named, parse_motif
from f5py.errors import F5pyError, OutputFileError
from f5py.outputs.sites.bedmethyl import BedMethylOutput, partition_path, write_bedmethyl
from f5py.site_frequencies.site_counts import SingleSiteCalls, SiteCounts

_CPG = motif_named("cpg")


def _counts(sites: list[tuple], combine: bool = False) -> SiteCounts:
    """Make counts from (contig, position, reverse, ratio, number of such calls)."""
    counts = SiteCounts(combine_strands=combine)
    contig, position, reverse, ratio, number = zip(*sites, strict=True)
    times = np.array(number)
    columns = contig, position, reverse, ratio, [1] * len(sites), [0] * len(sites)
    kinds = np.int32, np.int64, np.bool_, np.float64, np.int32, np.int64
    counts.add(SingleSiteCalls(*(np.repeat(np.array(*one), times) for one in zip(columns, kinds, strict=True))))
    return counts


_SITES = [(0, 100, False, 3.0, 2), (0, 100, False, -3.0, 1), (0, 100, True, -4.0, 3), (0, 100, True, 1.0, 2)]
_SITES += [(1, 7, False, 9.0, 1), (1, 9, True, 0.5, 4)]
_NAMES = [b"chr2", b"chr10"]


def test_the_columns(tmp_path: Path) -> None:
    path = tmp_path / "out.bed"
    write_bedmethyl(str(path), _counts(_SITES), _NAMES, motif_named("cpg"))
    assert path.read_text() == (
        "chr10\t7\t8\tm\t1\t+\t7\t8\t255,0,0\t1\t100.00\t1\t0\t0\t0\t0\t0\t0\n"
        "chr2\t100\t101\tm\t3\t+\t100\t101\t170,0,85\t3\t66.67\t2\t1\t0\t0\t0\t0\t0\n"
        "chr2\t101\t102\tm\t3\t-\t101\t102\t0,0,255\t3\t0.00\t0\t3\t0\t0\t2\t0\t0\n"
    )


def test_combined_strands(tmp_path: Path) -> None:
    path = tmp_path / "out.bed"
    write_bedmethyl(str(path), _counts(_SITES, combine=True), _NAMES, motif_named("dam"))
    assert path.read_text() == (
        "chr10\t8\t9\ta\t1\t.\t8\t9\t255,0,0\t1\t100.00\t1\t0\t0\t0\t0\t0\t0\n"
        "chr2\t101\t102\ta\t6\t.\t101\t102\t85,0,170\t6\t33.33\t2\t4\t0\t0\t2\t0\t0\n"
    )


def test_rows_are_in_the_order_of_the_modified_bases(tmp_path: Path) -> None:
    sites = [(0, 10, True, 3.0, 1), (0, 10, False, 3.0, 1), (0, 11, True, 3.0, 1), (0, 11, False, 3.0, 1)]
    for motif in (motif_named("gpc"), motif_named("dcm"), parse_motif("CHG:0")):
        path = tmp_path / "out.bed.gz"
        write_bedmethyl(str(path), _counts(sites), [b"c"], motif)
        positions = [int(line.split(b"\t")[1]) for line in gzip.decompress(path.read_bytes()).splitlines()]
        assert positions == sorted(positions)


def test_percentages_are_those_of_single_precision(tmp_path: Path) -> None:
    path = tmp_path / "out.bed"
    rng = np.random.default_rng(1)
    sites = []
    for position in range(0, 4000, 2):
        valid = int(rng.integers(1, 200))
        methylated = int(rng.integers(0, valid + 1))
        sites += [(0, position, False, 5.0, methylated), (0, position, False, -5.0, valid - methylated)]
    write_bedmethyl(str(path), _counts(sites), [b"c"], motif_named("cpg"))
    for line in path.read_text().splitlines():
        row = line.split("\t")
        share = np.float32(row[11]) / np.float32(row[9]) * np.float32(100)
        assert row[10] == f"{share:.2f}"


def test_positions_beyond_a_tbi_index_get_a_csi(tmp_path: Path) -> None:
    path = tmp_path / "out.bed.gz"
    for last, suffix in ((2**29 - 1, "tbi"), (2**29, "csi"), (2**31 - 2, "csi"), (5, "tbi")):
        sites = [(0, 3, False, 3.0, 1), (0, last, False, 3.0, 1)]
        write_bedmethyl(str(path), _counts(sites), [b"c"], motif_named("cpg"))
        assert sorted(os.listdir(tmp_path)) == ["out.bed.gz", f"out.bed.gz.{suffix}"]
        with pysam.TabixFile(str(path), index=f"{path}.{suffix}") as table:
            assert [row.split("\t")[1] for row in table.fetch("c", last - 1, last + 1)] == [str(last)]


def test_no_sites_give_an_empty_table(tmp_path: Path) -> None:
    path = tmp_path / "out.bed.gz"
    write_bedmethyl(str(path), SiteCounts(), [], motif_named("cpg"))
    assert gzip.decompress(path.read_bytes()) == b""
    with pysam.TabixFile(str(path)) as table:
        assert list(table.contigs) == []


def test_a_failing_index_leaves_the_earlier_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.bed.gz"
    write_bedmethyl(str(path), _counts(_SITES), _NAMES, motif_named("cpg"))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}

    def fail(*_: Any, **__: Any) -> None:
        raise OSError("no index")

    monkeypatch.setattr(pysam, "tabix_index", fail)
    with pytest.raises(OutputFileError, match=r"out\.bed\.gz: its index cannot be written: no index"):
        write_bedmethyl(str(path), _counts(_SITES[:2]), _NAMES, motif_named("cpg"))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_an_earlier_index_stays_until_the_new_table_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out.bed.gz"
    write_bedmethyl(str(path), _counts([(0, 2**30, False, 3.0, 1)]), _NAMES, motif_named("cpg"))
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert sorted(before) == ["out.bed.gz", "out.bed.gz.csi"]
    replace = os.replace

    def fail(source: str, target: str) -> None:
        if os.path.basename(target) == "out.bed.gz":
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OutputFileError, match="No space left on device"):
        write_bedmethyl(str(path), _counts(_SITES), _NAMES, motif_named("cpg"))
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    monkeypatch.undo()
    write_bedmethyl(str(path), _counts(_SITES), _NAMES, motif_named("cpg"))
    assert sorted(os.listdir(tmp_path)) == ["out.bed.gz", "out.bed.gz.tbi"]


def test_partition_names() -> None:
    assert partition_path("a/out.bed.gz", "1") == "a/out.1.bed.gz"
    assert partition_path("a.b/out.bed", None) == "a.b/out.ungrouped.bed"
    assert partition_path("a.b/out.bed", "") == "a.b/out.%.bed"
    assert partition_path("out", "x y/z") == "out.x%20y%2Fz"
    assert partition_path("out.bed.gz", "ungrouped") != partition_path("out.bed.gz", None)


def _batch(partition: list[int]) -> Any:
    n = len(partition)
    text = b"TTTTTTTTTTCGTTTTT"
    contig = np.zeros(n, np.int32)
    return SimpleNamespace(
        calls=Calls(
            np.arange(n + 1),
            np.ones(n, np.int64),
            np.full(n, 10),
            np.full(n, 10),
            np.ones(n, np.int32),
            np.full(n, -10, np.float32),
            np.full(n, -20, np.float32),
        ),
        contig=contig,
        alignments=Alignments(
            contig, start=np.zeros(n, np.int64), reverse=np.zeros(n, np.bool_), cigar=np.empty(0, np.uint32),
            cigar_offsets=np.zeros(n + 1, np.int64), reference=np.frombuffer(text * n, np.uint8),
            reference_offsets=np.arange(n + 1) * len(text),
        ),
        partition=np.array(partition, np.int32),
    )  # fmt: skip


def _opened(path: Path, motif: Motif = _CPG, counts: SiteCounts | None = None, **options: Any) -> BedMethylOutput:
    output = BedMethylOutput(str(path), motif, {"c": 1000}, SiteCounts() if counts is None else counts, **options)
    output.open()
    return output


def test_one_file_per_value_of_a_tag(tmp_path: Path) -> None:
    values = ["1"]
    output = _opened(tmp_path / "out.bed", partitions=values)
    output.write(_batch([0, -1, 0]))
    values.append("2")
    output.write(_batch([1, 0, 1, 0]))
    assert os.listdir(tmp_path) == []
    output.finish()
    coverage = {path.name: path.read_text().split("\t")[9] for path in tmp_path.iterdir()}
    assert coverage == {"out.1.bed": "4", "out.2.bed": "2", "out.ungrouped.bed": "1"}


def test_without_ungrouped_reads_there_is_no_such_file(tmp_path: Path) -> None:
    output = _opened(tmp_path / "out.bed", partitions=["1"])
    output.write(_batch([0]))
    output.finish()
    assert os.listdir(tmp_path) == ["out.1.bed"]
    nothing = _opened(tmp_path / "none.bed", partitions=[])
    nothing.finish()
    assert (tmp_path / "none.ungrouped.bed").read_bytes() == b""


def test_a_tag_with_very_many_values_is_refused(tmp_path: Path) -> None:
    values = [str(i) for i in range(1000)]
    output = _opened(tmp_path / "out.bed", partitions=values)
    output.write(_batch([0, 999]))
    values.append("one more")
    for action in (lambda: output.write(_batch([1000])), output.finish):
        with pytest.raises(F5pyError, match=r"^--partition-tag: more than 1000 different values") as problem:
            action()
        assert "\n" not in str(problem.value)
    assert os.listdir(tmp_path) == []
    values.pop()
    output.finish()
    assert len(os.listdir(tmp_path)) == 1000
    assert (tmp_path / "out.999.bed").read_text().count("\n") == 1


def test_outputs_that_cannot_be_written_are_noticed_at_once(tmp_path: Path) -> None:
    with pytest.raises(OutputFileError, match="there is no such folder"):
        _opened(tmp_path / "no" / "out.bed")
    with pytest.raises(OutputFileError, match="is a folder"):
        _opened(tmp_path)
    with pytest.raises(F5pyError, match="cannot be combined"):
        _opened(tmp_path / "out.bed", parse_motif("CHH:0"), SiteCounts(combine_strands=True))
