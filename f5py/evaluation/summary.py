"""Summary of a table of calls by ratio, read, group and sequence context, in constant memory."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.core.motifs import Motif, reverse_complement
from f5py.evaluation.ratios import RatioCounts

WANTED = ("strand", "read_name", "log_lik_ratio", "num_motifs", "sequence")
#: Larger groups are counted together with those of this size.
MOST_SITES = 5
#: Fewest calls beyond the threshold for a read's methylated fraction.
LEAST_CALLS_OF_READ = 5
N_READ_BINS = 20
_MOST_CONTEXTS = 64


class CallSummary:
    """Sums over batches of calls."""

    def __init__(self, motif: Motif, threshold: float) -> None:
        self._motif = motif
        self._threshold = threshold
        self.ratios = RatioCounts()
        self.n_sites = 0
        #: Groups of 1, 2, ... sites: all, beyond the threshold, and of these the methylated ones.
        self.by_sites = np.zeros((MOST_SITES, 3), np.int64)
        self.n_reads = 0  # alignments with calls, which are consecutive in the table
        self.n_fractions = 0
        #: Reads by the methylated share of their calls beyond the threshold.
        self.read_fractions = np.zeros(N_READ_BINS, np.int64)
        #: Motif with the adjacent bases -> groups of one site: all, beyond, methylated, sum of ratios.
        self.contexts: dict[str, NDArray[np.float64]] = {}
        self._last_read: str | None = None
        self._last_counts = np.zeros(2, np.int64)

    def add(self, batch: Any) -> None:
        """Add a batch with the columns `WANTED`; ``strand`` and ``sequence``, for contexts, are optional."""
        if not len(batch):
            return
        ratio = batch["log_lik_ratio"].to_numpy(zero_copy_only=False)
        n_motifs = batch["num_motifs"].to_numpy(zero_copy_only=False)
        self.ratios.add(ratio)
        self.n_sites += int(n_motifs.sum())
        passes = np.abs(ratio) >= self._threshold
        methylated = passes & (ratio > 0)
        size = np.clip(n_motifs, 1, MOST_SITES) - 1
        for i, values in enumerate((None, passes, methylated)):
            self.by_sites[:, i] += np.bincount(size, values, MOST_SITES).astype(np.int64)
        self._add_reads(batch["read_name"], passes, methylated)
        if "sequence" in batch.schema.names and "strand" in batch.schema.names:
            self._add_contexts(batch, n_motifs == 1, ratio, passes, methylated)

    def finish(self) -> None:
        """Count the last read."""
        self._count_reads(self._last_counts[None] if self._last_read is not None else np.empty((0, 2), np.int64))
        self._last_read, self._last_counts = None, np.zeros(2, np.int64)

    def _add_reads(self, names: Any, passes: NDArray[np.bool_], methylated: NDArray[np.bool_]) -> None:
        import pyarrow.compute

        changes = pyarrow.compute.not_equal(names[1:], names[:-1]).to_numpy(zero_copy_only=False)
        first = np.concatenate([[0], np.flatnonzero(changes) + 1])
        counts = np.stack([np.add.reduceat(values.astype(np.int64), first) for values in (passes, methylated)], axis=1)
        if names[0].as_py() == self._last_read:
            counts[0] += self._last_counts
        elif self._last_read is not None:
            self._count_reads(self._last_counts[None])
        self._count_reads(counts[:-1])
        self._last_read, self._last_counts = names[-1].as_py(), counts[-1]

    def _count_reads(self, counts: NDArray[np.int64]) -> None:
        self.n_reads += len(counts)
        enough = counts[counts[:, 0] >= LEAST_CALLS_OF_READ]
        at = np.minimum(enough[:, 1] * N_READ_BINS // np.maximum(enough[:, 0], 1), N_READ_BINS - 1)
        self.n_fractions += len(enough)
        self.read_fractions += np.bincount(at, minlength=N_READ_BINS)

    def _add_contexts(
        self, batch: Any, single: NDArray[np.bool_], ratio: NDArray[np.float64], passes: NDArray[np.bool_],
        methylated: NDArray[np.bool_],
    ) -> None:  # fmt: skip
        import pyarrow
        import pyarrow.compute

        single &= ~np.isnan(ratio)
        chosen = batch.filter(pyarrow.array(single))
        if not len(chosen):
            return
        length = len(chosen["sequence"][0].as_py())
        site = (length - 1) // 2
        if site < 1:
            return
        text = pyarrow.compute.utf8_slice_codeunits(chosen["sequence"], site - 1, site + len(self._motif.pattern) + 1)
        joined = pyarrow.compute.binary_join_element_wise(chosen["strand"], text, "")
        coded = joined.dictionary_encode()
        which = coded.indices.to_numpy(zero_copy_only=False)
        values = (None, passes[single], methylated[single], ratio[single])
        n = len(coded.dictionary)
        sums = np.stack([np.bincount(which, one, n) for one in values], axis=1)
        for name, row in zip(coded.dictionary.to_pylist(), sums, strict=True):
            bases = reverse_complement(name[1:]) if name[0] == "-" else name[1:]
            if len(bases) < len(self._motif.pattern) + 2 or set(bases) - set("ACGT"):
                continue
            if bases in self.contexts or len(self.contexts) < _MOST_CONTEXTS:
                self.contexts[bases] = self.contexts.get(bases, 0) + row
