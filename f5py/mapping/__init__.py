"""Read mapping as in minimap2 2.24, or as in Darwin: the public interface of the mapper.

The rest of the package imports from here only. Everything that computes is imported when it is called.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from f5py.errors import InputFileError
from f5py.mapping.options import MapOptions

if TYPE_CHECKING:
    from f5py.compute.gpu.device import GpuDevice
    from f5py.io.reads.indexed_fasta import SequenceSource
    from f5py.mapping.run.flow import MapCounts
    from f5py.mapping.run.map_reads import MappingReference
    from f5py.threads.pool import WorkerPool

__all__ = ["MapCounts", "MapOptions", "MappingReference"]


def map_command(options: MapOptions) -> MapCounts:
    """Run ``f5py map``. Raises `F5pyError` for anything wrong with the options, the input or the output."""
    from f5py.mapping.command import run

    return run(options)


def map_reads(options: MapOptions, reference: MappingReference | None = None) -> MapCounts:
    """Map the reads, and write them and the report; see `f5py.mapping.run.map_reads.map_reads`."""
    from f5py.mapping.run import map_reads as whole

    return whole.map_reads(options, reference)


def load_reference(options: MapOptions) -> MappingReference:
    """Load a reference for several calls of `map_reads`; see `f5py.mapping.run.map_reads.load_reference`."""
    from f5py.mapping.run import map_reads as whole

    return whole.load_reference(options)


def open_index_bases(path: str, n_threads: int) -> SequenceSource | None:
    """Open the bases of an index that ``f5py map -d`` has written; None for a file that is no index.

    Raises `InputFileError` if it is damaged, or an index of another version or program.
    """
    from f5py.mapping.index_file import IndexBases

    return IndexBases(path, n_threads) if is_index(path) else None


def is_index(path: str) -> bool:
    """Return whether a file is an index that ``f5py map -d`` has written, as its beginning says.

    Raises `InputFileError` if it is one of another version or program.
    """
    from f5py.mapping.index_file import index_writer

    writer = index_writer(path)
    if writer == "minimap2":
        converted = f"f5py map {path} -d {os.path.splitext(path)[0]}.f5i"
        raise InputFileError(f"{path}: is minimap2's index; make one of f5py of it with {converted}")
    return writer == "f5py"


def compiled_stages() -> dict[str, Callable[[], object]]:
    """Return the stages that can be compiled ahead; see `f5py.jit.warm_up.Stages`."""
    from f5py.mapping.run.compiled_stages import STAGES

    return STAGES


def gpu_checks() -> dict[str, Callable[[GpuDevice, WorkerPool], None]]:
    """Return checks of the kernels by name: each raises if the results of device and CPU differ."""
    from f5py.mapping.gpu.checks import CHECKS

    return CHECKS
