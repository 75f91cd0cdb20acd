"""Options that only make sense with others are refused before anything is opened or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from f5py.options import declarations
from f5py.options.signal_commands import CallOptions, EventalignOptions, ResquiggleOptions

from ..made_data import run_command

INPUTS = ["-r", "absent.fastq", "-b", "absent.bam", "-g", "absent.fa"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [("call-methylation", CallOptions), ("eventalign", EventalignOptions), ("resquiggle", ResquiggleOptions)],
)
def test_no_two_outputs_have_one_name(command: str, kind: type, tmp_path: Path, monkeypatch, capfd):
    """All that are declared as outputs are checked, also those that are added later."""
    monkeypatch.chdir(tmp_path)
    inputs = ["absent.fastq", "absent.blow5"] if kind is ResquiggleOptions else INPUTS
    elsewhere = {"output", "keep_bam", "modbam_output_name"}  # excluded by the inputs, or by -o
    others = {name: one for name, one in declarations(kind).items() if one.is_output and name not in elsewhere}
    assert "failed_reads" in others
    for option in (one.spelling for one in others.values()):
        assert run_command(command, *inputs, "-o", "x.tsv", option, "./x.tsv") == 2
        assert f"cannot be the output of both -o and {option}" in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("index", [".index", ".index.fai", ".index.gzi", ".index.readdb"])
def test_the_index_of_the_reads_is_not_overwritten(index: str, tmp_path: Path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / f"reads.fastq{index}"
    file.write_text("precious")
    inputs = ["-r", "reads.fastq", "-b", "absent.bam", "-g", "absent.fa"]
    assert run_command("eventalign", *inputs, "-o", file.name) == 2
    assert "is an input as well" in capfd.readouterr().err
    assert file.read_text() == "precious"
