"""Signals of reads that dorado has split: slices of the recorded signals.

dorado gives each part of a split read a new name, which signal files do not know. Its alignment records have

* ``pi:Z``, the parent, which is the read as recorded;
* ``sp:i``, the first sample of the part in the parent;
* ``ns:i``, the samples of the part, including ``ts:i`` of adapter.

The part's signal is ``parent[sp : sp + ns]``. Source: dorado, documentation/SAM.md, "Split Read Tags", and
nanoporetech/dorado issue 1613, according to which versions before 2.1.0 count `sp` some samples too early.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.io.signals.source import FIELDS, SignalBlock, SignalSource
from f5py.messages.console import input_warning
from f5py.threads.pool import CallingThread

#: The tag sp is missing.
UNKNOWN_START = -1
#: Two UUIDs joined by a semicolon.
_DUPLEX = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12};[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: The tag ns is missing: the part ends with its parent.
TO_THE_END = -1
_RATE = FIELDS.index("sampling_rate")


def fetch_split(
    source: SignalSource,
    names: Sequence[str],
    parents: Sequence[str],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> SignalBlock:
    """Read the signals of reads of which some are split from others.

    A read that the source has under its own name is used whole, even with a parent. Each parent is read once. A part
    that exceeds its parent is truncated with a warning. A part with a missing parent or an impossible start is in
    ``problems``.

    Parameters
    ----------
    parents : sequence of str
        "" for reads that are not split.
    starts, lengths : int64
        In samples of the parent; `UNKNOWN_START` and `TO_THE_END` for missing tags.
    """
    own = name_duplex_reads(source.fetch(names), names)
    parts = [i for i in own.problems if parents[i]]
    if not parts:
        return own
    wanted = {parent: at for at, parent in enumerate(dict.fromkeys(parents[i] for i in parts))}
    whole = source.fetch(list(wanted))
    for block in (own, whole):
        block.expand(CallingThread())

    n_samples = np.diff(own.offsets)
    begins = own.offsets[:-1].copy()
    calibration = own.calibration.copy()
    problems = dict(own.problems)
    of_parent = np.full(len(names), -1)
    n_cut = 0
    for i in parts:
        at = wanted[parents[i]]
        available = int(whole.offsets[at + 1] - whole.offsets[at])
        start = int(starts[i])
        length = available - start if lengths[i] == TO_THE_END else int(lengths[i])
        if 0 <= start < available < start + length:
            length = available - start
            n_cut += 1
        problem = _why_not(names[i], parents[i], start, length, available, whole.problems.get(at))
        if problem is not None:
            problems[i] = problem
            continue
        del problems[i]
        of_parent[i] = at
        n_samples[i] = length
        begins[i] = whole.offsets[at] + start
        calibration[:, i] = whole.calibration[:, at]
        calibration[-1, i] += start / whole.calibration[_RATE, at]

    if n_cut:
        input_warning(
            "read_signals",
            f"{n_cut} of {len(parts)} split reads of a batch end beyond their parents' last samples, as dorado 0.5.0 "
            "to 0.5.3 write them; they are cut there",
            "split reads that are too long",
        )
    offsets = offsets_of(n_samples)
    samples = np.empty(offsets[-1], np.int16)
    for i in range(len(names)):
        origin = own.samples if of_parent[i] < 0 else whole.samples
        samples[offsets[i] : offsets[i + 1]] = origin[begins[i] : begins[i] + n_samples[i]]
    return SignalBlock(samples, offsets, calibration, problems)


def name_duplex_reads(block: SignalBlock, names: Sequence[str]) -> SignalBlock:
    """Explain in ``problems`` that duplex reads have no signal of their own; return the block."""
    for i in block.problems:
        if _DUPLEX.fullmatch(names[i]):
            block.problems[i] = (
                f"read {names[i]} is a duplex read, which has no signal of its own: the reads of its two strands have; "
                "use the simplex reads (without dx:i:1)"
            )
    return block


def _why_not(name: str, parent: str, start: int, length: int, available: int, of_parent: str | None) -> str | None:
    """Return why a part is unavailable, None if it is available."""
    if of_parent is not None:
        return f"{of_parent} (the parent of the split read {name})"
    if start == UNKNOWN_START:
        return (
            f"read {name} is split from {parent}, but its alignment record does not say where (tag sp); keep the "
            "basecaller's tags, e.g. samtools fastq -T pi,sp,ns and minimap2 -y"
        )
    if start < 0 or length <= 0 or start + length > available:
        return (
            f"read {name} is to be samples {start} to {start + length} of its parent {parent}, which has {available}; "
            "are the signals and the alignments of the same run? Some old versions of dorado wrote wrong tags"
        )
    return None
