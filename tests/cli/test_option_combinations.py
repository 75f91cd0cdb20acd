"""Options that only make sense with others are refused before anything is opened or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from f5py.options import declarations
from f5py.options.signal_commands import CallOptions, EventalignOptions, ResquiggleOptions

from ..made_data import run_command

INPUTS = ["-r", "absent.fastq", "-b", "absent.bam", "-g", "absent.fa"]


@pytest.mark.parametrize(
    ("command", "options", "status", "says"),
    [
        ("call-methylation", ["--motif", "CHG:0", "-q", "dam"], 2, "--methylation and --motif"),
        ("call-methylation", ["--motif", "CHG:0"], 2, "--meth-model"),
        ("call-methylation", ["--call-threshold", "2"], 2, "--bedmethyl"),
        ("call-methylation", ["--bedmethyl", "x.bed", "--call-threshold", "nan"], 2, "--call-threshold nan"),
        ("call-methylation", ["--bedmethyl", "x.bed", "--call-threshold", "-1"], 2, "--call-threshold -1"),
        ("call-methylation", ["--combine-strands"], 2, "--combine-strands"),
        ("call-methylation", ["--threshold-per-site"], 2, "--threshold-per-site"),
        ("call-methylation", ["--partition-tag", "HP"], 2, "--partition-tag"),
        ("call-methylation", ["--partition-tag", "HPX"], 2, "must be the two characters of a tag"),
        ("call-methylation", ["-o", "x.parquet", "--print-scaling=yes"], 2, "--output-format parquet exclude"),
        ("call-methylation", ["--replace-tags"], 2, "--modbam"),
        ("call-methylation", ["--modbam-style", "reference"], 2, "--modbam"),
        ("call-methylation", ["--modbam", "-"], 2, "--modbam -"),
        ("call-methylation", ["--bedmethyl", "-"], 2, "--bedmethyl -: give the name of a file"),
        ("call-methylation", ["--report", "-"], 2, "--report -: give the name of a file"),
        ("call-methylation", ["--window-mode", "clip"], 2, "--window-mode"),
        ("call-methylation", ["--output-format", "parquet"], 2, "name a file with -o"),
        ("call-methylation", ["-o", "calls.bam", "--modbam", "x.bam"], 2, "both name such a file"),
        ("call-methylation", ["-o", "calls.sam"], 2, "calls are written; name the file .tsv,"),
        ("call-methylation", ["-o", "calls.paf"], 2, "calls are written; name the file .tsv,"),
        ("call-methylation", ["-o", "x.bw", "--bedmethyl", "x.bed"], 2, "both name such a file"),
        ("call-methylation", ["-o", "x.tsv", "--modbam", "./x.tsv"], 2, "both -o and --modbam"),
        ("eventalign", ["--sam-out-version", "1"], 2, "--sam"),
        ("eventalign", ["-o", "x.bam", "--output-format", "tsv"], 2, "--sam"),
        ("eventalign", ["-o", "x.bam", "--cut-names"], 2, "--cut-names"),
        ("eventalign", ["-o", "x.bed"], 2, "events are written; name the file .tsv,"),
        ("eventalign", ["-o", "x.bw"], 2, "events are written; name the file .tsv,"),
        ("eventalign", ["-o", "x.cram"], 2, "events are written; name the file .tsv,"),
        ("eventalign", ["-o", "x.paf", "--sam"], 2, "--sam is given; name the file .tsv, .csv, .sam or .bam"),
        ("eventalign", ["-o", "x.sam", "--paf"], 2, "--paf is given; name the file .tsv, .csv or .paf"),
        ("eventalign", ["-o", "x.parquet", "--m6anet"], 2, "--m6anet is given; name the file .tsv or .csv"),
        ("eventalign", ["-c", "-a"], 2, "--paf and --sam exclude each other"),
        ("eventalign", ["-c", "-a", "--m6anet"], 2, "--paf and --sam and --m6anet exclude each other"),
        ("eventalign", ["-c", "--output-format", "parquet", "-o", "x"], 2, "--output-format parquet exclude"),
        ("eventalign", ["--sam", "--print-events=yes"], 2, "--print-events yes and --sam exclude each other"),
        ("eventalign", ["--m6anet", "--output-format", "parquet", "-o", "x"], 2, "exclude each other"),
        ("eventalign", ["--pore", "r10", "--rna"], 1, ""),
        ("eventalign", ["--pore", "r11"], 2, "r11"),
        ("eventalign", ["--mark-kmers", "--paf"], 2, "--mark-kmers and --paf exclude each other"),
        ("eventalign", ["--mark-kmers", "--m6anet"], 2, "--mark-kmers and --m6anet exclude each other"),
        ("eventalign", ["--mark-deletions", "--sam"], 2, "--mark-deletions and --sam exclude each other"),
        ("eventalign", ["--mark-deletions", "--m6anet"], 2, "--mark-deletions and --m6anet exclude each other"),
    ],
)
def test_refused(command: str, options: list[str], status: int, says: str, tmp_path: Path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    assert run_command(command, *INPUTS, *options) == status
    messages = capfd.readouterr().err
    assert says in messages
    assert "Traceback" not in messages
    assert list(tmp_path.iterdir()) == []


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
