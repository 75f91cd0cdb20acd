"""Expected work of a run, estimated from file sizes."""

import os

from f5py.io.signals.search import walk_folder
from f5py.options.shared import SIGNALS, AlignmentOptions

_Rates = dict[tuple[str, ...], float]
#: Bases per byte of a file, at most, by the ends of its name. Compressed reads have qualities, or not, and those that
#: lie close together have the same bases again; of signals the samples count, of which DNA has about ten per base.
_OF_READS: _Rates = {
    (".fastq.gz", ".fq.gz"): 1.3, (".gz", ".bgz"): 4.0, (".fastq", ".fq"): 0.5, (".bam",): 9.0, (".cram",): 9.0,
    (".sam",): 0.5, ("",): 1.0,
}  # fmt: skip
_OF_SIGNALS: _Rates = {(".fast5",): 0.12, (".slow5",): 0.03, ("",): 0.16}
#: Seconds that a core takes for a base.
_CORE_SECONDS = 0.5e-6
#: Of that, what a run for the calls of single sites takes.
_OF_SITES = 1.7
#: A GPU is started at once if the CPU threads would need so many seconds, which is how long its start takes.
_WORTH_A_START = 0.9
#: Files of a folder that are looked at; of more their number is believed.
_MOST_FILES = 2000


def starts_gpu_at_once(options: AlignmentOptions, of_all: bool = True) -> bool:
    """Return whether a run with GPUs should start them immediately, by its options and input sizes.

    The run covers the whole input with `of_all`.
    """
    return options.gpu_use == "on" or (of_all and is_worth_a_start(seconds_of_threads(options)))


def is_worth_a_start(seconds: float | None) -> bool:
    """Return whether work of so many CPU seconds justifies an immediate GPU start; None: unknown."""
    return seconds is not None and seconds >= _WORTH_A_START


def seconds_of_threads(options: AlignmentOptions) -> float | None:
    """Estimate the CPU seconds of the whole run; None if unknown."""
    bases = expected_bases(options)
    for_sites = _OF_SITES if getattr(options, "per_site", False) else 1.0
    return None if bases is None else bases * _CORE_SECONDS * for_sites / options.threads


def expected_bases(options: AlignmentOptions) -> float | None:
    """Estimate the bases of the reads of the whole run; None if unknown.

    The smallest input decides, as each can have more than the run uses.
    """
    if getattr(options, "window", ()):
        return None
    found = [_bases(getattr(options, name, None), _OF_READS) for name in ("reads", "bam")]
    signals = [_bases(path, _OF_SIGNALS) for name in SIGNALS for path in getattr(options, name, ())]
    if None not in signals:
        found.append(sum(bases for bases in signals if bases is not None) if signals else None)
    told = [bases for bases in found if bases is not None]
    return min(told) if told else None


def _bases(path: str | None, rates: _Rates) -> float | None:
    """Estimate the bases of the reads in a file or folder."""
    if path is None:
        return None
    if os.path.isdir(path):
        return _in_folder(path, rates)
    if not os.path.isfile(path):  # standard input, a URL
        return None
    return os.path.getsize(path) * _rate(path, rates)


def _in_folder(path: str, rates: _Rates) -> float:
    bases, n_files, n_seen = 0.0, 0, 0
    for folder, _, files in walk_folder(path, lambda problem: None):  # which is told when the signals are opened
        for file in files:
            n_files += 1
            if n_seen < _MOST_FILES:
                n_seen += 1
                name = os.path.join(folder, file)
                bases += os.path.getsize(name) * _rate(name, rates) if os.path.isfile(name) else 0.0
        if n_files > 4 * _MOST_FILES:
            break
    return bases * max(n_files, 1) / max(n_seen, 1)


def _rate(path: str, rates: _Rates) -> float:
    return next(rate for ends, rate in rates.items() if path.lower().endswith(ends))
