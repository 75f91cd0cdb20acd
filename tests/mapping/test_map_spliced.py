"""Spliced reads: records equal to those of minimap2 2.24."""

from __future__ import annotations

import gzip
import random
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from ..made_data import refused, run_command

_RANDOM = random.Random(11)
_EXONS = 180, 150, 260, 170
_INTRONS = (90, "GT", "AG"), (2500, "GC", "AG"), (30000, "GT", "AG")
#: By minimap2's options: name, flag, position, CIGAR, score and ts of each record of minimap2 2.24, of the made set.
EXPECTED = {
    "-x splice": """
        sense 0 301 180M90N150M2500N260M30000N170M 655 +
        antisense 16 301 180M90N150M2500N260M30000N170M 655 -
        minus 16 34051 99M1D70M30000N108M1D151M2502N2I27M1D120M90N59M1D120M 630 +
        noisy 0 301 74M1D105M90N5M1D110M1D33M2500N77M1D110M1D71M30000N39M1D109M1D20M25S 606 +
        unspliced 0 501 1000M 1000 .
        part 16 64311 170M2502N2I148M90N60M 310 +""",
    "-x splice -uf -k14": """
        sense 0 301 180M90N150M2500N260M30000N170M 655 +
        antisense 16 301 176M91N1M1I152M2500N260M30000N170M 617 +
        minus 16 34051 99M1D70M30000N108M1D151M2502N2I27M1D120M90N59M1D120M 630 +
        noisy 0 301 74M1D105M90N5M1D110M1D33M2500N77M1D110M1D71M30000N39M1D109M1D20M25S 606 +
        unspliced 0 501 1000M 1000 +
        part 16 64311 170M2502N2I148M90N60M 310 +""",
    "-x splice:hq --junc-bed genes.bed": """
        sense 0 301 180M90N150M2500N260M30000N170M 709 +
        antisense 16 301 180M90N150M2500N260M30000N170M 709 -
        minus 16 34051 99M1D70M30000N108M1D151M2500N29M1D120M90N59M1D120M 657 +
        noisy 0 301 74M1D105M90N5M1D110M1D33M2500N77M1D110M1D71M30000N39M1D109M1D20M25S 618 +
        unspliced 0 501 1000M 1000 .
        part 16 64311 170M2500N150M90N60M 343 +""",
    "-x map-ont -ub": """
        sense 0 301 179M90N151M430S 636 .
        sense 2048 3221 330H260M170H 520 .
        sense 2048 33481 590H170M 340 .
        antisense 16 301 179M90N151M430S 636 .
        antisense 2064 3221 330H260M170H 520 .
        antisense 2064 33481 590H170M 340 .
        minus 16 66981 428S29M1D118M90N61M1D120M 608 .
        minus 2064 64221 169H108M1D151M328H 506 .
        minus 2064 34051 99M1D75M582H 336 .
        noisy 0 301 74M1D104M90N6M1D110M1D33M451S 594 .
        noisy 2048 3221 327H77M1D110M1D71M193H 492 .
        noisy 2048 33484 588H36M1D109M1D20M25H 312 .
        unspliced 0 501 1000M 2000 .
        part 16 66981 170S148M90N62M 396 .
        part 2064 64311 170M210H 340 .""",
    "-x splice -un -G 5k": """
        sense 0 301 179M90N151M2500N260M170S 526 -
        sense 2048 33481 590H170M 170 -
        antisense 16 301 179M90N151M2500N260M170S 526 -
        antisense 2064 33481 590H170M 170 -
        minus 16 64221 169S108M1D151M2500N29M1D118M90N61M1D120M 505 -
        minus 2064 34051 99M1D75M582H 168 -
        noisy 0 301 74M1D104M90N6M1D110M1D33M2500N77M1D110M1D71M193S 491 -
        noisy 2048 33484 588H36M1D109M1D20M25H 156 -
        unspliced 0 501 1000M 1000 -
        part 16 64311 170M2500N148M90N62M 316 -""",
    "-x splice -C 0 --splice-flank=no": """
        sense 0 301 179M90N151M2500N260M30000N170M 664 .
        antisense 16 301 179M90N151M2500N260M30000N170M 664 .
        minus 16 34051 99M1D70M30000N108M1D151M2500N29M1D118M90N61M1D120M 636 .
        noisy 0 301 74M1D104M90N6M1D110M1D33M2500N77M1D110M1D71M30000N39M1D109M1D20M25S 615 .
        unspliced 0 501 1000M 1000 .
        part 16 64311 170M2500N148M90N62M 316 .""",
}  # fmt: skip


def _bases(n: int) -> str:
    return "".join(_RANDOM.choices("ACGT", k=n))


def _gene() -> tuple[str, str]:
    exons = [_bases(n) for n in _EXONS]
    gene = exons[0]
    for (n, first, last), exon in zip(_INTRONS, exons[1:], strict=True):
        gene += f"{first}A{_bases(n - 6)}C{last}{exon}"
    return "".join(exons), gene


def _other_strand(bases: str) -> str:
    return bases[::-1].translate(str.maketrans("ACGT", "TGCA"))


def _with_errors(bases: str, step: int) -> str:
    """Change a base, and leave one out, in turn every `step` and two of `step` bases."""
    changed = ""
    for i, base in enumerate(bases):
        if i % (3 * step) == step:
            changed += "ACGT"["ACGT".index(base) - 1]
        elif i % (3 * step) != 2 * step:
            changed += base
    return changed


def _bed_line(start: int, strand: str) -> str:
    order = 1 if strand == "+" else -1
    sizes, gaps = _EXONS[::order], [n for n, *_ in _INTRONS][::order]
    starts = [sum(sizes[:i]) + sum(gaps[:i]) for i in range(len(sizes))]
    end = start + starts[-1] + sizes[-1]
    blocks = [",".join(map(str, numbers)) + "," for numbers in (sizes, starts)]
    return "\t".join(map(str, ["one", start, end, "g", 0, strand, start, start, 0, len(sizes), *blocks]))


@pytest.fixture(scope="module")
def made_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Contig with a gene on each strand, reads of their transcripts, and the annotation."""
    folder = tmp_path_factory.mktemp("spliced")
    _RANDOM.seed(11)
    (one, gene), (other, other_gene) = _gene(), _gene()
    contig = _bases(300) + gene + _bases(400) + _other_strand(other_gene) + _bases(200)
    (folder / "ref.fa").write_text(f">one\n{contig}\n")
    reads = {
        "sense": one, "antisense": _other_strand(one), "minus": _with_errors(other, 60),
        "noisy": _with_errors(one, 37) + "A" * 25, "unspliced": contig[500:1500], "part": other[120:500],
    }  # fmt: skip
    (folder / "reads.fa").write_text("".join(f">{name}\n{bases}\n" for name, bases in reads.items()))
    lines = [_bed_line(300, "+"), _bed_line(300 + len(gene) + 400, "-")]
    (folder / "genes.bed").write_text("track name=genes\n" + "\n".join(lines) + "\nelsewhere\t5\t90\n")
    with gzip.open(folder / "introns.bed.gz", "wt") as file:
        for line in lines:
            contig_name, start, *_, sizes, starts = line.split("\t")
            blocks = list(zip(map(int, starts.split(",")[:-1]), map(int, sizes.split(",")[:-1]), strict=True))
            for (at, size), (following, _) in pairwise(blocks):
                intron = int(start) + at + size, int(start) + following
                print(contig_name, *intron, "i", 0, line.split("\t")[5], sep="\t", file=file)
    return folder


def mapped(folder: Path, *options: object, output: str = "out.sam") -> list[str]:
    """Lines of records, or of PAF, that map writes of the made set."""
    given = [folder / one if str(one).endswith((".bed", ".bed.gz")) else one for one in options]
    assert run_command("map", *given, folder / "ref.fa", folder / "reads.fa", "-t", 1, "-o", folder / output) == 0
    return [line for line in (folder / output).read_text().splitlines() if not line.startswith("@")]


def _short(line: str) -> str:
    """Name, flag, position, CIGAR, score and strand of the transcript of a record."""
    fields = line.split("\t")
    tags = {tag[:2]: tag[5:] for tag in fields[11:]}
    return " ".join([fields[0], fields[1], fields[3], fields[5], tags["AS"], tags.get("ts", ".")])


@pytest.mark.parametrize("options", EXPECTED)
def test_records_of_minimap2(options: str, made_set: Path):
    expected = [line.strip() for line in EXPECTED[options].strip().splitlines()]
    assert sorted(map(_short, mapped(made_set, *options.split()))) == sorted(expected)


def test_names_and_orders_of_options(made_set: Path):
    splice = mapped(made_set, "-x", "splice")
    assert mapped(made_set, "-ax", "cdna") == splice == mapped(made_set, "-ub", "-x", "splice")
    hq = mapped(made_set, "-x", "splice:hq", "--junc-bed", "genes.bed")
    assert mapped(made_set, "-x", "splice:hq", "--junc-bed", "introns.bed.gz") == hq
    assert mapped(made_set, "-x", "map-ont", "-un") == mapped(made_set)
    assert mapped(made_set, "--splice", "-uf", "-G", "5k") != mapped(made_set, "-uf")


def test_tags_of_introns(made_set: Path):
    """No trace of introns in MD; two bases of each end and the length in cs."""
    (sense,) = (line for line in mapped(made_set, "-x", "splice", "--cs") if line.startswith("sense\t"))
    assert sense.split("\tMD:Z:")[1].split("\t")[0] == "760"
    assert sense.split("\tcs:Z:")[1].split("\t")[0] == ":180~gt90ag:150~gc2500ag:260~gt30000ag:170"
    assert "\tNM:i:0\t" in sense
    assert "\tnn:i:0\tts:A:+\ttp:A:P\t" in sense
    paf = mapped(made_set, "-x", "splice", output="out.paf")
    assert paf[0].split("\t")[9:11] == ["760", "760"]
    assert "\tnn:i:0\tts:A:+\ttp:A:P\t" in paf[0]
    assert "\tcg:Z:180M90N150M2500N260M30000N170M" in paf[0]


def test_bytes_do_not_depend_on_threads_and_batches(made_set: Path):
    for more in (["-t", 3], ["-K", 1], ["--gpu", "on"]):
        name = "".join(map(str, more)).strip("-")
        command = ["map", "-x", "splice", made_set / "ref.fa", made_set / "reads.fa", "-o", made_set / f"{name}.sam"]
        assert run_command(*command, *more) == 0
    one, *others = (
        re.sub("@PG.*", "", (made_set / f"{name}.sam").read_text()) for name in ("t3", "K1", "-gpuon".strip("-"))
    )
    assert others == [one, one]


@pytest.mark.parametrize("option", [["-G", "10k"], ["-C", 5], ["--junc-bonus", 3], ["--junc-bed", "genes.bed"]])
def test_options_about_introns_without_introns_say_so(option, made_set: Path, capfd: pytest.CaptureFixture[str]):
    expected = mapped(made_set)
    capfd.readouterr()
    assert mapped(made_set, *option) == expected
    assert f"{option[0]}: without effect" in capfd.readouterr().err


def test_longest_intron_without_the_preset_changes_nothing(made_set: Path, capfd: pytest.CaptureFixture[str]):
    expected = mapped(made_set, "-uf")
    assert mapped(made_set, "-uf", "-G", "5k") == expected
    assert "-G: without effect" in capfd.readouterr().err


_GENE = "one\t300\t900\tg\t0\t+\t300\t300\t0\t2\t100,100,\t0,500,\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (_GENE + "one\t40\n", "line 2: is no line of BED: 'one\\t40'"),
        (_GENE + "one 40 90 i 0 +\n", "line 2: is no line of BED"),
        ("one\tx\t90\ti\t0\t+\n", "line 1: is no line of BED"),
        ("one\t90\t90\ti\t0\t+\n", "line 1: is no line of BED"),
        ("one\t-5\t90\ti\t0\t+\n", "line 1: is no line of BED"),
        ("#header\n\n" + _GENE.replace("100,100,", "100,"), "line 3: is no line of BED"),
        (_GENE.replace("0,500,", "0,800,"), "line 1: is no line of BED"),
        ("one\t90\t99999999\ti\t0\t+\n", "line 1: ends at 99999999, but contig one of the reference has"),
        ("two\t40\t90\ti\t0\t+\none\t40\t90\ti\t0\t.\n", "has no intron with a strand on a contig"),
        ("", "has no intron"),
    ],
)
def test_damaged_annotation(text: str, message: str, made_set: Path, tmp_path: Path, capfd):
    (tmp_path / "bad.bed").write_text(text)
    command = ["map", "-x", "splice", made_set / "ref.fa", made_set / "reads.fa", "-o", tmp_path / "out.bam"]
    line = refused(capfd, *command, "--junc-bed", tmp_path / "bad.bed")
    assert f"{tmp_path / 'bad.bed'}" in line
    assert message in line
    assert not (tmp_path / "out.bam").exists()
    line = refused(capfd, *command, "--junc-bed", tmp_path / "none.bed")
    assert "none.bed: cannot be opened" in line


# Options of the runs that the shared files have been made by; the reads, and the kind of file, if they are others.
_GENES = "--junc-bed genes.bed"
_RUNS = {
    "splice": "-x splice",
    "splice_uf_k14": "-x splice -uf -k14",
    "splice_hq": "-x splice:hq",
    "splice_hq_uf": "-x splice:hq -uf",
    "ont_uf": "-x map-ont -uf",
    "ont_ub": "-x map-ont -ub",
    "ont_uf_C9": "-x map-ont -uf -C9",
    "ont_splice": "-x map-ont --splice",
    "splice_junc": f"-x splice {_GENES}",
    "splice_junc_k14": f"-x splice -uf -k14 {_GENES}",
    "splice_junc_bonus": f"-x splice {_GENES} --junc-bonus 15",
    "splice_un": "-x splice -un",
    "splice_ur": "-x splice -ur",
    "splice_C5_G20k": "-x splice -C5 -G20k",
    "splice_G300k": "-x splice -G300k",
    "splice_noflank": "-x splice --splice-flank=no",
    "endseed": "-x splice -k14 --end-seed-pen 10",
    "noendflt": "-x splice -k14 --no-end-flt",
    "z50": "-x splice -z 50,30",
    "zc": "-x splice -B6 -O6,40 -E2,0 -z100,50",
    "zd": "-x splice",
    "zd50": "-x splice -z 50,30",
    "zdont": "-x map-ont -uf",
    "sq_ont_uf": "-x map-ont -uf",
    "sq_ont_uf_k14": "-x map-ont -uf -k14",
    "sq_splice": "-x splice -uf -k14",
    "splice_eqx_cs": "-x splice --eqx --cs --no-MD",
    "splice_cs.paf": "-x splice --cs",
    "splice_uf_k14_cs.paf": "-x splice -uf -k14 --cs",
    "ont_uf_cs.paf": "-x map-ont -uf --cs",
}


def _without_bases(lines: list[str]) -> list[str]:
    """Lines without SEQ, QUAL and trailing zeros of de, sorted."""
    short = ["\t".join(line.split("\t")[:9] + line.split("\t")[11:]) for line in lines]
    return sorted(re.sub(r"(\tde:f:0\.\d*?[1-9])0+(?=\t|$)", r"\1", line) for line in short)


@pytest.mark.shared
@pytest.mark.parametrize("name", _RUNS)
def test_whole_sets(name: str, shared_data: Path, tmp_path: Path):
    folder = shared_data / "map_splice"
    if not folder.is_dir():
        pytest.skip(f"needs {folder}")
    reads = "zd.fq.gz" if name.startswith("zd") else "reads.fq.gz"
    files = ("sequin.fa.gz", "sequin_reads.fq.gz") if name.startswith("sq_") else ("genome.fa.gz", reads)
    options = [str(folder / one) if one.endswith(".bed") else one for one in _RUNS[name].split()]
    is_paf = name.endswith(".paf")
    output = tmp_path / ("out.paf" if is_paf else "out.sam")
    assert run_command("map", *options, *(folder / file for file in files), "-o", output) == 0
    found = [line for line in output.read_text().splitlines() if not line.startswith("@")]
    with gzip.open(folder / "out" / (f"{name}.gz" if is_paf else f"{name}.nosq.sam.gz"), "rt") as file:
        expected = [line for line in file.read().splitlines() if not line.startswith("@")]
    if is_paf:
        assert found == expected
    else:
        padded = ["\t".join([*line.split("\t")[:9], "", "", *line.split("\t")[9:]]) for line in expected]
        assert _without_bases(found) == _without_bases(padded)


@pytest.mark.shared
@pytest.mark.skipif(shutil.which("minimap2") is None, reason="needs minimap2")
@pytest.mark.parametrize("name", ["rna004_lacz", "rna002_sequin"])
@pytest.mark.parametrize("options", ["-x map-ont -uf -k14", "-x splice -uf -k14", "-x splice:hq", "-x map-ont -ub"])
def test_direct_rna_against_the_program(name: str, options: str, shared_data: Path, tmp_path: Path):
    files = [str(shared_data / name / file) for file in ("ref.fa", "reads.fastq")]
    run = subprocess.run(
        ["minimap2", "-a", "--MD", *options.split(), *files], capture_output=True, text=True, check=True
    )
    version = re.search(r"@PG\tID:minimap2.*VN:(\S+)", run.stdout)
    if version is None or not version[1].startswith("2.24"):
        pytest.skip("needs minimap2 2.24")
    expected = [line for line in run.stdout.splitlines() if not line.startswith("@")]
    assert run_command("map", *options.split(), *files, "-o", tmp_path / "out.sam") == 0
    found = [line for line in (tmp_path / "out.sam").read_text().splitlines() if not line.startswith("@")]
    assert _without_bases(found) == _without_bases(expected)
