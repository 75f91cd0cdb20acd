"""The commands of docs/recipes.md, run with the real tools where they are installed, and what comes out of them."""

from __future__ import annotations

import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pysam
import pytest

import f5py

from .shell import ROOT, needs, run, shell_blocks

DOCUMENT = ROOT / "docs" / "recipes.md"


def blocks(heading: str) -> list[str]:
    """Find the shell commands below a heading of the document; of the beginning, if it is empty."""
    parts = re.split(r"^## (.+)$", DOCUMENT.read_text(), flags=re.MULTILINE)
    return shell_blocks(dict(zip(["", *parts[1::2]], parts[::2], strict=True))[heading])


def rows(path: Path, header: bool = True) -> list[list[str]]:
    with path.open(newline="") as file:
        return list(csv.reader(file, delimiter="\t"))[int(header) :]


@pytest.fixture(scope="module")
def dna(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with simulated reads, and what the document's first lines make of them."""
    folder = tmp_path_factory.mktemp("recipes") / "dna"
    f5py.simulate(output=folder, genome_length=10_000, n_reads=24, median_length=4_000, seed=4)
    with (folder / "islands.bed").open("w") as file:
        file.writelines(f"simulated\t{start}\t{start + 500}\n" for start in range(0, 10_000, 500))
    for commands in blocks(""):
        run(folder, commands)
    return folder


@pytest.fixture
def copy(dna: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(dna, tmp_path / "run7"))


@pytest.fixture(scope="module")
def rna(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with real direct RNA reads."""
    folder = tmp_path_factory.mktemp("recipes") / "rna"
    folder.mkdir()
    source = shared_data / "rna002_sequin"
    names = {"ref.fa": "transcripts.fa"}
    for name in ("reads.bam", "reads.bam.bai", "reads.fastq", "reads.blow5", "ref.fa"):
        shutil.copyfile(source / name, folder / names.get(name, name))
    run(folder, "f5py index --slow5 reads.blow5 reads.fastq")
    return folder


def frequencies(folder: Path) -> dict[int, tuple[int, int]]:
    """Read called and methylated calls of each CpG, by the start of the site."""
    table = f5py.frequencies(folder / "calls.tsv", split_groups=True, returns="pandas")
    return {row.start: (row.called_sites, row.called_sites_methylated) for row in table.itertuples()}


def test_all_recipes_are_here():
    tested = set(re.findall(r'blocks\("(.+?)"\)', Path(__file__).read_text()))
    with_commands = {name for name in re.findall(r"^## (.+)$", DOCUMENT.read_text(), re.MULTILINE) if blocks(name)}
    assert with_commands == tested


def test_tabix(copy: Path):
    needs("tabix")
    run(copy, blocks("tabix")[0])
    found = rows(copy / "region.bed", header=False)
    with pysam.BGZFile(str(copy / "counts.bed.gz")) as file:
        everything = [line.decode().split("\t") for line in file]
    assert found == [row for row in everything if int(row[1]) < 1200 and int(row[2]) > 1000]
    assert len(found) > 5


def test_bedtools(copy: Path):
    needs("bedtools")
    run(copy, blocks("bedtools")[0])
    sites = frequencies(copy)
    for _, start, end, share in rows(copy / "islands.tsv", header=False):
        # bedMethyl has a row for each strand of a site; one lies at the C, the other one at the G
        inside = [sites[at] for at in sites if int(start) <= at and at + 2 <= int(end)]
        called, methylated = np.sum(inside, axis=0)
        assert float(share) == pytest.approx(methylated / called, abs=0.05)
    assert len(rows(copy / "islands.tsv", header=False)) == 20


def test_igv(copy: Path):
    """The tracks, as another library reads them."""
    needs("samtools")
    bigwig = pytest.importorskip("pyBigWig")
    run(copy, blocks("IGV")[0])
    with bigwig.open(str(copy / "frequency.bw")) as file:
        shown = {start: value for start, _, value in file.intervals("simulated")}
    graph = {int(row[1]): float(row[3]) for row in rows(copy / "frequency.bedgraph", header=False) if len(row) == 4}
    sites = {at: 100 * methylated / called for at, (called, methylated) in frequencies(copy).items() if called}
    assert shown == pytest.approx(sites, abs=0.01)
    assert graph == pytest.approx(sites, abs=0.01)


def test_modkit(copy: Path):
    """Columns as modkit's documentation describes them."""
    run(copy, blocks("modkit")[0])
    with pysam.BGZFile(str(copy / "combined.bed.gz")) as file:
        found = [line.decode().split("\t") for line in file]
    sites = frequencies(copy)
    assert len(found) > 100
    for row in found:
        assert len(row) == 18
        start, coverage, modified, canonical, other = int(row[1]), *map(int, (row[9], row[11], row[12], row[13]))
        assert (row[0], int(row[2]), row[3], row[5]) == ("simulated", start + 1, "m", ".")
        assert coverage == modified + canonical + other == sites[start][0]
        assert modified == sites[start][1]
        assert float(row[10]) == pytest.approx(100 * modified / coverage if coverage else 0, abs=0.01)
    with pysam.AlignmentFile(str(copy / "calls.bam")) as file:
        record = next(record for record in file if record.has_tag("MM"))
    assert record.get_tag("MM").startswith("C+m?,")
    assert record.get_tag("MN") == record.query_length
    assert record.modified_bases_forward


def test_multiqc(copy: Path):
    needs("multiqc")
    run(copy, blocks("MultiQC")[0])
    data = json.loads((copy / "multiqc" / "multiqc_data" / "multiqc_data.json").read_text())
    shown = data["report_saved_raw_data"]["multiqc_f5py_call_methylation_table"]["run7"]
    ratios = np.array([float(row[5]) for row in rows(copy / "calls.tsv")])
    assert shown["results"] == len(ratios)
    assert (ratios > 2.5).sum() <= shown["methylated"] <= (ratios >= 2.5).sum()  # the table has two decimals


def test_methylartist(copy: Path):
    needs("methylartist")
    run(copy, blocks("methylartist")[0])
    assert (copy / "locus.png").read_bytes().startswith(b"\x89PNG")
    assert (copy / "locus.png").stat().st_size > 20_000


def test_dss_methylkit_and_bsseq(copy: Path):
    run(copy, blocks("DSS, methylKit and bsseq")[0])
    sites = frequencies(copy)
    dss, methylkit = rows(copy / "dss.tsv"), rows(copy / "methylkit.tsv")
    assert [(int(row[1]) - 1, (int(row[2]), int(row[3]))) for row in dss] == list(sites.items())
    for row in methylkit:
        assert row[0] == f"{row[1]}.{row[2]}"
        assert float(row[5]) + float(row[6]) == pytest.approx(100)
    assert 100 < len(dss) <= len(methylkit) <= 2 * len(dss)  # methylKit's table has the strands apart


def test_parallel(copy: Path):
    needs("parallel")
    run(copy, blocks("GNU parallel")[0])
    f5py.frequencies(copy / "calls.tsv", split_groups=True, output=copy / "whole.tsv")
    assert (copy / "frequency.tsv").read_bytes() == (copy / "whole.tsv").read_bytes()


def test_snakemake(tmp_path: Path):
    needs("snakemake")
    wrapper = ROOT / "packaging" / "snakemake" / "call-methylation"
    run(tmp_path, f"snakemake --lint -s {wrapper}/test/Snakefile --config wrapper={wrapper}")
    run(tmp_path, f"snakemake --quiet --cores 2 -s {wrapper}/test/Snakefile --config wrapper={wrapper}")
    assert {"calls.tsv.gz", "calls.bam", "sites.bed", "tagged.bam"} <= {path.name for path in tmp_path.iterdir()}


def test_snakemake_in_parts(tmp_path: Path):
    """Some parts are done by one run of the workflow, the others by the next; the bytes are those of one run."""
    needs("snakemake")
    workflow = ROOT / "packaging" / "snakemake" / "parts" / "Snakefile"
    config = "--config bam=sim/reads.bam genome=sim/ref.fa 'options=--fast5 sim/fast5 --min-mapq 0' partitions=4"
    run(tmp_path, "f5py simulate --force -o sim --genome-length 20K --reads 24 --median-length 2K --seed 1")
    run(tmp_path, f"snakemake --lint -s {workflow} {config}")
    run(tmp_path, f"snakemake --quiet --cores 2 -s {workflow} {config} --until plan")
    run(tmp_path, "f5py run-part f5py-plan 2")
    run(tmp_path, f"snakemake --quiet --cores 2 -s {workflow} {config}")
    run(tmp_path, "f5py call-methylation -b sim/reads.bam -g sim/ref.fa --fast5 sim/fast5 --min-mapq 0 -o one.tsv.gz")
    assert (tmp_path / "calls.tsv.gz").read_bytes() == (tmp_path / "one.tsv.gz").read_bytes()


def sites_of(folder: Path) -> set[tuple[str, int]]:
    with (folder / "data.info").open() as file:
        return {(row["transcript_id"], int(row["transcript_position"])) for row in csv.DictReader(file)}


@pytest.mark.shared
def test_m6anet(rna: Path):
    needs("m6anet")
    straight, from_table = blocks("m6anet")
    run(rna, straight)
    run(rna, from_table)
    assert sites_of(rna / "m6anet") == sites_of(rna / "m6anet_of_table")
    with (rna / "m6anet_results" / "data.site_proba.csv").open() as file:
        found = list(csv.DictReader(file))
    assert {(row["transcript_id"], int(row["transcript_position"])) for row in found} <= sites_of(rna / "m6anet")
    assert all(0 <= float(row["probability_modified"]) <= 1 for row in found)


@pytest.mark.shared
def test_xpore(rna: Path):
    needs("xpore")
    run(rna, blocks("xpore")[0])
    assert (rna / "xpore_a" / "data.json").stat().st_size > 1000
    assert len((rna / "xpore_out" / "diffmod.table").read_text().splitlines()) > 1


@pytest.mark.shared
def test_nanocompore(rna: Path):
    needs("nanocompore")
    run(rna, blocks("Nanocompore")[0])
    found = rows(rna / "nanocompore_output" / "out_nanocompore_results.tsv")
    assert len(found) > 1000
    # the two conditions are the same reads
    assert {float(row[10]) for row in found if row[10] not in ("", "NA")} == {1.0}
