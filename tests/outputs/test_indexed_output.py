"""The index beside sorted alignments."""

from __future__ import annotations

from pathlib import Path

import pysam
import pytest

from f5py.io.bam.indexed_output import indexed_output

from ..made_data import ReadSet, run_command


def _header(order: str, length: int = 1000) -> pysam.AlignmentHeader:
    return pysam.AlignmentHeader.from_dict({"HD": {"VN": "1.6", "SO": order}, "SQ": [{"SN": "one", "LN": length}]})


def _write(path: Path, header: pysam.AlignmentHeader, positions: list[int]) -> None:
    with indexed_output(str(path), header, 2) as file:
        with pysam.AlignmentFile(str(path.parent / "made.sam"), "wb", header=header) as out:
            for position in positions:
                record = pysam.AlignedSegment(header)
                record.query_name, record.reference_id, record.reference_start = "read", 0, position
                record.query_sequence, record.cigarstring, record.flag = "ACGT", "4M", 0
                out.write(record)
        file.write((path.parent / "made.sam").read_bytes())
    (path.parent / "made.sam").unlink()


@pytest.mark.parametrize(("length", "suffix"), [(1000, ".bai"), (1 << 30, ".csi")])
def test_sorted_records_get_an_index(tmp_path: Path, length: int, suffix: str):
    path = tmp_path / "x##idx##y.bam"
    _write(path, _header("coordinate", length), [5, 10, 100])
    assert sorted(one.name for one in tmp_path.iterdir()) == [path.name, path.name + suffix]
    (tmp_path / f"z.bam{suffix}").write_bytes(Path(f"{path}{suffix}").read_bytes())
    with pysam.AlignmentFile(str(path.rename(tmp_path / "z.bam"))) as file:
        assert file.check_index()
        assert [record.reference_start for record in file.fetch("one", 50, 200)] == [100]


def test_no_index_without_the_order(tmp_path: Path, capfd):
    _write(tmp_path / "x.bam", _header("unsorted"), [5, 10])
    _write(tmp_path / "y.bam", _header("coordinate"), [10, 5])
    assert sorted(one.name for one in tmp_path.iterdir()) == ["x.bam", "y.bam"]


def test_an_error_leaves_nothing(tmp_path: Path):
    def fail() -> None:
        with indexed_output(str(tmp_path / "x.bam"), _header("coordinate"), 1) as file:
            file.write(b"BAM")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []


def test_modbam_has_an_index(made: ReadSet, tmp_path: Path):
    """Also of a run in parts; SAM has none."""
    outputs = ["-o", tmp_path / "calls.tsv", "--modbam", tmp_path / "calls.bam"]
    assert run_command("call-methylation", *made.options(), *outputs) == 0
    assert (tmp_path / "calls.bam.bai").stat().st_mtime >= (tmp_path / "calls.bam").stat().st_mtime
    with pysam.AlignmentFile(str(tmp_path / "calls.bam")) as file:
        assert file.check_index()
    outputs = ["-o", tmp_path / "again.tsv", "--modbam", tmp_path / "again.bam", "--resume"]
    assert run_command("call-methylation", *made.options(), *outputs) == 0
    assert sorted(one.name for one in tmp_path.glob("*.bai")) == ["again.bam.bai", "calls.bam.bai"]
