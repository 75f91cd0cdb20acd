"""Calling a growing run folder: ``f5py call-methylation --watch``.

Every alignment file is a plan of one part, below ``files/`` in the folder of the plan; the outputs are those parts
joined in the order of the files' names, whatever their order of arrival: the results of one run over all files in that
order.
"""

from __future__ import annotations

import os
import re
import shutil
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from f5py.compute.diagnosis import RunCounts
from f5py.core.batch import Cause
from f5py.errors import F5pyError, InputFileError, UsageError
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_records import bam_header, chosen_records, record_names
from f5py.io.bam.record_ranges import RecordRange
from f5py.io.bytes.bgzf_blocks import END_BLOCK, MAX_BLOCK, bgzf_blocks
from f5py.io.files.complete_file import complete_output
from f5py.io.files.signal_format import Kind
from f5py.io.signals.run_folder import FinishedFiles, RunFolder
from f5py.mapping import MapOptions, load_reference, map_reads
from f5py.messages import console
from f5py.messages.console import input_warning
from f5py.options import declarations
from f5py.options.shared import SIGNALS
from f5py.options.signal_commands import WatchOptions
from f5py.pipeline.inputs import urls
from f5py.runs.finish import PlannedPart, join_parts
from f5py.runs.in_parts import as_one_run
from f5py.runs.parts.done_part import read_part
from f5py.runs.parts.job import PartJob
from f5py.runs.parts.plan import Plan
from f5py.runs.recipe import MappedReadsRecipe, run_parts
from f5py.threads.interrupts import Interrupt, remembered_interrupt

if TYPE_CHECKING:
    from f5py.mapping import MappingReference

_WHO = "watch"
_FOLDER = ".f5py-watch"
#: Incomplete files that are named.
_SHOWN = 5
_FILES, _SIGNALS, _MAPPED, _AGAIN = "files", "signals", "mapped", "again"
#: Running totals are written no more often than takes up this share of the time.
_REFRESH_SHARE = 0.1
#: How soon Ctrl-C is heeded while nothing is done.
_HEED_SECONDS = 0.1
_NUMBER = re.compile(r"_(\d+)(?=\D*$)")


def run(recipe: MappedReadsRecipe, options: Any) -> RunCounts:
    """Call new files of a folder until it is idle or interrupted; return the read counts by outcome.

    Raises `F5pyError`; finished files stay.
    """
    options = _resolve(recipe, options)
    with remembered_interrupt() as interrupt:
        watch = _Watch(recipe, options, interrupt)
        watch.until_idle()
    if interrupt.has_come:
        console.info(_WHO, "calling the files that are there, then writing the results; Ctrl-C again ends at once")
    return watch.finish()


def _resolve(recipe: MappedReadsRecipe, options: Any) -> Any:
    if options.bam:
        raise UsageError("--watch and -b are both given; the alignments are those in the folder; leave -b out")
    for url in urls(options):
        raise UsageError(f"{url}: with --watch all files are on this machine")
    if options.read_ids == "-":
        raise UsageError("--read-ids -: the list is read for each file, and cannot be standard input; name a file")
    if not os.path.isdir(str(options.watch)):
        raise InputFileError(f"--watch {options.watch}: is no folder")
    resolved = recipe.resolved(options)
    recipe.check_parts(resolved)
    return resolved


class _Watch:
    """State of the files of a folder."""

    def __init__(self, recipe: MappedReadsRecipe, options: Any, interrupt: Interrupt) -> None:
        self._recipe = recipe
        self._options = options
        self._interrupt = interrupt
        self._folder = Path(_plan_folder(options)).absolute()
        self._run_folder = RunFolder(str(options.watch))
        kept = as_one_run(recipe, options)
        inputs = (options.genome, options.kmer_model, options.meth_model)
        if Plan.is_there(str(self._folder)):
            root = Plan.load_same(str(self._folder), recipe.command, kept)
            kept = replace(kept, command_line=str(root.options["command_line"]))
        else:
            Plan.make(str(self._folder), recipe.command, kept, inputs, [])
        unwatched: dict[str, Any] = {name: option.default for name, option in declarations(WatchOptions).items()}
        self._of_file = replace(kept, **unwatched, bam="-")
        self._done = self._done_before()
        self._again: dict[str, Plan] = {}  # of files that were called anew, with their alignments as part 1
        self._tried: dict[str, int] = {}  # with how many signal files a file without all of its signals was called
        self._n_signals = 0
        self._refreshed = 0.0
        self._refresh_seconds = 0.0
        self._failed: dict[str, str] = {}
        self._incomplete: list[Plan] = []
        #: What FASTQ is mapped to, from the first file on.
        self._reference: MappingReference | None = None
        #: Whether FASTQ is mapped; decided once, as the same reads may come as BAM, too.
        self._maps: bool | None = not next(iter(self._done)).endswith(".bam") if self._done else None
        self._has_told = False

    def until_idle(self) -> None:
        """Poll and call until the folder is idle or the run is interrupted."""
        idle_seconds = None if self._options.watch_until_idle is None else 60.0 * self._options.watch_until_idle
        last_news = time.monotonic()
        console.info(_WHO, f"watching {self._options.watch}; Ctrl-C writes the results")
        n_known = -1
        while not self._interrupt.has_come:
            found = self._look()
            n_found = len(found.alignments) + len(found.reads) + len(found.signals) + len(found.unfinished)
            if self._call_new(found, is_last=False) or n_found != n_known or found.is_growing:
                last_news = time.monotonic()
            n_known = n_found
            if idle_seconds is not None and time.monotonic() - last_news >= idle_seconds:
                return
            look_again = time.monotonic() + self._options.watch_interval
            while not self._interrupt.has_come and (left := look_again - time.monotonic()) > 0:
                time.sleep(min(left, _HEED_SECONDS))

    def finish(self) -> RunCounts:
        """Call files that waited for signals, and write the results."""
        self._look()
        time.sleep(self._options.watch_interval)  # what has come while the last files were called
        found = self._look()
        self._call_new(found, is_last=True)
        self._tell_unfinished(found.unfinished)
        self._call_again()
        if not self._done:
            why = next(iter(self._failed.values()), "no finished BAM or FASTQ file was found")
            raise F5pyError(f"--watch {self._options.watch}: nothing was called: {why}")
        for path, why in self._failed.items():
            console.warning(_WHO, f"{path} was left out: {why}")
        counts = join_parts(self._recipe, self._outputs(), self._parts())
        for plan in self._incomplete:  # the next run tries them again: their signals may have come
            plan.abandon_part(plan.part_folder(0))
        if self._failed:
            shown, n_more = next(iter(self._failed)), len(self._failed) - 1
            files = f"{shown} and {n_more} more were" if n_more else f"{shown} was"
            raise F5pyError(f"--watch {self._options.watch}: {files} left out; the results have all others")
        return counts

    def _tell_unfinished(self, names: Sequence[str]) -> None:
        """Warn of incomplete files."""
        if names:
            more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            are = "is not complete and was" if len(names) == 1 else "are not complete and were"
            input_warning(_WHO, f"{', '.join(names[:_SHOWN])}{more} in {self._options.watch} {are} left out")

    def _look(self) -> FinishedFiles:
        try:
            return self._run_folder.look()
        except OSError as problem:
            where = problem.filename or self._options.watch
            raise InputFileError(f"--watch {where}: cannot be read: {problem.strerror}") from None

    def _call_new(self, found: FinishedFiles, is_last: bool) -> bool:
        """Call new files; return whether there were any."""
        self._gather_signals(found.signals)
        if self._maps is None and (found.reads or found.has_alignments):
            self._maps = not found.has_alignments
        is_mapped = bool(self._maps)
        if is_mapped and found.has_alignments and not self._has_told:
            self._has_told = True
            console.warning(_WHO, "BAM files have come after FASTQ files had been mapped; they are left alone")
        names = [name for name in (found.reads if is_mapped else found.alignments) if self._is_ours(name)]
        has_worked = False
        for name in names:
            if self._interrupt.has_come and not is_last:
                break
            if name in self._done:
                continue
            has_signals = self._has_own_signals or self._n_signals
            waits = self._tried.get(name) == self._n_signals and not is_last  # for signals that have not come
            if not has_signals or waits:
                continue
            has_worked = True
            try:
                if self._call(name, is_mapped, is_last):
                    self._refresh()
            except InputFileError as problem:
                if name not in self._failed:
                    console.warning(_WHO, f"{name}: {problem}; it is tried again at the end")
                self._failed[name] = str(problem)
                self._tried[name] = self._n_signals
        return has_worked

    def _call(self, name: str, is_mapped: bool, is_last: bool) -> bool:
        """Call one file; return False if some of its signals may still arrive."""
        path = self._mapped(name) if is_mapped else os.path.join(str(self._options.watch), name)
        options = replace(self._of_file, bam=path, **self._signals())
        folder = str(self._folder / _FILES / urllib.parse.quote(name, safe=""))
        if Plan.is_there(folder):
            plan = Plan.load(folder)
            plan.check_inputs()
        else:
            plan = Plan.make(folder, self._recipe.command, options, [path], [RecordRange(0, None)])
        run_parts(options, self._recipe, PartJob(plan, [0], checks_chemistry=not self._done and not is_last))
        counts = read_part(plan, 0).outcome.counts
        self._tried[name] = self._n_signals
        n_waiting = counts.by_cause(Cause.NO_SIGNAL)
        if n_waiting and not is_last:
            plan.abandon_part(plan.part_folder(0))
            console.info(_WHO, f"{name}: {n_waiting} reads have no signal yet; it waits for them")
            return False
        self._done[name] = plan
        if n_waiting:
            self._incomplete.append(plan)
        self._failed.pop(name, None)
        console.info(_WHO, f"{name}: {counts.total} reads, {counts.results} calls")
        return True

    def _refresh(self) -> None:
        """Write the running totals: counts of sites and the report."""
        options = self._outputs()
        if options.bedmethyl is None and not options.report:
            return
        now = time.monotonic()
        if now - self._refreshed < self._refresh_seconds / _REFRESH_SHARE:
            return
        totals = replace(
            options, output="-", output_format="none", modbam=None, modbam_style="read", replace_tags=False,
            merge_tags=False, prior=None, failed_reads=None, skip_ultra=None,
        )  # fmt: skip
        join_parts(self._recipe, totals, self._parts(), tells=False)
        self._refreshed = time.monotonic()
        self._refresh_seconds = self._refreshed - now

    def _call_again(self) -> None:
        """Recall files that share reads with earlier files, if calls depend on those."""
        if not (self._options.skip_duplicates or self._options.skip_overlaps):
            return
        folder = self._folder / _AGAIN
        shutil.rmtree(folder, ignore_errors=True)
        names = [name for name in sorted(self._done) if os.path.exists(str(self._done[name].options["bam"]))]
        if gone := [name for name in self._done if name not in names]:
            input_warning(
                _WHO,
                f"{', '.join(gone[:_SHOWN])}{', ...' if len(gone) > _SHOWN else ''}: removed since the calls; whether "
                "other files have their reads, too, is not known",
            )
        folder.mkdir(parents=True)
        paths = [str(self._done[name].options["bam"]) for name in names]
        for at, bam, ranges in files_with_earlier_reads(paths, str(folder)):
            name = names[at]
            console.info(_WHO, f"{name}: has reads of files before it; it is called again")
            options = replace(self._of_file, bam=bam, **self._signals())
            of_file = str(folder / urllib.parse.quote(name, safe=""))
            plan = Plan.make(of_file, self._recipe.command, options, [bam], ranges)
            run_parts(options, self._recipe, PartJob(plan, [1], checks_chemistry=False))
            self._again[name] = plan
            os.remove(bam)

    def _parts(self) -> list[PlannedPart]:
        return [(self._again[name], 1) if name in self._again else (self._done[name], 0) for name in sorted(self._done)]

    def _outputs(self) -> Any:
        """Return the options of a run over the finished files."""
        paths = [self._done[name].options["bam"] for name in sorted(self._done)]
        bam = next((path for path in paths if os.path.exists(path)), paths[0])
        return replace(self._of_file, bam=bam, **self._signals())

    @property
    def _has_own_signals(self) -> bool:
        return any(self._options.signal_paths.values())

    def _signals(self) -> dict[str, Any]:
        """Return the options for the signals."""
        if self._has_own_signals:
            return {}
        folders = [self._folder / _SIGNALS / kind for kind in SIGNALS]
        return {folder.name: (str(folder),) for folder in folders if folder.is_dir() and any(folder.iterdir())}

    def _gather_signals(self, files: Sequence[tuple[str, Kind]]) -> None:
        """Link the finished signal files into a folder of their own, as others may be half-written."""
        if self._has_own_signals:
            return
        for name, kind in files:
            folder = self._folder / _SIGNALS / kind
            folder.mkdir(parents=True, exist_ok=True)
            link = folder / urllib.parse.quote(name, safe="")
            with suppress(FileExistsError):
                link.symlink_to(os.path.abspath(os.path.join(str(self._options.watch), name)))
        self._n_signals = len(files)

    def _is_ours(self, name: str) -> bool:
        """Return whether the file belongs to this process, of several that share the folder."""
        total = self._options.watch_process_total or 1
        number = _NUMBER.search(os.path.basename(name))
        if total == 1 or number is None:
            return total == 1
        return int(number.group(1)) % total == (self._options.watch_process_index or 0)

    def _done_before(self) -> dict[str, Plan]:
        """Find called files, including those removed since."""
        folder = self._folder / _FILES
        found = {}
        for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
            if Plan.is_there(str(entry)) and (plan := Plan.load(str(entry))).is_done(0):
                if os.path.exists(plan.options["bam"]):
                    plan.check_inputs()
                found[urllib.parse.unquote(entry.name)] = plan
        return found

    def _mapped(self, name: str) -> str:
        """Return the path of the mapped reads' BAM file, mapping them first if needed."""
        path = self._folder / _MAPPED / f"{urllib.parse.quote(name, safe='')}.bam"
        if path.exists():
            return str(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        reads = os.path.join(str(self._options.watch), name)
        options = MapOptions(
            reference=self._options.genome, reads=(reads,), output=str(path), threads=self._options.threads,
            command_line=f"f5py map -o {path} {self._options.genome} {reads}", indexes_reference=True,
            **self._options.gpu_choices(),
        )  # fmt: skip
        if self._reference is None:
            self._reference = load_reference(options)
        console.info(_WHO, f"{name}: {map_reads(options, self._reference)}")
        return str(path)


def _plan_folder(options: Any) -> str:
    if options.plan is not None:
        return str(options.plan)
    outputs = (options.output, options.modbam, options.bedmethyl)
    beside = next((path for path in outputs if path is not None and path != "-"), str(options.watch).rstrip("/"))
    return beside + _FOLDER


_Chunks = Iterator[tuple[NDArray[np.uint8], NDArray[np.int64], int]]


def files_with_earlier_reads(paths: Sequence[str], folder: str) -> Iterator[tuple[int, str, list[RecordRange]]]:
    """Find BAM files that share reads with earlier files and rewrite them with those earlier alignments.

    Yield the number of the file, the new BAM file, and its ranges: earlier alignments, and those of the file. Each may
    be removed before the next one is requested. Raises `InputFileError` if two files that share reads have other
    contigs.
    """
    seen: set[int] = set()
    for at, path in enumerate(paths):
        shared, here = set[int](), set[int]()
        for data, starts, n in _chunks(path):
            here.update(names := _name_hashes(data, starts, n))
            shared.update(seen.intersection(names))
        seen |= here
        if shared:
            yield _write(at, paths, shared, os.path.join(folder, f"{at}.bam"))


def _name_hashes(data: NDArray[np.uint8], starts: NDArray[np.int64], n: int) -> list[int]:
    """Hash the names of records: a false match adds a record that changes no call."""
    return [hash(name) for name in record_names(data, starts, np.arange(n))]


def _write(at: int, paths: Sequence[str], shared: set[int], bam: str) -> tuple[int, str, list[RecordRange]]:
    with closing(AlignmentFile(paths[at], None, 0, True)) as file:
        header, contigs = file.header, (file.contigs, file.contig_lengths)
        begun = bam_header(header)
    with complete_output(bam) as out:
        out.write(_compress(begun))
        for path in paths[:at]:
            for data, starts, n in _chunks(path):
                chosen = np.flatnonzero([name in shared for name in _name_hashes(data, starts, n)])
                if len(chosen):
                    _check_contigs(path, paths[at], contigs)
                    out.write(_compress(chosen_records(data, starts, chosen)[0].tobytes()))
        begin = out.tell() << 16
        for data, starts, n in _chunks(paths[at]):
            out.write(_compress(data[: starts[n]].tobytes()))
        out.write(END_BLOCK)
    return (at, bam, [RecordRange(0, begin), RecordRange(begin, None)])


def _check_contigs(path: str, other: str, contigs: tuple[list[str], list[int]]) -> None:
    with closing(AlignmentFile(path, None, 0, True)) as file:
        if (file.contigs, file.contig_lengths) != contigs:
            raise InputFileError(
                f"{other}: has reads of {path}, which was mapped to other contigs; map both to one reference"
            )


def _chunks(path: str) -> _Chunks:
    """Yield the records of a file with their offsets, the first at 0."""
    with closing(AlignmentFile(path, None, 0, True)) as file, closing(file.chunks()) as chunks:
        for data, starts, n in chunks:
            yield data[starts[0] :], starts - starts[0], n


def _compress(text: bytes) -> bytes:
    return b"".join(bgzf_blocks(text, MAX_BLOCK >> 1))
