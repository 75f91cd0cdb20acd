"""Event table as text.

Columns, precision and order are those of f5c's ``eventalign``.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.kmers import base_codes
from f5py.core.offsets import offsets_of
from f5py.jit.c_memory import address_of_data
from f5py.jit.kernel import exact_inner, exact_kernel
from f5py.outputs.events.table_columns import (
    MARKS,
    RowColumns,
    TableInputs,
    TableLayout,
    fill_positions,
    fill_rows,
    prepare_reference,
)
from f5py.pore_model.model import PoreModel
from f5py.text._bytes_numba import BLOCK, copy_block, copy_padded, store_byte, store_word
from f5py.text._format_numba import (
    MAX_NUMBER,
    NEWLINE,
    TAB,
    fixed_words,
    int_words,
    write_fixed_long,
    write_general,
    write_int,
)
from f5py.text.encoding import encoded

_COLUMNS = (
    "event_index",
    "event_level_mean",
    "event_stdv",
    "event_length",
    "model_kmer",
    "model_mean",
    "model_stdv",
    "standardized_level",
)
_INDEX_COLUMNS = ("start_idx", "end_idx")
_M6ANET_COLUMNS = ("event_level_mean", "event_stdv", "event_length", "")
#: Bytes of a row's numbers and separators, and of a sample, that are usual; a buffer that is too small is doubled.
_USUAL_FIXED = 100
_USUAL_SAMPLE = 10

#: What `format_table` returns if the buffer is too small.
TOO_SMALL = -1

#: More than a row's numbers, k-mers and separators, and what is written after its end, can need.
MAX_FIXED = 12 * MAX_NUMBER

#: More than a sample's text and its comma can need.
MAX_SAMPLE = BLOCK

_COMMA = np.uint8(ord(","))
_MINUS = np.uint8(ord("-"))
_NEGATIVE_NAN = np.copysign(np.nan, -1.0)
_LOWEST_SAMPLE = -(2**15)
_N_SAMPLE_VALUES = 2**16
_SLOT = 2 * BLOCK  # of a sample's text, with what is written after its end

_ROWS = 128  # of a block, whose columns then stay in the first-level cache
_POSITION, _EVENT, _START, _END = range(4)
_LEVEL, _STDV, _SECONDS, _MODEL_LEVEL, _MODEL_STDV, _STANDARDIZED = range(6)
_DECIMALS = np.array([2, 3, 5, 2, 2, 2])


@exact_inner
def _write_sample(at, sample, offset, unit, shift, scale):
    """Write a sample, scaled to the model, and a comma."""
    current = np.float64((np.float32(sample) + offset) * unit)
    scaled = np.float64(np.float32((current - np.float64(shift)) / np.float64(scale)))
    at = write_general(at, _NEGATIVE_NAN if np.isnan(scaled) else scaled)
    store_byte(at, _COMMA)
    return at + 1


@exact_inner
def _write_integer(at, word, length, value):
    if length == 0:
        return write_int(at, value)
    store_word(at, word)
    return at + length


@exact_inner
def _write_level(at, word, length, sign, value, decimals):
    """Write a tab and a number with decimals."""
    store_byte(at, TAB)
    if length == 0:
        return _write_odd_level(at + 1, np.float64(value), decimals)
    store_byte(at + 1, _MINUS)
    at += 1 + sign
    store_word(at, word)
    return at + length


@exact_inner
def _write_odd_level(at, value, decimals):
    return write_fixed_long(at, _NEGATIVE_NAN if np.isnan(value) else value, decimals)


@exact_kernel
def format_table(out, reads, texts, inputs, model, style, m6anet, with_samples):
    """Write the rows of some reads into `out`; return the number of bytes or `TOO_SMALL`.

    Parameters
    ----------
    reads : pair of int
        The first read, and the one after the last.
    texts : tuple
        Names of contigs and of `reads`, each as letters with a separator after each name and `BLOCK` bytes of padding,
        followed by its offsets.
    model : tuple
        k and the hidden bases at each end of a k-mer (int), the letters' codes (uint8, shape (256,)), and
        levels and standard deviations (float32, shape (n_kmers,), pA).
    style, m6anet, with_samples : tuple of bool, True or None, True or None
        Scaled events, collapsed rows, columns of samples' places. None keeps a branch from being compiled.
    """
    first, last = reads
    contigs, contig_ends, names, name_ends = texts
    n_rows, alignments, kmer_marks = inputs.rows.n, inputs.alignments, inputs.kmer_marks
    signals, scaling = inputs.signals, inputs.scaling
    scaled, collapsed, with_index = style
    contig, reverse = alignments.contig, alignments.reverse
    reference, reference_offsets = alignments.reference, alignments.reference_offsets
    k, trim, codes, level_mean, level_stdv = model
    shown = k - 2 * trim
    longest = 0
    for read in range(first, last):
        longest = max(longest, reference_offsets[read + 1] - reference_offsets[read])
    forward = np.empty(longest + BLOCK, np.uint8)
    backward = np.empty(longest + BLOCK, np.uint8)
    marks = np.empty(len(MARKS) * BLOCK, np.uint8)
    for i in range(marks.shape[0]):
        marks[i] = MARKS[i // BLOCK]
    rank = np.empty(longest, np.int32)
    if with_samples is not None:
        sample_texts = np.empty(_N_SAMPLE_VALUES * _SLOT, np.uint8)
        sample_lengths = np.empty(_N_SAMPLE_VALUES, np.uint8)
        sample_address = address_of_data(sample_texts)
    position = np.empty(_ROWS, np.int32)
    event = np.empty(_ROWS, np.int32)
    model_rank = np.empty(_ROWS, np.int32)
    start = np.empty(_ROWS, np.int64)
    end = np.empty(_ROWS, np.int64)
    levels = np.empty((_STANDARDIZED + 1, _ROWS), np.float32)
    level_words = np.empty((_STANDARDIZED + 1, _ROWS), np.uint64)
    level_lengths = np.empty((_STANDARDIZED + 1, _ROWS), np.int64)
    signs = np.empty((_STANDARDIZED + 1, _ROWS), np.int64)
    words = np.empty((_END + 1, _ROWS), np.uint64)
    lengths = np.empty((_END + 1, _ROWS), np.int64)
    columns = RowColumns(
        position, event, model_rank, start, end, levels[_LEVEL], levels[_STDV], levels[_SECONDS], levels[_MODEL_LEVEL],
        levels[_MODEL_STDV], levels[_STANDARDIZED], event, event,
    )  # fmt: skip
    of_model = rank, level_mean, level_stdv, scaled
    n_levels = _STANDARDIZED + 1
    if m6anet is not None:
        n_levels = _SECONDS + 1
    at = address_of_data(out)
    room_end = at + out.shape[0]
    for read in range(first, last):
        if n_rows[read] == 0:
            continue
        letters = reference[reference_offsets[read] : reference_offsets[read + 1]]
        n_letters = letters.shape[0]
        prepare_reference(letters, reverse[read], k, codes, forward, backward, rank)
        if with_samples is not None:
            sample_lengths[:] = 0
        my_contig = address_of_data(contigs) + contig_ends[contig[read]]
        contig_size = contig_ends[contig[read] + 1] - contig_ends[contig[read]]
        my_name = address_of_data(names) + name_ends[read - first]
        name_size = name_ends[read - first + 1] - name_ends[read - first]
        largest = contig_size + name_size + MAX_FIXED
        is_reverse = reverse[read]
        my_samples = signals.samples[signals.offsets[read] : signals.offsets[read + 1]]
        offset, unit = signals.offset[read], signals.unit[read]
        shift, scale, reference_start = scaling.shift[read], scaling.scale[read], alignments.start[read]
        letters_of_read = (forward, backward, n_letters, is_reverse, k, trim)
        row = np.int64(0)  # the type that the kernels below return, so that they are not compiled twice
        while row < n_rows[read]:
            if m6anet is not None:
                n, row = fill_positions(row, _ROWS, inputs, read, letters_of_read, columns)
            else:
                n, row = fill_rows(row, _ROWS, inputs, read, of_model, collapsed, columns)
                int_words(event, n, words[_EVENT], lengths[_EVENT])
            for i in range(n):
                position[i] += trim
            int_words(position, n, words[_POSITION], lengths[_POSITION])
            if with_index:
                int_words(start, n, words[_START], lengths[_START])
                int_words(end, n, words[_END], lengths[_END])
            for column in range(n_levels):
                fixed_words(
                    levels[column], n, _DECIMALS[column], level_words[column], level_lengths[column], signs[column]
                )
            for i in range(n):
                n_bytes = largest
                if with_samples is not None:
                    n_bytes += (end[i] - start[i] + 1) * MAX_SAMPLE
                if at + n_bytes > room_end:
                    return TOO_SMALL
                kmer = position[i] - reference_start
                copy_padded(at, my_contig, contig_size)
                at = _write_integer(at + contig_size, words[_POSITION, i], lengths[_POSITION, i], position[i])
                store_byte(at, TAB)
                copy_block(at + 1, forward, kmer)
                store_byte(at + 1 + shown, TAB)
                copy_padded(at + 2 + shown, my_name, name_size)
                at += 2 + shown + name_size
                if m6anet is None:
                    at = _write_integer(at, words[_EVENT, i], lengths[_EVENT, i], event[i])
                for column in range(_SECONDS + 1):
                    at = _write_level(
                        at, level_words[column, i], level_lengths[column, i], signs[column, i], levels[column, i],
                        _DECIMALS[column],
                    )  # fmt: skip
                store_byte(at, TAB)
                at += 1
                if m6anet is None:
                    if model_rank[i] < 0:
                        copy_block(at, marks, np.int64(-1 - model_rank[i]) * BLOCK)
                    elif is_reverse:
                        copy_block(at, backward, n_letters - shown - kmer)
                    else:
                        copy_block(at, forward, kmer)
                    at += shown
                    for column in range(_MODEL_LEVEL, _STANDARDIZED + 1):
                        at = _write_level(
                            at, level_words[column, i], level_lengths[column, i], signs[column, i], levels[column, i],
                            _DECIMALS[column],
                        )  # fmt: skip
                if with_index:
                    store_byte(at, TAB)
                    at = _write_integer(at + 1, words[_START, i], lengths[_START, i], start[i])
                    store_byte(at, TAB)
                    at = _write_integer(at + 1, words[_END, i], lengths[_END, i], end[i])
                if with_samples is not None:
                    # A read has few different values, so the text of each is made once.
                    store_byte(at, TAB)
                    at += 1
                    for t in range(start[i], end[i]):
                        value = np.int64(my_samples[t]) - _LOWEST_SAMPLE
                        if sample_lengths[value] == 0:
                            text = sample_address + value * _SLOT
                            sample_lengths[value] = (
                                _write_sample(text, my_samples[t], offset, unit, shift, scale) - text
                            )
                        copy_block(at, sample_texts, value * _SLOT)
                        at += np.int64(sample_lengths[value])
                    at -= end[i] > start[i]  # the last comma
                if kmer_marks.shape[0]:
                    store_byte(at, TAB)
                    store_byte(at + 1, kmer_marks[reference_offsets[read] + kmer - trim])
                    at += 2
                store_byte(at, NEWLINE)
                at += 1
    return at - address_of_data(out)


class EventalignTable:
    """Format the rows of batches as tab-separated text; thread-safe.

    Batches need their events, reference segments and, for `samples` and `collapse_events`, their samples.
    """

    def __init__(
        self,
        contigs: list[str],
        model: PoreModel,
        layout: TableLayout = TableLayout(),  # noqa: B008 - immutable
    ) -> None:
        self._model = model
        self._read_names = layout.print_read_names
        self._scaled = layout.scale_events
        self._samples = layout.samples and not layout.m6anet
        self._index = layout.signal_index
        self._collapsed = layout.collapse_events and not layout.m6anet
        self._m6anet = layout.m6anet
        self._marks = layout.mark_kmers and not layout.m6anet
        self._trim = layout.trimmed(model.k)
        self._codes = base_codes()
        self._contigs, self._contig_ends = _joined(contigs, "\t")

    def header(self) -> bytes:
        """Return the header line."""
        names = ["contig", "position", "reference_kmer", "read_name" if self._read_names else "read_index"]
        names += _M6ANET_COLUMNS if self._m6anet else ("strand", *_COLUMNS)
        if self._index:
            names += _INDEX_COLUMNS
        if self._samples:
            names.append("samples")
        if self._marks:
            names.append("kmer_mark")
        return "\t".join(names).encode() + b"\n"

    def format(self, batch: ReadBatch, first: int, end: int) -> NDArray[np.uint8]:
        """Format the rows of reads `first` to `end` - 1 as whole lines; uint8."""
        n_rows = batch.rows.n[first:end]
        if not n_rows.any():
            return np.empty(0, np.uint8)
        reads: Iterable = batch.names[first:end] if self._read_names else batch.read_index[first:end].tolist()
        names, name_ends = _joined(reads, "" if self._m6anet else "\tt\t")
        texts = np.diff(self._contig_ends)[batch.contig[first:end]] + np.diff(name_ends)
        size = int((n_rows * (texts + 2 * self._model.k + _USUAL_FIXED)).sum()) + int(texts.max()) + MAX_FIXED
        if self._samples:
            size += _USUAL_SAMPLE * int(batch.n_samples[first:end].sum())
        while True:
            out = np.empty(size, np.uint8)  # what is not needed is never touched, so never given memory
            used = self._fill(out, batch, first, end, names, name_ends)
            if used != TOO_SMALL:
                return out[:used]
            size *= 2

    def compile(self, batch: ReadBatch) -> None:
        """Compile the kernel for batches of this type; reads are not needed."""
        self._fill(np.empty(1, np.uint8), batch, 0, 0, *_joined([], ""))

    def _fill(self, out: NDArray, batch: ReadBatch, first: int, end: int, names: NDArray, name_ends: NDArray) -> int:
        model = (self._model.k, self._trim, self._codes, self._model.level_mean, self._model.level_stdv)
        marks = batch.kmer_marks if self._marks else batch.kmer_marks[:0]
        return format_table(
            out, (first, end), (self._contigs, self._contig_ends, names, name_ends),
            TableInputs(batch.rows, batch.events, batch.alignments, batch.signals, batch.scaling, marks), model,
            (self._scaled, self._collapsed, self._index), self._m6anet or None, self._samples or None,
        )  # fmt: skip


def _joined(texts: Iterable, suffix: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Join texts, each followed by `suffix`, with padding at the end; return offsets too."""
    pieces = [encoded(f"{text}{suffix}") for text in texts]
    joined = np.frombuffer(b"".join(pieces) + bytes(BLOCK), np.uint8)
    return joined, offsets_of(np.fromiter(map(len, pieces), np.int64, len(pieces)))
