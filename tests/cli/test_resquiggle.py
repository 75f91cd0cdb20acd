"""``f5py resquiggle`` against f5c on real reads, from every kind of signal file."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pysam
import pytest

from f5py.cli import command_of

from ..made_data import last_of_each

command = command_of("resquiggle")

pytestmark = pytest.mark.shared

Resquiggle = Callable[..., bytes]
_SCALING = slice(12, 14)  # the columns in which f5c repeats those of the batch's first read


@pytest.fixture
def resquiggle(tmp_path: Path) -> Resquiggle:
    def run(reads: Path, signals: Path, *options: str) -> bytes:
        out = tmp_path / "out.txt"
        given = last_of_each([str(reads), str(signals), "-t", "2", "-o", str(out), *options])
        command.main(given, standalone_mode=False)
        return out.read_bytes()

    return run


def without_scaling(paf: bytes) -> list[list[bytes]]:
    lines = [line.split(b"\t") for line in paf.splitlines()]
    for fields in lines:
        assert [field[:5] for field in fields[_SCALING]] == [b"sc:f:", b"sh:f:"]
        del fields[_SCALING]
    return lines


@pytest.fixture(scope="module")
def ecoli_reads(ecoli: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the reads of reads8.bam in the order of the FASTA file."""
    with pysam.AlignmentFile(str(ecoli / "reads8.bam")) as file:
        names = {record.query_name for record in file}
    path = tmp_path_factory.mktemp("resquiggle") / "reads8.fasta"
    with pysam.FastxFile(str(ecoli / "reads.fasta")) as reads, path.open("w") as out:
        for read in reads:
            if read.name in names:
                out.write(f">{read.name}\n{read.sequence}\n")
    return path


def ecoli_signals(ecoli: Path, folder: Path) -> list[Path]:
    """Every form of the same signals; SLOW5 needs an index beside it, so it is copied."""
    found = [ecoli / "fast5"]
    for file in sorted((ecoli / "formats").iterdir()):
        if file.suffix in (".blow5", ".slow5"):
            (folder / file.name).write_bytes(file.read_bytes())
            found.append(folder / file.name)
        elif file.suffix in (".fast5", ".pod5"):
            found.append(file)
    assert len(found) >= 5
    return found


def test_table_and_paf_equal_f5c_from_every_format(
    ecoli: Path, ecoli_reads: Path, resquiggle: Resquiggle, tmp_path: Path
):
    table = gzip.decompress((ecoli / "expected" / "resquiggle" / "reads8.tsv.gz").read_bytes())
    paf = (ecoli / "expected" / "resquiggle" / "reads8.paf").read_bytes()
    for signals in ecoli_signals(ecoli, tmp_path):
        assert resquiggle(ecoli_reads, signals) == table, signals
        assert without_scaling(resquiggle(ecoli_reads, signals, "--paf")) == without_scaling(paf), signals


def test_each_line_has_the_scaling_of_its_read(ecoli: Path, ecoli_reads: Path, resquiggle: Resquiggle):
    scaling = {}
    for line in (ecoli / "expected" / "scaling.tsv").read_text().splitlines()[1:]:
        name, shift, scale, _ = line.split("\t")
        scaling[name] = (float(shift), float(scale))
    lines = resquiggle(ecoli_reads, ecoli / "fast5", "--paf").decode().splitlines()
    assert len({line.split("\t")[12] for line in lines}) > 1
    for line in lines:
        fields = line.split("\t")
        shift, scale = float(fields[13][5:]), float(fields[12][5:])
        assert (shift, scale) == pytest.approx(scaling[fields[0]], abs=0.0051)


@pytest.mark.parametrize("name", ["rna002_sequin", "r10_wga"])
def test_rna_and_r10_equal_f5c(name: str, shared_data: Path, slow5_set, resquiggle: Resquiggle):
    folder = slow5_set(name)
    ours = resquiggle(folder / "reads.fastq", folder / "signals.blow5", "--paf")
    theirs = (shared_data / name / "expected" / "resquiggle.paf").read_bytes()
    assert without_scaling(ours) == without_scaling(theirs)


@pytest.mark.parametrize("options", [["-t", "1", "-K", "1"], ["-t", "4", "-B", "9K"]], ids=" ".join)
def test_bytes_do_not_depend_on_threads_and_batches(
    ecoli: Path, ecoli_reads: Path, resquiggle: Resquiggle, options: list[str]
):
    signals = ecoli / "fast5"
    assert resquiggle(ecoli_reads, signals, "--paf", *options) == resquiggle(ecoli_reads, signals, "--paf")
