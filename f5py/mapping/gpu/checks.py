"""Checks of a GPU's mapping kernels: each raises if the results of device and CPU differ."""

from collections.abc import Callable

from f5py.compute.gpu.device import GpuDevice
from f5py.mapping.darwin.darwin_settings import DarwinSettings, darwin_integers
from f5py.mapping.gpu.backend import GpuMapping
from f5py.mapping.gpu.mems import GpuMems
from f5py.mapping.gpu.seeds import trial_reads
from f5py.mapping.gpu.tiles import GpuTiles, trial_extensions
from f5py.mapping.mem.fm_index import build_fm_index
from f5py.mapping.mem.mem_seeds import MemSearch
from f5py.mapping.settings import PRESETS, parameters
from f5py.threads.pool import WorkerPool

#: Most bases of a batch; the memory that is taken follows from it.
_BASES = 20_000


def check_chains_and_alignments(device: GpuDevice, pool: WorkerPool) -> None:
    """Seed, chain and align simulated reads."""
    numbers = parameters(PRESETS["map-ont"], 10)
    index, _ = trial_reads(numbers, pool)
    GpuMapping(device, index, numbers, pool, _BASES).close()


def check_exact_matches(device: GpuDevice, pool: WorkerPool) -> None:
    """Find maximal exact matches of made-up reads."""
    _, targets = trial_extensions()
    fm_index = build_fm_index(*targets, pool, 17)
    search = MemSearch(fm_index, targets.offsets, 17, parameters(PRESETS["map-ont"], 10))
    GpuMems(device, search, targets.bases, pool, _BASES).close()


def check_tiles(device: GpuDevice, pool: WorkerPool) -> None:
    """Align made-up reads in tiles."""
    _, targets = trial_extensions()
    GpuTiles(device, targets, darwin_integers(DarwinSettings(), 14, (1, -1, -1, -1), 0), pool, _BASES).close()


CHECKS: dict[str, Callable[[GpuDevice, WorkerPool], None]] = {
    "chains and alignments of map": check_chains_and_alignments,
    "exact matches of map": check_exact_matches,
    "tiles of map": check_tiles,
}
