"""Table with a row per read, base and modification, as text, Parquet or Arrow tables."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from f5py.core.names import Names
from f5py.io.arrow.table import dictionary_column, short_strings, string_column
from f5py.jit.kernel import exact_kernel
from f5py.text._format_numba import MINUS, NEWLINE, PLUS, TAB, append_bytes, append_int

FIELDS = [
    ("read", "names"),
    ("contig", "names"),
    ("position", "int64"),
    ("strand", "string"),
    ("base", "string"),
    ("code", "names"),
    ("probability", "float64"),
    ("mapq", "int32"),
    ("haplotype", "names"),
]
HEADER = "\t".join(name for name, _ in FIELDS).encode() + b"\n"
#: Mapping quality where none is known (SAM specification, section 1.4).
NO_MAPQ = 255
_DECIMALS = 6
#: More than the numbers and separators of a row need.
_FIXED_COLUMNS = 20 + 20 + _DECIMALS + 40


class ExtractedReads(NamedTuple):
    """Alignments of reads, or rows of a table of calls; shape (n_reads,) each."""

    name: Names
    contigs: Names  # by index
    contig: NDArray[np.int32]
    mapq: NDArray[np.uint8]
    haplotypes: Names  # by index
    haplotype: NDArray[np.int32]
    probabilities: NDArray[np.float64]  # that calls have, by index


class CallColumns(NamedTuple):
    """Calls in the order of the output; shape (n,) each."""

    read: NDArray[np.integer]  # index into the reads
    position: NDArray[np.integer]  # 0-based
    reverse: NDArray[np.bool_]
    base: NDArray[np.uint8]
    code: NDArray[np.int64]  # see `f5py.io.bam.modifications.listed_calls.ListedCalls`
    value: NDArray[np.integer]  # index into the probabilities

    def chosen(self, mask: NDArray[np.bool_]) -> CallColumns:
        """Select the marked calls."""
        return self if mask.all() else CallColumns._make(column[mask] for column in self)


@exact_kernel
def format_calls(out, names, contigs, haplotypes, reads, shares, calls):
    """Write the rows of calls; return the number of bytes.

    Parameters
    ----------
    names, contigs, haplotypes : tuple of uint8, int64
        Text and offsets.
    reads, shares : tuple, uint8
        Contig, mapping quality and haplotype of each read; the probabilities as text, shape (n_probabilities, 8).
    """
    at = np.int64(0)
    name_text, name_offsets = names
    contig_text, contig_offsets = contigs
    haplotype_text, haplotype_offsets = haplotypes
    contig, mapq, haplotype = reads
    last, prefix, prefix_end, suffix, suffix_end = np.int64(-1), at, at, at, at
    for i in range(calls.read.shape[0]):
        read = np.int64(calls.read[i])
        if read == last:
            at = append_bytes(out, at, out[prefix:prefix_end])
        else:
            prefix = at
            at = append_bytes(out, at, name_text[name_offsets[read] : name_offsets[read + 1]])
            out[at] = TAB
            one = contig[read]
            at = append_bytes(out, at + 1, contig_text[contig_offsets[one] : contig_offsets[one + 1]])
            out[at] = TAB
            at += 1
            prefix_end = at
        at = append_int(out, at, np.int64(calls.position[i]))
        out[at] = TAB
        out[at + 1] = MINUS if calls.reverse[i] else PLUS
        out[at + 2] = TAB
        out[at + 3] = calls.base[i]
        out[at + 4] = TAB
        if calls.code[i] < 0:
            out[at + 5] = np.uint8(-calls.code[i])
            at += 6
        else:
            at = append_int(out, at + 5, calls.code[i])
        out[at] = TAB
        at = append_bytes(out, at + 1, shares[calls.value[i]])
        if read == last:
            at = append_bytes(out, at, out[suffix:suffix_end])
        else:
            suffix = at
            out[at] = TAB
            at = append_int(out, at + 1, np.int64(mapq[read]))
            out[at] = TAB
            one = haplotype[read]
            at = append_bytes(out, at + 1, haplotype_text[haplotype_offsets[one] : haplotype_offsets[one + 1]])
            out[at] = NEWLINE
            at += 1
            suffix_end = at
        last = read
    return at


def rows_of_text(reads: ExtractedReads, calls: CallColumns) -> memoryview:
    """Format calls as lines without a header."""
    haplotype_sizes = np.diff(reads.haplotypes.offsets)[reads.haplotype]
    sizes = np.diff(reads.name.offsets) + np.diff(reads.contigs.offsets)[reads.contig] + haplotype_sizes
    out = np.empty(int(sizes[calls.read].sum()) + _FIXED_COLUMNS * len(calls.read), np.uint8)
    texts = ((one.text, one.offsets) for one in (reads.name, reads.contigs, reads.haplotypes))
    shares = np.array([f"{one:.{_DECIMALS}f}" for one in reads.probabilities.tolist()], f"S{2 + _DECIMALS}")
    shares = shares.view(np.uint8).reshape(len(shares), 2 + _DECIMALS)
    return out[: format_calls(out, *texts, (reads.contig, reads.mapq, reads.haplotype), shares, calls)].data


def arrow_columns(reads: ExtractedReads, calls: CallColumns) -> list[Any]:
    """Make the columns of `FIELDS`."""
    used, read = np.unique(calls.read, return_inverse=True)
    offsets = reads.name.offsets
    names = string_column(offsets[used], np.diff(offsets)[used], reads.name.text)
    codes, code = np.unique(calls.code, return_inverse=True)
    code_names = [chr(-one) if one < 0 else str(one) for one in codes.tolist()]
    strands = np.where(calls.reverse, MINUS, PLUS)
    return [
        dictionary_column(read.astype(np.int32), _valid(names)),
        dictionary_column(reads.contig[calls.read], list(reads.contigs)),
        calls.position.astype(np.int64),
        short_strings(strands[:, np.newaxis]),
        short_strings(np.ascontiguousarray(calls.base)[:, np.newaxis]),
        dictionary_column(code.astype(np.int32), code_names),
        reads.probabilities[calls.value],
        reads.mapq[calls.read].astype(np.int32),
        dictionary_column(reads.haplotype[calls.read], list(reads.haplotypes)),
    ]


def _valid(names: Any) -> Any:
    """Replace bytes of names that are not UTF-8, as in damaged files."""
    import pyarrow

    try:
        names.validate(full=True)
    except pyarrow.ArrowInvalid:
        return [bytes(one).decode("utf-8", "replace") for one in names.cast(pyarrow.large_binary()).to_pylist()]
    return names.cast(pyarrow.string())
