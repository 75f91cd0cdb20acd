"""Make the index of basecalled reads: their sequences for random access, and where each one's signal is.

The files are those of f5c and nanopolish: ``<reads>.index`` (the sequences as FASTA in BGZF), ``.index.fai``
and ``.index.gzi`` (as htslib's faidx makes them) and ``.index.readdb`` (read name, tab, signal file).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from typing import NamedTuple

from f5py import console
from f5py.core.options import IndexOptions
from f5py.core.strictness import input_warning, obeys_strict
from f5py.errors import F5pyError, OutputFileError, UsageError
from f5py.io.bgzf import BlockWriter
from f5py.io.fast5_scan import Found, list_fast5, report_skipped, scan_fast5
from f5py.io.read_index import FAI_SUFFIX, GZI_SUFFIX, READDB_SUFFIX, SEQUENCE_SUFFIX
from f5py.io.sequence_files import sequence_records
from f5py.io.sequencing_summary import read_summary_list, reads_by_file
from f5py.io.unfinished_file import UnfinishedFile
from f5py.progress import progress

#: The share of reads without a signal file that needs no warning.
_USUAL_LOSS = 0.01


class IndexSummary(NamedTuple):
    """How many reads an index knows, basecalled or found in signal files, and how many of these have a signal file.

    The latter is None for SLOW5, whose own index tells.
    """

    reads: int
    with_signal: int | None


@obeys_strict
def run(options: IndexOptions) -> IndexSummary:
    """Make the index as `options` say, and tell how many reads have a signal.

    Raises
    ------
    F5pyError
        For anything wrong with the input or output.
    """
    if options.slow5 is not None and options.pod5:
        raise UsageError("--slow5 and --pod5 exclude each other")
    if options.slow5 is None:
        if options.skip_slow5_idx:
            console.warning("index", "--skip-slow5-idx has no effect without --slow5")
        kinds = ["fast5"] * bool(options.directories or not options.pod5) + ["pod5"] * bool(options.pod5)
        counts = index_fast5(
            options.reads, options.directories, options.summaries, options.summary_lists, options.threads,
            options.iop, options.verbose, options.pod5,
        )  # fmt: skip
        report_counts(*counts, " or ".join(kinds))
        return IndexSummary(*counts)
    given = {
        "-d": options.directories, "-s": options.summaries, "-f": options.summary_lists,
        "--iop": options.iop > 1,
    }  # fmt: skip
    if idle := [name for name, value in given.items() if value]:
        console.warning("index", f"{', '.join(idle)}: no effect with --slow5")
    known = index_slow5(options.reads, options.slow5, options.threads, not options.skip_slow5_idx)
    report_counts(*known, "slow5")
    return IndexSummary(*known)


def index_fast5(
    reads_path: str,
    directories: Sequence[str],
    summaries: Sequence[str] = (),
    summary_lists: Sequence[str] = (),
    threads: int = 4,
    processes: int = 1,
    verbose: int = 1,
    pod5: Sequence[str] = (),
) -> tuple[int, int]:
    """Index basecalled reads and the fast5 or POD5 files of their signals.

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
    pod5 : sequence of str
        POD5 files, and folders to search for such. Where several files have a read the first one wins, also over fast5.
        Like those of fast5 files, all their reads are listed: reads that the basecaller has split name, in their
        alignment records, a parent that is not among the basecalled reads.

    Returns
    -------
    reads, with_path : int
        Reads known, basecalled or found in signal files, and how many of them have a signal file.

    Raises
    ------
    InputFileError
        If an input file is missing or damaged.
    MissingDependencyError
        If a POD5 file is given and the package pod5 is not installed.
    F5pyError
        If not a single read has a signal file. The sequence index has then been written all the same.
    """
    summaries = [*summaries, *(path for listing in summary_lists for path in read_summary_list(listing))]
    listed = reads_by_file(summaries)
    in_pod5 = _list_pod5(pod5, verbose)
    paths = write_sequence_index(reads_path, threads)
    n_basecalled = len(paths)
    if not all(paths.values()):
        _find_fast5(paths, directories, listed, processes, verbose)
    paths.update(in_pod5.items())
    with_path = sum(1 for path in paths.values() if path)
    if not with_path:
        raise F5pyError(
            f"no {'POD5' if pod5 else 'fast5'} file was found for any of the {n_basecalled} reads in {reads_path}; "
            + ("give their POD5 files with --pod5" if pod5 else _where_signals_may_be(directories))
        )
    if not any(islice(paths.values(), n_basecalled)):
        input_warning(
            "readdb",
            f"none of the {n_basecalled} reads in {reads_path} is in the signal files by its own name; unless all are "
            "split reads, whose alignments name their parents (tag pi), give the signal files of these reads",
        )
    write_readdb(reads_path + READDB_SUFFIX, paths)
    return len(paths), with_path


def index_slow5(reads_path: str, slow5: str, threads: int = 4, index_signals: bool = True) -> tuple[int, int | None]:
    """Index basecalled reads, whose signals are all in one SLOW5 file.

    The ``.readdb`` then has one line that names this file for all reads, as nanopolish writes it.

    Parameters
    ----------
    reads_path : str
        FASTA or FASTQ, plain or gzip. The index is written beside it.
    slow5 : str
        The SLOW5 or BLOW5 file.
    threads : int
        Compression threads.
    index_signals : bool
        Make the index of the SLOW5 file too, unless it is there.

    Returns
    -------
    reads : int
        Reads known.
    with_signal : int or None
        How many of them are in the SLOW5 file; None without its index.

    Raises
    ------
    InputFileError
        If an input file is missing or damaged.
    MissingDependencyError
        If the package pyslow5 is not installed.
    F5pyError
        If not a single read is in the SLOW5 file. The sequence index has then been written all the same.
    """
    from f5py.io.signals.choose import ALL_READS, check_slow5
    from f5py.io.signals.slow5 import Slow5Source, read_groups

    check_slow5(slow5)
    if not index_signals:
        read_groups(slow5)  # raises if the header is damaged
        paths = write_sequence_index(reads_path, threads)
        write_readdb(reads_path + READDB_SUFFIX, {ALL_READS: slow5})
        return len(paths), None
    source = Slow5Source(slow5)
    try:
        paths = write_sequence_index(reads_path, threads)
        with_signal = sum(1 for name in source.names() if name in paths)
    finally:
        source.close()
    if not with_signal:
        raise F5pyError(f"{slow5}: holds none of the {len(paths)} reads in {reads_path}; give the file of these reads")
    write_readdb(reads_path + READDB_SUFFIX, {ALL_READS: slow5})
    return len(paths), with_signal


def report_counts(reads: int, with_path: int | None, kind: str = "fast5") -> None:
    """Print the last lines of indexing: how many reads there are and, if known, have a signal file of that kind."""
    if with_path is None:
        console.note("readdb", f"num reads: {reads}")
        return
    console.note("readdb", f"num reads: {reads}, num reads with path to {kind}: {with_path}")
    if with_path < (1 - _USUAL_LOSS) * reads:
        input_warning("readdb", f"{kind} files could not be located for {reads - with_path} reads")


def _where_signals_may_be(directories: Sequence[str]) -> str:
    """Return advice for folders in which no read was found."""
    from f5py.io.signals.choose import kinds_below

    for directory in directories:
        found = kinds_below(directory)
        if "fast5" not in found and "pod5" in found:
            return f"{directory} holds POD5 files; give it with --pod5"
        if "fast5" not in found and "slow5" in found:
            return f"{directory} holds SLOW5 files; give the one of these reads with --slow5, such as {found['slow5']}"
    return "give the folder of their fast5 files with -d"


def _list_pod5(given: Sequence[str], verbose: int) -> Mapping[str, str]:
    """Return which of the POD5 files, or of those below the folders, each read is in."""
    if not given:
        return {}
    from f5py.io.signals.choose import check_pod5
    from f5py.io.signals.pod5 import Pod5Index, pod5_files

    files: list[str] = []
    for path in given:
        check_pod5(path)
        if verbose:
            console.note("readdb", f"indexing {path}")
        files += pod5_files(path)
    return Pod5Index(files)


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
    exists: dict[str, bool] = {}
    fai: list[str] = []
    with _replacing(*(reads_path + end for end in (SEQUENCE_SUFFIX, GZI_SUFFIX, FAI_SUFFIX))) as temporary:
        at = 0
        with BlockWriter(temporary[0], threads) as index, progress("reads") as bar:
            for name, comment, bases in sequence_records(reads_path):
                bar.advance(1)
                if name in paths:
                    repeated += 1
                    if repeated == 1:
                        input_warning("readdb", f"{reads_path}: read {name} occurs again; the first counts")
                    continue
                paths[name] = _path_in_comment(comment, exists)
                header = f">{name}\n".encode("utf-8", "surrogateescape")
                index.write(header)
                index.write(bases)
                index.write(b"\n")
                at += len(header)
                if bases:  # htslib does not list empty sequences either
                    fai.append(f"{name}\t{len(bases)}\t{at}\t{len(bases)}\t{len(bases) + 1}\n")
                at += len(bases) + 1
        if gone := [path for path, is_there in exists.items() if not is_there]:
            input_warning(
                "readdb",
                f"{reads_path}: {len(gone)} fast5 files that its header lines name are not there, such as {gone[0]}; "
                "they are not used",
            )
        if repeated > 1:
            input_warning("readdb", f"{reads_path}: {repeated} reads have the name of an earlier one")
        with open(temporary[1], "wb") as file:
            file.write(index.block_index())
        with open(temporary[2], "w", encoding="utf-8", errors="surrogateescape", newline="\n") as text_file:
            text_file.writelines(fai)
    return paths


def write_readdb(path: str, paths: dict[str, str]) -> None:
    """Write the ``.readdb`` file `path`: a line per read, sorted bytewise by name."""
    # the order of letters is that of their bytes, but for those that stand for undecodable bytes
    names = sorted(paths) if all(map(str.isascii, paths)) else sorted(paths, key=os.fsencode)
    with (
        _replacing(path) as temporary,
        open(temporary[0], "w", encoding="utf-8", errors="surrogateescape", newline="\n") as file,
    ):
        file.writelines(f"{name}\t{paths[name]}\n" for name in names)


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
            input_warning("readdb", f"{directory}: skipped, is not a folder")
            continue
        if verbose:
            console.note("readdb", f"indexing {directory}")
        files += list_fast5(directory)
    unlisted = [path for path in files if os.path.basename(path) not in listed]
    with progress("fast5 files", len(unlisted)) as bar:
        found = scan_fast5(unlisted, processes, bar.advance)
    report_skipped(found, verbose > 1)
    opened: Iterator[Found] = iter(found)
    # in the order of all files, so that the last file to name a read wins, opened or not
    for path in files:
        in_table = listed.get(os.path.basename(path))
        if in_table is not None:
            paths.update((name, path) for name in in_table if name in paths)
        elif not isinstance(names := next(opened), str):
            paths.update((name, path) for name in names)


def _path_in_comment(comment: str, exists: dict[str, bool]) -> str:
    """Return the comment's last word if it is the path of a fast5 file, as basecallers used to write it, else ''.

    Files may have been moved since: `exists` keeps what has been looked for.
    """
    last = comment.rstrip(" ").rpartition(" ")[2]
    if not last.endswith(".fast5"):
        return ""
    if last not in exists:
        exists[sys.intern(last)] = os.path.isfile(last)
    return sys.intern(last) if exists[last] else ""


@contextmanager
def _replacing(*paths: str) -> Iterator[list[str]]:
    """Give temporary names to write to, and put the files in the place of `paths` once all are complete.

    All but the first of the old files go before the first new one comes, so that an interruption between two
    renames leaves a missing file rather than files that do not fit one another.
    """
    with ExitStack() as cleaning:
        files = []
        for path in paths:
            try:
                files.append(UnfinishedFile(path))
            except OutputFileError as problem:
                raise OutputFileError(f"{problem}; the index needs a writable folder beside the reads") from None
            cleaning.callback(files[-1].discard)
        temporary = [file.path for file in files]
        try:
            yield temporary
            for path in paths[1:]:
                _remove(path)
            for file in files:
                file.put_in_place()
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
