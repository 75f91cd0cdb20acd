"""The command freq-merge, run as the group runs it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from f5py.cli import command_of
from f5py.errors import F5pyError

command = command_of("freq-merge")

_HEADER = (
    "chromosome\tstart\tend\tnum_motifs_in_group\tcalled_sites\tcalled_sites_methylated\tmethylated_frequency\t"
    "group_sequence\n"
)
_ONE = _HEADER + "chr1\t5\t5\t1\t3\t1\t0.333\tAACGT\nchr2\t9\t9\t1\t1\t1\t1.000\tTTCGA\n"
_TWO = _HEADER + "chr1\t5\t5\t1\t1\t1\t1.000\tAACGT\n"
_SUM = _HEADER + "chr1\t5\t5\t1\t4\t2\t0.500\tAACGT\nchr2\t9\t9\t1\t1\t1\t1.000\tTTCGA\n"


def _run(*arguments: str | Path) -> None:
    command.main([str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    one, two = tmp_path / "one.tsv", tmp_path / "two.tsv.gz"
    one.write_text(_ONE)
    two.write_bytes(gzip.compress(_TWO.encode()))
    return one, two


def test_plain_and_compressed_tables_add_up(
    tables: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    _run(*tables)
    assert capfd.readouterr() == (_SUM, "")
    out = tmp_path / "out.tsv"
    _run("-o", out, *tables)
    assert out.read_text() == _SUM
    packed = tmp_path / "out.tsv.gz"
    _run(*tables, "--output", packed)
    assert gzip.decompress(packed.read_bytes()).decode() == _SUM
    said = "".join(f"[freq-merge] 2 sites; written: {path}\n" for path in (out, packed))
    assert capfd.readouterr() == ("", said)


def test_what_tables_disagree_on_is_a_warning(
    tables: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.tsv"
    other.write_text(_TWO.replace("AACGT", "AAACGTT").replace("num_motifs", "num_cpgs"))
    _run(tables[0], other)
    out, err = capfd.readouterr()
    assert out == _SUM.replace("AACGT", "AAACGTT").replace("num_motifs", "num_cpgs")
    assert err.splitlines() == [
        "[freq-merge::WARNING] 1 rows show another group_sequence than an earlier row of the same chromosome, start "
        "and end; the longest was kept",
        "[freq-merge::WARNING] some tables count num_motifs_in_group and some num_cpgs_in_group; the output's column "
        "is named as in the last table, num_cpgs_in_group",
    ]


def test_bad_input_leaves_no_output(tables: tuple[Path, Path], tmp_path: Path) -> None:
    bad, out = tmp_path / "bad.tsv", tmp_path / "out.tsv"
    bad.write_text(_HEADER + "chr1\t5\n")
    with pytest.raises(F5pyError, match=r"bad\.tsv, line 2: 2 columns, fewer than the header's 8"):
        _run(*tables, bad, "-o", out)
    with pytest.raises(F5pyError, match=r"absent: cannot be opened \(No such file"):
        _run(tables[0], tmp_path / "absent", "-o", out)
    with pytest.raises(F5pyError, match="cannot write: No such file or directory"):
        _run(*tables, "-o", tmp_path / "no" / "out")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["bad.tsv", "one.tsv", "two.tsv.gz"]


def test_one_table_is_its_own_sum(tables: list[Path], tmp_path: Path) -> None:
    once, again = tmp_path / "once.tsv", tmp_path / "again.tsv"
    _run(tables[0], "-o", once)
    _run(once, "-o", again)
    assert sorted(once.read_text().splitlines()) == sorted(tables[0].read_text().splitlines())
    assert again.read_bytes() == once.read_bytes()
