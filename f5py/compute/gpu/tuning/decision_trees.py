"""The two decision trees that judge how a batch used the GPU's memory and the time of both processors.

They are the trees of f5c (Gamaarachchi et al., BMC Bioinformatics 21:343, 2020). A tree ends in a state that asks for
other options, or in None: nothing to say about that batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction

#: Percent of the arena above which it counts as used.
WELL_USED = 70
#: Difference in percent between the two kinds of arrays above which they are out of proportion.
OUT_OF_PROPORTION = 30
#: Relative difference of the processors' times above which the load is out of balance.
OUT_OF_BALANCE = 0.3
#: A reason to align on the CPU matters if it holds for more than one in so many reads of the batch.
ONE_IN = 10
#: A GPU is slow if a batch waits for it for more than this share of its time.
MOSTLY = 0.5


@dataclass(frozen=True)
class TunedOptions:
    """The options that the trees are about; defaults are those of the command line.

    Attributes
    ----------
    batchsize, max_bases : int
        Maximum numbers of reads and bases in a batch: ``-K`` and ``-B``.
    cuda_max_lf, cuda_avg_epk, cuda_max_epk : float
        The options of these names.
    ultra_thresh : int
        ``--ultra-thresh``, in bases.
    threads : int
        ``-t``.
    """

    batchsize: int = 512
    max_bases: int = 5_000_000
    cuda_max_lf: float = 3.0
    cuda_avg_epk: float = 2.0
    cuda_max_epk: float = 5.0
    ultra_thresh: int = 100_000
    threads: int = 8


@dataclass(frozen=True)
class BatchReport:
    """Figures of the alignment of one batch.

    Attributes
    ----------
    n_reads, n_bases : int
        Everything in the batch, whether aligned or not.
    gpu_reads, gpu_bases, gpu_events : int
        What the GPU was given.
    capacity_bases, capacity_events : int
        X and Y: what the GPU's memory can take of one batch. A read takes one base more than it has.
    n_cpu_long, n_cpu_many_events, n_cpu_no_memory, n_cpu_ultra : int
        Reads given to the CPU, by reason.
    cpu_seconds, gpu_seconds : float
        Wall time of either share.
    waited_share : float
        Of the time of the batch, in which its thread has waited for the GPU.
    options : TunedOptions
        What the batch was made and divided by.
    """

    n_reads: int
    n_bases: int
    gpu_reads: int
    gpu_bases: int
    gpu_events: int
    capacity_bases: int
    capacity_events: int
    n_cpu_long: int
    n_cpu_many_events: int
    n_cpu_no_memory: int
    n_cpu_ultra: int
    cpu_seconds: float
    gpu_seconds: float
    options: TunedOptions
    waited_share: float = 1.0

    @property
    def cpu_reads(self) -> int:
        """Reads that the CPU was given."""
        return self.n_cpu_long + self.n_cpu_many_events + self.n_cpu_no_memory + self.n_cpu_ultra

    @property
    def base_usage(self) -> Fraction:
        """Percent of X in use, exactly: thresholds are met or not whatever the rounding."""
        return Fraction(100 * (self.gpu_bases + self.gpu_reads), self.capacity_bases)

    @property
    def event_usage(self) -> Fraction:
        """Percent of Y in use."""
        return Fraction(100 * self.gpu_events, self.capacity_events)

    @property
    def events_per_base(self) -> float:
        """Mean of the GPU's reads."""
        return self.gpu_events / max(self.gpu_bases, 1)


class MemoryState(Enum):
    """Faults that the memory tree finds."""

    EVENTS_UNDERUSED = auto()
    BASES_UNDERUSED = auto()
    CUT_BY_BASES = auto()
    CUT_BY_READS = auto()


class LoadState(Enum):
    """Faults that the load tree finds. All but the last mean that the GPU waits for the CPU."""

    NO_MEMORY = auto()
    LONG_READS = auto()
    MANY_EVENTS = auto()
    CPU_SLOW = auto()
    GPU_SLOW = auto()


def memory_balance(report: BatchReport) -> MemoryState | None:
    """Judge how the batch filled the arena.

    Arrays that are both well used are fine, and so are those of which one is, unless the other is far after. If both
    are not, the batch was too small for the memory: because of the limit it reached, if that is one of the two.
    """
    if report.capacity_bases <= 0 or report.capacity_events <= 0:
        return None
    bases, events = report.base_usage, report.event_usage
    if bases > WELL_USED or events > WELL_USED:
        if events <= WELL_USED and bases - events > OUT_OF_PROPORTION:
            return MemoryState.EVENTS_UNDERUSED
        if bases <= WELL_USED and events - bases > OUT_OF_PROPORTION:
            return MemoryState.BASES_UNDERUSED
        return None
    by_reads = report.n_reads >= report.options.batchsize
    by_bases = report.n_bases >= report.options.max_bases
    if by_reads == by_bases:
        return None  # neither: the last batch of the run
    return MemoryState.CUT_BY_BASES if by_bases else MemoryState.CUT_BY_READS


def load_balance(report: BatchReport) -> LoadState | None:
    """Judge which of the two processors waited for the other, and why the CPU had so much to do if it was the GPU."""
    total = report.cpu_seconds + report.gpu_seconds
    if total <= 0:
        return None
    imbalance = (report.cpu_seconds - report.gpu_seconds) / total
    if imbalance > OUT_OF_BALANCE:
        if ONE_IN * report.n_cpu_no_memory > report.n_reads:
            return LoadState.NO_MEMORY
        if ONE_IN * report.n_cpu_long > report.n_reads:
            return LoadState.LONG_READS
        if ONE_IN * report.n_cpu_many_events > report.n_reads:
            return LoadState.MANY_EVENTS
        return LoadState.CPU_SLOW
    # What a batch takes besides is done for other batches meanwhile: the GPU is slow only if it is waited for.
    if imbalance < -OUT_OF_BALANCE and report.waited_share > MOSTLY:
        return LoadState.GPU_SLOW
    return None
