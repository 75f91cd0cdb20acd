"""Methylation frequency of every site, counted from the rows of a table of calls.

A call counts if its absolute log-likelihood ratio reaches a threshold, and is methylated if the ratio is above zero. As
in f5c, the threshold is not multiplied by the number of motifs in a group; nanopolish does so.
"""

import re
from typing import BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

import f5py.site_frequencies.table_reader as reading
from f5py.core.motifs import Motif, motif_named
from f5py.errors import F5pyError, InputFileError
from f5py.jit.kernel import exact_inner, exact_kernel, inner
from f5py.options.shared import CALL_THRESHOLD
from f5py.site_frequencies.site_counts import SingleSiteCalls, SiteCounts
from f5py.site_frequencies.site_table import (
    SLOTS_PER_ENTRY,
    Frequencies,
    SiteTable,
    enlarge,
    enlarge_names,
    find_site,
    group_sites,
    list_names,
    number_name,
)
from f5py.text._bytes_numba import LANES
from f5py.text._format_numba import MINUS, PLUS

#: Header line -> name of the count column.
_HEADERS = {
    f"chromosome\t{strand}start\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    f"num_calling_strands\t{count}\tsequence{motif}".encode(): count
    for motif in ("", "\tmotif")
    for strand in ("strand\t", "")
    for count in ("num_motifs", "num_cpgs")
}
#: Header lines of tables of calls.
HEADERS_OF_CALLS = tuple(_HEADERS)
_NUMBER = re.compile(rb"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:[+-]?(inf|infinity|nan))")
NAME_MOTIF = "name the motif of these calls (-q or --motif)"
#: Further result of `count_rows`: a row that disagrees with its sequence.
OTHER_SITES = 3
_FIRST_LISTED = 1 << 16


class CountingRules(NamedTuple):
    """Rules for counting calls."""

    n_columns: int  # 11, or 10 without a column of strands; besides a column of motifs
    motif: NDArray[np.uint8]  # name in the column of motifs; rows of others are skipped; empty without such a column
    threshold: float  # natural log-likelihood ratio
    per_site: bool  # multiply the threshold by the number of motifs
    split: bool  # split groups
    stranded: bool  # also count the reverse strand alone; needs a column of strands
    lists: bool  # list single sites without a threshold instead of counting
    masks_forward: NDArray[np.uint8]  # see `f5py.core.motifs.MotifCodes`
    masks_reverse: NDArray[np.uint8]


@inner
def _row_numbers(text, starts, ends, n_columns, odd_ratio, has_odd_ratio):
    """Parse start, end, number of motifs and ratio of a row; also return whether all are plain numbers."""
    at = n_columns - 9
    position = reading.natural(text, starts[at], ends[at], reading.MAX_POSITION)
    last = reading.natural(text, starts[at + 1], ends[at + 1], reading.MAX_POSITION)
    number = reading.natural(text, starts[n_columns - 2], ends[n_columns - 2], reading.MAX_POSITION)
    ratio, plain = odd_ratio, True
    if not has_odd_ratio:
        ratio, plain = reading.decimal(text, starts[at + 3], ends[at + 3])
    return position, last, number, ratio, plain and position >= 0 and last >= 0 and number >= 0


@exact_inner
def _row_sites(text, first, stop, position, last, number, masks, starts, n_before):
    """List the sites of one row; return whether its sequence has as many as it counts."""
    n_found = group_sites(text, first, stop, position, last, number, masks, starts, n_before)
    # the sequence may show neighbors that were called on their own
    if number == 1 and (n_found > 0 or 2 * masks.shape[0] > stop - first + 1):
        n_found = np.int64(1)
        starts[n_before] = position
    return n_found == number and (number == 0 or starts[n_before + number - 1] == last)


@exact_kernel
def count_rows(text, end, counting, odd_ratio, has_odd_ratio, state, sites, names, listed):
    """Count the calls in the whole lines ``text[state[AT]:end]``, or list their sites one by one.

    Return `DONE`, `FULL`, `UNUSUAL`, or `OTHER_SITES` at a listed row with another number of motifs, or another last
    one, than its sequence; see `group_sites`.

    Parameters
    ----------
    text : uint8
        `PADDING` bytes longer than `end`.
    odd_ratio : float
        Replaces the first row's ratio if `has_odd_ratio`, for numbers that only Python parses.
    state : int64, shape (STATE_SIZE,)
        ``state[NOTABLE]`` counts the split groups with another number of motifs than their row. ``state[N_SITES]`` is
        the number of entries in `listed` or in `sites`.
    listed : f5py.site_frequencies.site_counts.SingleSiteCalls
        With room for a motif at every letter of a row.
    """
    n_columns, motif, threshold, per_site, split, stranded, lists, masks_forward, masks_reverse = counting
    contig, start, reverse, ratios, sizes, _ = listed
    starts, ends = np.empty(reading.MAX_COLUMNS, np.int64), np.empty(reading.MAX_COLUMNS, np.int64)
    with_strand = n_columns - 10
    places = np.empty(1 << 10, np.int64)
    slots, site_names, spans, group_sizes, called, methylated, text_starts, text_sizes, texts = sites[:9]
    called_reverse, methylated_reverse = sites.called_reverse, sites.methylated_reverse
    name_slots, name_ends, name_text = names
    name_begin, name_end = name_ends[:-1], name_ends[1:]
    at, line, n_sites, n_names = state[reading.AT], state[reading.LINE], state[reading.N_SITES], state[reading.N_NAMES]
    text_end = text_starts[0 if lists else n_sites]
    name, site = np.int64(-1), np.int64(-1)
    status = reading.DONE
    block, separators = at - LANES, np.uint64(0)
    while at < end:
        columns, newline, block, separators = reading.next_row(text, at, block, separators, starts, ends)
        if columns != n_columns + min(motif.shape[0], 1):
            status = reading.UNUSUAL
            break
        if motif.shape[0] and not reading.same_text(motif, 0, motif.shape[0], text, starts[n_columns], ends[n_columns]):
            has_odd_ratio = False
            line += 1
            at = newline + 1
            continue
        position, last, number, ratio, plain = _row_numbers(text, starts, ends, n_columns, odd_ratio, has_odd_ratio)
        if not plain:
            status = reading.UNUSUAL
            break
        needed_ratio = threshold * number if per_site else threshold
        if lists or not abs(ratio) < needed_ratio:  # NaN counts
            first, stop = starts[n_columns - 1], ends[n_columns - 1]
            is_group = lists or (split and number > 1)
            is_reverse = with_strand and text[starts[1]] == MINUS
            if is_group and position + stop - first > reading.MAX_POSITION:
                status = reading.UNUSUAL
                break
            if lists and with_strand and (ends[1] - starts[1] != 1 or not (is_reverse or text[starts[1]] == PLUS)):
                status = reading.UNUSUAL
                break
            needed = stop - first + 1 if is_group else 1
            if lists:
                is_full = n_sites + needed > start.shape[0]
            else:
                is_full = (n_sites + needed) * SLOTS_PER_ENTRY > slots.shape[0]
                is_full = is_full or text_end + stop - first > texts.shape[0]
            if (
                is_full
                or (n_names + 1) * SLOTS_PER_ENTRY > name_slots.shape[0]
                or name_ends[n_names] + ends[0] - starts[0] > name_text.shape[0]
            ):
                state[reading.NEEDED] = needed
                status = reading.FULL
                break
            if name < 0 or not reading.same_text(
                name_text, name_ends[name], name_ends[name + 1], text, starts[0], ends[0]
            ):
                name = number_name(name_slots, name_begin, name_end, name_text, n_names, text, starts[0], ends[0])
                n_names = max(n_names, name + 1)
            is_methylated = ratio > 0.0
            masks = masks_reverse if is_reverse else masks_forward
            if lists:
                if not _row_sites(text, first, stop, position, last, number, masks, start, n_sites):
                    status = OTHER_SITES
                    break
                for which in range(n_sites, n_sites + number):
                    contig[which] = name
                    reverse[which] = is_reverse
                    ratios[which] = ratio
                    sizes[which] = number
                n_sites += number
            elif is_group:
                if needed > places.shape[0]:
                    places = np.empty(2 * needed, np.int64)
                n_found = group_sites(text, first, stop, position, last, number, masks, places, 0)
                for place in places[:n_found]:
                    site = find_site(slots, site_names, spans, n_sites, site + 1, name, place << 32 | place)
                    if site == n_sites:
                        n_sites += 1
                        group_sizes[site] = 1
                        called[site] = methylated[site] = 0
                        text_starts[n_sites] = text_end
                        text_sizes[site] = 0
                    called[site] += 1
                    methylated[site] += is_methylated
                    if stranded and is_reverse:
                        called_reverse[site] += 1
                        methylated_reverse[site] += is_methylated
                state[reading.NOTABLE] += n_found != number
            else:
                site = find_site(slots, site_names, spans, n_sites, site + 1, name, position << 32 | last)
                if site == n_sites:
                    n_sites += 1
                    group_sizes[site] = number
                    called[site] = methylated[site] = 0
                    for i in range(stop - first):
                        texts[text_end + i] = text[first + i]
                    text_sizes[site] = stop - first
                    text_end += stop - first
                    text_starts[n_sites] = text_end
                called[site] += number
                methylated[site] += number * is_methylated
                if stranded and is_reverse:
                    called_reverse[site] += number
                    methylated_reverse[site] += number * is_methylated
        has_odd_ratio = False
        line += 1
        at = newline + 1
    state[reading.AT], state[reading.LINE], state[reading.N_SITES], state[reading.N_NAMES] = at, line, n_sites, n_names
    return status


@exact_kernel
def split_groups(text, offsets, firsts, lasts, numbers, reverse, masks, rows, positions):
    """List the sites of groups; return their number, or -1 - the row if a sequence has other sites.

    Parameters
    ----------
    text : uint8, shape (offsets[-1] + PADDING,)
        Sequences of the rows.
    offsets : int64, shape (n + 1,)
    firsts, lasts, numbers : int64, shape (n,)
        Start, end and number of motifs of each row.
    rows, positions : int64, shape (offsets[-1] + n,)
        Filled: the row of each site, and the 0-based position of its first base.
    """
    n_sites = np.int64(0)
    for row in range(firsts.shape[0]):
        first, stop = offsets[row], offsets[row + 1]
        of_strand = masks[1] if reverse[row] else masks[0]
        if not _row_sites(text, first, stop, firsts[row], lasts[row], numbers[row], of_strand, positions, n_sites):
            return np.int64(-1 - row)
        rows[n_sites : n_sites + numbers[row]] = row
        n_sites += numbers[row]
    return n_sites


def methylation_frequency(
    calls: BinaryIO,
    threshold: float = CALL_THRESHOLD,
    split_groups: bool = False,
    name: reading.Place = "standard input",
    chunk_size: int = reading.CHUNK_SIZE,
    threshold_per_site: bool = False,
    motif: Motif | None = None,
    stranded: bool = False,
) -> Frequencies:
    """Count the calls of every site. Memory grows with the number of sites, not of calls.

    Calls with an absolute ratio below `threshold`, times the motifs of the group if `threshold_per_site`, are skipped;
    NaN is not. Group size and sequence of a site are those of its first counted row. With `split_groups` every motif of
    a group is a site, with the sequence ``split-group`` if a group comes first. `stranded` counts the reverse strand
    alone, too, from a column of strands. Runs of tabs count as one; malformed rows raise `InputFileError`.
    """
    header = _read_header(calls, name)
    table = SiteTable(stranded)
    reader = reading.TableReader(calls, header, name, table.state)
    motif = motif or motif_named("cpg")
    counting = _counting(header, motif, threshold, threshold_per_site, split_groups, stranded, lists=False)
    listed = SingleSiteCalls.empty(0)
    needed_by = "--stranded" if stranded else motif.name if split_groups and not motif.is_palindromic else ""
    if needed_by and b"\tstrand\t" not in header:
        raise InputFileError(
            f"{reading.format_place(name, 1)}: no column of strands, which {needed_by} needs; call with "
            "--meth-out-version 2"
        )

    def loop(text: np.ndarray, size: int, odd_ratio: float | None) -> int:
        return count_rows(
            text, size, counting, 0.0 if odd_ratio is None else odd_ratio, odd_ratio is not None, table.state,
            table.sites, table.names, listed,
        )  # fmt: skip

    reader.read(loop, table.make_room, lambda line: _check_row(reader, line, split_groups, stranded), chunk_size)
    return table.result(_HEADERS[header])


def site_counts(
    calls: BinaryIO,
    motif: Motif,
    threshold: float = CALL_THRESHOLD,
    threshold_per_site: bool = False,
    combine_strands: bool = False,
    name: reading.Place = "standard input",
    chunk_size: int = reading.CHUNK_SIZE,
) -> tuple[SiteCounts, list[bytes]]:
    """Count methylated, unmethylated and uncertain calls by site and strand; also return contigs.

    See `methylation_frequency`. A table without a column of strands needs `combine_strands`.
    """
    header = _read_header(calls, name)
    if b"\tstrand\t" not in header and not combine_strands:
        raise InputFileError(
            f"{reading.format_place(name, 1)}: no column of strands; add --combine-strands, or call with "
            "--meth-out-version 2"
        )
    if combine_strands:
        check_combinable(motif)
    counts = SiteCounts(threshold, threshold_per_site, combine_strands)
    table = SiteTable()
    state, names = table.state, table.names
    listed = SingleSiteCalls.empty(_FIRST_LISTED)
    reader = reading.TableReader(calls, header, name, state)
    counting = _counting(header, motif, 0.0, False, True, False, lists=True)

    def flush() -> None:
        n = state[reading.N_SITES]
        counts.add(SingleSiteCalls._make(column[:n] for column in listed))
        state[reading.N_SITES] = 0

    def loop(text: np.ndarray, size: int, odd_ratio: float | None) -> int:
        status = count_rows(
            text, size, counting, 0.0 if odd_ratio is None else odd_ratio, odd_ratio is not None, state, table.sites,
            names, listed,
        )  # fmt: skip
        if status == OTHER_SITES:
            reader.reject(f"the sequence does not hold the sites of {motif.name} that the row counts; {NAME_MOTIF}")
        return status

    def make_room(text_size: int) -> None:
        nonlocal listed, names
        flush()
        needed = int(state[reading.NEEDED])
        if needed > len(listed.contig):
            listed = SingleSiteCalls._make(enlarge(array, 2 * needed) for array in listed)
        names = enlarge_names(names, int(state[reading.N_NAMES]), text_size)

    reader.read(loop, make_room, lambda line: _check_row(reader, line, True, need_strand=True), chunk_size)
    flush()
    return counts, list_names(names, int(state[reading.N_NAMES]))


def _counting(
    header: bytes, motif: Motif, threshold: float, per_site: bool, split: bool, stranded: bool, lists: bool
) -> CountingRules:
    has_motifs = header.endswith(b"\tmotif")
    name = np.array([*motif.name.encode()] if has_motifs else [], np.uint8)
    masks = motif.codes(False).masks, motif.codes(True).masks
    n_columns = header.count(b"\t") + 1 - has_motifs
    return CountingRules(n_columns, name, threshold, per_site, split, stranded, lists, *masks)


def check_combinable(motif: Motif) -> None:
    """Raise `F5pyError` unless both strands of a motif have the same sites."""
    if not motif.is_palindromic:
        raise F5pyError(f"the strands of {motif.name} have their sites at different places; they cannot be combined")


def _read_header(calls: BinaryIO, name: reading.Place) -> bytes:
    """Read and check the first line."""
    header = calls.readline(max(map(len, _HEADERS)) + 1).removesuffix(b"\n")
    if header not in _HEADERS:
        names, newest = header.split(b"\t"), next(iter(_HEADERS)).split(b"\t")
        other = "not the header of call-methylation; give its table of calls, header included"
        if b"log_lik_ratio" in names and (missing := [name for name in newest if name not in names]):
            other = f"has no column {missing[0].decode()}; give the table of call-methylation with all of its columns"
        complaint = reading.header_complaint(header, _HEADERS, "the table that call-methylation writes", other)
        raise InputFileError(f"{reading.format_place(name, 1)}: {complaint}")
    return header


def _check_row(reader: reading.TableReader, line: bytes, split_groups: bool, need_strand: bool = False) -> float:
    """Parse the ratio of a row that the compiled loop cannot, or reject the row."""
    row = reader.columns(line)
    count = "num_motifs" if "num_motifs" in row else "num_cpgs"
    for title in ("start", "end", count):
        reader.check_natural(title, row[title])
    ratio = row["log_lik_ratio"]
    if not _NUMBER.fullmatch(ratio):
        reader.reject(f"log_lik_ratio is {reading.shown(ratio)}, which is not a number; is the file damaged?")
    if split_groups and int(row["start"]) + len(row["sequence"]) > reading.MAX_POSITION:
        reader.reject(f"the group reaches beyond position {reading.MAX_POSITION}; is the file damaged?")
    if need_strand and row.get("strand", b"+") not in (b"+", b"-"):
        reader.reject(f"strand is {reading.shown(row['strand'])}, neither + nor -; is the file damaged?")
    return float(ratio)
