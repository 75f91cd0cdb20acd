"""Signals of reads that dorado has split from others: pieces of the signals that the sequencer recorded.

When dorado finds several molecules in one recorded read, it gives each part a new name, which the signal files do not
know. Its alignment records say where the part comes from:

* ``pi:Z``, the name of the parent, the read as recorded;
* ``sp:i``, where in the parent's samples the part starts;
* ``ns:i``, the number of samples of the part; ``ts:i`` of them are adapter at its start and belong to its signal.

So the signal of the part is ``parent[sp : sp + ns]``. Source: dorado, documentation/SAM.md, "Split Read Tags", and the
developers' answer in nanoporetech/dorado issue 1613. As said there, versions before 2.1.0 count `sp` from where they
have trimmed the parent, some samples too early, which an alignment of events does not mind.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from f5py.core.offsets import offsets_of
from f5py.io.signals.source import SignalBlock, SignalSource
from f5py.messages.strict import input_warning
from f5py.threads.pool import CallingThread

#: In the place of a start: the record names a parent, but does not say where in it the read is.
UNKNOWN_START = -1
#: Names of the two strands of a molecule, which are UUIDs, with a semicolon between.
_DUPLEX = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12};[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
#: In the place of a number of samples: all from the start to the end of the parent.
TO_THE_END = -1


def fetch_split(
    source: SignalSource,
    names: Sequence[str],
    parents: Sequence[str],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> SignalBlock:
    """Read the signals of reads of which some are parts of others.

    A read that the source has under its own name is taken whole, also if it has a parent: its signal has been split
    too. Every parent is read once, however many parts of it are asked for.

    Parameters
    ----------
    names : sequence of str, length n
    parents : sequence of str, length n
        Name of the parent; "" where the read is no split read.
    starts, lengths : int64, shape (n,)
        In samples of the parent; `UNKNOWN_START` and `TO_THE_END` where the tag is missing.

    Returns
    -------
    SignalBlock
        Of the named reads, with the calibration of the parents. A part that ends beyond its parent is cut there, with
        a warning. One whose parent is missing or unreadable, or that does not begin within it, is in ``problems``.
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
    calibration, of_whole = own.calibration(), whole.calibration()
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
        calibration[:, i] = of_whole[:, at]
        calibration[-1, i] += start / whole.sampling_rate[at]  # it starts later than its parent

    if n_cut:
        input_warning(
            "read_signals",
            f"{n_cut} of {len(parts)} split reads of a batch end beyond their parents' last samples, as dorado 0.5.0 "
            "to 0.5.3 write them; they are cut there",
            "split reads that are too long",
        )
    offsets = offsets_of(n_samples)
    samples = np.empty(offsets[-1], np.int16)
    for i in range(len(names)):  # only where there are split reads
        origin = own.samples if of_parent[i] < 0 else whole.samples
        samples[offsets[i] : offsets[i + 1]] = origin[begins[i] : begins[i] + n_samples[i]]
    return SignalBlock.from_calibration(samples, offsets, calibration, problems)


def name_duplex_reads(block: SignalBlock, names: Sequence[str]) -> SignalBlock:
    """Call reads of a block that have no signal duplex reads, where their names say so; return the block.

    The basecaller makes a duplex read of the two strands of a molecule, and calls it by the names of both.
    """
    for i in block.problems:
        if _DUPLEX.fullmatch(names[i]):
            block.problems[i] = (
                f"read {names[i]} is a duplex read, which has no signal of its own: the reads of its two strands have; "
                "use the simplex reads (without dx:i:1)"
            )
    return block


def _why_not(name: str, parent: str, start: int, length: int, available: int, of_parent: str | None) -> str | None:
    """Say why the part cannot be had, or None if it can."""
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
