"""Files that a run leaves when one of them fails at the end."""

from __future__ import annotations

from pathlib import Path

import pysam
import pytest

from f5py.errors import OutputFileError
from f5py.outputs.sites import bedmethyl

from ..made_data import ReadSet, error_line, run_main


@pytest.mark.parametrize("format_", ["tsv", "parquet"])
def test_a_file_that_fails_at_the_end_takes_no_other_with_it(
    made: ReadSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd, format_: str
):
    if format_ == "parquet":
        pytest.importorskip("pyarrow", reason="needs pyarrow")

    def fail(path: str, *_: object) -> None:
        raise OutputFileError(f"{path}: its index cannot be written")

    monkeypatch.setattr(bedmethyl, "_index", fail)
    table, tagged, bed = tmp_path / f"calls.{format_}", tmp_path / "tagged.bam", tmp_path / "calls.bed.gz"
    options = ["-o", table, "--output-format", format_, "--modbam", tagged, "--bedmethyl", bed]
    assert run_main(*made.options(), *options) == 1
    assert "its index cannot be written" in error_line(capfd.readouterr().err)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([table.name, tagged.name, f"{tagged.name}.bai"])
    assert table.stat().st_size > 1000
    with pysam.AlignmentFile(str(tagged), check_sq=False) as file:
        assert sum(record.has_tag("MM") for record in file.fetch(until_eof=True)) > 0
