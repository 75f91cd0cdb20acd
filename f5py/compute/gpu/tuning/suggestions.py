"""Advice for a state of a decision tree: which options to change, and to which values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from f5py.compute.gpu.tuning.decision_trees import BatchReport, LoadState, MemoryState, TunedOptions

#: The options as they are spelled on the command line.
SPELLING = {
    "batchsize": "-K",
    "max_bases": "-B",
    "cuda_max_lf": "--cuda-max-lf",
    "cuda_avg_epk": "--cuda-avg-epk",
    "cuda_max_epk": "--cuda-max-epk",
    "ultra_thresh": "--ultra-thresh",
    "threads": "-t",
}

#: Lowest and highest value that is ever suggested or set.
BOUNDS: Mapping[str, tuple[float, float]] = {
    "batchsize": (16, 65_536),  # fewer leave most of a GPU idle, more need gigabytes of host memory
    "max_bases": (100_000, 200_000_000),  # likewise
    "cuda_max_lf": (1.0, 20.0),  # below the mean length the CPU would get most bases; 20 is hardly a limit
    "cuda_avg_epk": (1.0, 10.0),  # DNA has 1.5 to 2.5, direct RNA more
    "cuda_max_epk": (1.0, 15.0),  # reads with more events per base are not aligned at all
    "ultra_thresh": (10_000, 10_000_000),  # reads below 10 kb are ordinary ones
}

#: Percent of the arena that a larger batch should fill, which leaves room for the batches' variation.
_AIM = 90
#: No suggestion raises an option by more than this factor: host memory grows with the batch as well.
_MOST = 4.0
#: Every suggestion raises the limits of length and of events per base by this factor at least, or at most.
_LENGTH_STEP = 1.25
_EVENTS_STEP = 1.5
#: The limit of events per base stays this factor above what the GPU's reads have on average.
_EVENTS_MARGIN = 1.25


@dataclass(frozen=True)
class Advice:
    """A finding, and the ways out.

    Attributes
    ----------
    finding : str
        The state, with the batch's numbers.
    options : TunedOptions
        The options of the batch.
    ways : tuple of dict
        Alternatives, the best first: option values that are to be set together. Never empty.
    """

    finding: str
    options: TunedOptions
    ways: tuple[dict[str, float], ...]

    @property
    def text(self) -> str:
        """One line for the user."""
        return f"{self.finding}: {self.ways_out}"

    @property
    def ways_out(self) -> str:
        """The options to change, in words."""
        alternatives = (" and ".join(self._phrase(name, value) for name, value in way.items()) for way in self.ways)
        return "; or ".join(alternatives)

    def _phrase(self, name: str, value: float) -> str:
        now = getattr(self.options, name)
        verb = "raise" if value > now else "lower"
        needs = " (works with --skip-ultra)" if name == "ultra_thresh" else ""
        return f"{verb} {SPELLING[name]} from {as_typed(name, now)} to {as_typed(name, value)}{needs}"


def as_typed(name: str, value: float) -> str:
    """Format the value as a user would type it for that option."""
    if name == "max_bases" and value >= 1_000_000:
        return f"{value / 1e6:.10g}M"
    if name == "max_bases" and value >= 1_000:
        return f"{value / 1e3:.10g}K"
    return f"{value:.10g}"


def bounded(now: float, target: float, low: float, high: float) -> float:
    """`target` kept within bounds, or `now` if that would be no move in the wanted direction."""
    value = min(max(target, low), high)
    return value if (value > now) == (target > now) and (value < now) == (target < now) else now


def advise(state: MemoryState | LoadState, report: BatchReport, cores: int) -> Advice | None:
    """Advise what to do about that state of that batch.

    Parameters
    ----------
    state : MemoryState or LoadState
    report : BatchReport
    cores : int
        CPU cores of the machine; no more threads than that are suggested.

    Returns
    -------
    Advice or None
        None if every option that could help is at its bound.
    """
    if isinstance(state, MemoryState):
        finding, ways = _about_memory(state, report)
    else:
        finding, ways = _about_load(state, report, cores)
    moves = []
    for way in ways:
        kept = {}
        for name, target in way.items():
            now = getattr(report.options, name)
            value = bounded(now, target, *BOUNDS.get(name, (1, max(cores, 1))))
            if value != now:
                kept[name] = value
        if kept:
            moves.append(kept)
    return Advice(finding, report.options, tuple(moves)) if moves else None


def _about_memory(state: MemoryState, report: BatchReport) -> tuple[str, list[dict[str, float]]]:
    options = report.options
    bases, events = float(report.base_usage), float(report.event_usage)
    used = f"GPU memory for bases is used to {bases:.0f} %, for events to {events:.0f} %"
    # The events per base at which both kinds of arrays would have been used equally.
    even_epk = _up(options.cuda_avg_epk * events / bases, 2) if bases > 0 else BOUNDS["cuda_avg_epk"][1]
    max_epk = options.cuda_max_epk
    if state is MemoryState.EVENTS_UNDERUSED:
        factor = min(bases / events, _EVENTS_STEP) if events > 0 else _EVENTS_STEP
        return used, [{"cuda_avg_epk": even_epk}, {"cuda_max_epk": _up(max_epk * factor, 1)}]
    if state is MemoryState.BASES_UNDERUSED:
        fewer = min(max(_down(max_epk * bases / events, 1), _lowest_max_epk(report)), max_epk)
        return used, [{"cuda_avg_epk": even_epk}, {"cuda_max_epk": fewer}]
    fill = max(bases, events)
    factor = min(_AIM / fill, _MOST) if fill > 0 else _MOST
    if state is MemoryState.CUT_BY_BASES:
        return f"{used}, batches end at -B", [{"max_bases": _larger(options.max_bases, factor)}]
    return f"{used}, batches end at -K", [{"batchsize": _larger(options.batchsize, factor)}]


def _about_load(state: LoadState, report: BatchReport, cores: int) -> tuple[str, list[dict[str, float]]]:
    options = report.options
    cpu, gpu = report.cpu_seconds, report.gpu_seconds
    if state is LoadState.GPU_SLOW:
        # The share of the GPU's time that would be left if both had been given the same.
        factor = (cpu + gpu) / (2 * gpu)
        way = {
            "cuda_max_lf": _down(options.cuda_max_lf * factor, 1),
            "cuda_max_epk": min(
                max(_down(options.cuda_max_epk * factor, 1), _lowest_max_epk(report)), options.cuda_max_epk
            ),
        }
        finding = f"the CPU waits for the GPU (CPU {cpu:.2f} s, GPU {gpu:.2f} s), which is fine if the CPU is weak"
        return finding, [way, {"ultra_thresh": 2 * options.ultra_thresh}]
    finding = f"the GPU waits for the CPU (CPU {cpu:.2f} s, GPU {gpu:.2f} s)"
    of_reads = f"of {report.n_reads} reads"
    if state is LoadState.NO_MEMORY:
        # What fitted of all that should have, counted in reads.
        share = report.gpu_reads / (report.gpu_reads + report.n_cpu_no_memory)
        fewer_reads: dict[str, float] = {"batchsize": two_digits(min(report.n_reads, options.batchsize) * share)}
        fewer_bases: dict[str, float] = {"max_bases": two_digits(min(report.n_bases, options.max_bases) * share)}
        # The option that did not end the batch would have to come down further to have an effect.
        ended_by_bases = report.n_bases >= options.max_bases and report.n_reads < options.batchsize
        ways = [fewer_bases, fewer_reads] if ended_by_bases else [fewer_reads, fewer_bases]
        return f"{finding}; {report.n_cpu_no_memory} {of_reads} did not fit into GPU memory", ways
    if state is LoadState.LONG_READS:
        # Relative length of the mean read on the CPU: with that, about half of them would go to the GPU.
        cpu_mean = (report.n_bases - report.gpu_bases) / report.cpu_reads
        relative = cpu_mean * report.n_reads / max(report.n_bases, 1)
        target = min(max(options.cuda_max_lf * _LENGTH_STEP, relative), options.cuda_max_lf * _MOST)
        return f"{finding}; {report.n_cpu_long} {of_reads} are too long for it", [{"cuda_max_lf": _up(target, 1)}]
    if state is LoadState.MANY_EVENTS:
        target = options.cuda_max_epk * _EVENTS_STEP
        text = f"{finding}; {report.n_cpu_many_events} {of_reads} have too many events per base for it"
        return text, [{"cuda_max_epk": _up(target, 1)}]
    # No lower than where reads are too long for the GPU: shorter ones cost the CPU nothing.
    longest = options.cuda_max_lf * report.n_bases / max(report.n_reads, 1)
    lower = min(two_digits(max(options.ultra_thresh / 2, longest)), options.ultra_thresh)
    wanted = options.threads * cpu / gpu if gpu > 0 else math.inf
    threads = max(math.ceil(min(wanted, cores)), options.threads)
    return f"{finding}, which is fine if the CPU is weak", [{"ultra_thresh": lower}, {"threads": threads}]


def _lowest_max_epk(report: BatchReport) -> float:
    """Below this the GPU would lose ordinary reads."""
    return _up(report.events_per_base * _EVENTS_MARGIN, 1)


def _larger(count: int, factor: float) -> int:
    """Round a number so that it is really larger, however small the count is."""
    return max(two_digits(count * factor), count + 1)


def two_digits(value: float) -> int:
    """`value` rounded down to two significant digits."""
    whole = int(value)
    unit = 10 ** max(len(str(whole)) - 2, 0)
    return whole // unit * unit


# A product that should be a round number may miss it by its last bit. An option may be infinite: no limit.
_BIT = 1e-9


def _up(value: float, decimals: int) -> float:
    scale = 10**decimals
    return math.ceil(value * scale - _BIT) / scale if math.isfinite(value) else value


def _down(value: float, decimals: int) -> float:
    scale = 10**decimals
    return math.floor(value * scale + _BIT) / scale if math.isfinite(value) else value
