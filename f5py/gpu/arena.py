"""GPU memory of the aligner: how much to take, and the arrays in it.

Everything is allocated once at start-up and reused by every batch. With C_R bytes per base and C_E per event, mu
events per base and M bytes of memory, there is room for ``X = M / (C_R + mu * C_E)`` bases and ``Y = mu * X`` events
(equations 1 to 4 of Gamaarachchi et al., BMC Bioinformatics 21:343, 2020, with this layout's constants).
"""

from __future__ import annotations

from dataclasses import dataclass

# Bytes of each array per element; a read of b bases and e events has about b + e bands.
_BASE_LETTER = 1
_KMER_ENTRY = 16
_MAP_ENTRY = 4
_EVENT_MEAN = 4
_FLOAT = 4
_INT = 4
_OFFSET = 8
#: Directions of one band for W = 100: 32 lanes, one byte each.
BAND_BYTES = 32

#: Share of the free memory to take.
DISCRETE_FRACTION = 0.9
INTEGRATED_FRACTION = 0.7


@dataclass(frozen=True)
class ArenaSize:
    """Capacity of one half of the arena.

    Attributes
    ----------
    bases, events, reads : int
        X, Y and the number of reads per half.
    """

    bases: int
    events: int
    reads: int

    @property
    def trace_words(self) -> int:
        """32-bit words of band directions."""
        return trace_words(self.bases, self.events, self.reads)

    @property
    def device_bytes(self) -> int:
        """Bytes of GPU memory that one half takes."""
        return (
            self.bases * (_BASE_LETTER + _KMER_ENTRY + 2 * _MAP_ENTRY)
            + self.events * _EVENT_MEAN
            + self.trace_words * _INT
            + (self.reads + 1) * 2 * _OFFSET
            + self.reads * (4 * _FLOAT + 6 * _INT)
        )


def trace_words(bases: int, events: int, reads: int, pack: int = 4, words: int = 1) -> int:
    """32-bit words for the directions of reads with so many bases and events in all, as ``abea.cuh`` lays them out."""
    return ((bases + events) // pack + 3 * reads + 1) * words * BAND_BYTES


def bytes_per_base(events_per_base: float) -> float:
    """C_R + mu * C_E of one half."""
    per_base = _BASE_LETTER + _KMER_ENTRY + 2 * _MAP_ENTRY + BAND_BYTES
    per_event = _EVENT_MEAN + BAND_BYTES
    return per_base + events_per_base * per_event


def capacity(memory: float, events_per_base: float, reads: int, halves: int) -> ArenaSize:
    """Size of each half when all of `memory` bytes are used.

    Parameters
    ----------
    memory : float
        Bytes to take in all.
    events_per_base : float
        mu, the option ``--cuda-avg-epk``.
    reads : int
        Maximum number of reads in a batch.
    halves : int
        Number of equal parts, each of which holds a batch.
    """
    fixed = ArenaSize(0, 0, reads).device_bytes
    bases = max(int((memory / halves - fixed) / bytes_per_base(events_per_base)), 0)
    return ArenaSize(bases, int(events_per_base * bases), reads)


def memory_fraction(requested: float | None, integrated: bool) -> float:
    """The share of free memory to take; requests that are not between 0 and 1 mean the default, as in f5c."""
    if requested is not None and 0 < requested < 1:
        return requested
    return INTEGRATED_FRACTION if integrated else DISCRETE_FRACTION


def reclaimable_memory(meminfo: str) -> int:
    """Bytes of page cache and buffers, from the text of /proc/meminfo; an integrated GPU can have these too."""
    total = 0
    for line in meminfo.splitlines():
        name, _, rest = line.partition(":")
        if name in ("Cached", "Buffers"):
            total += int(rest.split()[0]) * 1024
    return total
