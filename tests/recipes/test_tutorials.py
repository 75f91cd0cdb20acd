"""The commands of the tutorials, run on real reads."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pysam
import pytest

import f5py

from .shell import ROOT, is_installed, needs, run, shell_blocks

#: Of m6anet for RNA004.
WEIGHTS = "rna004_hek293t.pt"


def folder_of(source: Path, folder: Path, *names: str) -> Path:
    """Make a folder with copies of some files; folders are linked."""
    for name in names:
        if (source / name).is_dir():
            (folder / name).symlink_to(source / name)
        else:
            shutil.copyfile(source / name, folder / name)
    return folder


def run_tutorial(
    name: str, folder: Path, stand_ins: Mapping[str, str] = MappingProxyType({}), leave_out: str = ""
) -> None:
    """Run the blocks of a tutorial, with other words for some.

    Those of tools that are not installed are left out, and those with the word `leave_out`.
    """
    text = (ROOT / "docs" / "tutorials" / f"{name}.md").read_text()
    for word, other in stand_ins.items():
        assert word in text
        text = text.replace(word, other)
    commands = [one for one in shell_blocks(text) if is_installed(one.split()[0]) or one.startswith("for ")]
    if leave_out:
        commands = [one for one in commands if leave_out not in one]
    assert commands
    for one in commands:
        run(folder, one)


@pytest.mark.shared
def test_r9_archive(ecoli: Path, tmp_path: Path):
    needs("samtools")
    run_tutorial("r9-archive", folder_of(ecoli, tmp_path, "fast5", "reads.fasta", "ref.fa"))
    with pysam.BGZFile(str(tmp_path / "counts.bed.gz")) as file:
        assert sum(1 for _ in file) > 4_000
    lines = (tmp_path / "frequency.tsv").read_text().splitlines()
    assert len(lines) > 2_000
    assert (tmp_path / "locus.png").stat().st_size > 10_000
    assert "<html" in (tmp_path / "report.html").read_text()


@pytest.mark.shared
def test_rna004_m6anet(shared_data: Path, tmp_path: Path):
    pytest.importorskip("pod5")
    names = ("dorado_aligned.bam", "reads.pod5", "reads.fastq", "ref.fa")
    folder_of(shared_data / "rna004_lacz", tmp_path, *names)
    cut, intron = 180, f"GTAAGT{'CATTACGGTCTAACTTGCCA' * 30}TTTCAG"
    with pysam.FastaFile(str(tmp_path / "ref.fa")) as file:
        (name,), (bases,) = file.references, map(file.fetch, file.references)
    (tmp_path / "genome.fa").write_text(f">{name}\n{bases[:cut]}{intron}{bases[cut:]}\n")
    # the weights, which the tutorial downloads, may lie beside the tools
    places = [Path(place) for place in os.environ.get("F5PY_RECIPE_PATH", "").split(os.pathsep)]
    weights = next((place / WEIGHTS for place in places if (place / WEIGHTS).is_file()), None)
    if weights is not None:
        shutil.copyfile(weights, tmp_path / WEIGHTS)
    run_tutorial("rna004-m6anet", tmp_path, leave_out="" if weights is not None else WEIGHTS)
    if (tmp_path / "m6anet_results").exists():
        assert (tmp_path / "m6anet_results" / "data.site_proba.csv").stat().st_size > 0
    assert (tmp_path / "m6anet" / "data.info").read_text().count("\n") > 10
    assert (tmp_path / "events.tsv").read_bytes().count(b"\n") > 10_000
    assert (tmp_path / "events.parquet").stat().st_size > 10_000
    with pysam.AlignmentFile(str(tmp_path / "genome.bam")) as file:
        gaps = [(length, record.get_tag("ts")) for record in file for op, length in record.cigartuples or [] if op == 3]
    assert len(gaps) > 10
    assert gaps.count((len(intron), "+")) > 0.9 * len(gaps)
    rows = [line.split("\t") for line in (tmp_path / "genome_events.tsv").read_text().splitlines()[1:]]
    places = {int(row[1]) for row in rows}
    assert not places & set(range(cut, cut + len(intron) - 9))
    assert len([place for place in places if place < cut]) > 100
    assert len([place for place in places if place >= cut + len(intron)]) > 100


@pytest.mark.shared
def test_r10_igv(shared_data: Path, tmp_path: Path):
    needs("samtools")
    folder_of(shared_data / "r10_wga", tmp_path, "reads.blow5", "reads.fastq", "reads.bam", "reads.bam.bai", "ref.fa")
    inputs = {"reads": "reads.fastq", "bam": "reads.bam", "genome": "ref.fa", "slow5": "reads.blow5"}
    called = tmp_path / "dorado_calls.bam"  # whoever has called
    f5py.call_methylation(
        **{name: tmp_path / file for name, file in inputs.items()}, modbam=called, output_format="none"
    )
    with pysam.AlignmentFile(called) as file:
        record = next(one for one in file if one.has_tag("MM"))
    locus = f"{record.reference_name}:{record.reference_start + 1}-{record.reference_start + 1500}"
    run_tutorial("r10-igv", tmp_path, {"chr11:2,000,000-2,003,000": locus})
    assert "<html" in (tmp_path / "locus.html").read_text()
    with pysam.AlignmentFile(str(tmp_path / "signals.bam"), check_sq=False) as file:
        assert all(record.has_tag("ss") and record.has_tag("si") for record in file)
    assert (tmp_path / "moves.paf").read_text().count("\n") > 20
    assert "<canvas" in (tmp_path / "read.html").read_text()


def test_r10_cpg(tmp_path: Path):
    run_tutorial("r10-cpg", tmp_path)
    assert "<svg" in (tmp_path / "fit.html").read_text()
    shifts = [line.split("\t")[1] for line in (tmp_path / "cpg.model").read_text().splitlines() if line[0].isdigit()]
    assert [float(shift) for shift in shifts[5:7]] == pytest.approx([-7, -16], abs=1.5)
    found = f5py.validate(tmp_path / "calls.tsv", tmp_path / "sample" / "truth_reads.tsv", output=tmp_path / "text")
    assert found["auc"] > 0.97


def test_train(tmp_path: Path):
    run_tutorial("train", tmp_path, {"--genome-length 100K": "--genome-length 25K"})
    assert "<svg" in (tmp_path / "training.html").read_text()
    ratios = [float(line.split("\t")[5]) for line in (tmp_path / "calls.tsv").read_text().splitlines()[1:]]
    assert sum(ratio > 0 for ratio in ratios) > 0.9 * len(ratios)


@pytest.mark.shared
def test_cluster(indexed_ecoli: Path, ecoli: Path, tmp_path: Path):
    names = ("reads.bam", "reads.bam.bai", "ref.fa", "ref.fa.fai")
    folder_of(ecoli, tmp_path, *names)
    for path in indexed_ecoli.iterdir():
        (tmp_path / path.name).symlink_to(path.resolve())
    run_tutorial("cluster", tmp_path)
    assert (tmp_path / "frequency.tsv").read_text().count("\n") > 1_000
    run(tmp_path, "f5py call-methylation -r reads.fasta -b reads.bam -g ref.fa -t 2 -o one.tsv")
    assert (tmp_path / "calls.tsv").read_bytes() == (tmp_path / "one.tsv").read_bytes()


def test_tables_for_r(tmp_path: Path) -> None:
    """In R, too, for the packages that are installed."""
    for name, seed in (("case", 1), ("control", 2)):
        made = tmp_path / name
        f5py.simulate(output=made, genome_length=20_000, n_reads=60, fixed_length=3_000, seed=seed)
        inputs = {"reads": made / "reads.fastq", "bam": made / "reads.bam", "genome": made / "ref.fa"}
        f5py.call_methylation(
            **inputs, fast5=made / "fast5", threads=2, output=tmp_path / "calls.tsv", modbam=tmp_path / f"{name}.bam"
        )
    shutil.copy(tmp_path / "case" / "ref.fa", tmp_path)
    run_tutorial("r-tables", tmp_path)
    text = (ROOT / "docs" / "tutorials" / "r-tables.md").read_text()
    for script in re.findall(r"```r\n(.*?)```", text, re.DOTALL):
        package = script.split("(")[1].split(")")[0]
        has_r = shutil.which("Rscript") is not None
        if has_r and not subprocess.call(["Rscript", "-e", f"library({package})"], stderr=subprocess.DEVNULL):
            (tmp_path / "script.R").write_text(script)
            subprocess.run(["Rscript", "script.R"], cwd=tmp_path, check=True)
    coverage = sum(int(line.split("\t")[2]) for line in (tmp_path / "case.dss.tsv").read_text().splitlines()[1:])
    assert coverage > 100
