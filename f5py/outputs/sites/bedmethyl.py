"""bedMethyl tables of methylated sites: 18 tab-separated columns, as written by modkit.

Columns: chromosome; start and end of the modified base; modification code; score, which is the valid coverage, at
most 1000; strand, ``.`` for combined strands; start, end and color again for genome browsers; valid coverage; percent
modified; calls that are modified, canonical, of another modification; reads with a deletion; calls below the
threshold; reads with another base; reads without a call. Deletions, other bases and missing calls are 0 unless tags
were counted with a reference, other modifications unless they were of another caller. As in modkit, a site without a
valid call has no row, and both strands of a site are rows of their own, each at its modified base; combined strands are
at the modified base of the forward strand.

Rows are sorted by chromosome name (bytes) and position, whatever the order of the reads.
"""

import json
import os
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif
from f5py.core.offsets import offsets_of
from f5py.core.stored_arrays import read_arrays
from f5py.core.windows import Windows
from f5py.errors import DamagedValueError, F5pyError, InputFileError, OutputFileError, UsageError, unavailable
from f5py.io.arrow.table import ROWS_PER_GROUP, arrow_sink, dictionary_column, string_column
from f5py.io.bytes.bgzip_output import is_bgzip_name
from f5py.io.files.complete_file import complete_output, complete_text_output
from f5py.io.files.json_values import JsonObject
from f5py.io.files.output import TextOutput
from f5py.jit.kernel import exact_kernel
from f5py.messages import console
from f5py.options.output_names import kind_of_name, packed_ending
from f5py.outputs.formatted_text import append_cell
from f5py.outputs.sink import FinishedPart, PartFiles, Sink
from f5py.site_frequencies.frequency import check_combinable
from f5py.site_frequencies.site_counts import SiteColumns, SiteCounts, SiteTotals, expand_calls
from f5py.site_frequencies.site_table import STRAND_COLUMNS, Frequencies
from f5py.text._format_numba import (
    COMMA,
    MINUS,
    NEWLINE,
    PLUS,
    POINT,
    TAB,
    ZERO,
    append_bytes,
    append_fixed,
    append_int,
)
from f5py.text.encoding import encoded

#: Positions from here on do not fit into a .tbi index.
_TBI_END = 1 << 29
_UNGROUPED = "ungrouped"
_NAMES = "partition_names"
_MAX_PARTITIONS = 1000


def _partition_names(array: NDArray[Any]) -> list[str]:
    """Decode the tag values of a saved `BedMethylOutput`."""
    if array.ndim or array.dtype.kind != "U":
        raise DamagedValueError(f"{_NAMES} is not a text")
    return JsonObject.of_text(str(array).encode()).texts("names", _MAX_PARTITIONS)


def write_bedmethyl(
    path: str,
    counts: SiteCounts,
    names: list[bytes],
    motif: Motif,
    n_threads: int = 2,
    lengths: Mapping[bytes, int] | None = None,
    min_coverage: int = 1,
    code: str | None = None,
    for_r: str | None = None,
) -> None:
    """Write the sites that were counted without a partition. Raises `OutputFileError`, leaving no file.

    A name with ``.gz`` is bgzip-compressed and indexed as by tabix, in ``.tbi``, or in ``.csi`` for positions beyond
    536,870,911. Names of bedGraph or bigWig select these formats; see `f5py.options.output_names`. With `for_r` a table
    for R is written instead.
    """
    totals = counts.totals(names, (motif.offset_forward, motif.offset_reverse)).covered(min_coverage)
    if for_r is not None:
        with complete_text_output(path, n_threads) as out:
            write_rows(out, totals, names, for_r)
        return
    write_totals(path, totals, names, lengths or {}, code or motif.code, counts.combine_strands, n_threads)


def write_totals(
    path: str,
    totals: SiteTotals,
    names: list[bytes],
    lengths: Mapping[bytes, int],
    code: str,
    combined: bool,
    n_threads: int,
) -> None:
    """Write counts of sites, of both strands if `combined`; see `write_bedmethyl`."""
    kind = kind_of_name(path)
    if kind == "bigwig":
        with complete_output(path) as file:
            write_bigwig(file.name, path, totals, names, lengths)
        return
    last = int(totals.position.max(initial=0))
    with _bedmethyl_output(path, last + 1 > _TBI_END, n_threads) as out:
        write_rows(out, totals, names, "bedgraph" if kind == "bedgraph" else "bedmethyl", code, combined)


def check_can_write(path: str) -> None:
    """Raise `OutputFileError` before the work if the file cannot be created."""
    folder = os.path.dirname(os.path.realpath(path))
    if path == "-":
        return
    if kind_of_name(path) == "bigwig":
        import_bigwig()
    if os.path.isdir(path):
        raise OutputFileError(f"{path}: is a folder; give the name of a file")
    if os.path.exists(path):
        if not os.access(path, os.W_OK):
            raise OutputFileError(f"{path}: cannot write: it is write-protected; give another name")
    elif not os.access(folder, os.W_OK):
        why = "the folder is write-protected" if os.path.isdir(folder) else "there is no such folder"
        raise OutputFileError(f"{path}: cannot write: {why}")


@contextmanager
def _bedmethyl_output(path: str, csi: bool, n_threads: int) -> Iterator[TextOutput]:
    """Open a file that appears, with its index if compressed, when complete."""
    if path == "-" or not is_bgzip_name(path):
        with complete_text_output(path, n_threads) as plain:
            yield plain
        return
    suffix, other = (".csi", ".tbi") if csi else (".tbi", ".csi")
    with complete_output(path + suffix) as index:
        with complete_text_output(path, n_threads, lambda packed: _index(path, packed, index.name, csi)) as out:
            yield out
        _remove_old_index(path + other)


def _remove_old_index(path: str) -> None:
    """Remove the index of an earlier file."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as problem:
        why = f"is the index of an earlier file, and cannot be removed ({problem.strerror})"
        console.warning("bedmethyl", f"{path}: {why}; remove it, or programs may use it for the new one")


def _index(path: str, packed: str, index: str, csi: bool) -> None:
    import pysam

    # htslib takes parts of some names, as ##idx##, for orders; so it gets numbers of open files
    try:
        with open(packed, "rb") as rows, open(index, "wb") as out:
            names = [f"/dev/fd/{file.fileno()}" for file in (rows, out)]
            pysam.tabix_index(names[0], preset="bed", index=names[1], csi=csi, force=True)
    except OSError as problem:
        raise OutputFileError(f"{path}: its index cannot be written: {problem.strerror or problem}") from problem


def partition_path(path: str, value: str | None) -> str:
    """Return the path for reads with that value of a tag; for reads without the tag if it is None.

    ``calls.bed.gz`` becomes ``calls.1.bed.gz`` and ``calls.ungrouped.bed.gz``. Characters of the value other than
    letters, digits and ``-._~`` are percent-encoded, an empty value is ``%``.
    """
    packed = packed_ending(path)
    stem, suffix = os.path.splitext(path.removesuffix(packed))
    shown = _UNGROUPED if value is None else urllib.parse.quote(encoded(value), safe="") or "%"
    if value == _UNGROUPED:
        shown = "%75ngrouped"  # so that it stays apart from the reads without the tag
    return f"{stem}.{shown}{suffix}{packed}"


class BedMethylOutput(Sink):
    """Counts of sites, written at the end; a part stores them.

    Opening raises `F5pyError` if strands are to be combined, but the motif has its sites at different places on both.
    `partitions` are values of a tag by their numbers in ``batch.partition``, -1 for reads without the tag, and may grow
    until `finish`. One file is written for each; see `partition_path`.
    """

    part_name = "sites.npz"

    def __init__(
        self, path: str, motif: Motif, contigs: Mapping[str, int], counts: SiteCounts,
        partitions: list[str] | None = None, windows: Windows | None = None, n_threads: int = 2,
    ) -> None:  # fmt: skip
        super().__init__(path)
        self._motif = motif
        self._lengths = {name.encode(): length for name, length in contigs.items()}
        self._names = list(self._lengths)
        self._partitions = partitions
        self._windows = windows
        self._n_threads = n_threads
        self._counts = counts

    def _open(self, part: PartFiles | None) -> None:
        check_can_write(self.path)
        if self._counts.combine_strands:
            check_combinable(self._motif)
        self._is_part = part is not None

    def write(self, batch: ReadBatch) -> None:
        """Count the calls of a batch. Raises `F5pyError` for more than 1,000 tag values."""
        self._check_partitions()
        calls = expand_calls(batch, self._motif, self._windows)
        partition = None if self._partitions is None else batch.partition[calls.read]
        self._counts.add(calls, partition)

    def append(self, part: FinishedPart) -> None:
        """Add the counts of a part. Raises `InputFileError` for an unreadable file."""
        with part.open(self.part_name) as file:
            try:
                saved = read_arrays(file, os.fstat(file.fileno()).st_size)  # they are not compressed
                names = _partition_names(saved.pop(_NAMES, np.array("")))
                columns = SiteColumns.of_arrays(saved, len(names), len(self._names))
            except (OSError, DamagedValueError) as problem:
                raise InputFileError(f"{file.name}: cannot be read: {problem}") from None
        if self._partitions is not None:
            known = self._partitions
            known += [name for name in dict.fromkeys(names) if name not in known]
            number = np.array([-1, *map(known.index, names)], np.int32)
            columns = columns._replace(partition=number[columns.partition + 1])
        self._counts.join(columns)

    def finish(self) -> None:
        """Write the table, or one for every value of the tag; store the counts of a part.

        With a tag, reads without it get a table only if they have calls, or no others do. Raises `F5pyError` for more
        than 1,000 tag values.
        """
        if self._is_part:
            with complete_output(self.path) as file:
                names = np.array(json.dumps({"names": self._partitions or []}))
                np.savez(file, partition_names=names, **self._counts.columns()._asdict())
            return
        self._check_partitions()
        offsets = self._motif.offset_forward, self._motif.offset_reverse
        if self._partitions is None:
            paths = {-1: self.path}
        else:
            paths = {number: partition_path(self.path, value) for number, value in enumerate(self._partitions)}
            if not paths or -1 in self._counts.partitions():
                paths[-1] = partition_path(self.path, None)
        for partition, path in paths.items():
            totals = self._counts.totals(self._names, offsets, partition)
            write_totals(
                path, totals, self._names, self._lengths, self._motif.code, self._counts.combine_strands,
                self._n_threads,
            )  # fmt: skip

    def _check_partitions(self) -> None:
        if self._partitions is not None and len(self._partitions) > _MAX_PARTITIONS:
            raise F5pyError(
                f"--partition-tag: more than {_MAX_PARTITIONS} different values, and each makes a file of its own; "
                "name a tag with few values, such as HP"
            )


_ROWS_PER_BLOCK = 1 << 14
_ROWS_PER_TABLE = 1 << 18
#: More than the numbers and separators of a row need.
_FIXED_COLUMNS = 10 * 20 + 40
#: Kinds of rows: for genome browsers, and for R.
KINDS = ("bedmethyl", "bedgraph", "dss", "methylkit", "bismark")
BEDMETHYL, BEDGRAPH, DSS, METHYLKIT, BISMARK = range(5)
_HEADERS = {"dss": b"chr\tpos\tN\tX\n", "methylkit": b"chrBase\tchr\tbase\tstrand\tcoverage\tfreqC\tfreqT\n"}
_FORWARD, _REVERSE = np.uint8(ord("F")), np.uint8(ord("R"))
#: Of BED files.
_MOST_SCORE = np.int64(1000)
_PERCENT = 100.0


def write_frequency_rows(out: BinaryIO | Callable[[Any], None], frequencies: Frequencies) -> None:
    """Write the table to a Parquet file, which stays open, or to a function of a pyarrow.Table.

    Chromosomes are dictionary-encoded strings, positions and counts int64, the group size int32, the frequency an
    unrounded float64, the sequence a large string. Raises `MissingDependencyError` without pyarrow.
    """
    fields = [
        ("chromosome", "names"),
        ("start", "int64"),
        ("end", "int64"),
        (f"{frequencies.count_column}_in_group", "int32"),
        ("called_sites", "int64"),
        ("called_sites_methylated", "int64"),
        ("methylated_frequency", "float64"),
        ("group_sequence", "large_string"),
        *((name, "int64") for name in (STRAND_COLUMNS if frequencies.stranded else ())),
    ]
    chromosomes = [name.decode(errors="replace") for name in frequencies.chromosomes]
    with arrow_sink(out, fields, rows_per_group=ROWS_PER_GROUP) as writer:
        for first in range(0, len(frequencies), _ROWS_PER_TABLE):
            sites = frequencies.columns(first, first + _ROWS_PER_TABLE)
            n_reverse, m_reverse = sites.called_reverse, sites.methylated_reverse
            of_strands = [sites.called - n_reverse, sites.methylated - m_reverse, n_reverse, m_reverse]
            writer.write(
                [
                    dictionary_column(sites.chromosome, chromosomes),
                    sites.start,
                    sites.end,
                    sites.group_size,
                    sites.called,
                    sites.methylated,
                    sites.methylated / sites.called,
                    string_column(sites.text_start, sites.text_size, frequencies.texts),
                    *(of_strands if frequencies.stranded else ()),
                ]
            )


@exact_kernel
def format_sites(out, names, name_ends, kind, code, combined, totals):
    """Write one row per site with valid calls; return the number of bytes.

    Parameters
    ----------
    kind : int
        Index among `KINDS`.
    """
    contig, position, reverse, methylated, canonical, failed, other, deleted, different, missing = totals
    at = np.int64(0)
    for site in range(contig.shape[0]):
        valid = methylated[site] + canonical[site] + other[site]
        if valid == 0:
            continue
        name = names[name_ends[contig[site]] : name_ends[contig[site] + 1]]
        start, end = position[site], position[site] + 1
        at = append_bytes(out, at, name)
        if kind == METHYLKIT:
            out[at] = POINT
            at = append_int(out, at + 1, end)
            out[at] = TAB
            at = append_bytes(out, at + 1, name)
        if kind in (BEDMETHYL, BEDGRAPH):
            at = append_cell(out, append_cell(out, at, start), end)
            if kind == BEDMETHYL:
                out[at] = TAB
                at = append_bytes(out, at + 1, code)
                at = append_cell(out, at, min(valid, _MOST_SCORE))
                out[at] = TAB
                out[at + 1] = POINT if combined else (MINUS if reverse[site] else PLUS)
                at = append_cell(out, append_cell(out, at + 2, start), end)
                # from blue, all canonical, to red, all methylated
                red = (np.int64(2) * 255 * methylated[site] + valid) // (np.int64(2) * valid)
                at = append_cell(out, at, red)
                out[at] = COMMA
                out[at + 1] = ZERO
                out[at + 2] = COMMA
                at = append_cell(out, append_int(out, at + 3, 255 - red), valid)
            # in single precision, so that the last digit agrees with modkit
            share = np.float32(methylated[site]) / np.float32(valid) * np.float32(100.0)
            out[at] = TAB
            at = append_fixed(out, at + 1, np.float64(share), 2)
            if kind == BEDMETHYL:
                for count in (methylated, canonical, other, deleted, failed, different, missing):
                    at = append_cell(out, at, count[site])
        else:
            at = append_cell(out, at, end)
            if kind == DSS:
                at = append_cell(out, append_cell(out, at, valid), methylated[site])
            elif kind == METHYLKIT:
                out[at] = TAB
                out[at + 1] = _REVERSE if reverse[site] else _FORWARD
                at = append_cell(out, at + 2, valid)
                for count in (methylated[site], valid - methylated[site]):
                    out[at] = TAB
                    at = append_fixed(out, at + 1, 100.0 * count / valid, 4)
            else:
                at = append_cell(out, at, end)
                out[at] = TAB
                at = append_fixed(out, at + 1, 100.0 * methylated[site] / valid, 6)
                at = append_cell(out, append_cell(out, at, methylated[site]), valid - methylated[site])
        out[at] = NEWLINE
        at += 1
    return at


def write_rows(
    out: TextOutput, totals: SiteTotals, names: list[bytes], kind: str, code: str = "", combined: bool = False
) -> None:
    """Write text with a row per site that has valid calls."""
    out.write(_HEADERS.get(kind, b""))
    text, name_ends = np.frombuffer(b"".join(names), np.uint8), offsets_of([len(name) for name in names])
    code_text = np.frombuffer(code.encode(), np.uint8)
    width = 2 * max(map(len, names), default=0) + _FIXED_COLUMNS + len(code_text)  # methylKit has the name twice
    for first in range(0, len(totals.position), _ROWS_PER_BLOCK):
        block = SiteTotals._make(column[first : first + _ROWS_PER_BLOCK] for column in totals)
        rows = np.empty(len(block.position) * width, np.uint8)
        out.write(rows[: format_sites(rows, text, name_ends, KINDS.index(kind), code_text, combined, block)].data)


def import_bigwig() -> Any:
    """Import ``pyBigWig``. Raises `MissingDependencyError`."""
    try:
        import pyBigWig
    except ImportError as problem:
        raise unavailable(problem, "bigWig output needs", "pyBigWig", "bigwig") from problem
    return pyBigWig


def write_bigwig(path: str, shown: str, totals: SiteTotals, names: list[bytes], lengths: Mapping[bytes, int]) -> None:
    """Write the percentage of every site."""
    library = import_bigwig()
    valid = totals.valid
    called = np.flatnonzero(valid)
    contig, position = totals.contig[called], totals.position[called]
    percent = _PERCENT * totals.methylated[called] / valid[called]
    bounds = [*np.flatnonzero(np.diff(contig, prepend=-1)).tolist(), len(contig)]  # of the rows of each chromosome
    used = [names[contig[first]] for first in bounds[:-1]]
    for name, end in zip(used, bounds[1:], strict=True):
        if position[end - 1] >= lengths.get(name, 0):
            raise UsageError(
                f"{shown}: the length of {name.decode(errors='replace')} is not known, or smaller than the position "
                f"{int(position[end - 1]) + 1:,} of a site in it; give the lengths of this reference with --chrom-sizes"
            )
    try:
        with library.open(path, "w") as file:
            any_name = list(lengths)[:1]  # a file without sites needs a chromosome, too
            file.addHeader([(name.decode(), int(lengths[name])) for name in used or any_name])
            for name, (begin, end) in zip(used, pairwise(bounds), strict=True):
                for first in range(begin, end, _ROWS_PER_BLOCK):
                    rows = slice(first, min(first + _ROWS_PER_BLOCK, end))
                    values = percent[rows].tolist()
                    file.addEntries(name.decode(), position[rows].tolist(), values=values, span=1)
    except RuntimeError as problem:
        raise OutputFileError(f"{shown}: cannot write: {problem}") from problem
