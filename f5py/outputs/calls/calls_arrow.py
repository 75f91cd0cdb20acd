"""Methylation calls as a Parquet file or Arrow tables."""

from collections.abc import Mapping, Sequence

import numpy as np

from f5py.core.batch import ReadBatch
from f5py.core.windows import Windows
from f5py.io.arrow.table import RowTarget, arrow_sink, dictionary_column, string_column
from f5py.outputs.sink import ArrowTable
from f5py.site_frequencies.site_counts import calls_inside

_FIELDS = [
    ("chromosome", "names"),
    ("strand", "names"),
    ("start", "int64"),
    ("end", "int64"),
    ("read_name", "names"),
    ("log_lik_ratio", "float64"),
    ("log_lik_methylated", "float32"),
    ("log_lik_unmethylated", "float32"),
    ("num_calling_strands", "int32"),
    ("num_motifs", "int32"),
    ("sequence", "large_string"),
]
_STRANDS = ["+", "-"]
#: Likelihoods hardly repeat: with dictionaries, files are half as large again.
PARQUET_LAYOUT = {"encodings": {name: "PLAIN" for name, _ in _FIELDS if name.startswith("log_lik")}}


class CallsArrow(ArrowTable):
    """Write the calls of batches as Parquet or Arrow tables, in the order of the text table.

    Columns are those of the text table of version 2. Chromosome, strand and read name are dictionary-encoded strings,
    the sequence is a large string, positions are int64, counts int32. Log-likelihoods are not rounded: float32, and
    their difference float64. `out` is the file, complete once the context is left without an error, or a consumer of
    tables; the layout is that of `f5py.outputs.calls.calls_table.CallsText`. Raises `MissingDependencyError` without
    pyarrow.
    """

    def __init__(
        self,
        out: RowTarget,
        contigs: list[str],
        k: int,
        windows: Windows | None = None,
        motifs: Sequence[str] = (),
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        fields = [*_FIELDS, ("motif", "names")] if motifs else _FIELDS
        self._output = arrow_sink(out, fields, metadata=metadata, **PARQUET_LAYOUT)
        self._motifs = list(motifs)
        self._contigs = contigs
        self._k = k
        self._windows = windows

    def write(self, batch: ReadBatch) -> None:
        """Write the rows of a batch in read order."""
        calls = np.flatnonzero(calls_inside(batch, self._windows))
        if len(calls) == 0:
            return
        read = np.searchsorted(batch.calls.offsets, calls, side="right") - 1
        names_used, name = np.unique(read, return_inverse=True)
        first, last = batch.calls.first[calls], batch.calls.last[calls]
        methylated, unmethylated = batch.calls.methylated[calls], batch.calls.unmethylated[calls]
        begin = np.maximum(first - batch.reference_start[read] - self._k + 1, 0)
        end = np.minimum(last - batch.reference_start[read] + self._k, np.diff(batch.reference_offsets)[read])
        motif = [dictionary_column(batch.call_motif[calls].astype(np.int32), self._motifs)] if self._motifs else []
        self._output.write(
            [
                dictionary_column(batch.contig[read].astype(np.int32), self._contigs),
                dictionary_column(batch.reverse[read].astype(np.int32), _STRANDS),
                first,
                last,
                dictionary_column(name.astype(np.int32), [batch.names[i] for i in names_used.tolist()]),
                methylated.astype(np.float64) - unmethylated,
                methylated,
                unmethylated,
                np.ones(len(calls), np.int32),
                batch.calls.sites[calls],
                string_column(batch.reference_offsets[read] + begin, end - begin, batch.reference),
                *motif,
            ]
        )
