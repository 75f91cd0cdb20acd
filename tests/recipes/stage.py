"""Small made files under the names that the documents use, so that their commands can be run."""

from __future__ import annotations

import gzip
import os
import shutil
from contextlib import suppress
from pathlib import Path
from unittest import mock

import pysam

import f5py

#: What is put in the place of words of the documents: names of reads and places that are here, and smaller sizes.
STAND_INS = {
    "chr20:5,000,000-10,000,000": "simulated:1-1,500",
    "chr20:5,000,000-5,000,100": "simulated:1,000-1,100",
    "chr11:2,000,000-2,003,000": "simulated:500-2,500",
    "chr1:1000-3000": "simulated:1000-3000",
    "--mod-code h": "--mod-code m",
    "--genome-length 200K --coverage 10": "--genome-length 5K --coverage 1",
    "--reads 500 --length 8K": "--reads 3 --length 2K",
    "--genome-length 20K --reads 1000": "--genome-length 3K --reads 3",
    "f5py simulate -o control": "f5py simulate --genome-length 5K --reads 3 -o control",
    "f5py simulate -o phased": "f5py simulate --genome-length 5K --reads 3 -o phased",
    "--partitions 64": "--partitions 2",
    "run-part plan/ 0 ": "run-part plan/ 0-1 ",
    "run-part plan/ 7": "run-part made_plan/ 0",
    "run-part plan/ 0-15": "run-part made_plan/ 0-1",
    "run-part plan/   ": "run-part made_plan/ ",
    "f5py plan plan/": "f5py plan made_plan/",
    "calls.start.between(10_000, 12_000)": "calls.start.between(1_000, 2_000)",
}


def make_dna(folder: Path) -> None:
    """Thirty reads of R9.4 DNA on a contig of 3,000 bases, in all formats, with what the commands make of them."""
    simulated = folder / "as_made"
    about = {"genome_length": 3_000, "n_reads": 30, "median_length": 1_500, "seed": 5}
    f5py.simulate(output=simulated, **about)
    f5py.simulate(output=folder / "as_pod5", signal_format="pod5", **about)
    f5py.simulate(output=folder / "as_blow5", signal_format="blow5", **about)
    _link(folder, simulated / "fast5", "fast5", "fast5_folder", "fast5_pass")
    pod5 = next((folder / "as_pod5").rglob("*.pod5")).parent
    _link(folder, pod5, "pod5", "pod5_folder")
    _copy(folder, next((folder / "as_blow5").rglob("*.blow5")), "reads.blow5")
    for name in ("reads.fastq", "reads.bam", "reads.bam.bai", "ref.fa"):
        _copy(folder, simulated / name, name)
    (folder / "fastq_pass").mkdir()
    _copy(folder, simulated / "reads.fastq", "fastq_pass/reads.fastq")
    _basecalls(folder / "reads.fastq", folder / "basecalls.bam")
    pysam.faidx(str(folder / "ref.fa"))
    f5py.index(folder / "reads.fastq", directories=folder / "fast5")
    _phased(folder)
    inputs = {"reads": folder / "reads.fastq", "bam": folder / "reads.bam", "genome": folder / "ref.fa", "threads": 2}
    made = {"output": "calls.tsv", "modbam": "calls.bam", "bedmethyl": "wgbs.bed.gz"}
    f5py.call_methylation(**inputs, **{option: folder / name for option, name in made.items()})
    pysam.index(str(folder / "calls.bam"))
    f5py.call_methylation(**inputs, output=folder / "calls.parquet")
    with mock.patch.dict(os.environ, PATH=""), suppress(f5py.F5pyError):  # without Slurm no part is done
        f5py.call_methylation(
            **inputs, plan=folder / "made_plan", partitions=2, engine="slurm", output=folder / "planned.tsv"
        )
    f5py.frequencies(folder / "calls.tsv", split_groups=True, output=folder / "freq.tsv")
    _copy(folder, folder / "calls.tsv", "sssi.tsv", "wga.tsv")
    _copy(folder, folder / "freq.tsv", "run1.tsv", "run2.tsv")
    _copy(folder, folder / "calls.bam", "sssi.bam", "wga.bam", "window1.bam", "window2.bam", "dorado.bam")
    _copy(folder, folder / "wgbs.bed.gz", "modkit.bed.gz")
    for name, source in (("run3.tsv.gz", "freq.tsv"), ("chr1.tsv.gz", "calls.tsv"), ("chr2.tsv.gz", "calls.tsv")):
        (folder / name).write_bytes(gzip.compress((folder / source).read_bytes()))
    bed = gzip.decompress((folder / "wgbs.bed.gz").read_bytes())
    for name in ("window1.bed", "window2.bed"):
        (folder / name).write_bytes(bed)
    _copy(folder, folder / "calls.bam.bai", "dorado.bam.bai")
    _copy(folder, folder / "freq.tsv", "tumour.tsv", "normal.tsv")
    _copy(folder, folder / "wgbs.bed.gz", "a.bed.gz", "b.bed.gz")
    (folder / "reads.txt").write_text(first_read(folder) + "\n")
    (folder / "genes.bed").write_text("simulated\t100\t900\tone\nsimulated\t1500\t2000\ttwo\n")
    (folder / "promoters.bed").write_text("simulated\t100\t900\nsimulated\t1500\t2000\n")


def make_rna(folder: Path) -> None:
    """Forty reads of RNA004 on a transcript of 600 bases."""
    simulated = folder / "as_made"
    f5py.simulate(
        output=simulated, pore="rna004", genome_length=600, n_reads=40, median_length=500, seed=3,
        signal_format="pod5",
    )  # fmt: skip
    f5py.simulate(
        output=folder / "as_blow5", pore="rna004", genome_length=600, n_reads=40, median_length=500, seed=3,
        signal_format="blow5",
    )  # fmt: skip
    _link(folder, next(simulated.rglob("*.pod5")).parent, "pod5", "native", "ivt")
    _copy(folder, next((folder / "as_blow5").rglob("*.blow5")), "reads.blow5")
    _copy(folder, simulated / "ref.fa", "transcripts.fa")
    _copy(folder, simulated / "reads.fastq", "reads.fastq")
    for name in ("reads.bam", "calls.bam", "native.bam", "ivt.bam"):
        _copy(folder, simulated / "reads.bam", name)
        _copy(folder, simulated / "reads.bam.bai", f"{name}.bai")
    (folder / "reads.fastq.gz").write_bytes(gzip.compress((folder / "reads.fastq").read_bytes()))
    import zstandard

    (folder / "reads.fastq.zst").write_bytes(zstandard.compress((folder / "reads.fastq").read_bytes()))
    f5py.index(folder / "reads.fastq", pod5=folder / "pod5")
    for name in ("native.parquet", "ivt.parquet"):
        f5py.eventalign(
            bam=folder / "reads.bam", genome=folder / "transcripts.fa", pod5=folder / "pod5", scale_events=True,
            output=folder / name,
        )  # fmt: skip


def copied(stage: Path, folder: Path) -> Path:
    """Copy a stage; the copies share their bytes, which commands replace and never change."""
    return Path(shutil.copytree(stage, folder, symlinks=True, copy_function=os.link, dirs_exist_ok=True))


def first_read(folder: Path) -> str:
    with pysam.AlignmentFile(folder / "reads.bam") as file:
        return str(next(file).query_name)


def _link(folder: Path, target: Path, *names: str) -> None:
    for name in names:
        (folder / name).symlink_to(target.resolve())


def _copy(folder: Path, source: Path, *names: str) -> None:
    for name in names:
        shutil.copyfile(source, folder / name)


def _basecalls(reads: Path, path: Path) -> None:
    """Write the reads as a basecaller does: not aligned."""
    header = {"HD": {"VN": "1.6", "SO": "unknown"}}
    with pysam.FastxFile(str(reads)) as file, pysam.AlignmentFile(path, "wb", header=header) as out:
        for read in file:
            record = pysam.AlignedSegment(out.header)
            record.query_name, record.query_sequence, record.flag = read.name, read.sequence, 4
            record.query_qualities = pysam.qualitystring_to_array(read.quality)
            out.write(record)


def _phased(folder: Path) -> None:
    """Add haplotypes to the alignments."""
    with (
        pysam.AlignmentFile(folder / "reads.bam") as file,
        pysam.AlignmentFile(folder / "phased.bam", "wb", template=file) as out,
    ):
        for number, record in enumerate(file):
            record.set_tag("HP", number % 2 + 1)
            out.write(record)
    pysam.index(str(folder / "phased.bam"))
