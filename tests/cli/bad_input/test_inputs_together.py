"""Reads, alignments and reference that do not belong together, and runs that fail as a whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pysam
import pytest

from ...made_data import N_READS, ReadSet, refused, repeated, run_command
from .commands import MAPPED, SignalCommand
from .conftest import Succeeds

mapped = pytest.mark.parametrize("command", MAPPED, ids=lambda command: command.name, indirect=True)


def with_cut_reads(made: ReadSet, folder: Path, names: list[str]) -> ReadSet:
    """With some reads that lack the first base that was mapped."""
    folder.mkdir(exist_ok=True)
    return made.with_reads(folder, {name: made.sequence(name)[1:] for name in names})


def with_other_genome(made: ReadSet, folder: Path) -> ReadSet:
    """With a reference of other bases, but the same name and length."""
    name, *lines = made.genome.read_text().splitlines()
    bases = "".join(lines).upper().translate(str.maketrans("ACGT", "CATG"))
    return made.with_genome(folder, f"{name}\n{bases}\n")


def without_index(reads: ReadSet, signals: ReadSet) -> list[str]:
    """Name the signals, so that the reads are held in memory."""
    bare = reads.reads.with_name("bare.fasta")
    bare.write_bytes(reads.reads.read_bytes())
    return [*replace(reads, reads=bare).options(), "--slow5", str(signals.signal_path)]


@mapped
@pytest.mark.parametrize("in_parts", [False, True])
def test_reads_of_other_bases_fail(
    command: SignalCommand, in_parts: bool, made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds
):
    others = made.names[3:9:2]
    changed = with_cut_reads(made, tmp_path / "reads", others)
    failed, report = tmp_path / "failed.tsv", tmp_path / "report.json"
    options = ["--failed-reads", failed, "--report", report]
    if in_parts:
        options += ["--plan", tmp_path / "plan", "--partitions", 3, "--engine", "local"]
    output, told = succeeds(changed, *options)
    expected = command.by_read(table)
    assert command.by_read(output) == {name: rows for name, rows in expected.items() if name not in others}
    warnings = [line for line in told.splitlines() if "WARNING" in line]
    assert len(warnings) == 1
    assert f"other bases in -r than in the BAM: 3 of {N_READS} reads" in warnings[0]
    assert f"all are in {failed}" in warnings[0]
    listed = [row.split("\t")[:3] for row in failed.read_text().splitlines()[1:]]
    assert listed == [[name, "bad_read", "other_bases"] for name in others]
    counts = json.loads(report.read_text())["run"]["counts"]
    assert (counts["bad_reads"], counts["cause_other_bases"], counts["cause_no_signal"]) == (3, 3, 0)


@mapped
@pytest.mark.parametrize("batch_size", [1, 512])
@pytest.mark.parametrize("is_indexed", [True, False])
def test_a_run_of_other_reads_fails(
    command: SignalCommand, batch_size: int, is_indexed: bool, made: ReadSet, unlabelled: ReadSet, tmp_path: Path, capfd
):
    changed = with_cut_reads(made, tmp_path / "reads", made.names[: N_READS // 2 + 1])
    inputs = changed.options() if is_indexed else without_index(changed, unlabelled)
    folder = tmp_path / "out"
    folder.mkdir()
    results = ["-o", folder / "out.tsv", "--report", folder / "report.json", "--failed-reads", folder / "failed.tsv"]
    line = refused(capfd, command.name, *inputs, *results, "-K", batch_size)
    assert f"other bases in -r than in the BAM: {N_READS // 2 + 1} of {N_READS} reads" in line
    assert "give the reads that were mapped" in line
    assert {path.name for path in folder.iterdir() if path.name[0] != "."} == {"report.json", "failed.tsv"}
    assert (folder / "failed.tsv").read_text().count("\n") == N_READS // 2 + 2
    assert "the run has failed: other bases" in json.loads((folder / "report.json").read_text())["run"]["warnings"][-1]


@mapped
@pytest.mark.parametrize("batch_size", [1, 512])
@pytest.mark.parametrize("n_copies", [1, 4])
def test_another_reference_ends_a_run(
    command: SignalCommand, batch_size: int, n_copies: int, made: ReadSet, tmp_path: Path, capfd
):
    """At its end, or after the first reads of many."""
    changed = with_other_genome(made, tmp_path)
    many = changed.with_records(tmp_path, repeated(made.records()[1], n_copies), index=False)
    folder = tmp_path / "out"
    folder.mkdir()
    results = ["-o", folder / "out.bam", "--report", folder / "report.html"]
    line = refused(capfd, command.name, *many.options(), *results, "-K", batch_size)
    assert f"{changed.genome}: is another reference than that of the alignments" in line
    assert "% of the aligned bases are equal" in line
    assert {path.name for path in folder.iterdir() if path.name[0] != "."} == {"report.html"}
    assert "is another reference" in (folder / "report.html").read_text()


def test_another_reference_ends_a_run_in_parts(made: ReadSet, tmp_path: Path, capfd):
    changed = with_other_genome(made, tmp_path)
    plan = ["--plan", tmp_path / "plan", "--partitions", 3, "--engine", "local"]
    line = refused(capfd, "call-methylation", *changed.options(), *plan, "-o", tmp_path / "out.tsv")
    assert "is another reference than that of the alignments" in line
    assert not (tmp_path / "out.tsv").exists()


@pytest.mark.parametrize("change", [with_other_genome, lambda made, path: with_cut_reads(made, path, made.names)])
def test_training_and_plots_take_no_others(made: ReadSet, change: Callable[..., ReadSet], tmp_path: Path, capfd):
    inputs = tmp_path / "inputs"
    inputs.mkdir()
    changed = change(made, inputs)
    files = ["-r", changed.reads, "-g", changed.genome]
    out = tmp_path / "out.html"
    says = "is another reference" if changed.genome != made.genome else "other bases in -r than in the BAM"
    assert says in refused(capfd, "plot", made.names[0], *files, "-b", made.bam, "-o", out)
    assert says in refused(
        capfd, "train", *files, "--unmethylated", made.bam, "--rounds", 1, "-o", tmp_path / "x.model"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["inputs"]


def test_masked_bases_of_a_reference_are_no_others(made: ReadSet, tmp_path: Path, succeeds: Succeeds, command, table):
    """Nor are lower-case ones."""
    if not command.is_mapped:
        pytest.skip("takes no reference")
    name, *lines = made.genome.read_text().splitlines()
    bases = "".join(lines)
    masked = "".join(base.lower() if i % 10 < 3 else "N" for i, base in enumerate(bases))
    assert "ERROR" not in succeeds(made.with_genome(tmp_path, f"{name}\n{masked}\n"))[1]
    assert succeeds(made.with_genome(tmp_path, f"{name}\n{bases.lower()}\n"))[0] == table


def test_a_run_without_results_leaves_none(made: ReadSet, unlabelled: ReadSet, tmp_path: Path, capfd):
    """Every read fails; the report and the list of failed reads say why, in parts too."""
    header, records = made.records()
    few = made.with_records(tmp_path, records[:3], header=header.to_dict())
    plan = ["--plan", tmp_path / "plan", "--partitions", 2, "--engine", "local"]
    for more in ([], plan):
        folder = tmp_path / f"out{len(more)}"
        folder.mkdir()
        files = {
            "-o": "calls.bam",
            "--bedmethyl": "sites.bed.gz",
            "--report": "run_mqc.json",
            "--failed-reads": "f.tsv",
        }
        outputs = [word for option, name in files.items() for word in (option, folder / name)]
        line = refused(capfd, "call-methylation", *few.options(), *outputs, "--min-mean-emission", 10, *more)
        assert "all 3 reads failed" in line
        assert {path.name for path in folder.iterdir()} == {"run_mqc.json", "run_reads_mqc.json", "f.tsv"}
        run = json.loads((folder / "run_mqc.json").read_text())["run"]
        assert run["warnings"][-1].startswith("the run has failed: all 3 reads failed")
        assert (folder / "f.tsv").read_text().count("\n") == 4


def test_strict_warnings_at_the_end_leave_no_results(made: ReadSet, tmp_path: Path, capfd):
    changed = with_cut_reads(made, tmp_path / "reads", made.names[:2])
    out = tmp_path / "out.tsv"
    line = refused(capfd, "call-methylation", *changed.options(), "-o", out, "--strict")
    assert "other bases in -r than in the BAM: 2 of" in line
    assert "(--strict)" in line
    assert not out.exists()


def test_copies_of_reads_count_once(made: ReadSet, unlabelled: ReadSet, tmp_path: Path, capfd):
    """Whether they are equal or trimmed, and although all of them are mapped; of each name the first counts."""
    name = made.names[0]
    text = {
        "one": f">{name}\n{made.sequence(name)}\n",
        "equal": f">{name}\n{made.sequence(name)}\n" * 3,
        "trimmed": f">{name}\n{made.sequence(name)}\n" + f">{name}\n{made.sequence(name)[200:]}\n" * 2,
    }
    tables = {}
    for kind, content in text.items():
        reads = tmp_path / f"{kind}.fasta"
        reads.write_text(content)
        out = tmp_path / f"{kind}.tsv"
        given = ["-r", reads, "-g", made.genome, "--slow5", unlabelled.signal_path, "-t", 2, "-o", out]
        capfd.readouterr()
        assert run_command("call-methylation", *given) == 0
        tables[kind] = out.read_bytes()
        told = capfd.readouterr().err
        assert ("2 reads have the name of a read before them" in told) == (kind != "one")
        assert ("other bases in -r than in the BAM: " in told) == (kind == "trimmed")
    assert tables["one"].count(b"\n") > 5
    assert tables["equal"] == tables["trimmed"] == tables["one"]


def test_an_own_record_of_other_bases_is_not_taken(made: ReadSet, unlabelled: ReadSet, tmp_path: Path, succeeds):
    """Without -r a hard-clipped record takes its bases from the primary one, which may be of another read."""
    header, records = made.records()
    clipped = pysam.AlignedSegment.fromstring(records[2].to_string(), header)
    clipped.query_sequence = (clipped.query_sequence or "")[4:]
    (operation, n), *rest = clipped.cigartuples
    clipped.cigartuples = [(5, 4), (operation, n - 4), *rest]
    clipped.flag |= 0x800
    clipped.query_name = records[3].query_name
    changed = made.with_records(tmp_path, [*records[:3], clipped, *records[3:]], header=header.to_dict())
    given = ["-b", changed.bam, "-g", made.genome, "--slow5", unlabelled.signal_path, "-t", 2]
    out = tmp_path / "out.tsv"
    assert run_command("call-methylation", *given, "-o", out) == 0
    given[1] = made.bam
    assert run_command("call-methylation", *given, "-o", tmp_path / "plain.tsv") == 0
    assert out.read_bytes() == (tmp_path / "plain.tsv").read_bytes()
