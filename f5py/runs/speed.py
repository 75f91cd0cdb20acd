"""Advice on the bottleneck of a run."""

from __future__ import annotations

import importlib.util

from f5py.compute.gpu.device import is_present
from f5py.core.wait_times import WaitTimes
from f5py.options.cores import usable_cores
from f5py.options.shared import AlignmentOptions

#: Shorter runs are not worth a word.
_SECONDS = 5.0


def advice(options: AlignmentOptions, waits: WaitTimes, signal_kind: str) -> str:
    """Return the option that would speed up the next run, in one line, or "".

    Parameters
    ----------
    signal_kind : str
        Format of the signals.
    """
    if waits.total < _SECONDS or not waits.bound:
        return ""
    change = _change(options, waits.bound, signal_kind)
    share = getattr(waits, waits.bound) / waits.total
    return f"the run has waited for {waits.bound} {share:.0%} of the time; {change}" if change else ""


def _change(options: AlignmentOptions, bound: str, signal_kind: str) -> str:
    cores = usable_cores()
    more_threads = f"raise -t from {options.threads} to {cores}" if options.threads < cores else ""
    if bound == "loading":
        if signal_kind == "fast5" and options.iop is not None and options.iop < cores:
            return f"raise --iop from {options.iop} to {cores}"
        return more_threads
    if bound == "computing":
        has_gpu = is_present() and importlib.util.find_spec("cupy") is not None
        return "leave out --gpu off" if options.gpu_use == "off" and has_gpu else more_threads
    return more_threads if options.output.endswith((".gz", ".parquet")) else ""
