"""Writer of the index of basecalled reads; `f5py.io.reads.read_index` reads it."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from itertools import pairwise
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.core.offsets import gather_slices, offsets_of
from f5py.errors import OutputFileError
from f5py.io.bytes.bgzf_blocks import BLOCK_BYTES, END_BLOCK, bgzf_block
from f5py.io.files.atomic_write import AtomicFile, named_together
from f5py.io.reads.read_files import ALL_READS
from f5py.io.sequences.read_records import Sequences, sequence_batches
from f5py.messages.console import input_warning
from f5py.messages.progress import progress
from f5py.options.input_names import FAI_SUFFIX, GZI_SUFFIX, READDB_SUFFIX, SEQUENCE_SUFFIX
from f5py.threads.ordered import OrderedWork

#: Text per batch.
_BYTES = 1 << 25
_PATH_END = b".fast5"
#: Bytes of text from which a block gets no further read.
_ENOUGH = 1 << 12
#: Blocks per compression job.
_BLOCKS_PER_JOB = 64


class ReadIndexOutput(AbstractContextManager["ReadIndexOutput"]):
    """Files of an index, which replace the old ones together; a context manager.

    Their names begin with that of the reads. ``.index.readdb`` is one of them only with signals. Leaving the context
    without `commit` changes nothing. Raises `OutputFileError` if they cannot be written.
    """

    def __init__(self, reads_path: str, with_signals: bool = True) -> None:
        self._reads_path = reads_path
        self._files: list[AtomicFile] = []
        try:
            for suffix in (SEQUENCE_SUFFIX, GZI_SUFFIX, FAI_SUFFIX, *(READDB_SUFFIX,) * with_signals):
                self._files.append(AtomicFile(reads_path + suffix))
        except OutputFileError as problem:
            self.__exit__()
            raise OutputFileError(f"{problem}; the index needs a writable folder, -o names another one") from None

    def __exit__(self, *_: object) -> None:
        for file in self._files:
            file.discard()

    def write_sequences(self, threads: int = 4, sources: Sequence[str] = ()) -> dict[str, str]:
        """Write the reads of `sources`, by default of the reads file itself.

        Returns every read's name, in file order, with the fast5 path in its header's comment, '' without one. Raises
        `InputFileError` or `OutputFileError`.
        """
        with self._writing() as temporary:
            return _write_sequences(temporary, self._reads_path, threads, sources or [self._reads_path])

    def commit(self, paths: Mapping[str, str] | None = None, of_all: Sequence[str] = ()) -> None:
        """Write the ``.readdb`` of signal files, by read name and those with all reads, and rename the files."""
        with self._writing() as temporary, named_together():
            if paths is not None or of_all:
                write_rows(temporary[-1], paths or {}, of_all)
            for file in self._files:
                file.commit()

    @contextmanager
    def _writing(self) -> Iterator[list[str]]:
        """Yield the temporary names; failed writes become `OutputFileError`."""
        temporary = [file.path for file in self._files]
        try:
            yield temporary
        except OSError as problem:
            if problem.filename not in (None, *temporary):
                raise
            raise OutputFileError(
                f"{self._reads_path}{SEQUENCE_SUFFIX}: cannot be written ({problem.strerror or problem}); "
                "the index needs a writable folder with room; -o names another one"
            ) from problem


def _write_sequences(temporary: Sequence[str], reads_path: str, threads: int, sources: Sequence[str]) -> dict[str, str]:
    paths: dict[str, str] = {}
    repeated = 0
    exists: dict[str, bool] = {}
    with (
        open(temporary[0], "wb") as sequence_file,
        open(temporary[2], "w", encoding="utf-8", errors="surrogateescape", newline="\n") as fai,
        closing(_SequenceFile(sequence_file, threads)) as index,
        progress("reads") as bar,
    ):
        for path in sources:
            for batch in sequence_batches(path, _BYTES, comments=True, n_bytes=_BYTES):
                bar.advance(len(batch.names))
                names = list(batch.names)
                known = dict.fromkeys(names, "")
                if len(known) < len(names) or not paths.keys().isdisjoint(known):
                    first = {name: i for i, name in reversed([*enumerate(names)]) if name not in paths}
                    chosen = sorted(first.values())
                    if not repeated:
                        again = next(name for i, name in enumerate(names) if first.get(name) != i)
                        input_warning("readdb", f"{path}: read {again} occurs again; the first counts")
                    repeated += len(names) - len(chosen)
                    batch = _reads_of(batch, np.array(chosen, np.int64))
                    names = [names[i] for i in chosen]
                    known = dict.fromkeys(names, "")
                if _PATH_END in batch.comments.text.tobytes():
                    for name, comment in zip(names, batch.comments, strict=True):
                        known[name] = _path_in_comment(comment, exists)
                paths.update(known)
                fai.writelines(index.write(batch, names))
        block_index = index.finish()
    if gone := [path for path, is_there in exists.items() if not is_there]:
        input_warning(
            "readdb",
            f"{reads_path}: {len(gone)} fast5 files that its header lines name are not there, such as {gone[0]}; "
            "they are not used",
        )
    if repeated > 1:
        input_warning("readdb", f"{reads_path}: {repeated} reads have the name of an earlier one")
    with open(temporary[1], "wb") as file:
        file.write(block_index)
    return paths


class _SequenceFile:
    """Writer of reads as FASTA in BGZF blocks that end between reads, for random access."""

    def __init__(self, file: BinaryIO, n_threads: int) -> None:
        self._file = file
        self._compressor = OrderedWork(n_threads, _compress, self._put, "f5py-bgzf")
        self._text_at = self._packed_at = self._unpacked_at = 0
        self._starts: list[tuple[int, int]] = []  # of each block, compressed and in the text

    def write(self, batch: Sequences, names: list[str]) -> Iterator[str]:
        """Append reads; return their lines of a ``.fai``, which as htslib's lists no empty sequences."""
        lengths = np.diff(batch.offsets)
        names_and_bases = np.stack([batch.names.offsets[:-1], len(batch.names.text) + batch.offsets[:-1]], axis=1)
        marks = np.full(len(names), len(batch.names.text) + len(batch.bases))
        starts = np.stack([marks, names_and_bases[:, 0], marks + 1, names_and_bases[:, 1], marks + 1], axis=1)
        ones = np.ones(len(names), np.int64)
        sizes = np.stack([ones, np.diff(batch.names.offsets), ones, lengths, ones], axis=1)
        pieces = np.concatenate([batch.names.text, batch.bases, np.frombuffer(b">\n", np.uint8)])
        text, _ = gather_slices(pieces, starts.ravel(), sizes.ravel())
        lines_at = offsets_of(sizes.sum(axis=1))
        begins = [0] if len(text) else []
        for at, end in pairwise(lines_at.tolist()):
            if at > begins[-1] and (at - begins[-1] >= _ENOUGH or end - begins[-1] > BLOCK_BYTES):
                begins.append(at)
            while end - begins[-1] > BLOCK_BYTES:
                begins.append(begins[-1] + BLOCK_BYTES)
        for first in range(0, len(begins), _BLOCKS_PER_JOB):
            bounds = [*begins, len(text)][first : first + _BLOCKS_PER_JOB + 1]
            self._compressor.add([text[begin:end] for begin, end in pairwise(bounds)])
        bases_at = self._text_at + lines_at[1:] - lengths - 1
        self._text_at += len(text)
        rows = zip(names, lengths.tolist(), bases_at.tolist(), strict=True)
        return (f"{name}\t{n}\t{at}\t{n}\t{n + 1}\n" for name, n, at in rows if n)

    def finish(self) -> bytes:
        """Write the end block; return the content of the ``.gzi``, without the first block and the end."""
        self._compressor.finish()
        self._file.write(END_BLOCK)
        starts = np.array(self._starts[1:], "<u8")
        return len(starts).to_bytes(8, "little") + starts.tobytes()

    def close(self) -> None:
        self._compressor.close()

    def _put(self, blocks: list[bytes]) -> None:
        for block in blocks:
            self._starts.append((self._packed_at, self._unpacked_at))
            self._packed_at += self._file.write(block)
            self._unpacked_at += int.from_bytes(block[-4:], "little")


def _compress(texts: list[NDArray[np.uint8]]) -> list[bytes]:
    return [bgzf_block(text) for text in texts]


def _reads_of(batch: Sequences, chosen: NDArray[np.int64]) -> Sequences:
    """Select some of the reads."""
    names, comments = (
        Names(*gather_slices(of.text, of.offsets[chosen], np.diff(of.offsets)[chosen]))
        for of in (batch.names, batch.comments)
    )
    bases, offsets = gather_slices(batch.bases, batch.offsets[chosen], np.diff(batch.offsets)[chosen])
    return Sequences(names, bases, offsets, comments)


def write_rows(path: str, paths: Mapping[str, str], of_all: Sequence[str] = ()) -> None:
    """Write a ``.readdb``; see `ReadIndexOutput.commit`."""
    # sorted by bytes: only surrogates of undecodable bytes sort otherwise as str
    names = sorted(paths) if all(map(str.isascii, paths)) else sorted(paths, key=os.fsencode)
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file:
        file.writelines(f"{ALL_READS}\t{path}\n" for path in of_all)
        file.writelines(f"{name}\t{paths[name]}\n" for name in names)


def _path_in_comment(comment: str, exists: dict[str, bool]) -> str:
    """Return a comment's last word if it is an existing fast5 path, as from old basecallers, else ''."""
    last = comment.rstrip(" ").rpartition(" ")[2]
    if not last.endswith(_PATH_END.decode()):
        return ""
    if last not in exists:
        exists[sys.intern(last)] = os.path.isfile(last)
    return sys.intern(last) if exists[last] else ""
