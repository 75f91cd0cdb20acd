"""PAF lines of hits; see `f5py.mapping.output.records`."""

# mypy: disable-error-code="assignment,arg-type"
import numpy as np

from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.jit.work_queue import claimed_indices, work_counter
from f5py.mapping._sorting_numba import appended, grown
from f5py.mapping.hit_table import (
    ALIGNED,
    BLEN,
    CONTIG,
    COUNT,
    DIVERGENCE,
    DIVERGENCE_BITS,
    DP_MAX,
    DP_SCORE,
    ID,
    INVERSION,
    MAPQ,
    MLEN,
    N_AMBI,
    N_OPS,
    OPS,
    PARENT,
    QE,
    QS,
    RE,
    REVERSE,
    RS,
    SCORE,
    SPLIT,
    SUBSC,
    TRANSCRIPT,
)
from f5py.mapping.output._tags_numba import (
    Strands,
    append_cs,
    append_md,
    both_strands,
    divergence_of,
    length_of_md,
    split_matches,
    ten_thousandths,
)
from f5py.text._format_numba import append_bytes, append_int

#: Places in the array of switches.
WITH_MD, WITH_CS, LONG_CS, EQX, SOFT_CLIPS, NO_SECONDARY, NO_CHAINS, UNMAPPED, N_SWITCHES = range(9)
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
    """Make the PAF lines of reads.

    Parameters
    ----------
    queue, reads, columns, found, rep_len, contigs, switches, sizes, counts
        See `f5py.mapping.output._records_numba.records_of_reads`, also for what is returned.
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
            own = hit[ID] == hit[PARENT]
            if switches[NO_SECONDARY] and not own:
                continue
            contig = contig_names[contig_name_offsets[hit[CONTIG]] : contig_name_offsets[hit[CONTIG] + 1]]
            r = contig_offsets[hit[CONTIG]] + hit[RS]
            s = length + length - hit[QE] if hit[REVERSE] else hit[QS]
            these = ops
            first_op = hit[OPS]
            n_ops = hit[N_OPS]
            if switches[EQX]:
                spread = grown(spread, n_ops + 2 * (hit[MLEN] + hit[BLEN]) + 16)
                n_ops = split_matches(hit, ops, reference, r, strands, s, spread)
                these = spread
                first_op = 0
            room = 1024 + name.shape[0] + contig.shape[0] + 21 * n_ops + 2 * length_of_md(hit, ops)
            out = grown(out, at + room)
            at = append_bytes(out, at, name)
            at = _append_column(out, at, length)
            at = _append_column(out, at, hit[QS])
            at = _append_column(out, at, hit[QE])
            out[at] = _TAB
            out[at + 1] = 45 if hit[REVERSE] else 43
            out[at + 2] = _TAB
            at = append_bytes(out, at + 3, contig)
            at = _append_column(out, at, contig_offsets[hit[CONTIG] + 1] - contig_offsets[hit[CONTIG]])
            at = _append_column(out, at, hit[RS])
            at = _append_column(out, at, hit[RE])
            at = _append_column(out, at, hit[MLEN])
            at = _append_column(out, at, hit[BLEN])
            at = _append_column(out, at, hit[MAPQ])
            if hit[ALIGNED]:
                at = _append_tag(out, at, _NM, hit[BLEN] - hit[MLEN] + hit[N_AMBI])
                if not switches[NO_CHAINS]:
                    at = _append_tag(out, at, _MS, hit[DP_MAX])
                at = _append_tag(out, at, _AS, hit[DP_SCORE])
                at = _append_tag(out, at, _NN, hit[N_AMBI])
            if hit[TRANSCRIPT]:
                at = append_bytes(out, at, _TS)
                out[at] = 43 if hit[TRANSCRIPT] == 1 else 45
                at += 1
            at = append_bytes(out, at, _TP)
            out[at] = (73 if own else 105) if hit[INVERSION] else (80 if own else 83)
            at += 1
            if not switches[NO_CHAINS]:
                at = _append_tag(out, at, _CM, hit[COUNT])
                at = _append_tag(out, at, _S1, hit[SCORE])
                if own:
                    at = _append_tag(out, at, _S2, hit[SUBSC])
            if hit[ALIGNED]:
                at = _append_share(out, append_bytes(out, at, _DE), divergence_of(hit))
            elif hit[DIVERGENCE] >= 0:
                share = hit[DIVERGENCE] / np.float64(1 << DIVERGENCE_BITS)
                at = _append_share(out, append_bytes(out, at, _DV), share)
            if hit[SPLIT]:
                at = _append_tag(out, at, _ZD, hit[SPLIT])
            if not switches[NO_CHAINS]:
                at = _append_tag(out, at, _RL, rep_len[read])
            if hit[ALIGNED]:
                at = append_bytes(out, at, _CG)
                for k in range(first_op, first_op + n_ops):
                    at = append_int(out, at, these[k] >> 4)
                    out[at] = _OPS[these[k] & 15]
                    at += 1
                if switches[WITH_CS]:
                    at = append_bytes(out, at, _CS)
                    at = append_cs(out, at, hit, ops, Strands(reference, r, strands, s), switches[LONG_CS] != 0)
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
