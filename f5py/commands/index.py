"""Index of basecalled reads, for their sequences and signal files: ``f5py index``.

The files are those of f5c and nanopolish: ``<reads>.index`` (the sequences as FASTA in BGZF), ``.index.fai``
and ``.index.gzi`` (as htslib's faidx makes them) and ``.index.readdb`` (read name, tab, signal file).
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from typing import NamedTuple

from f5py.errors import F5pyError, InputFileError, UsageError
from f5py.io.sequences.read_index_output import ReadIndexOutput
from f5py.io.signals.fast5.fast5_scan import report_skipped, scan_fast5
from f5py.io.signals.scan_journal import Found, ScanJournal
from f5py.io.signals.search import list_kind
from f5py.io.signals.sequencing_summary import read_summary_list, reads_by_file
from f5py.io.signals.source import paths_of
from f5py.messages import console
from f5py.messages.console import input_warning, obeys_strict
from f5py.messages.progress import progress
from f5py.options.table_commands import IndexOptions

#: The share of reads without a signal file that needs no warning.
_USUAL_LOSS = 0.01
#: Of a file beside the index, while that is not complete.
_JOURNAL_SUFFIX = ".index.scanned"
#: Names of files of reads in a folder.
_READS_NAME = re.compile(r"\.(fastq|fq|fasta|fa)(\.(gz|bgz|bz2|xz|zst))?$", re.IGNORECASE)
#: Endings of files of signals.
_OF_SIGNALS = (".pod5", ".blow5", ".slow5", ".fast5")


class IndexSummary(NamedTuple):
    """Numbers of known reads, basecalled or from signal files, and of those with a signal file. None for SLOW5."""

    reads: int
    with_signal: int | None


@obeys_strict
def run(options: IndexOptions) -> IndexSummary:
    """Make the index; return its numbers of reads. Raises `F5pyError`, also if no read has a signal file."""
    sources = files_of_reads(options.reads)
    prefix = _prefix(options)
    if options.slow5:
        given = {
            "-d": options.directories, "-s": options.summaries, "-f": options.summary_lists,
            "--iop": options.iop > 1, "--resume": options.resume,
        }  # fmt: skip
        if idle := [name for name, value in given.items() if value]:
            console.warning("index", f"{', '.join(idle)}: no effect with --slow5")
        summary, kind = _index_slow5(options, prefix, sources), "slow5"
    else:
        if options.skip_slow5_idx:
            console.warning("index", "--skip-slow5-idx has no effect without --slow5")
        summary = _index_fast5(options, prefix, sources)
        kind = " or ".join(["fast5"] * bool(options.directories or not options.pod5) + ["pod5"] * bool(options.pod5))
    _report(summary, kind)
    return summary


def _index_fast5(options: IndexOptions, prefix: str, sources: Sequence[str]) -> IndexSummary:
    """Index basecalled reads and the fast5 or POD5 files of their signals.

    All reads of signal files are listed: reads that the basecaller has split name, in their alignment records, a parent
    that is not among the basecalled reads. Where several files have a read, the first POD5 file wins, then the last
    fast5 file.
    """
    summaries = [*options.summaries, *(path for one in options.summary_lists for path in read_summary_list(one))]
    with ExitStack() as files:
        journal = files.enter_context(ScanJournal(prefix + _JOURNAL_SUFFIX)) if options.resume else None
        listed = reads_by_file(summaries)
        in_pod5 = _list_pod5(options.pod5, options.verbose)
        with ReadIndexOutput(prefix) as index:
            paths = index.write_sequences(options.threads, sources)
            n_basecalled = len(paths)
            if not all(paths.values()):
                _find_fast5(paths, options, listed, journal)
            paths.update(zip(in_pod5, paths_of(in_pod5, list(in_pod5)), strict=True))
            with_path = sum(1 for path in paths.values() if path)
            if n_basecalled and not with_path:
                kind, advice = "POD5", "give their POD5 files with --pod5"
                if not options.pod5:
                    kind, advice = "fast5", _where_signals_may_be(options.directories)
                raise F5pyError(f"no {kind} file was found for any of the {n_basecalled} reads in {prefix}; {advice}")
            if n_basecalled and not any(islice(paths.values(), n_basecalled)):
                input_warning(
                    "readdb",
                    f"none of the {n_basecalled} reads in {prefix} has a signal by its own name: the signal files hold "
                    f"{with_path} other reads; unless all are split reads, whose alignments name their parents (tag "
                    "pi), give the signal files of these reads",
                )
            index.commit(paths)
        if journal is not None:
            journal.remove()
    return IndexSummary(len(paths), with_path)


def _index_slow5(options: IndexOptions, prefix: str, sources: Sequence[str]) -> IndexSummary:
    """Index basecalled reads with all signals in SLOW5 files or folders, and these files.

    The ``.readdb`` then has a line for each file that names it for all reads, as nanopolish writes it.
    """
    from f5py.io.signals.search import check_kind, signal_files
    from f5py.io.signals.slow5.reader import Slow5Source, read_groups

    for path in options.slow5:
        check_kind(path, "slow5")
    files = signal_files(options.slow5, "slow5")
    with_signal = None
    with ExitStack() as opened:
        signals = []
        for file in files:
            if options.skip_slow5_idx:
                read_groups(file)  # raises if the header is damaged
            else:
                signals.append(opened.enter_context(closing(Slow5Source(file, options.threads))))
        index = opened.enter_context(ReadIndexOutput(prefix))
        paths = index.write_sequences(options.threads, sources)
        if not options.skip_slow5_idx:
            with_signal = len({name for source in signals for name in source.names() if name in paths})
            if paths and not with_signal:
                raise F5pyError(
                    f"{', '.join(options.slow5)}: holds none of the {len(paths)} reads in {prefix}; give the file of "
                    "these reads"
                )
        index.commit(of_all=files)
    return IndexSummary(len(paths), with_signal)


def _report(summary: IndexSummary, kind: str) -> None:
    """Print the number of reads and, if known, of those with a signal file of that kind."""
    reads, with_path = summary
    if with_path is None:
        console.note("readdb", f"num reads: {reads}")
        return
    console.note("readdb", f"num reads: {reads}, num reads with path to {kind}: {with_path}")
    if with_path < (1 - _USUAL_LOSS) * reads:
        input_warning("readdb", f"{kind} files could not be located for {reads - with_path} reads")


def _where_signals_may_be(directories: Sequence[str]) -> str:
    """Return advice for folders in which no read was found."""
    from f5py.io.signals.search import list_formats

    for directory in filter(os.path.isdir, directories):
        found = list_formats(directory)
        if "fast5" not in found and "pod5" in found:
            return f"{directory} holds POD5 files; give it with --pod5"
        if "fast5" not in found and "slow5" in found:
            return f"{directory} holds SLOW5 files; give the one of these reads with --slow5, such as {found['slow5']}"
    return "give the folder of their fast5 files with -d, or signals of another format with --pod5 or --slow5"


def _list_pod5(given: Sequence[str], verbose: int) -> Mapping[str, str]:
    """Map reads to their POD5 files, of these files and folders."""
    if not given:
        return {}
    from f5py.io.signals.pod5.reader import Pod5Index
    from f5py.io.signals.search import check_kind, signal_files

    files: list[str] = []
    for path in given:
        check_kind(path, "pod5")
        if verbose:
            console.note("readdb", f"indexing {path}")
        files += signal_files([path], "pod5")
    return Pod5Index(files)


def files_of_reads(given: Sequence[str]) -> list[str]:
    """List files, and those of reads in folders by name. Raises `InputFileError` for a folder without any."""
    files: list[str] = []
    for path in given:
        if not os.path.isdir(path):
            files.append(path)
            continue
        inside = sorted(name for name in os.listdir(path) if _READS_NAME.search(name))
        if not inside:
            raise InputFileError(f"{path}: is a folder without files of reads (.fastq, .fasta, also compressed)")
        files += [os.path.join(path, name) for name in inside]
    return files


def _prefix(options: IndexOptions) -> str:
    """Choose the prefix of the index's file names."""
    if not options.reads:
        raise UsageError("give the basecalled reads: f5py index [OPTIONS] READS")
    if len(options.reads) > 1 and (signals := [name for name in options.reads if name.lower().endswith(_OF_SIGNALS)]):
        raise UsageError(
            f"{signals[0]}: is given as a file of reads; name the folder of the signals, or write --pod5, --slow5 or "
            "-d before each"
        )
    if options.output is None and (len(options.reads) > 1 or os.path.isdir(options.reads[0])):
        raise UsageError("several files of reads need a name for their index: -o PREFIX, to be given as -r later")
    if options.output is None and options.reads[0] == "-":
        raise UsageError("reads from standard input need a name for their index: -o PREFIX, to be given as -r later")
    return options.reads[0] if options.output is None else options.output


def _find_fast5(
    paths: dict[str, str], options: IndexOptions, listed: dict[str, list[str]], journal: ScanJournal | None
) -> None:
    """Put the path of every read that is found below the folders into `paths`."""
    files: list[str] = []
    for directory in options.directories:
        if not os.path.isdir(directory):
            input_warning("readdb", f"{directory}: skipped, is not a folder", "folders that are none")
            continue
        if options.verbose:
            console.note("readdb", f"indexing {directory}")
        files += list_kind(directory, "fast5")
    unlisted = [path for path in files if os.path.basename(path) not in listed]
    with progress("fast5 files", len(unlisted)) as bar:
        found = scan_fast5(unlisted, options.iop, bar.advance, journal)
    report_skipped(found, options.verbose > 1)
    opened: Iterator[Found] = iter(found)
    # in the order of all files, so that the last file to name a read wins, opened or not
    for path in files:
        in_table = listed.get(os.path.basename(path))
        if in_table is not None:
            paths.update((name, path) for name in in_table if name in paths)
        elif not isinstance(names := next(opened), str):
            paths.update((name, path) for name in names)
