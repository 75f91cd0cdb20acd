"""Choice of how many processes a run has, and the start of the others before it is all imported."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from f5py.compute.gpu.device import n_devices_likely
from f5py.compute.gpu.expected_work import starts_gpu_at_once
from f5py.compute.gpu.opening import may_be_there
from f5py.io.remote import is_url
from f5py.options.gpu import device_numbers
from f5py.options.input_names import SEQUENCE_SUFFIX
from f5py.options.shared import MappedReadsOptions

if TYPE_CHECKING:
    from f5py.runs.recipe import Recipe


def companions_ahead(options: Any, module: str) -> AbstractContextManager[object]:
    """Start the other processes that a run seems to need, so that they import what this one does at the same time.

    Parameters
    ----------
    options : options of any command
    module : str
        That of the command.
    """
    devices = _devices(options) if isinstance(options, MappedReadsOptions) else []
    if not devices:
        return nullcontext()
    from f5py.io.signals.spare_processes import SpareProcesses

    return SpareProcesses(len(devices) - 1, module, "f5py.runs.companions._companion_process")


def options_of_processes(recipe: Recipe, options: Any) -> list[Any]:
    """Return the options of each process of a run, the first of which is this one; none if it is the only one.

    With several GPUs each has a process of its own, as one of them is faster than the interpreter of a process, and
    its share of the threads. Inputs that only one process can read are left to one.
    """
    from f5py.runs.recipe import MappedReadsRecipe

    if not isinstance(recipe, MappedReadsRecipe) or not (devices := _devices(options)):
        return []
    share, left = divmod(options.threads, len(devices))
    return [
        replace(options, cuda_dev_id=str(number), threads=max(share + (i < left), 1))
        for i, number in enumerate(devices)
    ]


def _devices(options: Any) -> list[int]:
    """Return the numbers of the GPUs that are to have a process each, as far as can be told without their libraries."""
    if not may_be_there(options) or not _can_be_opened_twice(options):
        return []
    numbers = device_numbers(options.cuda_dev_id)
    devices = list(range(n_devices_likely())) if numbers is None else numbers
    return devices if len(devices) > 1 and starts_gpu_at_once(options) else []


def _can_be_opened_twice(options: Any) -> bool:
    """Return whether the inputs are files that several processes can read, and none holds all reads in memory."""
    paths = [options.bam, options.genome, options.reads, options.slow5, options.pod5, options.fast5]
    if any(is_url(path) for path in paths) or options.bam is None or not os.path.isfile(options.bam):
        return False
    return options.reads is None or os.path.exists(options.reads + SEQUENCE_SUFFIX)
