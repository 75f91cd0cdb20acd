"""Mapped reads as BAM records or PAF lines."""

# mypy: disable-error-code="assignment,arg-type"
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import f5py.mapping.hit_table as column
from f5py.core.names import Names
from f5py.core.offsets import offsets_of
from f5py.io.bam._bam_numba import put_integer
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import appended, grown
from f5py.mapping.batch import ContigColumns, MappingBatch
from f5py.mapping.index.packed_bases import both_strands
from f5py.mapping.index.reference_index import ReferenceIndex
from f5py.mapping.index.seeds import collecting, copy_to_places
from f5py.mapping.output._tags_numba import (
    append_cs,
    append_md,
    append_other_hits,
    divergence_of,
    length_of_md,
    split_matches,
    ten_thousandths,
)
from f5py.text._format_numba import append_bytes, append_int
from f5py.threads.pool import WorkerPool, longest_first

#: Tags that f5py writes, dropped from the input.
OWN_TAGS = ("NM", "ms", "AS", "nn", "tp", "cm", "s1", "s2", "de", "zd", "SA", "MD", "cs", "rl", "CG")
#: Places in the array of switches.
WITH_MD, WITH_CS, LONG_CS, EQX, SOFT_CLIPS, NO_SECONDARY, NO_CHAINS, UNMAPPED, N_SWITCHES = range(9)
_FIXED = 36
_UNMAPPED_BIN = 4680
_MOST_OPS = 65535
_SOFT, _HARD, _SKIP = 4, 5, 3


def _nibbles() -> np.ndarray:
    table = np.full(256, 15, np.uint8)
    for code, letter in enumerate(b"=ACMGRSVTWYHKDBN"):
        table[letter] = code
        table[ord(chr(letter).lower())] = code
    table[ord("U")] = table[ord("u")] = 8
    return table


#: Four bits of a letter, and those of its complement.
NIBBLES = _nibbles()
COMPLEMENTS = np.array([int(f"{i:04b}"[::-1], 2) for i in range(16)], np.uint8)


@exact_inner
def _put_tag(out, at, first, second, value):
    """Write a tag with the smallest type that holds an integer; return the index after it."""
    out[at] = first
    out[at + 1] = second
    size = 4
    kind = 73
    if value < 0:
        kind = 105
        if value >= -128:
            kind = 99
            size = 1
        elif value >= -32768:
            kind = 115
            size = 2
    elif value < 256:
        kind = 67
        size = 1
    elif value < 65536:
        kind = 83
        size = 2
    out[at + 2] = kind
    return put_integer(out, at + 3, value, size)


@exact_inner
def _bin(begin, end):
    """Bin of a stretch, as in the SAM specification."""
    end -= 1
    shift = 14
    offset = 4681
    level = 4096 * 8
    while shift < 29:
        if begin >> shift == end >> shift:
            return offset + (begin >> shift)
        shift += 3
        level >>= 3
        offset -= level
    return 0


@exact_inner
def _put_bases(out, at, letters, qualities, begin, length, first, end, reverse):
    """Write bases ``first:end`` of a read on its strand, and their qualities; return the index after them.

    The read has `length` bases from index `begin` on.
    """
    n = end - first
    for i in range(n):
        place = first + i
        code = COMPLEMENTS[NIBBLES[letters[begin + length - 1 - place]]] if reverse else NIBBLES[letters[begin + place]]
        if i & 1:
            out[at + (i >> 1)] |= code
        else:
            out[at + (i >> 1)] = code << 4
    at += (n + 1) >> 1
    if qualities.shape[0] == 0 or (length > 0 and qualities[begin] == 0):
        for i in range(n):
            out[at + i] = 255
    elif reverse:
        for i in range(n):
            out[at + i] = qualities[begin + length - 1 - first - i] - 33
    else:
        for i in range(n):
            out[at + i] = qualities[begin + first + i] - 33
    return at + n


@exact_inner
def _put_name(out, at, names, begin, end):
    for i in range(begin, end):
        out[at] = names[i]
        at += 1
    out[at] = 0
    return at + 1


@exact_inner
def _put_head(out, at, contig, place, name_length, mapq, bin_number, n_ops, flag, n_bases):
    """Write the fixed part of a record but its size; see the SAM specification, section 4.2."""
    at = put_integer(out, at + 4, contig, 4)
    at = put_integer(out, at, place, 4)
    out[at] = name_length
    out[at + 1] = mapq
    at = put_integer(out, at + 2, bin_number, 2)
    at = put_integer(out, at, n_ops, 2)
    at = put_integer(out, at, flag, 2)
    at = put_integer(out, at, n_bases, 4)
    at = put_integer(out, at, -1, 4)
    at = put_integer(out, at, -1, 4)
    return put_integer(out, at, 0, 4)


@exact_inner
def _split_operations(hit, ops, reference, r, strands, s, spread):
    """Split the matches of a hit into = and X in `spread` or a larger array; return it and their number."""
    spread = grown(spread, hit[column.N_OPS] + 2 * (hit[column.MLEN] + hit[column.BLEN]) + 16)
    return spread, split_matches(hit, ops, reference, r, strands, s, spread)


@exact_kernel
def records_of_reads(queue, reads, columns, found, rep_len, contigs, switches, sizes, counts):
    """Make the records of reads; return the reads in the order of this thread, and their records.

    Parameters
    ----------
    rep_len : int64, shape (n_reads,)
        Bases under unused seeds.
    switches : int64, shape (N_SWITCHES,)
    sizes, counts : int64, shape (n_reads,)
        Filled with bytes, and records or lines.
    """
    letters, qualities, offsets, names, name_offsets, tags, tag_offsets, codes = columns
    hits, hit_offsets, ops = found
    reference, contig_offsets, contig_names, contig_name_offsets = contigs
    done = np.empty(16, np.int64)
    n_done = 0
    out = np.empty(1 << 16, np.uint8)
    at = 0
    strands = np.empty(0, np.uint8)
    spread = np.empty(0, np.int64)
    single = np.empty(1, np.float32)
    for turned in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[turned]
        done, n_done = appended(done, n_done, read)
        begin = offsets[read]
        length = offsets[read + 1] - begin
        name_length = name_offsets[read + 1] - name_offsets[read] + 1
        n_tags = tag_offsets[read + 1] - tag_offsets[read]
        first = hit_offsets[read]
        end = hit_offsets[read + 1]
        start = at
        count = 0
        if first < end:
            strands = both_strands(codes[begin : begin + length], strands)
        for h in range(first, end):
            hit = hits[h]
            own = hit[column.ID] == hit[column.PARENT]
            if switches[NO_SECONDARY] and not own:
                continue
            flag = 16 if hit[column.REVERSE] else 0
            if not own:
                flag |= 0x100
            elif not hit[column.PRIMARY]:
                flag |= 0x800
            whole = flag & 0x900 == 0 or switches[SOFT_CLIPS] != 0
            clip = _HARD if flag & 0x800 and not switches[SOFT_CLIPS] else _SOFT
            before = length - hit[column.QE] if hit[column.REVERSE] else hit[column.QS]
            behind = hit[column.QS] if hit[column.REVERSE] else length - hit[column.QE]
            r = contig_offsets[hit[column.CONTIG]] + hit[column.RS]
            s = (length if hit[column.REVERSE] else 0) + before
            these, first_op, n_ops = ops, hit[column.OPS], hit[column.N_OPS]
            if switches[EQX]:
                spread, n_ops = _split_operations(hit, ops, reference, r, strands, s, spread)
                these, first_op = spread, 0
            n_all_ops = n_ops + (before > 0) + (behind > 0)
            others = 96 * (end - first)
            for other in range(first, end):
                contig = hits[other, column.CONTIG]
                others += contig_name_offsets[contig + 1] - contig_name_offsets[contig]
            out = grown(
                out, at + 512 + name_length + n_tags + 4 * n_all_ops + 2 * length + 2 * length_of_md(hit, ops) + others
            )
            n_bases = length if whole else 0
            from_base = 0
            if not whole and flag & 0x800:
                from_base = before
                n_bases = hit[column.QE] - hit[column.QS]
            record = at
            is_long = n_all_ops > _MOST_OPS
            at = _put_head(
                out, at, hit[column.CONTIG], hit[column.RS], name_length, hit[column.MAPQ],
                _bin(hit[column.RS], hit[column.RE]), 2 if is_long else n_all_ops, flag, n_bases,
            )  # fmt: skip
            at = _put_name(out, at, names, name_offsets[read], name_offsets[read + 1])
            if is_long:
                at = put_integer(out, at, (n_bases << 4) | _SOFT, 4)
                at = put_integer(out, at, ((hit[column.RE] - hit[column.RS]) << 4) | _SKIP, 4)
            else:
                at = _put_ops(out, at, these, first_op, n_ops, before, behind, clip)
            if n_bases > 0:
                at = _put_bases(
                    out, at, letters, qualities, begin, length, from_base, from_base + n_bases,
                    hit[column.REVERSE] != 0,
                )  # fmt: skip
            at = _put_tag(out, at, 78, 77, hit[column.BLEN] - hit[column.MLEN] + hit[column.N_AMBI])  # NM
            if not switches[NO_CHAINS]:
                at = _put_tag(out, at, 109, 115, hit[column.DP_MAX])  # ms
            at = _put_tag(out, at, 65, 83, hit[column.DP_SCORE])  # AS
            at = _put_tag(out, at, 110, 110, hit[column.N_AMBI])  # nn
            if hit[column.TRANSCRIPT]:
                at = put_integer(out, at, 0x417374 | ((43 if hit[column.TRANSCRIPT] == 1 else 45) << 24), 4)  # ts:A
            letter = (73 if own else 105) if hit[column.INVERSION] else (80 if own else 83)
            at = put_integer(out, at, 0x417074 | (letter << 24), 4)  # tp:A
            if not switches[NO_CHAINS]:
                at = _put_tag(out, at, 99, 109, hit[column.COUNT])  # cm
                at = _put_tag(out, at, 115, 49, hit[column.SCORE])  # s1
                if own:
                    at = _put_tag(out, at, 115, 50, hit[column.SUBSC])  # s2
            at = put_integer(out, at, 0x666564, 3)  # de:f
            single[0] = ten_thousandths(divergence_of(hit)) / 10000.0
            at = put_integer(out, at, np.int64(single.view(np.int32)[0]), 4)
            if hit[column.SPLIT]:
                at = _put_tag(out, at, 122, 100, hit[column.SPLIT])  # zd
            if own:
                begin_tag = at
                at = append_other_hits(out, at + 3, hits, first, end, h, length, contig_names, contig_name_offsets)
                if at > begin_tag + 3:
                    put_integer(out, begin_tag, 0x5A4153, 3)  # SA:Z
                    out[at] = 0
                    at += 1
                else:
                    at = begin_tag
            if switches[WITH_MD]:
                at = put_integer(out, at, 0x5A444D, 3)  # MD:Z
                at = append_md(out, at, hit, ops, reference, r, strands, s)
                out[at] = 0
                at += 1
            if switches[WITH_CS]:
                at = put_integer(out, at, 0x5A7363, 3)  # cs:Z
                at = append_cs(out, at, hit, ops, reference, r, strands, s, switches[LONG_CS] != 0)
                out[at] = 0
                at += 1
            at = _put_rest(out, at, -1 if switches[NO_CHAINS] else rep_len[read], tags, tag_offsets[read], n_tags)
            if is_long:
                at = put_integer(out, at, 0x49424743, 4)  # CG:B,I
                at = put_integer(out, at, n_all_ops, 4)
                at = _put_ops(out, at, these, first_op, n_ops, before, behind, clip)
            put_integer(out, record, at - record - 4, 4)
            count += 1
        if first == end and switches[UNMAPPED]:
            out = grown(out, at + 512 + name_length + n_tags + 2 * length)
            record = at
            at = _put_head(out, at, -1, -1, name_length, 0, _UNMAPPED_BIN, 0, 4, length)
            at = _put_name(out, at, names, name_offsets[read], name_offsets[read + 1])
            at = _put_bases(out, at, letters, qualities, begin, length, 0, length, False)
            at = _put_rest(out, at, -1 if switches[NO_CHAINS] else rep_len[read], tags, tag_offsets[read], n_tags)
            put_integer(out, record, at - record - 4, 4)
            count = 1
        sizes[read] = at - start
        counts[read] = count
    return done[:n_done], out[:at]


@exact_inner
def _put_ops(out, at, ops, first, n, before, behind, clip):
    """Write the operations of a CIGAR string with clips."""
    if before > 0:
        at = put_integer(out, at, (before << 4) | clip, 4)
    for k in range(first, first + n):
        at = put_integer(out, at, ops[k], 4)
    if behind > 0:
        at = put_integer(out, at, (behind << 4) | clip, 4)
    return at


@exact_inner
def _put_rest(out, at, rep_len, tags, begin, n_tags):
    """Write rl, if it is not negative, and the read's own tags."""
    if rep_len >= 0:
        at = _put_tag(out, at, 114, 108, rep_len)
    for i in range(n_tags):
        out[at + i] = tags[begin + i]
    return at + n_tags


_TAB, _NEWLINE = 9, 10
_NM = np.frombuffer(b"\tNM:i:", np.uint8)
_MS = np.frombuffer(b"\tms:i:", np.uint8)
_AS = np.frombuffer(b"\tAS:i:", np.uint8)
_NN = np.frombuffer(b"\tnn:i:", np.uint8)
_TS = np.frombuffer(b"\tts:A:", np.uint8)
_TP = np.frombuffer(b"\ttp:A:", np.uint8)
_CM = np.frombuffer(b"\tcm:i:", np.uint8)
_S1 = np.frombuffer(b"\ts1:i:", np.uint8)
_S2 = np.frombuffer(b"\ts2:i:", np.uint8)
_DE = np.frombuffer(b"\tde:f:", np.uint8)
_DV = np.frombuffer(b"\tdv:f:", np.uint8)
_ZD = np.frombuffer(b"\tzd:i:", np.uint8)
_NO_HIT = np.frombuffer(b"\t0\t0\t*\t*\t0\t0\t0\t0\t0\t0", np.uint8)
_RL = np.frombuffer(b"\trl:i:", np.uint8)
_CG = np.frombuffer(b"\tcg:Z:", np.uint8)
_CS = np.frombuffer(b"\tcs:Z:", np.uint8)
_MD = np.frombuffer(b"\tMD:Z:", np.uint8)
_OPS = np.frombuffer(b"MIDNSHP=X", np.uint8)


@exact_inner
def _append_tag(out, at, name, value):
    return append_int(out, append_bytes(out, at, name), value)


@exact_inner
def _append_column(out, at, value):
    out[at] = _TAB
    return append_int(out, at + 1, value)


@exact_inner
def _append_share(out, at, value):
    """Write a number from 0 to 1 with four decimals, or 0."""
    if value == 0.0:
        out[at] = 48
        return at + 1
    n = ten_thousandths(value)
    out[at] = 48 + n // 10000
    out[at + 1] = 46
    n %= 10000
    out[at + 2] = 48 + n // 1000
    out[at + 3] = 48 + n // 100 % 10
    out[at + 4] = 48 + n // 10 % 10
    out[at + 5] = 48 + n % 10
    return at + 6


@exact_kernel
def lines_of_reads(queue, reads, columns, found, rep_len, contigs, switches, sizes, counts):
    """Make the PAF lines of reads; as `records_of_reads`.

    Parameters
    ----------
    switches : int64, shape (N_SWITCHES,)
    """
    offsets, names, name_offsets, codes = columns.offsets, columns.names, columns.name_offsets, columns.codes
    hits, hit_offsets, ops = found
    reference, contig_offsets, contig_names, contig_name_offsets = contigs
    done = np.empty(16, np.int64)
    n_done = 0
    out = np.empty(1 << 16, np.uint8)
    at = 0
    strands = np.empty(0, np.uint8)
    spread = np.empty(0, np.int64)
    for turned in claimed_indices(work_counter(queue), reads.shape[0]):
        read = reads[turned]
        done, n_done = appended(done, n_done, read)
        begin = offsets[read]
        length = offsets[read + 1] - begin
        name = names[name_offsets[read] : name_offsets[read + 1]]
        first = hit_offsets[read]
        end = hit_offsets[read + 1]
        start = at
        count = 0
        if first < end:
            strands = both_strands(codes[begin : begin + length], strands)
        for h in range(first, end):
            hit = hits[h]
            own = hit[column.ID] == hit[column.PARENT]
            if switches[NO_SECONDARY] and not own:
                continue
            contig = contig_names[contig_name_offsets[hit[column.CONTIG]] : contig_name_offsets[hit[column.CONTIG] + 1]]
            r = contig_offsets[hit[column.CONTIG]] + hit[column.RS]
            s = length + length - hit[column.QE] if hit[column.REVERSE] else hit[column.QS]
            these, first_op, n_ops = ops, hit[column.OPS], hit[column.N_OPS]
            if switches[EQX]:
                spread, n_ops = _split_operations(hit, ops, reference, r, strands, s, spread)
                these, first_op = spread, 0
            room = 1024 + name.shape[0] + contig.shape[0] + 21 * n_ops + 2 * length_of_md(hit, ops)
            out = grown(out, at + room)
            at = append_bytes(out, at, name)
            at = _append_column(out, at, length)
            at = _append_column(out, at, hit[column.QS])
            at = _append_column(out, at, hit[column.QE])
            out[at] = _TAB
            out[at + 1] = 45 if hit[column.REVERSE] else 43
            out[at + 2] = _TAB
            at = append_bytes(out, at + 3, contig)
            at = _append_column(out, at, contig_offsets[hit[column.CONTIG] + 1] - contig_offsets[hit[column.CONTIG]])
            at = _append_column(out, at, hit[column.RS])
            at = _append_column(out, at, hit[column.RE])
            at = _append_column(out, at, hit[column.MLEN])
            at = _append_column(out, at, hit[column.BLEN])
            at = _append_column(out, at, hit[column.MAPQ])
            if hit[column.ALIGNED]:
                at = _append_tag(out, at, _NM, hit[column.BLEN] - hit[column.MLEN] + hit[column.N_AMBI])
                if not switches[NO_CHAINS]:
                    at = _append_tag(out, at, _MS, hit[column.DP_MAX])
                at = _append_tag(out, at, _AS, hit[column.DP_SCORE])
                at = _append_tag(out, at, _NN, hit[column.N_AMBI])
            if hit[column.TRANSCRIPT]:
                at = append_bytes(out, at, _TS)
                out[at] = 43 if hit[column.TRANSCRIPT] == 1 else 45
                at += 1
            at = append_bytes(out, at, _TP)
            out[at] = (73 if own else 105) if hit[column.INVERSION] else (80 if own else 83)
            at += 1
            if not switches[NO_CHAINS]:
                at = _append_tag(out, at, _CM, hit[column.COUNT])
                at = _append_tag(out, at, _S1, hit[column.SCORE])
                if own:
                    at = _append_tag(out, at, _S2, hit[column.SUBSC])
            if hit[column.ALIGNED]:
                at = _append_share(out, append_bytes(out, at, _DE), divergence_of(hit))
            elif hit[column.DIVERGENCE] >= 0:
                share = hit[column.DIVERGENCE] / np.float64(1 << column.DIVERGENCE_BITS)
                at = _append_share(out, append_bytes(out, at, _DV), share)
            if hit[column.SPLIT]:
                at = _append_tag(out, at, _ZD, hit[column.SPLIT])
            if not switches[NO_CHAINS]:
                at = _append_tag(out, at, _RL, rep_len[read])
            if hit[column.ALIGNED]:
                at = append_bytes(out, at, _CG)
                for k in range(first_op, first_op + n_ops):
                    at = append_int(out, at, these[k] >> 4)
                    out[at] = _OPS[these[k] & 15]
                    at += 1
                if switches[WITH_CS]:
                    at = append_bytes(out, at, _CS)
                    at = append_cs(out, at, hit, ops, reference, r, strands, s, switches[LONG_CS] != 0)
                if switches[WITH_MD]:
                    at = append_bytes(out, at, _MD)
                    at = append_md(out, at, hit, ops, reference, r, strands, s)
            out[at] = _NEWLINE
            at += 1
            count += 1
        if first == end and switches[UNMAPPED]:
            out = grown(out, at + 1024 + name.shape[0])
            at = append_bytes(out, at, name)
            at = append_bytes(out, _append_column(out, at, length), _NO_HIT)
            if not switches[NO_CHAINS]:
                at = _append_tag(out, at, _RL, rep_len[read])
            out[at] = _NEWLINE
            at += 1
            count += 1
        sizes[read] = at - start
        counts[read] = count
    return done[:n_done], out[:at]


class RecordStyle(NamedTuple):
    """Options of records."""

    md: bool = True  # tag MD
    cs: str | None = None  # tag cs, "short" or "long"
    eqx: bool = False  # = and X in the place of M
    soft_clips: bool = False  # all records have the whole read
    secondary: bool = True  # write secondary alignments
    unmapped: bool = True  # write reads without a place
    chains: bool = True  # tags of chains and of what minimap2 makes of scores: ms, cm, s1, s2, rl

    def switches(self) -> NDArray[np.int64]:
        """Return the array for kernels."""
        return np.array(
            [
                self.md, self.cs is not None, self.cs == "long", self.eqx, self.soft_clips, not self.secondary,
                not self.chains, self.unmapped,
            ],
            np.int64,
        )  # fmt: skip


def records_of(
    batch: MappingBatch, index: ReferenceIndex, names: Names, style: RecordStyle, pool: WorkerPool
) -> tuple[NDArray[np.uint8], int]:
    """Format the BAM records of a batch in the order of the reads; return them and their number."""
    return _format_reads(records_of_reads, batch, index, names, style, pool)


def paf_lines_of(
    batch: MappingBatch, index: ReferenceIndex, names: Names, style: RecordStyle, pool: WorkerPool
) -> tuple[NDArray[np.uint8], int]:
    """Format the PAF lines of a batch with hits, in the order of the reads; return them and their number."""
    return _format_reads(lines_of_reads, batch, index, names, style, pool)


def _format_reads(
    kernel: Any, batch: MappingBatch, index: ReferenceIndex, names: Names, style: RecordStyle, pool: WorkerPool
) -> tuple[NDArray[np.uint8], int]:
    """Format reads in threads, and concatenate the results in the order of the reads."""
    assert batch.hits is not None
    assert batch.anchors is not None
    n = len(batch)
    contigs = ContigColumns(index.bases, index.offsets, names.text, names.offsets)
    given = batch.columns, batch.hits, batch.anchors.rep_len, contigs, style.switches()
    sizes, counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
    results: list[Any] = []
    reads = longest_first(batch.lengths, np.ones(n, np.bool_))
    pool.run(collecting(kernel, results), reads, *given, sizes, counts, order=batch.number)
    offsets = offsets_of(sizes)
    out = np.empty(offsets[-1], np.uint8)
    for done, text in results:
        copy_to_places(done, sizes, offsets, text, out)
    return out, int(counts.sum())
