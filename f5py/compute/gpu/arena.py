"""GPU memory of a run: its size and layout.

Memory is allocated once and reused by every batch. A batch of X bases has Y = mu * X events and Z = nu * X samples.
With C_R bytes per base, C_E per event, C_S per sample and M bytes of memory, X = M / (C_R + mu * C_E + nu * C_S)
(equations 1 to 4 of Gamaarachchi et al., BMC Bioinformatics 21:343, 2020, extended to samples).
"""

from dataclasses import dataclass

# Bytes of each array per element; a read of b bases and e events has about b + e bands.
_BASE_LETTER = 1
_KMER_ENTRY = 16
_MAP_ENTRY = 4
_EVENT_MEAN = 4
_EVENT_REST = 12  # start, length and standard deviation
_SAMPLE = 2
_INT = 4
#: Bytes of all arrays with an element per read.
_READ = 108
#: With room for what follows: reference bases per base (deletions make segments longer), and further bytes of a read.
_REFERENCE, _FURTHER_READ = 1.25, 76
#: With room for scores: groups per base, and bytes of a group.
_GROUPS, _GROUP = 1 / 8, 38
#: With room for the scores of sites: sites per base, bytes of a site and of its window, and further ones of a read.
_SITES, _SITE, _SITE_READ = 1 / 8, 20 + (36 + 36) / 2, 8
#: With room for rows: operations of CIGARs per base and bytes of one, and bytes of a row.
_CIGARS, _CIGAR, _ROW = 0.75, 4, 9
#: Directions of one band for W = 100: 32 lanes, one byte each.
BAND_BYTES = 32
#: Bytes of an event before all events of a read are known; these arrays lie in the memory of the directions.
_SLOT = 12

#: So many bases have the bytes of each as their mean, whatever is rounded.
_MANY = 1 << 24
#: Share of the free memory to take.
DISCRETE_FRACTION = 0.9
INTEGRATED_FRACTION = 0.7

#: Parts of the arena, in each of which a batch can be: a batch takes at least as long as its longest read, during which
#: most of a large GPU is idle. One more part for the batch that is packed or unpacked; for single sites, whose kernels
#: take as long as all others together, another one.
_PARTS, _SITE_PARTS, _INTEGRATED_PARTS = 3, 4, 2


def parts_for(results: str, integrated: bool = False) -> int:
    """Return the number of arena parts for the results; see `f5py.compute.cpu.SignalStages`."""
    if integrated:  # memory is scarce there
        return _INTEGRATED_PARTS
    return _SITE_PARTS if results == "sites" else _PARTS


@dataclass(frozen=True)
class ArenaSize:
    """Capacity of one part of the arena."""

    # bases, events, reads, samples: X, Y, the number of reads and Z per part
    bases: int
    events: int
    reads: int
    samples: int = 0
    means_only: bool = True  # of the events only the means are kept
    # scores, rows, site_scores: there is room for site groups, for the alignment of events to the reference, and
    # for the sites of groups
    scores: bool = False
    rows: bool = False
    site_scores: bool = False

    @property
    def trace_words(self) -> int:
        """32-bit words of band directions."""
        return trace_words(self.bases, self.events, self.reads)

    @property
    def slots(self) -> int:
        """Capacity for events while they are being detected."""
        return self.trace_words * _INT // _SLOT

    @property
    def references(self) -> int:
        """Capacity for reference bases."""
        return int(_REFERENCE * self.bases) if self.scores or self.rows else 0

    @property
    def cigars(self) -> int:
        """Capacity for CIGAR operations."""
        return int(_CIGARS * self.bases) if self.rows else 0

    @property
    def groups(self) -> int:
        """Site groups scored at once."""
        return int(_GROUPS * self.bases) // 16 * 16 + 16 if self.scores else 0

    @property
    def sites(self) -> int:
        """Sites of multi-site groups scored at once; a window has fewer than 256."""
        return int(_SITES * self.bases) + 256 if self.site_scores else 0

    @property
    def device_bytes(self) -> int:
        """Bytes of GPU memory of one part."""
        return (
            self.bases * (_BASE_LETTER + _KMER_ENTRY + 2 * _MAP_ENTRY)
            + self.events * (_EVENT_MEAN + (0 if self.means_only else _EVENT_REST))
            + self.samples * _SAMPLE
            + self.trace_words * _INT
            + (self.reads + 1) * (_READ + (_FURTHER_READ if self.scores or self.rows else 0))
            + self.references
            + self.groups * _GROUP
            + int(self.sites * _SITE)
            + (self.reads * _SITE_READ if self.site_scores else 0)
            + self.cigars * _CIGAR
            + (self.events * _ROW if self.rows else 0)
        )


@dataclass(frozen=True)
class Density:
    """Memory per base."""

    events: float  # mu, the option ``--cuda-avg-epk``
    samples: float  # nu
    # means_only, scores, rows, site_scores: see `ArenaSize`
    means_only: bool = True
    scores: bool = False
    rows: bool = False
    site_scores: bool = False

    @property
    def bytes_per_base(self) -> float:
        """C_R + mu * C_E + nu * C_S of one part."""
        return (self.size(_MANY, 0).device_bytes - self.size(0, 0).device_bytes) / _MANY

    def size(self, bases: int, reads: int) -> ArenaSize:
        """Return the size of a part for so many bases and reads."""
        events, samples = int(bases * self.events), int(bases * self.samples)
        return ArenaSize(bases, events, reads, samples, self.means_only, self.scores, self.rows, self.site_scores)


def trace_words(bases: int, events: int, reads: int, pack: int = 4, words: int = 1) -> int:
    """Return the 32-bit words of the directions of all reads, in the layout of ``abea.cuh``."""
    return ((bases + events) // pack + 3 * reads + 1) * words * BAND_BYTES


def capacity(memory: float, density: Density, reads: int, parts: int) -> ArenaSize:
    """Return the size of each of `parts` equal parts that fill `memory` bytes."""
    fixed = density.size(0, reads).device_bytes
    return density.size(max(int((memory / parts - fixed) / density.bytes_per_base), 0), reads)


def memory_fraction(requested: float | None, integrated: bool) -> float:
    """Return the fraction of free memory to use; values outside 0 to 1 mean the default, as in f5c."""
    if requested is not None and 0 < requested < 1:
        return requested
    return INTEGRATED_FRACTION if integrated else DISCRETE_FRACTION


def reclaimable_memory(meminfo: str) -> int:
    """Parse page cache and buffers, in bytes, from /proc/meminfo; an integrated GPU can use them."""
    total = 0
    for line in meminfo.splitlines():
        name, _, rest = line.partition(":")
        if name in ("Cached", "Buffers"):
            total += int(rest.split()[0]) * 1024
    return total
