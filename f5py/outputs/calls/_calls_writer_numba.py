"""Kernels of `f5py.outputs.calls.calls_writer`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core._read_view_numba import segment_of
from f5py.jit.kernel import kernel
from f5py.text._format_numba import MINUS, NEWLINE, PLUS, TAB, append_bytes, append_fixed, append_int

_ONE = np.uint8(ord("1"))


class CallTableTexts(NamedTuple):
    """Texts of rows, each as letters (uint8) and offsets (int64)."""

    # contigs, names, motifs: names of contigs, of the batch's reads, and of motifs
    contigs: tuple[NDArray[np.uint8], NDArray[np.int64]]
    names: tuple[NDArray[np.uint8], NDArray[np.int64]]
    motifs: tuple[NDArray[np.uint8], NDArray[np.int64]]


class CallTableStyle(NamedTuple):
    """Columns of a table of calls."""

    with_strand: bool
    k: int  # bases beside the sites


#: More than a row's fixed columns and separators can need.
_FIXED_COLUMNS = 9 * 32


@kernel
def room_for_calls(texts, style, reads, alignments, calls, inside):
    """Bound the bytes of the rows of `format_calls`.

    Parameters
    ----------
    texts, style, reads, alignments, calls, inside
        See `format_calls`.
    """
    contig_offsets, name_offsets = texts.contigs[1], texts.names[1]
    room = np.int64(0)
    for read in range(reads[0], reads[1]):
        contig = alignments.contig[read]
        of_read = contig_offsets[contig + 1] - contig_offsets[contig] + name_offsets[read + 1] - name_offsets[read]
        of_read += _FIXED_COLUMNS + 2 * style.k
        for call in range(calls.offsets[read], calls.offsets[read] + calls.n[read]):
            if inside[call]:
                room += of_read + calls.last[call] - calls.first[call]
    return room


@kernel
def format_calls(out, texts, call_motif, style, reads, alignments, calls, inside):
    """Write one row per call in the mask `inside`; return the number of bytes.

    Parameters
    ----------
    out : uint8
        With room for all rows.
    call_motif : int8
        Index of each call's motif; empty for a single one.
    reads : pair of int
        The first read, and the one after the last.
    alignments : f5py.core.batch.Alignments
    calls : f5py.core.batch.Calls
    """
    contigs, names, motifs = texts
    with_strand, k = style
    contig_text, contig_offsets = contigs
    name_text, name_offsets = names
    at = np.int64(0)
    for read in range(reads[0], reads[1]):
        contig = alignments.contig[read]
        contig_name = contig_text[contig_offsets[contig] : contig_offsets[contig + 1]]
        name = name_text[name_offsets[read] : name_offsets[read + 1]]
        segment = segment_of(alignments, read)
        for call in range(calls.offsets[read], calls.offsets[read] + calls.n[read]):
            if not inside[call]:
                continue
            at = append_bytes(out, at, contig_name)
            out[at] = TAB
            at += 1
            if with_strand:
                out[at] = MINUS if alignments.reverse[read] else PLUS
                out[at + 1] = TAB
                at += 2
            at = append_int(out, at, calls.first[call])
            out[at] = TAB
            at = append_int(out, at + 1, calls.last[call])
            out[at] = TAB
            at = append_bytes(out, at + 1, name)
            methylated, unmethylated = np.float64(calls.methylated[call]), np.float64(calls.unmethylated[call])
            for value in (methylated - unmethylated, methylated, unmethylated):
                out[at] = TAB
                at = append_fixed(out, at + 1, value, 2)
            out[at] = TAB
            out[at + 1] = _ONE
            out[at + 2] = TAB
            at = append_int(out, at + 3, np.int64(calls.sites[call]))
            out[at] = TAB
            begin = max(calls.first[call] - alignments.start[read] - k + 1, 0)
            end = calls.last[call] - alignments.start[read] + k
            at = append_bytes(out, at + 1, segment[begin:end])
            if call_motif.shape[0] > 0:
                out[at] = TAB
                which = call_motif[call]
                at = append_bytes(out, at + 1, motifs[0][motifs[1][which] : motifs[1][which + 1]])
            out[at] = NEWLINE
            at += 1
    return at
