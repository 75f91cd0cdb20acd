"""Suggestions of options from how batches have used the GPU, by the two decision trees of f5c.

One judges how a batch used the GPU's memory, the other whether CPU threads and GPU were busy for the same time
(Gamaarachchi et al., BMC Bioinformatics 21:343, 2020).
"""

import math
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from f5py.compute.gpu.arena import ArenaSize
from f5py.compute.gpu.batch_slice import BatchTiming
from f5py.compute.gpu.placement import Placement, PlacementReason
from f5py.core.batch import ReadBatch
from f5py.messages import console
from f5py.options.cores import usable_cores

#: Percent of the arena above which it counts as used, and of which its two kinds of arrays may differ.
_WELL_USED, _OUT_OF_PROPORTION = 70, 30
#: Relative difference of the processors' times above which the load is out of balance.
_OUT_OF_BALANCE = 0.3
#: A reason to align on the CPU matters if it holds for more than one in so many reads.
_ONE_IN = 10
#: A GPU is slow if a batch waits for it for more than this share of its time.
_MOSTLY = 0.5
#: Fewer batches than this say nothing.
_LEAST_BATCHES = 4
#: Percent of the arena that a larger batch should fill, which leaves room for the batches' variation.
_AIM = 90
#: No suggestion raises an option by more than this factor: host memory grows with the batch as well.
_MOST = 4.0
#: Factors: least raise of the limit of length, highest of that of events per base, and margin of that above the mean.
_LENGTH_STEP, _EVENTS_STEP, _EVENTS_MARGIN = 1.25, 1.5, 1.25
#: Spelling of each option, and the lowest and highest value that is suggested.
_SUGGESTED = {
    "batchsize": ("-K", 16, 65_536),  # fewer leave most of a GPU idle, more need gigabytes of host memory
    "max_bases": ("-B", 100_000, 200_000_000),
    "cuda_max_lf": ("--cuda-max-lf", 1.0, 20.0),  # below the mean length the CPU would get most bases
    "cuda_avg_epk": ("--cuda-avg-epk", 1.0, 10.0),
    "cuda_max_epk": ("--cuda-max-epk", 1.0, 15.0),  # reads with more events per base are not aligned at all
    "ultra_thresh": ("--ultra-thresh", 10_000, 10_000_000),
    "threads": ("-t", 1, math.inf),
}
#: A product that should be a round number may miss it by its last bit.
_BIT = 1e-9


@dataclass(frozen=True)
class BatchReport:
    """Figures of the alignment of one batch."""

    n_reads: int
    n_bases: int
    gpu_reads: int
    gpu_bases: int
    gpu_events: int
    capacity_bases: int  # of the GPU's memory for one batch; a read takes one base more than it has
    capacity_events: int
    n_cpu_long: int  # reads given to the CPU for their length
    n_cpu_many_events: int
    n_cpu_no_memory: int
    cpu_seconds: float
    gpu_seconds: float
    waited_share: float = 1.0  # of the batch's time, in which its thread has waited for the GPU

    @property
    def lowest_max_epk(self) -> float:
        """Limit of events per base below which the GPU would lose ordinary reads."""
        return _up(self.gpu_events / max(self.gpu_bases, 1) * _EVENTS_MARGIN, 1)


class Advice(NamedTuple):
    """A fault found by a tree: its state, its figures, and alternative options, the best first."""

    state: str
    finding: str
    ways: Sequence[dict[str, float]]

    def text(self, options: Any) -> str:
        """Return one line that names options to change; empty if all useful ones are at their bounds."""
        ways = [[_phrase(name, getattr(options, name), to) for name, to in way.items()] for way in self.ways]
        alternatives = [" and ".join(filter(None, words)) for words in ways if any(words)]
        return f"{self.finding}: {'; or '.join(alternatives)}" if alternatives else ""


def balance_memory(batch: BatchReport, options: Any) -> Advice | None:
    """Judge how a batch filled the arena.

    Arrays that are both well used are fine, and so are those of which one is, unless the other is far behind. If both
    are not, the batch was too small for the memory because of the limit it reached, if that is one of the two.
    """
    if batch.capacity_bases <= 0 or batch.capacity_events <= 0:
        return None
    # percent in use, exactly: thresholds are met or not whatever the rounding
    bases = Fraction(100 * (batch.gpu_bases + batch.gpu_reads), batch.capacity_bases)
    events = Fraction(100 * batch.gpu_events, batch.capacity_events)
    used = f"GPU memory for bases is used to {float(bases):.0f} %, for events to {float(events):.0f} %"
    # Events per base at which both kinds of arrays would have been used equally.
    even_epk = _up(options.cuda_avg_epk * float(events / bases), 2) if bases > 0 else math.inf
    if max(bases, events) > _WELL_USED:
        if events <= _WELL_USED and bases - events > _OUT_OF_PROPORTION:
            more = _up(options.cuda_max_epk * min(float(bases / events) if events > 0 else math.inf, _EVENTS_STEP), 1)
            return Advice("events underused", used, [{"cuda_avg_epk": even_epk}, {"cuda_max_epk": more}])
        if bases <= _WELL_USED and events - bases > _OUT_OF_PROPORTION:
            fewer = max(_down(options.cuda_max_epk * float(bases / events), 1), batch.lowest_max_epk)
            fewer = min(fewer, options.cuda_max_epk)
            return Advice("bases underused", used, [{"cuda_avg_epk": even_epk}, {"cuda_max_epk": fewer}])
        return None
    ended_by_reads = batch.n_reads >= options.batchsize
    if ended_by_reads == (batch.n_bases >= options.max_bases):
        return None  # neither: the last batch of the run
    fill = float(max(bases, events))
    name = "batchsize" if ended_by_reads else "max_bases"
    now = getattr(options, name)
    larger = max(_two_digits(now * min(_AIM / fill if fill > 0 else _MOST, _MOST)), now + 1)
    return Advice(f"cut by {name}", f"{used}, batches end at {_SUGGESTED[name][0]}", [{name: larger}])


def balance_load(batch: BatchReport, options: Any) -> Advice | None:
    """Judge which processor waited for the other, and the cause if it was the GPU."""
    cpu, gpu, n = batch.cpu_seconds, batch.gpu_seconds, batch.n_reads
    imbalance = (cpu - gpu) / (cpu + gpu) if cpu + gpu > 0 else 0.0
    ways: list[dict[str, float]]
    times = f"(CPU {cpu:.2f} s, GPU {gpu:.2f} s)"
    # Other work on a batch is done while other batches are computed: the GPU is slow only if it is waited for.
    if imbalance < -_OUT_OF_BALANCE and batch.waited_share > _MOSTLY:
        # The share of the GPU's time that would be left if both had been given the same.
        shorter, fewer = (
            _down(limit * (cpu + gpu) / (2 * gpu), 1) for limit in (options.cuda_max_lf, options.cuda_max_epk)
        )
        fewer = min(max(fewer, batch.lowest_max_epk), options.cuda_max_epk)
        ways = [{"cuda_max_lf": shorter, "cuda_max_epk": fewer}, {"ultra_thresh": 2 * options.ultra_thresh}]
        return Advice("GPU slow", f"the CPU waits for the GPU {times}, which is fine if the CPU is weak", ways)
    if imbalance <= _OUT_OF_BALANCE:
        return None
    finding = f"the GPU waits for the CPU {times}"
    if _ONE_IN * batch.n_cpu_no_memory > n:
        # What fitted of all that should have, counted in reads.
        share = batch.gpu_reads / (batch.gpu_reads + batch.n_cpu_no_memory)
        sizes = {"batchsize": min(n, options.batchsize), "max_bases": min(batch.n_bases, options.max_bases)}
        ways = [{name: _two_digits(size * share)} for name, size in sizes.items()]
        # The option that did not end the batch would have to come down further to have an effect.
        if batch.n_bases >= options.max_bases and n < options.batchsize:
            ways.reverse()
        return Advice("no memory", f"{finding}; {batch.n_cpu_no_memory} of {n} reads did not fit into GPU memory", ways)
    if _ONE_IN * batch.n_cpu_long > n:
        # Relative length of the mean read on the CPU: with that, about half of them would go to the GPU.
        n_cpu = batch.n_cpu_long + batch.n_cpu_many_events + batch.n_cpu_no_memory
        relative = (batch.n_bases - batch.gpu_bases) / n_cpu * n / max(batch.n_bases, 1)
        target = min(max(options.cuda_max_lf * _LENGTH_STEP, relative), options.cuda_max_lf * _MOST)
        finding += f"; {batch.n_cpu_long} of {n} reads are too long for it"
        return Advice("long reads", finding, [{"cuda_max_lf": _up(target, 1)}])
    if _ONE_IN * batch.n_cpu_many_events > n:
        finding += f"; {batch.n_cpu_many_events} of {n} reads have too many events per base for it"
        return Advice("many events", finding, [{"cuda_max_epk": _up(options.cuda_max_epk * _EVENTS_STEP, 1)}])
    # No lower than where reads are too long for the GPU: shorter ones cost the CPU nothing.
    longest = options.cuda_max_lf * batch.n_bases / max(n, 1)
    lower = min(_two_digits(max(options.ultra_thresh / 2, longest)), options.ultra_thresh)
    wanted = options.threads * cpu / gpu if gpu > 0 else math.inf
    threads = max(math.ceil(min(wanted, usable_cores())), options.threads)
    ways = [{"ultra_thresh": lower}, {"threads": threads}]
    return Advice("CPU slow", f"{finding}, which is fine if the CPU is weak", ways)


#: The trees by the names that messages begin with.
_TREES = {"load_balance_advisor": balance_load, "memory_balance_advisor": balance_memory}


class GpuAdvisor:
    """Judge batches by `capacity`, the GPU's memory for one, and `options` with default sizes. Suggest options."""

    def __init__(self, capacity: ArenaSize, options: Any) -> None:
        self._capacity, self._options = capacity, options
        self._lock = threading.Lock()
        self._n_batches = 0
        self._counts: Counter[tuple[str, str]] = Counter()  # batches by tree and state
        self._texts: dict[tuple[str, str], str] = {}

    def observe(self, batch: ReadBatch, placement: Placement, timing: BatchTiming) -> None:
        """Update the advice with a finished batch. Thread-safe."""
        gpu = placement.having(PlacementReason.GPU)
        gpu_bases = int(batch.read_length[gpu].sum())
        if self._options.verbose > 0:
            cpu_bases = int(batch.read_length[placement.reads].sum()) - gpu_bases
            console.note(
                "align_cuda",
                f"Load : CPU {len(placement.reads) - len(gpu)} entries ({cpu_bases / 1e6:.1f}M bases), "
                f"GPU {len(gpu)} entries ({gpu_bases / 1e6:.1f}M bases)",
            )
            console.note("load_balance", f"Processing time : CPU {timing.cpu:.3f} sec, GPU {timing.gpu:.3f} sec")
        report = BatchReport(
            len(batch), len(batch.bases), len(gpu), gpu_bases, int(batch.n_events[gpu].sum()),
            self._capacity.bases, self._capacity.events,
            placement.count(PlacementReason.LONG), placement.count(PlacementReason.MANY_EVENTS),
            placement.count(PlacementReason.NO_MEMORY),
            timing.cpu, timing.gpu, timing.waited / timing.total if timing.total else 0.0,
        )  # fmt: skip
        with self._lock:
            self._n_batches += 1
            for who, tree in _TREES.items():
                advice = tree(report, self._options)
                if advice is not None and (text := advice.text(self._options)):
                    self._counts[who, advice.state] += 1
                    self._texts.setdefault((who, advice.state), text)

    def summarize(self, is_bound: bool) -> None:
        """Suggest options for most batches, at the end of a run that has waited for computing."""
        for who in _TREES if is_bound else ():
            for key, count in self._counts.items():
                if key[0] == who and count >= _LEAST_BATCHES and 2 * count > self._n_batches:
                    console.info(who, f"{self._texts[key]} ({count} of {self._n_batches} batches were so)")
                    return


def _phrase(name: str, now: float, target: float) -> str:
    """Say how to change an option; empty if its bounds allow no change in that direction."""
    spelling, low, high = _SUGGESTED[name]
    value = min(max(target, low), high)
    if value == now or (value > now) != (target > now) or (value < now) != (target < now):
        return ""
    verb = "raise" if value > now else "lower"
    needs = " (works with --skip-ultra)" if name == "ultra_thresh" else ""
    return f"{verb} {spelling} from {_as_typed(name, now)} to {_as_typed(name, value)}{needs}"


def _as_typed(name: str, value: float) -> str:
    return f"{value / 1e6:.10g}M" if name == "max_bases" else f"{value:.10g}"


def _two_digits(value: float) -> int:
    """Round down to two significant digits."""
    unit = 10 ** max(len(str(int(value))) - 2, 0)
    return int(value) // unit * unit


def _up(value: float, decimals: int) -> float:
    return -_down(-value, decimals)


def _down(value: float, decimals: int) -> float:
    scale = 10**decimals
    return math.floor(value * scale + _BIT) / scale if math.isfinite(value) else value
