"""``f5py compile``: compile ahead of the first run."""

from __future__ import annotations

import os

from f5py.cli.demo import run_step
from f5py.io.files.disk import temporary_folder
from f5py.options.machine_commands import CompileOptions

_SIZE = "--genome-length 3K -n 6 --median-length 1K --haplotypes"


def run(chosen: CompileOptions) -> None:
    """Compile all that most runs need, for this processor and for GPUs that need not be there.

    Raises
    ------
    GpuUnavailableError
        Kernels are asked for, and CuPy or the compiler is missing.
    F5pyError
        A run on a few reads fails.
    """
    from f5py.messages import console
    from f5py.runs.compile_ahead import compile_everything

    capabilities = chosen.capabilities()
    if capabilities:
        from f5py.compute.gpu.sources import compile_for

        for capability in capabilities:
            compile_for(capability)
            console.note("compile", f"kernels for compute capability {capability[:-1]}.{capability[-1]} compiled")
    compile_everything()
    with temporary_folder("f5py-compile-") as folder:
        for signal_format in ("fast5", "blow5"):
            _small_runs(os.path.join(folder, signal_format), signal_format)
    console.note("compile", "compiled for this processor; the code is kept for the runs that follow")


def _small_runs(folder: str, signal_format: str) -> None:
    """Let commands work on a few reads, so that what reads and writes is compiled, too."""
    at = {name: os.path.join(folder, name) for name in ("reads.fastq", "reads.bam", "ref.fa", "calls.tsv.gz", "out")}
    kind, signals = (
        ("--slow5", os.path.join(folder, "reads.blow5"))
        if signal_format == "blow5"
        else ("--fast5", os.path.join(folder, "fast5"))
    )
    inputs = ["-r", at["reads.fastq"], "-b", at["reads.bam"], "-g", at["ref.fa"], kind, signals, "--gpu", "off"]
    steps = {
        "simulate": ["-o", folder, "--format", signal_format, *_SIZE.split()],
        "map": [at["ref.fa"], at["reads.fastq"], "-o", f"{at['out']}.bam", "--gpu", "off"],
        "call-methylation": [
            *inputs, "-o", at["calls.tsv.gz"], "--modbam", f"{at['out']}.mod.bam", "--bedmethyl", f"{at['out']}.bed.gz",
        ],
        "meth-freq": ["-s", "-i", at["calls.tsv.gz"], "-o", f"{at['out']}.freq.tsv"],
        "eventalign": [*inputs, "-o", f"{at['out']}.events.tsv"],
        "resquiggle": [at["reads.fastq"], signals, "-o", f"{at['out']}.moves.tsv", "--gpu", "off"],
    }  # fmt: skip
    for name, arguments in steps.items():
        run_step(name, arguments, who="compile")
