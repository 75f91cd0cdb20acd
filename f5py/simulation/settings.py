"""Settings of a simulation, with the values of an R9.4 flow cell as defaults."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.core.noise import GAUSSIAN, STUDENT
from f5py.errors import F5pyError


@dataclass(frozen=True)
class SimulationSettings:
    """Settings of a simulation; most are explained by the options of the same names."""

    seed: int = 1  # the same seed and settings give the same files, byte for byte
    genome_length: int = 1_000_000
    gc: float = 0.45
    n_reads: int | None = None  # number of reads; None to go by `coverage`
    coverage: float = 20.0  # mean depth over the whole reference
    fixed_length: int | None = None  # length of every read in bases; None for the lognormal distribution
    median_length: float = 8000.0
    length_sigma: float = 0.8
    min_length: int = 200
    ultra_long: tuple[int, ...] = ()  # lengths of further reads, one each
    strand: str = "both"  # ``"both"``, ``"+"`` or ``"-"``
    # basecalling errors per base of the molecule: 40 % mismatches, 25 % insertions, 35 % deletions
    error_rate: float = 0.03
    per_read: bool = False  # True: a whole molecule is methylated or not. False: every site has its own rate.
    methylated_reads: float = 0.5  # probability that a molecule is methylated, for `per_read`
    site_rates: str = "beta:0.5:0.5"  # distribution of the sites' rates, see `RateMixture.parse`
    linked_within: int = 10
    sampling_rate: float = 4000.0
    bases_per_second: float = 450.0
    dwell_shape: float = 1.6  # of the gamma distribution of the time per base
    slow_fraction: float = 0.0
    slow_factor: float = 5.0
    level_noise: float = 0.4
    level_correlation: float = 0.0  # correlation of the deviations of one base and the next
    level_tails: str = GAUSSIAN
    sample_noise: float = 1.5  # standard deviation of the single samples around a base's level, in pA
    sample_correlation: float = 0.0  # of one sample and the next; samples further apart are independent
    # shift_sd, scale_sd: spread of the reads' shift (pA, mean 0) and scale (mean 1) against the pore model
    shift_sd: float = 5.0
    scale_sd: float = 0.03
    # digitisation, signal_range: calibration of the digitiser, ``pA = (raw + offset) * signal_range / digitisation``
    digitisation: float = 8192.0
    signal_range: float = 1402.882
    reads_per_file: int = 4000  # reads in one fast5 file
    pore: str = "r9"  # one of `CHEMISTRIES`: what the files say, and whose built-in model the signals follow
    meth_model: str | None = None  # a file with the pore model of plain and methylated k-mers to follow instead
    shifts: str | None = None
    shift_spread: str | None = None
    level_bias: float = 0.0
    motif: str = "cpg"  # which sites can be methylated: a name, or ``SITE:OFFSET``
    dwell_sigma: float = 0.0  # above 0, the time per base is lognormal, with that standard deviation of the logarithm
    complete: float = 1.0  # share of the sites of a methylated molecule that are methylated, for `per_read`
    haplotypes: bool = False  # molecules are of one of two haplotypes
    haplotype_sites: float = 0.3  # share of blocks of sites whose rate each haplotype has of its own
    signal_format: str = "fast5"  # "fast5", "blow5", "pod5": of the signal files

    @property
    def chemistry(self) -> SimulatedChemistry:
        """Simulated chemistry."""
        return CHEMISTRIES[self.pore]


@dataclass(frozen=True)
class SimulatedChemistry:
    """A pore, and the statistics of its real reads."""

    model: str  # built-in model that signals follow; ``{motif}`` stands for the name of the motif
    kit: str  # what the signal files say; none if empty
    rna: bool  # molecules are transcripts, which pass from their 3' end to their 5' end
    # settings: speed and sampling rate; spread of the dwell times, levels and samples as they were measured in the
    # events of real reads (E. coli R9.4, human R10.4.1, sequins RNA002, lacZ RNA004).
    statistics: dict[str, float | str]


#: By what ``--pore`` says.
CHEMISTRIES = {
    "r9": SimulatedChemistry(
        "r9.4_450bps.{motif}.6mer", "", False,
        {
            "bases_per_second": 450.0, "sampling_rate": 4000.0, "level_noise": 0.53, "sample_noise": 1.9,
            "level_correlation": 0.3, "level_tails": STUDENT, "sample_correlation": 0.5,
        },
    ),
    "r10": SimulatedChemistry(
        "r10.4.1_400bps.{motif}.9mer", "sqk-lsk114", False,
        {
            "bases_per_second": 400.0, "sampling_rate": 5000.0, "level_noise": 0.63, "sample_noise": 2.2,
            "dwell_sigma": 0.65,
        },
    ),
    "rna002": SimulatedChemistry(
        "r9.4_70bps_rna.nucleotide.5mer", "sqk-rna002", True,
        {
            "bases_per_second": 70.0, "sampling_rate": 3012.0, "level_noise": 0.73, "sample_noise": 3.4,
            "dwell_sigma": 0.86, "median_length": 1000.0, "length_sigma": 0.6,
        },
    ),
    "rna004": SimulatedChemistry(
        "rna004_130bps.nucleotide.9mer", "sqk-rna004", True,
        {
            "bases_per_second": 130.0, "sampling_rate": 4000.0, "level_noise": 0.7, "sample_noise": 2.8,
            "dwell_sigma": 0.75, "median_length": 1000.0, "length_sigma": 0.6,
        },
    ),
}  # fmt: skip
#: Deviations of real R10.4.1 reads from shifts by place: figures of calls are then those of real reads.
REALISTIC = {"shift_spread": "1,1,1,1.5,2,5,3.5,3,1.5", "level_bias": 2.0}


@dataclass(frozen=True)
class RateMixture:
    """A mixture of fixed rates and beta distributions of the sites' methylation rates."""

    weights: NDArray[np.float64]  # shape (c,): probability of each component; the sum is 1
    # alpha, beta: shape (c,): parameters of each beta distribution; for a fixed rate r they are r and NaN
    alpha: NDArray[np.float64]
    beta: NDArray[np.float64]

    @classmethod
    def parse(cls, text: str) -> RateMixture:
        """Parse a mixture such as ``0,0.5,1`` or ``0*2,beta:2:2,1*3``.

        Components are separated by commas; each is a rate from 0 to 1 or ``beta:A:B``, optionally followed by
        ``*WEIGHT`` (default 1). Raises `F5pyError` for other components.
        """
        components = [_parse_component(part.strip(), text) for part in text.split(",")]
        table = np.array(components, dtype=np.float64)
        return cls(table[:, 0] / table[:, 0].sum(), table[:, 1], table[:, 2])

    def draw(self, n: int, rng: np.random.Generator) -> NDArray[np.float64]:
        which = rng.choice(len(self.weights), size=n, p=self.weights)
        rates = self.alpha[which]
        is_beta = ~np.isnan(self.beta[which])
        rates[is_beta] = rng.beta(self.alpha[which][is_beta], self.beta[which][is_beta])
        return rates


def _parse_component(part: str, text: str) -> tuple[float, float, float]:
    value, _, weight_text = part.partition("*")
    try:
        weight = float(weight_text) if weight_text else 1.0
        if value.startswith("beta:"):
            alpha, beta = (float(field) for field in value[5:].split(":"))
            valid = 0 < alpha < np.inf and 0 < beta < np.inf
        else:
            alpha, beta = float(value), np.nan
            valid = 0 <= alpha <= 1
    except ValueError:
        valid = False
    if not valid or not 0 < weight < np.inf:
        raise F5pyError(
            f"methylation rates {text!r}: {part!r} is neither a rate from 0 to 1 nor beta:A:B with A and B "
            "above 0 (each may be followed by *WEIGHT, above 0)"
        )
    return weight, alpha, beta
