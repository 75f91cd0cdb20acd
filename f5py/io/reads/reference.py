"""Reference sequences with resolved ambiguity codes."""

import hashlib
import os
from contextlib import ExitStack, closing, suppress

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.errors import F5pyError, InputFileError, OutputFileError
from f5py.io.bytes.bgzf import BlockReader
from f5py.io.files.complete_file import complete_output
from f5py.io.files.samtools import run_samtools
from f5py.io.reads.indexed_fasta import (
    FastaIndex,
    IndexedFasta,
    MappedText,
    SequenceSource,
    is_large,
    letter_table,
    scan_fasta,
)
from f5py.io.reads.reference_errors import explain_reference_error
from f5py.jit.cache_folder import cache_folder
from f5py.messages import console
from f5py.messages.console import input_warning
from f5py.options.cores import usable_cores
from f5py.threads.pool import WorkerPool

#: Ambiguity codes and their alphabetically first base.
_RESOLVED = dict.fromkeys("MRWVHDN", "A") | dict.fromkeys("SYB", "C") | {"K": "G"}


def _letter_table() -> NDArray[np.uint8]:
    table = letter_table()
    table[ord("a") : ord("z") + 1] -= 32
    for code, base in _RESOLVED.items():
        table[ord(code)] = table[ord(code.lower())] = ord(base)
    return table


class Reference:
    """An indexed FASTA file; a missing index is made.

    Contigs of the BAM header that are missing in the FASTA file (`lacks`) cause a warning and must not be used.
    `opened` are the sequences of a file that is no FASTA; they are closed with this object. Raises `InputFileError` if
    the file is unreadable, has none of the contigs, or one with another length.
    """

    def __init__(self, path: str, contigs: list[str], lengths: list[int], opened: SequenceSource | None = None) -> None:
        if not os.path.exists(path):
            raise InputFileError(f"{path}: no such file; give the reference with -g")
        self.path = path
        self._fai, self._gzi = f"{path}.fai", f"{path}.gzi"
        self._contigs = contigs
        self._lengths = np.array(lengths, np.int64)
        self._fasta = self._open() if opened is None else opened
        self._rows = self._fasta.index.rows_of(Names.of(contigs))
        self.lacks = self._rows < 0
        self._check_contigs(self._fasta.index)

    def _open(self) -> IndexedFasta:
        path = self.path
        try:
            with open(path, "rb") as file:
                beginning = file.read(2)
            is_zipped = beginning == b"\x1f\x8b"
            if beginning[:1] == b"@":  # htslib would index it differently
                raise InputFileError(f"{path}: is FASTQ, as reads are; give the reference as FASTA")
            self._fai, self._gzi = index_fasta(path, is_zipped=is_zipped)
        except (OSError, ValueError) as problem:
            raise self._unreadable(problem) from None
        try:
            index, text = self._opened(is_zipped)
        except (F5pyError, OSError, ValueError):
            self._open_with_htslib(is_zipped)  # its error may be more precise
            raise
        return IndexedFasta(index, text, _letter_table())

    def _opened(self, is_zipped: bool) -> tuple[FastaIndex, MappedText | BlockReader]:
        index = FastaIndex.read(self._fai, f"delete it to have it made again: {self._fai}")
        if is_zipped:
            return index, BlockReader(self.path, self._gzi)
        mapped = MappedText(self.path)
        if not index.fits(mapped.text):
            raise InputFileError(
                f"{self._fai}: is not the index of {self.path} as it is now; delete it to have it made again"
            )
        return index, mapped

    def _open_with_htslib(self, is_zipped: bool) -> None:
        """Open the files with htslib for its error; it takes seconds for a million contigs."""
        import pysam

        names = {"filepath_index": self._fai} | ({"filepath_index_compressed": self._gzi} if is_zipped else {})
        try:
            pysam.FastaFile(self.path, **names).close()
        except (OSError, ValueError) as problem:
            raise self._unreadable(problem) from None

    def _unreadable(self, problem: Exception) -> InputFileError:
        reason = (
            getattr(problem, "strerror", None)
            or _system_reason(self.path, self._fai, self._gzi)
            or explain_reference_error(self.path, self._fai, self._gzi)
        )
        return InputFileError(f"{self.path}: cannot read the reference: {reason}")

    def _check_contigs(self, index: FastaIndex) -> None:
        """Compare names and lengths of the contigs with the file's."""
        names, path = self._contigs, self.path
        missing = np.flatnonzero(self.lacks)
        if len(missing):
            listed = ", ".join(names[i] for i in missing[:3].tolist()) + (", ..." if len(missing) > 3 else "")
            lacking = f"{path}: the reference lacks {len(missing)} of the BAM file's {len(names)} contigs ({listed})"
            if len(missing) == len(names):
                known = ", ".join(map(index.name, range(min(len(index), 3)))) + (", ..." if len(index) > 3 else "")
                raise InputFileError(
                    f"{lacking}; it has {known or 'none'}; give the FASTA file that the reads were mapped to"
                )
            input_warning("reference", f"{lacking}; a read that is used and lies on one of them will end the run")
        here = np.flatnonzero(~self.lacks)
        other = here[index.length[self._rows[here]] != self._lengths[here]]
        if len(other):
            first = int(other[0])
            raise InputFileError(
                f"{path}: contig {names[first]} has {index.length[self._rows[first]]} bases, but "
                f"{self._lengths[first]} in the BAM file; give the FASTA file that the reads were mapped to"
            )

    def segments(
        self,
        contig: NDArray[np.int32],
        start: NDArray[np.int64],
        end: NDArray[np.int64],
        pool: WorkerPool | None = None,
    ) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Fetch the bases of stretches, 0-based and half-open, clipped to their contigs, and their offsets.

        Bases are upper-case, every ambiguity code replaced by its alphabetically first base. Raises `InputFileError`
        if the file is damaged or its index is of another file.
        """
        if self.lacks[contig].any():
            name = self._contigs[contig[np.argmax(self.lacks[contig])]]
            raise InputFileError(
                f"{self.path}: the reference lacks contig {name}, on which reads lie; give the FASTA file that the "
                "reads were mapped to"
            )
        end = np.minimum(end, self._lengths[contig])
        bases, offsets, wrong = self._fasta.fetch(self._rows[contig], start, end, pool)
        if wrong.any():
            i = int(np.argmax(wrong))
            raise InputFileError(
                f"{self.path}: bases {start[i] + 1} to {end[i]} of contig {self._contigs[contig[i]]} cannot be read; "
                f"is the file damaged or newer than its index? Delete {self._fai} to have it made again"
            )
        return bases, offsets

    def close(self) -> None:
        self._fasta.close()


def index_fasta(path: str, index: FastaIndex | None = None, is_zipped: bool = False) -> tuple[str, str]:
    """Write a missing index, by default of a scan; return the names of ``.fai`` and ``.gzi``.

    They are beside the file or, if its folder cannot be written, in the user's cache folder.
    """
    beside = f"{path}.fai", f"{path}.gzi"
    can_be_beside = os.path.exists(beside[0]) or os.access(os.path.dirname(os.path.realpath(path)), os.W_OK)
    if can_be_beside and _make_index(path, *beside, index, is_zipped):
        return beside
    kept = _cached_index_names(path)
    is_new = not os.path.exists(kept[0])
    if not _make_index(path, *kept, index, is_zipped):
        return beside if can_be_beside else kept
    if is_new:
        console.note("reference", f"{path}: its folder cannot be written; the index is kept as {kept[0]}")
    return kept


def _cached_index_names(path: str) -> tuple[str, str]:
    """Return both names in the cache folder; they follow from the file's path, size and time."""
    about = os.stat(path)
    key = f"{os.path.realpath(path)}\n{about.st_size}\n{about.st_mtime_ns}"
    name = hashlib.sha256(os.fsencode(key)).hexdigest()
    folder = os.path.join(cache_folder(), "f5py", "references")
    kept = os.path.join(folder, f"{name}.fai"), os.path.join(folder, f"{name}.gzi")
    with suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
    return kept


def _make_index(path: str, fai: str, gzi: str, index: FastaIndex | None, is_zipped: bool) -> bool:
    """Make the index, complete when it appears; return whether it exists."""
    import pysam

    if os.path.exists(fai):
        return True
    if index is None and not is_zipped and is_large(path):
        with closing(WorkerPool(usable_cores())) as pool, closing(MappedText(path)) as file:
            index = scan_fasta(file, pool)
    if index is not None and (text := index.as_text()) is not None:
        with suppress(OutputFileError, OSError), complete_output(fai, is_index=True) as out:
            out.write(text)
        return os.path.exists(fai)
    with suppress(OutputFileError, OSError, ValueError, pysam.SamtoolsError), ExitStack() as files:
        lines = files.enter_context(complete_output(fai, is_index=True))
        blocks = None if not is_zipped else files.enter_context(complete_output(gzi, is_index=True))
        options = [] if blocks is None else ["--gzi-idx", blocks.name]
        run_samtools(pysam.faidx, path, "--fai-idx", lines.name, *options, target=lines.name)
    return os.path.exists(fai)


def _system_reason(*names: str) -> str:
    """Return the system's error for opening one of the files, "" without one."""
    for name in names:
        try:
            with open(name, "rb") as file:
                file.read(1)
        except FileNotFoundError:
            continue
        except OSError as problem:
            return problem.strerror or ""
    return ""
