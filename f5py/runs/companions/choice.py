"""Choice of how many processes a run has."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from f5py.compute.alignment import starts_gpu_at_once
from f5py.compute.gpu.device import n_devices_likely
from f5py.compute.gpu.opening import may_be_there
from f5py.io.remote import is_url
from f5py.options.gpu import device_numbers
from f5py.options.input_names import SEQUENCE_SUFFIX
from f5py.runs.recipe import MappedReadsRecipe, Recipe


def options_of_processes(recipe: Recipe, options: Any) -> list[Any]:
    """Return the options of each process of a run, the first of which is this one; none if it is the only one.

    With several GPUs each has a process of its own, as one of them is faster than the interpreter of a process, and
    its share of the threads. Inputs that only one process can read are left to one.
    """
    if not isinstance(recipe, MappedReadsRecipe) or not _can_be_opened_twice(options):
        return []
    devices = _devices(options)
    if len(devices) < 2 or not starts_gpu_at_once(options):
        return []
    share, left = divmod(options.threads, len(devices))
    return [
        replace(options, cuda_dev_id=str(number), threads=max(share + (i < left), 1))
        for i, number in enumerate(devices)
    ]


def _devices(options: Any) -> list[int]:
    """Return the numbers of the GPUs that a run may use, as far as can be told without their libraries."""
    if not may_be_there(options):
        return []
    numbers = device_numbers(options.cuda_dev_id)
    return list(range(n_devices_likely())) if numbers is None else numbers


def _can_be_opened_twice(options: Any) -> bool:
    """Return whether the inputs are files that several processes can read, and none holds all reads in memory."""
    paths = [options.bam, options.genome, options.reads, options.slow5, options.pod5, options.fast5]
    if any(is_url(path) for path in paths) or not os.path.isfile(options.bam):
        return False
    return options.reads is None or os.path.exists(options.reads + SEQUENCE_SUFFIX)
