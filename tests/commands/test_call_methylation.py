"""Files that a run leaves when one of them fails at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from f5py.errors import OutputFileError
from f5py.outputs.sites import bedmethyl

from ..made_data import ReadSet, error_line, run_main


@pytest.mark.parametrize("format_", ["tsv", "parquet"])
def test_no_file_is_named_if_another_fails_at_the_end(
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
    assert not any(path.exists() for path in (table, tagged, bed))
