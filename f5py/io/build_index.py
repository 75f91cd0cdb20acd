"""Make the index of basecalled reads: their sequences for random access, and where each one's signal is.

The files are those of f5c and nanopolish: ``<reads>.index`` (the sequences as FASTA in BGZF), ``.index.fai``
and ``.index.gzi`` (as htslib's faidx makes them) and ``.index.readdb`` (read name, tab, signal file).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from f5py import console
from f5py.errors import F5pyError, InputFileError, OutputFileError
from f5py.io.bgzf import BlockWriter
from f5py.io.fast5_scan import Found, list_fast5, report_skipped, scan_fast5
from f5py.io.read_index import FAI_SUFFIX, GZI_SUFFIX, READDB_SUFFIX, SEQUENCE_SUFFIX
from f5py.io.sequencing_summary import read_summary_list, reads_by_file

#: The share of reads without a signal file that needs no warning.
_USUAL_LOSS = 0.01


def index_fast5(
    reads_path: str,
    directories: Sequence[str],
    summaries: Sequence[str] = (),
    summary_lists: Sequence[str] = (),
    threads: int = 4,
    processes: int = 1,
    verbose: int = 1,
) -> tuple[int, int]:
    """Index basecalled reads and the fast5 files of their signals.

    Parameters
    ----------
    reads_path : str
        FASTA or FASTQ, plain or gzip. The index is written beside it.
    directories : sequence of str
        Folders to search for fast5 files. Where several files name a read the last one wins.
    summaries, summary_lists : sequence of str
        Sequencing summaries, and files that list such.
    threads : int
        Compression threads.
    processes : int
        Processes that open fast5 files.
    verbose : int
        0: only results and warnings; 1: what is being done; 2: every file that was skipped.

    Returns
    -------
    reads, with_path : int
        Reads known, and how many of them have a signal file.

    Raises
    ------
    InputFileError
        If an input file is missing or damaged.
    F5pyError
        If not a single read has a signal file. The sequence index has then been written all the same.
    """
    summaries = [*summaries, *(path for listing in summary_lists for path in read_summary_list(listing))]
    listed = reads_by_file(summaries)
    paths = write_sequence_index(reads_path, threads)
    if not all(paths.values()):
        _find_fast5(paths, directories, listed, processes, verbose)
    with_path = sum(1 for path in paths.values() if path)
    if not with_path:
        raise F5pyError(
            f"no fast5 file was found for any of the {len(paths)} reads in {reads_path}; "
            "give the folder of their fast5 files with -d"
        )
    write_readdb(reads_path + READDB_SUFFIX, paths)
    return len(paths), with_path


def report_counts(reads: int, with_path: int) -> None:
    """Print the last lines of indexing: how many reads there are and have a signal file."""
    console.note("readdb", f"num reads: {reads}, num reads with path to fast5: {with_path}")
    if with_path < (1 - _USUAL_LOSS) * reads:
        console.warning("readdb", f"fast5 files could not be located for {reads - with_path} reads")


#: Record types that a SAM file may begin with; its "@" looks like the start of a FASTQ record.
_SAM_HEADERS = ("HD", "SQ", "RG", "PG", "CO")


def write_sequence_index(reads_path: str, threads: int = 4) -> dict[str, str]:
    """Write ``.index``, ``.index.fai`` and ``.index.gzi``.

    Returns
    -------
    dict of str to str
        Every read's name, in file order, and the fast5 path in its header's comment ('' without one).

    Raises
    ------
    InputFileError
        If the reads cannot be read to the end.
    OutputFileError
        If the index cannot be written.
    """
    paths: dict[str, str] = {}
    repeated = 0
    fai: list[str] = []
    with _replacing(*(reads_path + end for end in (SEQUENCE_SUFFIX, GZI_SUFFIX, FAI_SUFFIX))) as temporary:
        at = 0
        with BlockWriter(temporary[0], threads) as index:
            for name, comment, bases in _records(reads_path):
                if name in paths:
                    repeated += 1
                    if repeated == 1:
                        console.warning("readdb", f"{reads_path}: read {name} occurs again; the first counts")
                    continue
                paths[name] = _path_in_comment(comment)
                header = f">{name}\n".encode("utf-8", "surrogateescape")
                index.write(header)
                index.write(bases)
                index.write(b"\n")
                at += len(header)
                if bases:  # htslib does not list empty sequences either
                    fai.append(f"{name}\t{len(bases)}\t{at}\t{len(bases)}\t{len(bases) + 1}\n")
                at += len(bases) + 1
        if not paths:
            raise InputFileError(f"{reads_path}: holds no reads; a FASTA or FASTQ file is needed")
        if repeated > 1:
            console.warning("readdb", f"{reads_path}: {repeated} reads have the name of an earlier one")
        with open(temporary[1], "wb") as file:
            file.write(index.block_index())
        with open(temporary[2], "w", encoding="utf-8", errors="surrogateescape", newline="\n") as text_file:
            text_file.writelines(fai)
    return paths


def write_readdb(path: str, paths: dict[str, str]) -> None:
    """Write the ``.readdb`` file `path`: a line per read, sorted bytewise by name."""
    lines = sorted((os.fsencode(name), os.fsencode(signal_path)) for name, signal_path in paths.items())
    with _replacing(path) as temporary, open(temporary[0], "wb") as file:
        file.writelines(b"%s\t%s\n" % line for line in lines)


def _find_fast5(
    paths: dict[str, str],
    directories: Sequence[str],
    listed: dict[str, list[str]],
    processes: int,
    verbose: int,
) -> None:
    """Put the path of every read that is found below `directories` into `paths`."""
    files: list[str] = []
    for directory in directories:
        if not os.path.isdir(directory):
            console.warning("readdb", f"{directory}: skipped, is not a folder")
            continue
        if verbose:
            console.note("readdb", f"indexing {directory}")
        files += list_fast5(directory)
    unlisted = [path for path in files if os.path.basename(path) not in listed]
    with console.progress("fast5 files", len(unlisted)) as advance:
        found = scan_fast5(unlisted, processes, advance)
    report_skipped(found, verbose > 1)
    opened: Iterator[Found] = iter(found)
    # in the order of all files, so that the last file to name a read wins, opened or not
    for path in files:
        in_table = listed.get(os.path.basename(path))
        if in_table is not None:
            paths.update((name, path) for name in in_table if name in paths)
        elif not isinstance(names := next(opened), str):
            paths.update((name, path) for name in names)


def _records(path: str) -> Iterator[tuple[str, str, bytes]]:
    """Yield name, comment and bases of every read of a FASTA or FASTQ file, plain or gzip."""
    import pysam

    if os.path.isdir(path):
        raise InputFileError(f"{path}: is a folder; give a FASTA or FASTQ file")
    if not os.path.exists(path):
        raise InputFileError(f"{path}: not found")
    _check_is_text(path)
    number = 0
    has_quality = None
    loudness = pysam.set_verbosity(0)  # what htslib would print is said in the error below
    try:
        with pysam.FastxFile(path) as records:
            for number, record in enumerate(records, 1):
                name, bases = record.name, record.sequence or ""
                if not name:
                    raise InputFileError(f"{path}: read {number} has no name")
                if number == 1 and name in _SAM_HEADERS and record.quality is None and ":" in (record.comment or ""):
                    raise InputFileError(f"{path}: a SAM file; give the base-called reads in FASTA or FASTQ format")
                if has_quality is None:
                    has_quality = record.quality is not None
                if has_quality and record.quality is None:
                    raise InputFileError(f"{path}: truncated; read {number}, {name}, has no qualities")
                yield name, record.comment or "", "".join(bases.split()).encode()
    except ValueError as problem:  # pysam's word for whatever went wrong, undecodable text included
        raise InputFileError(
            f"{path}: truncated or damaged behind read {number}; give a complete FASTA or FASTQ file"
        ) from problem
    finally:
        pysam.set_verbosity(loudness)


def _check_is_text(path: str) -> None:
    """Refuse a regular file that starts like neither FASTA nor FASTQ, such as a BAM file."""
    import gzip
    import zlib

    if not os.path.isfile(path):
        return  # a pipe can be read only once
    try:
        with open(path, "rb") as plain:
            zipped = plain.read(2) == b"\x1f\x8b"
        with gzip.open(path) if zipped else open(path, "rb") as file:
            start = file.read(4096).lstrip()
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise InputFileError(f"{path}: truncated or damaged gzip file") from problem
    if start and start[:1] not in b">@":
        raise InputFileError(f"{path}: is neither FASTA nor FASTQ; if it is BAM, run samtools fastq first")


def _path_in_comment(comment: str) -> str:
    """Return the comment's last word if it is a fast5 path, as basecallers used to write it, else ''."""
    last = comment.rstrip(" ").rpartition(" ")[2]
    return sys.intern(last) if last.endswith(".fast5") else ""


@contextmanager
def _replacing(*paths: str) -> Iterator[list[str]]:
    """Give temporary names to write to, and put the files in the place of `paths` once all are complete.

    All but the first of the old files go before the first new one comes, so that an interruption between two
    renames leaves a missing file rather than files that do not fit one another.
    """
    temporary = [f"{path}.tmp{os.getpid()}" for path in paths]
    with ExitStack() as cleaning:
        for path in temporary:
            cleaning.callback(_remove, path)
        try:
            yield temporary
            for path in paths[1:]:
                _remove(path)
            for source, path in zip(temporary, paths, strict=True):
                os.replace(source, path)
        except OSError as problem:
            if problem.filename not in (None, *temporary, *paths):
                raise
            raise OutputFileError(
                f"{paths[0]}: cannot be written ({problem.strerror or problem}); "
                "the index needs a writable folder with room beside the reads"
            ) from problem


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:
        return
