"""Rows of the event table as arrays, for binary outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.core.batch import ReadBatch
from f5py.core.kmers import base_codes
from f5py.pore_model.model import PoreModel


@dataclass(frozen=True)
class TableColumns:
    """Rows of the event table as arrays of one length."""

    # read, contig: the read's place in the batch and the contig's index
    read: NDArray[np.int32]
    contig: NDArray[np.int32]
    reference_rank: NDArray[np.int32]  # rank of the k-mer in the reference's direction
    # position, event: 0-based reference position of the k-mer's first base; number of the (first) event, -1 for none
    position: NDArray[np.int32]
    event: NDArray[np.int32]
    # rank of the k-mer in the read's direction; negative if the event fits no k-mer, or the k-mer has no event
    model_rank: NDArray[np.int32]
    # start, end: first sample and the one after the last
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    # level, stdv, seconds, model_level, model_stdv, standardized: not rounded to the text's decimals; pA, or the
    # model's scale if the events are scaled, and seconds
    level: NDArray[np.float32]
    stdv: NDArray[np.float32]
    seconds: NDArray[np.float32]
    model_level: NDArray[np.float32]
    model_stdv: NDArray[np.float32]
    standardized: NDArray[np.float32]


def table_columns(
    batch: ReadBatch, model: PoreModel, first: int, end: int, scale_events: bool = False, collapse_events: bool = False
) -> TableColumns:
    """Convert the rows of reads `first` to `end` - 1 of a batch to columns.

    The batch needs its events, reference segments and, for `collapse_events`, its samples.
    """
    from f5py.outputs.events._eventalign_columns_numba import RowPlaces, fill_columns
    from f5py.outputs.events._eventalign_rows_numba import RowColumns, TableInputs

    capacity = int(batch.rows.n[first:end].sum())
    types = 5 * [np.int32] + 2 * [np.int64] + 6 * [np.float32]
    columns: list[NDArray] = [np.empty(capacity, dtype) for dtype in types]
    parameters = (model.k, base_codes(), model.level_mean, model.level_stdv)
    inputs = TableInputs(
        batch.rows, batch.events, batch.alignments, batch.signals, batch.scaling, batch.kmer_marks
    )  # fmt: skip
    n = fill_columns(
        first, end, inputs, parameters, scale_events, collapse_events, RowPlaces(columns[0], columns[1]),
        RowColumns(*columns[2:]),
    )  # fmt: skip
    filled = [column[:n] for column in columns]
    return TableColumns(filled[0], batch.contig[filled[0]], *filled[1:])


def as_printed(values: NDArray[np.float32], decimals: int) -> NDArray[np.float64]:
    """Round values as the text table does; the products are exact, so that they are rounded as by printf."""
    power = 10.0**decimals
    return np.rint(values.astype(np.float64) * power) / power
