"""``f5py map`` against the files of minimap2 2.24: every line, column and tag."""

from __future__ import annotations

import gzip
import subprocess
import sys
from array import array
from pathlib import Path

import pysam
import pytest

from f5py.mapping.options import MapOptions

from ..made_data import run_command
from .real_sets import text_of

pytestmark = pytest.mark.shared
ECOLI = ("ecoli_r94/ref.fa", "ecoli_r94/reads.fasta")
STRESS = ("map_ecoli/stress_ref.fa.gz", "map_ecoli/stress_reads.fa.gz")
PAFS = {
    "ecoli": (*ECOLI, ["--cs", "short"]),
    "ecoli.noskip": (*ECOLI, ["--cs", "short", "--max-chain-skip", "1000000"]),
    "k12": ("map_ecoli/k12.fa.gz", ECOLI[1], []),
    "stress": (*STRESS, []),
    "stress.noskip": (*STRESS, ["--max-chain-skip", "1000000"]),
    "stress.f2000": (*STRESS, ["-f", "2000"]),
    "stress.f2000.noskip": (*STRESS, ["-f", "2000", "--max-chain-skip", "1000000"]),
    "stress.map-hifi": (*STRESS, ["-x", "map-hifi"]),
    "stress.map-pb": (*STRESS, ["-x", "map-pb"]),
    "r10": ("r10_wga/ref.fa", "r10_wga/reads.fastq", []),
    "rna002": ("rna002_sequin/ref.fa", "rna002_sequin/reads.fastq", ["-x", "rna"]),
    "ava": (ECOLI[1], ECOLI[1], ["-x", "ava-ont"]),
}
SAMS = {
    "ecoli": (*ECOLI, []),
    "stress": (*STRESS, []),
    "rna004": ("rna004_lacz/ref.fa", "rna004_lacz/reads.fastq", ["-x", "rna", "-y"]),
}


def records_of(path: Path) -> list[str]:
    """Lines of records as htslib writes them, sorted; of tags that stand twice the first."""
    pysam.set_verbosity(0)
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        lines = [record.to_string() for record in file.fetch(until_eof=True)]
    found = []
    for line in lines:
        fields = line.split("\t")
        tags: dict[str, str] = {}
        for tag in fields[11:]:
            tags.setdefault(tag[:2], tag)
        found.append("\t".join([*fields[:11], *tags.values()]))
    return sorted(found)


@pytest.mark.parametrize("name", PAFS)
def test_paf_is_that_of_minimap2(name: str, shared_data: Path, tmp_path: Path):
    reference, reads, options = PAFS[name]
    output = tmp_path / "out.paf"
    assert run_command("map", "-t", 2, *options, shared_data / reference, shared_data / reads, "-o", output) == 0
    assert output.read_text() == text_of(shared_data / "map_ecoli" / f"{name}.paf.gz")


@pytest.mark.parametrize("name", SAMS)
def test_bam_has_the_records_of_minimap2(name: str, shared_data: Path, tmp_path: Path):
    reference, reads, options = SAMS[name]
    output = tmp_path / "out.bam"
    assert run_command("map", "-t", 2, *options, shared_data / reference, shared_data / reads, "-o", output) == 0
    theirs = tmp_path / "theirs.sam"
    theirs.write_text(text_of(shared_data / "map_ecoli" / f"{name}.sam.gz"))
    assert records_of(output) == records_of(theirs)
    pysam.quickcheck(str(output))
    with pysam.AlignmentFile(str(output)) as file:
        places = [(record.reference_id % (1 << 32), record.reference_start) for record in file.fetch(until_eof=True)]
        assert places == sorted(places)
        assert file.header["HD"]["SO"] == "coordinate"
        n = sum(1 for _ in file.fetch())
    assert n == sum(1 for contig, _ in places if contig < 1 << 31)


@pytest.fixture(scope="module")
def mapped(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    output = tmp_path_factory.mktemp("map") / "out.bam"
    assert run_command("map", "-t", 2, *(shared_data / name for name in ECOLI), "-o", output) == 0
    return records_text(output)


def records_text(path: Path) -> bytes:
    """Return the records of a file without its header, in their order."""
    return subprocess.run(["samtools", "view", path], check=True, capture_output=True).stdout


@pytest.mark.parametrize("kind", ["fastq.gz", "fasta.zst", "bam", "sam", "cram", "stdin"])
def test_reads_from_other_files(kind: str, shared_data: Path, tmp_path: Path, mapped: bytes, monkeypatch):
    fasta = (shared_data / ECOLI[1]).read_bytes()
    reads = tmp_path / f"reads.{kind}"
    output = tmp_path / "out.bam"
    if kind == "stdin":
        command = ["f5py", "map", str(shared_data / ECOLI[0]), "-", "-o", str(output)]

        subprocess.run([sys.executable, "-m", *command], input=fasta, check=True, capture_output=True)
    else:
        write_as(kind, fasta, reads)
        assert run_command("map", shared_data / ECOLI[0], reads, "-o", output) == 0
    found = records_text(output).decode().splitlines()
    if kind == "fastq.gz":
        assert "\tIIII" in found[0]
        found = ["\t".join([*line.split("\t")[:10], "*", *line.split("\t")[11:]]) for line in found]
    assert found == mapped.decode().splitlines()


def pairs_of(fasta: bytes) -> list[tuple[bytes, bytes]]:
    return [(one.split(b"\n")[0].split()[0], b"".join(one.split(b"\n")[1:])) for one in fasta[1:].split(b"\n>")]


def write_as(kind: str, fasta: bytes, path: Path) -> None:
    """Write reads in another format."""
    pairs = pairs_of(fasta)
    if kind == "fastq.gz":
        text = b"".join(b"@%b\r\n%b\r\n+\r\n%b\r\n" % (name, bases, b"I" * len(bases)) for name, bases in pairs)
        path.write_bytes(gzip.compress(text))
    elif kind == "fasta.zst":
        import zstandard

        path.write_bytes(zstandard.compress(fasta))
    else:
        mode = {"bam": "wb", "sam": "w", "cram": "wc"}[kind]
        header = pysam.AlignmentHeader.from_text("@HD\tVN:1.6\n")
        with pysam.AlignmentFile(str(path), mode, header=header) as out:
            for name, bases in pairs:
                record = pysam.AlignedSegment(header)
                record.query_name, record.flag, record.query_sequence = name.decode(), 4, bases.decode()
                out.write(record)


@pytest.fixture
def tagged(shared_data: Path, tmp_path: Path) -> tuple[Path, dict[str, list[str]]]:
    """Write an unaligned BAM file as a basecaller does, with the tags of every read."""
    pairs = pairs_of((shared_data / ECOLI[1]).read_bytes())
    header = pysam.AlignmentHeader.from_text(
        "@HD\tVN:1.6\tSO:unknown\n@PG\tID:basecaller\tPN:dorado\tVN:1\n@RG\tID:run\tSM:sample\tPL:ONT\n"
    )
    path = tmp_path / "calls.bam"
    tags = {}
    with pysam.AlignmentFile(str(path), "wb", header=header) as out:
        for i, (name, bases) in enumerate(pairs):
            record = pysam.AlignedSegment(header)
            record.query_name, record.flag, record.query_sequence = name.decode(), 4, bases.decode()
            record.query_qualities_str = "".join(chr(33 + (j + i) % 50) for j in range(len(bases)))
            record.set_tag("mv", array("b", [5, 1, 0, 1]))
            n = bases.count(b"C")
            record.set_tag("MM", f"C+m?,{','.join('0' * min(n, 3))};" if n else "C+m?;")
            record.set_tag("ML", array("B", [7, 128, 250][: min(n, 3)]))
            record.set_tag("ts", 7 + i)
            record.set_tag("qs", 11.25)
            record.set_tag("pi", "parent")
            record.set_tag("RG", "run")
            record.set_tag("NM", 3)  # of an earlier mapping
            out.write(record)
            tags[name.decode()] = [tag for tag in record.to_string().split("\t")[11:] if not tag.startswith("NM")]
    return path, tags


def test_tags_of_unaligned_bam_are_kept(tagged, shared_data: Path, tmp_path: Path):
    path, tags = tagged
    output = tmp_path / "out.bam"
    assert run_command("map", shared_data / ECOLI[0], path, "-o", output) == 0
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        modified = {one.query_name: dict(one.modified_bases_forward or {}) for one in file.fetch(until_eof=True)}
    assert sum(len(one) for one in modified.values()) > 100
    with pysam.AlignmentFile(str(output)) as file:
        assert file.header["RG"] == [{"ID": "run", "SM": "sample", "PL": "ONT"}]
        assert [one["ID"] for one in file.header["PG"]] == ["basecaller", "f5py"]
        assert file.header["PG"][1]["PP"] == "basecaller"
        n = 0
        for record in file.fetch(until_eof=True):
            fields = record.to_string().split("\t")
            wanted = tags[record.query_name]
            assert fields[-len(wanted) :] == wanted
            assert "H" not in (record.cigarstring or "")  # the tags are those of all bases
            assert record.query_sequence
            # keys have the strand of the record, too
            found = {(one[0], one[2]): sorted(places) for one, places in (record.modified_bases_forward or {}).items()}
            assert found == {(one[0], one[2]): places for one, places in modified[record.query_name].items()}
            n += 1
    assert n == 115


def test_index_file(shared_data: Path, tmp_path: Path, mapped: bytes, capfd):
    reference = tmp_path / "ref.fa"
    reference.write_bytes((shared_data / ECOLI[0]).read_bytes())
    index, output = tmp_path / "ref.f5i", tmp_path / "out.bam"
    assert run_command("map", reference, "-d", index) == 0
    assert run_command("map", index, shared_data / ECOLI[1], "-o", output) == 0
    assert records_text(output) == mapped
    with open(reference, "a") as file:
        file.write("ACGT\n")
    capfd.readouterr()
    assert run_command("map", index, shared_data / ECOLI[1], "-o", output) == 1
    assert "has changed since" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"threads": 1}, 4_000_000), ({"threads": 6}, 6_000_000), ({"threads": 64}, 8_000_000),
        ({"threads": 64, "preset": "darwin"}, 20_000_000), ({"threads": 64, "batch_bases": 7}, 7),
    ],
    ids=str,
)  # fmt: skip
def test_bases_of_a_batch(given, expected):
    assert MapOptions(reference="ref.fa", reads=("reads.fa",), **given).bases_of_batch == expected
