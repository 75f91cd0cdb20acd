"""Reference of the simulated reads, random or from a FASTA file, as one flat array of base codes."""

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from f5py.core.motifs import IUPAC
from f5py.core.offsets import offsets_of
from f5py.errors import InputFileError, OutputFileError
from f5py.io.files.samtools import run_samtools
from f5py.io.sequences.read_records import sequence_batches

LETTERS = np.frombuffer(b"ACGTN", dtype=np.uint8)
OTHER = 4  # code of everything that is not A, C, G or T
_LINE = 80
_GC_BLOCK = 2000  # bases between the points where the local GC content is drawn
_GC_SD = 0.05
_MEAN_TRANSCRIPT = 1500


@dataclass(frozen=True)
class Genome:
    """Concatenated contigs."""

    names: list[str]  # names of the c contigs
    offsets: NDArray[np.int64]  # shape (c + 1,): contig i is ``codes[offsets[i]:offsets[i + 1]]``
    # shape (offsets[-1],): 0 A, 1 C, 2 G, 3 T, 4 anything else (which no simulated molecule contains)
    codes: NDArray[np.uint8]

    def contig_of(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.searchsorted(self.offsets, positions, side="right") - 1

    def stretches(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return start and length of the maximal runs of A, C, G and T within a contig, in flat positions."""
        parted = np.insert(self.codes != OTHER, self.offsets, False)  # before each contig, and at the end
        edges = np.flatnonzero(np.diff(parted)) + 1
        edges -= np.searchsorted(self.offsets + np.arange(len(self.offsets)), edges)
        return edges[::2], np.diff(edges)[::2]

    def occurrences(self, pattern: str) -> NDArray[np.int64]:
        """Return the flat positions of an IUPAC pattern within contigs, ascending."""
        n = len(self.codes) - len(pattern) + 1
        found = np.ones(max(n, 0), dtype=bool)
        for i, letter in enumerate(pattern):
            allowed = np.zeros(OTHER + 1, dtype=bool)
            allowed[["ACGT".index(base) for base in IUPAC[letter]]] = True
            found &= allowed[self.codes[i : i + max(n, 0)]]
        begins = np.flatnonzero(found)
        return begins[self.contig_of(begins) == self.contig_of(begins + len(pattern) - 1)]


def random_transcripts(length: int, gc: float, rng: np.random.Generator) -> Genome:
    """Make transcripts of about 500 to 4,000 bases, with `length` bases in total."""
    n = max(round(length / _MEAN_TRANSCRIPT), 1)
    shares = rng.lognormal(0.0, 0.5, size=n)
    ends = np.rint(np.cumsum(shares) / shares.sum() * length).astype(np.int64)
    offsets = np.unique(np.concatenate(([0], ends)))
    names = [f"transcript_{i + 1}" for i in range(len(offsets) - 1)]
    return Genome(names, offsets, random_genome(length, gc, rng).codes)


def random_genome(length: int, gc: float, rng: np.random.Generator) -> Genome:
    """Make one contig named ``simulated`` with a smoothly varying GC content around `gc`."""
    knots = np.clip(rng.normal(gc, _GC_SD, size=length // _GC_BLOCK + 2), 0.05, 0.95)
    local_gc = np.interp(np.arange(length) / _GC_BLOCK, np.arange(len(knots)), knots)
    draw = rng.random(length)
    # [0, gc/2) is C, [gc/2, gc) is G, the rest is shared by A and T
    codes = np.where(draw < local_gc, np.where(draw < local_gc / 2, 1, 2), 0)
    codes[(draw >= local_gc) & (draw - local_gc >= (1 - local_gc) / 2)] = 3
    return Genome(["simulated"], np.array([0, length], dtype=np.int64), codes.astype(np.uint8))


def read_genome(path: str | Path) -> Genome:
    """Read a FASTA file (plain or gzip), ignoring case.

    Raises `InputFileError` for an unreadable file, an empty sequence, or duplicate contigs.
    """
    code_of = np.full(256, OTHER, dtype=np.uint8)
    for code, pair in enumerate((b"Aa", b"Cc", b"Gg", b"Tt")):
        code_of[list(pair)] = code
    if not os.path.exists(path):
        raise InputFileError(f"{path}: no such file; give the reference as FASTA")
    if os.path.isdir(path):
        raise InputFileError(f"{path}: is a folder; give a FASTA file")
    batches = list(sequence_batches(str(path), 1 << 23))
    names = [name for batch in batches for name in batch.names]
    lengths = np.concatenate([np.empty(0, np.int64), *(np.diff(batch.offsets) for batch in batches)])
    if not names or not lengths.all():
        raise InputFileError(f"{path}: has no sequence, or an empty one; give a FASTA file")
    if len(set(names)) < len(names):
        raise InputFileError(f"{path}: two sequences have the same name; rename one of them")
    return Genome(names, offsets_of(lengths), code_of[np.concatenate([batch.bases for batch in batches])])


def write_genome(genome: Genome, path: Path) -> None:
    """Write the contigs as FASTA, 80 bases a line, with a ``.fai``; codes above 3 become N.

    Raises `OutputFileError` if the index cannot be made.
    """
    import pysam

    with open(path, "wb") as out:
        for i, name in enumerate(genome.names):
            letters = LETTERS[genome.codes[genome.offsets[i] : genome.offsets[i + 1]]].tobytes()
            out.write(f">{name}\n".encode())
            out.writelines(letters[at : at + _LINE] + b"\n" for at in range(0, len(letters), _LINE))
    try:
        run_samtools(pysam.faidx, str(path), target=str(path))
    except pysam.SamtoolsError as problem:
        raise OutputFileError(f"{path}: cannot be indexed ({' '.join(str(problem).split())})") from None
