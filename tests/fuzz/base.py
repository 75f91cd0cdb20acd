"""The sound inputs that are mutated: a few short simulated reads in every format."""

from __future__ import annotations

import gzip
import shutil
import subprocess
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import pysam

from f5py.io.signals.slow5.reader import Slow5Source
from f5py.pore_model.model import builtin

from ..io.signals.made_pod5 import pod5_read
from ..io.signals.made_signals import GZIP, VBZ, MadeRead, fast5_source, write_multi, write_single
from ..io.signals.made_slow5 import write_blow5, write_slow5
from ..made_data import ReadSet, run_command, signals_of
from .result_base import make_results

N_READS = 5
#: Reads in the first of two multi-read fast5 files.
PER_FILE = 3


@dataclass(frozen=True)
class Base:
    """A folder with everything, and the names of its reads."""

    folder: Path
    names: tuple[str, ...]

    def bytes(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


def make_base(folder: Path) -> Base:
    """Make all inputs below `folder`, which must not be there."""
    from f5py.commands.simulate import simulate
    from f5py.simulation.settings import SimulationSettings

    settings = SimulationSettings(seed=3, genome_length=3000, n_reads=N_READS, fixed_length=400, reads_per_file=5)
    simulate(folder, settings, fasta=True)
    made = ReadSet(folder, folder / "reads.fasta", folder / "reads.bam", folder / "ref.fa", folder / "fast5")
    (fast5,) = (folder / "fast5").iterdir()
    signals = fast5_source(dict.fromkeys(made.names, str(fast5)))
    try:
        reads = signals_of(signals, made.names)
    finally:
        signals.close()
    _write_signals(folder, reads)
    shutil.rmtree(folder / "fast5")
    shutil.copy(folder / "reads.fasta", folder / "plain.fa")
    with gzip.open(folder / "reads.fa.gz", "wb") as out:
        out.write((folder / "reads.fasta").read_bytes())
    with pysam.FastxFile(str(folder / "reads.fasta")) as file:
        text = "".join(f"@{read.name} x=1\n{read.sequence}\n+\n{'5' * len(read.sequence or '')}\n" for read in file)
    (folder / "reads.fastq").write_text(text)
    tags = "RG:Z:group\tqs:f:12.5\tmv:B:c,5,1,0,1\tch:i:300\txa:A:x\txh:H:1AF0"
    (folder / "tagged.fastq").write_text(text.replace(" x=1\n", f" {tags}\n"))
    _write_alignments(folder)
    for name, seeds in (("ref.f5i", "minimizer"), ("mem.f5i", "mem")):
        run_command("map", folder / "ref.fa", "-d", folder / name, "--seeds", seeds, "-t", 1)
    _write_tables(folder, reads)
    make_results(folder)
    return Base(folder, tuple(made.names))


def _write_signals(folder: Path, reads: list[MadeRead]) -> None:
    import vbz_h5py_plugin  # noqa: F401 - tells HDF5 where its filter is
    from pod5 import Writer

    write_blow5(folder / "zlib.blow5", reads)
    write_blow5(folder / "none.blow5", reads, zipped=False)
    write_slow5(folder / "text.slow5", reads)
    _compressed_twice(folder / "svb.blow5", reads, "zstd", "svb-zd")
    _compressed_twice(folder / "exzd.blow5", reads, "zlib", "ex-zd")
    for path in (*folder.glob("*.blow5"), folder / "text.slow5"):
        Slow5Source(str(path)).close()  # makes its index
    with Writer(folder / "s.pod5") as file:
        file.add_reads([pod5_read(read, read.name) for read in reads])
    for name, storage in (("gzip", GZIP), ("vbz", VBZ), ("plain", {})):
        below = folder / f"multi_{name}"
        below.mkdir()
        write_multi(below / "a.fast5", reads[:PER_FILE], **storage)
        write_multi(below / "b.fast5", reads[PER_FILE:], **storage)
    (folder / "single").mkdir()
    for i, read in enumerate(reads):
        write_single(folder / "single" / f"{i}.fast5", read, **GZIP)


def _compressed_twice(path: Path, reads: list[MadeRead], record_press: str, signal_press: str) -> None:
    import pyslow5

    file = pyslow5.Open(str(path), "w", rec_press=record_press, sig_press=signal_press)
    header = dict.fromkeys(file.get_empty_header(), "x")
    header |= {"experiment_type": "genomic_dna", "sample_frequency": "4000"}
    file.write_header(header)
    for read in reads:
        record = file.get_empty_record(aux=False)
        calibration = {what: float(value) for what, value in read.calibration().items()}
        record.update(calibration, read_id=read.name, read_group=0, len_raw_signal=len(read.samples))
        file.write_record(record | {"signal": read.samples})
    file.close()


def _write_alignments(folder: Path) -> None:
    pysam.view("-h", "-o", str(folder / "reads.sam"), str(folder / "reads.bam"), catch_stdout=False)
    cram = ["-C", "-T", str(folder / "ref.fa"), "-o", str(folder / "reads.cram")]
    pysam.view(*cram, str(folder / "reads.bam"), catch_stdout=False)
    pysam.index(str(folder / "reads.cram"))
    shutil.copy(folder / "reads.bam", folder / "other.bam")
    pysam.index("-c", str(folder / "other.bam"))
    with (
        pysam.AlignmentFile(str(folder / "reads.bam"), "rb") as source,
        pysam.AlignmentFile(str(folder / "tags.bam"), "wb", header=source.header) as out,
    ):
        for i, record in enumerate(source.fetch(until_eof=True)):
            record.set_tag("MM", "C+m,1,2,0;" if i % 2 else "C+h?,3;A+a,0,0;")
            record.set_tag("ML", [200, 10, 255] if i % 2 else [1, 2, 3])
            record.set_tag("HP", 1 + i % 2)
            record.set_tag("RG", "group", "Z")
            out.write(record)
    _write_groups(folder)


def _write_groups(folder: Path) -> None:
    """Write alignments whose read groups and programs have the IDs of others."""
    with pysam.AlignmentFile(str(folder / "tags.bam")) as source:
        header = source.header.to_dict()
        header["RG"] = [{"ID": name, "SM": name, "PG": "basecaller"} for name in ("group", "other")]
        header["PG"] = [
            {"ID": "basecaller", "PN": "dorado", "CL": "dorado run2"},
            {"ID": "samtools", "PN": "samtools", "PP": "basecaller", "CL": "samtools view"},
        ]
        with pysam.AlignmentFile(str(folder / "groups.bam"), "wb", header=header) as out:
            for record in source:
                out.write(record)


def _write_tables(folder: Path, reads: list[MadeRead]) -> None:
    inputs = ["-r", folder / "reads.fasta", "-b", folder / "reads.bam", "-g", folder / "ref.fa"]
    run_command("index", "--slow5", folder / "zlib.blow5", folder / "reads.fasta")
    run_command("call-methylation", *inputs, "-t", 1, "-o", folder / "calls.tsv")
    for name in ("freq.tsv", "calls_freq.tsv"):
        run_command("meth-freq", "-c", "0.1", "-i", folder / "calls.tsv", "-o", folder / name)
    run_command("call-methylation", *inputs, "-t", 1, "-o", folder / "calls.parquet")
    run_command("meth-freq", "-c", "0.1", "-i", folder / "calls.tsv", "-o", folder / "freq.parquet")
    contig = (folder / "ref.fa").read_text().split("\n")[0][1:].split()[0]
    (folder / "windows.bed").write_text(f"track x\n{contig}\t100\t900\tone\n#c\n{contig}\t1500\t2500\ttwo\n")
    columns = "filename\tread_id\trun_id\n"
    rows = "".join(f"{i}.fast5\t{read.name}\tx\n" for i, read in enumerate(reads))
    (folder / "sequencing_summary.txt").write_text(columns + rows)
    (folder / "profile.txt").write_text("5 2 5 100 100K 1 100000\n".replace("100K", "100000"))
    (folder / "list.fofn").write_text(f"{folder}/sequencing_summary.txt\n")
    model = builtin("r9.4_450bps.nucleotide.6mer")
    levels = model.level_mean.reshape(-1, 4).mean(axis=1)  # of 5-mers: 6-mers are in the order of their bases
    lines = ["#model_name\tx", "#k\t5", "kmer\tlevel_mean\tlevel_stdv\tsd_mean\tsd_stdv\tweight"]
    lines += [
        f"{''.join(bases)}\t{level:.4f}\t4.5\t1.0\t0.5\t10.0"
        for bases, level in zip(product("ACGT", repeat=5), levels.tolist(), strict=True)
    ]
    (folder / "nucleotide.model").write_text("\n".join(lines) + "\n")


def git_version() -> str:
    return subprocess.run(["git", "describe", "--always", "--dirty"], capture_output=True, text=True).stdout.strip()
