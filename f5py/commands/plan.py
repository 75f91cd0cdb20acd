"""Plans of runs in parts, and their parts: ``f5py plan``, ``f5py run-part`` and ``f5py finish``."""

import heapq
import os
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.commands.call_methylation import CALL_METHYLATION
from f5py.commands.eventalign import EVENTALIGN
from f5py.compute.diagnosis import RunCounts
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_records import fixed_numbers
from f5py.io.bam.record_ranges import range_sizes
from f5py.io.files.complete_file import complete_text_output
from f5py.io.files.disk import working_folder
from f5py.options.signal_commands import FinishOptions, PlanOptions, RunPartOptions
from f5py.runs import in_parts
from f5py.runs.clusters.slurm import slurm_script
from f5py.runs.finish import finish as finish_plan
from f5py.runs.parts.done_part import read_part
from f5py.runs.parts.plan import Plan
from f5py.runs.recipe import MappedReadsRecipe

_SHOWN = 8


def run(options: PlanOptions) -> str:
    """Write state, estimate or Slurm script; return the text. Raises `F5pyError`."""
    plan = _plan(options.plan)
    if options.print_slurm:
        text = slurm_script(plan, plan.unfinished() or list(range(len(plan))), plan.options["threads"], None, "f5py")
    else:
        text = "\n".join(_state(plan) + (_estimate(plan, options) if options.estimate else [])) + "\n"
    with complete_text_output(options.output, 1) as out:
        out.write(text.encode())
    return text


def _state(plan: Plan) -> list[str]:
    missing = plan.unfinished()
    lines = [f"command\t{plan.command}", f"parts\t{len(plan)}", f"done\t{len(plan) - len(missing)}"]
    if missing:
        shown = " ".join(map(str, missing[:_SHOWN])) + (" ..." if len(missing) > _SHOWN else "")
        lines.append(f"not done\t{len(missing)}: {shown}")
    return lines


def _estimate(plan: Plan, options: PlanOptions) -> list[str]:
    """Estimate time, memory, disk space and cost from the parts that are done, or from a given speed."""
    n_bytes = next((about["bytes"] for path, about in plan.inputs.items() if path == plan.options["bam"]), 0)
    size = range_sizes(plan.ranges, n_bytes)
    done = [number for number in range(len(plan)) if plan.is_done(number)]
    known = [read_part(plan, number) for number in done]
    bases = sum(about.outcome.counts.bases for about in known)
    seconds = sum(about.seconds for about in known)
    if bases:
        per_byte, how = bases / max(size[done].sum(), 1), f"measured, {len(done)} parts"
    else:
        per_byte, how = _bases_per_byte(plan), "bases in the first records of the alignments"
    speed = options.speed * 1e6 if options.speed is not None else bases / seconds if bases and seconds else None
    rest = np.array(plan.unfinished(), np.int64)
    n_bases = size[rest] * per_byte
    lines = [f"Mbases to do\t{n_bases.sum() / 1e6:.4g} ({how})"]
    if speed is None:
        return [*lines, "time\tnot known: no part with reads is done; run one, or give --speed"]
    of_part = n_bases / speed
    how = f"as given, {options.speed:g}" if options.speed is not None else f"measured, {speed / 1e6:.2f}"
    wall = _makespan(of_part, options.jobs) / 3600.0
    lines += [
        f"Mbases in a second, of a job\t{how}",
        f"seconds of a part\t{_spread(of_part)}",
        f"hours of {options.jobs} job{'s' if options.jobs > 1 else ''}\t{wall:.4g}",
        f"hours of a processor\t{of_part.sum() / 3600.0 * plan.options['threads']:.4g} ({plan.options['threads']} "
        "threads in a job)",
    ]
    if options.price is not None:
        lines.append(f"price\t{of_part.sum() / 3600.0 * options.price:.2f}")
    if known:
        room = sum(sum(n_bytes for n_bytes, _ in about.files.values()) for about in known)
        room += sum(about.table.end - about.table.begin for about in known)
        total = room * size.sum() / max(size[done].sum(), 1)
        lines.append(f"GB of memory of a job\t{max(about.peak_bytes for about in known) / 1e9:.2f} (measured)")
        lines.append(f"GB of room for all parts\t{total / 1e9:.2f} (by those that are done), and as much at the end")
    return lines


def _makespan(seconds: NDArray[np.float64], n_jobs: int) -> float:
    """Compute when the last part is done if every job that becomes free takes the next part."""
    ends = [0.0] * min(n_jobs, max(len(seconds), 1))
    for one in seconds.tolist():
        heapq.heapreplace(ends, ends[0] + one)
    return max(ends)


def _spread(values: NDArray[np.float64]) -> str:
    if not len(values):
        return "none to do"
    return f"{values.min():.3g} to {values.max():.3g}, {np.median(values):.3g} in the middle"


def _bases_per_byte(plan: Plan) -> float:
    """Bases for each byte of the alignment file, by its first records."""
    from f5py.io.bam._bam_numba import N_BASES

    given: dict[str, Any] = plan.options
    with working_folder(plan.working_folder):
        file = AlignmentFile(given["bam"], given["genome"], given["min_mapq"], given["secondary"])
        try:
            with closing(file.chunks()) as chunks:
                for data, starts, n in chunks:
                    bases = fixed_numbers(data, starts[:n], N_BASES, np.int32).sum()
                    size = os.path.getsize(given["bam"])
                    if (n_records := plan.ranges[-1].end) is not None:
                        return float(bases) / n * n_records / size
                    return float(bases) / min(size, 1 << 20)
        finally:
            file.close()
    return 0.0


_RECIPES: dict[str, MappedReadsRecipe] = {recipe.command: recipe for recipe in (CALL_METHYLATION, EVENTALIGN)}


def run_part(options: RunPartOptions) -> None:
    """Complete the named parts of a plan, or all unfinished ones. Raises `F5pyError`; finished parts stay."""
    plan = _plan(options.plan)
    in_parts.run_part(options, _RECIPES[plan.command], plan)


def finish(options: FinishOptions) -> RunCounts:
    """Write the outputs of a finished plan; return the read counts by outcome. Raises `F5pyError`."""
    plan = _plan(options.plan)
    recipe = _RECIPES[plan.command]
    with working_folder(plan.working_folder):
        planned = plan.run_options()
        if options.threads is not None:
            planned = replace(planned, threads=options.threads)
        counts = finish_plan(planned, recipe, plan)
    if options.remove:
        plan.remove_parts()
    return counts


def _plan(folder: str) -> Plan:
    plan = Plan.load(folder)
    plan.check_divided()
    return plan
