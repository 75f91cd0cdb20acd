"""Check of GPUs: ``f5py gpu-check``."""

import time
from collections.abc import Callable
from functools import partial

from f5py.compute.gpu.device import GpuDevice, GpuUnavailableError, count_devices, open_device, remedy, versions
from f5py.compute.gpu.self_check import without_cache
from f5py.core.batch import ReadBatch
from f5py.errors import F5pyError
from f5py.mapping import gpu_checks
from f5py.options.cores import usable_cores
from f5py.options.shared import device_numbers
from f5py.options.table_commands import GpuCheckOptions
from f5py.threads.pool import WorkerPool

#: Most bases of what is computed for a trial; the memory that is taken follows from it.
_BASES = 20_000
_GIB = 2**30


def run(options: GpuCheckOptions) -> None:
    """Print the GPUs, and the result of a trial of every kernel on each.

    Raises `GpuUnavailableError` without a GPU or CuPy, `F5pyError` if one fails or differs from the CPU, after all were
    tried.
    """
    n_devices = count_devices()
    for name, version in versions().items():
        _say(f"{name}: {version}")
    numbers = device_numbers(options.cuda_dev_id)
    pool = WorkerPool(min(usable_cores(), 2))
    try:
        problems = [
            f"GPU {number}: {problem}"
            for number in (range(n_devices) if numbers is None else numbers)
            for problem in _check(number, pool)
        ]
    finally:
        pool.close()
    if problems:
        raise F5pyError("; ".join(problems))


def _say(text: str) -> None:
    print(text, flush=True)


def _check(number: int, pool: WorkerPool) -> list[str]:
    """Describe a device and try it; return its problems."""
    try:
        device = open_device(number)
    except GpuUnavailableError as problem:
        _say(f"GPU {number}: cannot be used")
        return [str(problem)]
    _say(
        f"GPU {number}: {device.name}, compute capability {'.'.join(map(str, device.compute_capability))}, "
        f"{device.free_memory / _GIB:.1f} GiB free of {device.total_memory / _GIB:.1f} GiB"
        f"{', shared with the host' if device.integrated else ''}"
    )
    problems = []
    for name, check in (_CHECKS | gpu_checks()).items():
        started = time.perf_counter()
        try:
            with without_cache():
                check(device, pool)
        except Exception as problem:  # cupy and what it loads raise all kinds of them
            _say(f"GPU {number}: {name}: failed")
            problems.append(f"{name}: {remedy(problem)}")
        else:
            seconds = time.perf_counter() - started
            _say(f"GPU {number}: {name}: the CPU's numbers to the last bit ({seconds:.1f} s with compilation)")
    return problems


def _signals(device: GpuDevice, pool: WorkerPool, results: str, finish: Callable[..., float]) -> None:
    """Make a backend, which checks itself by a small batch."""
    from f5py.compute.chemistry import R9_DNA
    from f5py.compute.cpu import SignalStages, StageTimes
    from f5py.compute.gpu.backend import GpuBackend, GpuLimits

    stages = SignalStages(
        R9_DNA.event_parameters, False, R9_DNA.nucleotide_model(None), pool, StageTimes(pool.n_threads),
        results=results, finish=finish,
    )  # fmt: skip
    GpuBackend(device, stages, GpuLimits(), max_reads=1, max_bases=_BASES).close()


def _calls(device: GpuDevice, pool: WorkerPool, per_site: bool = False) -> None:
    from f5py.core.motifs import motif_named
    from f5py.core.noise import OF_PORES
    from f5py.methylation.calls import call_methylation
    from f5py.pore_model import builtin

    motif = motif_named("cpg")
    assert motif.model is not None
    model = builtin(motif.model)
    for noise in (None, OF_PORES["r9"]):

        def finish(batch: ReadBatch, share, noise=noise) -> float:
            return call_methylation(batch, motif, model, pool, per_site, elsewhere=share, noise=noise)

        _signals(device, pool, "sites" if per_site else "calls", finish)


def _rows(device: GpuDevice, pool: WorkerPool) -> None:
    from f5py.compute.chemistry import R9_DNA
    from f5py.event_alignment.align import align_events

    model = R9_DNA.nucleotide_model(None)
    _signals(device, pool, "rows", lambda batch, share: align_events(batch, model, pool, None, share))


#: Trials by name: each raises if the device differs from the CPU.
_CHECKS: dict[str, Callable[[GpuDevice, WorkerPool], None]] = {
    "events, alignment and calls": _calls,
    "events, alignment and calls of single sites": partial(_calls, per_site=True),
    "events and their rows on the reference": _rows,
}
