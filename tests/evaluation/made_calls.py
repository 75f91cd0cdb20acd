"""Made-up tables of calls."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from f5py.core.motifs import reverse_complement

COLUMNS = [
    "chromosome", "strand", "start", "end", "read_name", "log_lik_ratio", "log_lik_methylated", "log_lik_unmethylated",
    "num_calling_strands", "num_motifs", "sequence",
]  # fmt: skip


@cache
def _chance(site: int, kind: int) -> float:
    return np.random.default_rng([site, kind]).random()


@cache
def _neighbours(site: int) -> str:
    return "".join(np.random.default_rng(site).choice(list("ACGT"), 2))


def made_calls(
    n_reads: int = 60, seed: int = 1, share: float = 0.5, spread: float = 3.0
) -> tuple[pd.DataFrame, np.ndarray]:
    """Make calls of CpGs every 12 bases in reads of 25 sites on two contigs; every fifth is one of a group of two.

    Returns
    -------
    calls : DataFrame
    methylated : bool, shape (n,)
        The states that the ratios were drawn for.
    """
    rng = np.random.default_rng(seed)
    rows, states = [], []
    for read in range(n_reads):
        first = int(rng.integers(0, 50))
        strand = "+-"[read % 2]
        for site in range(first, first + 25):
            size = 2 if site % 5 == 0 else 1
            start = 100 + 12 * site
            state = _chance(site, read % 3) < share
            ratio = round(float(rng.normal(4 if state else -4, spread)), 2)
            bases = _neighbours(site)
            middle = f"AAAA{bases[0]}CG{bases[1]}AAA" if size == 1 else "AAAAACGTCGAAAA"
            sequence = middle if strand == "+" or size == 2 else reverse_complement(f"AAA{bases[0]}CG{bases[1]}AAAA")
            rows.append(
                ["chrA" if read % 2 else "chrB", strand, start, start + 3 * (size - 1), f"read{read}", ratio, ratio,
                 0.0, 1, size, sequence]
            )  # fmt: skip
            states.append(state)
    return pd.DataFrame(rows, columns=COLUMNS), np.array(states)


def written(table: pd.DataFrame, path: Path) -> str:
    table.to_csv(path, sep="\t", index=False, float_format="%.2f")
    return str(path)
