"""Parts of a plan, and their end: ``f5py run-part`` and ``f5py finish``."""

from __future__ import annotations

from dataclasses import replace

from f5py.commands.call_methylation import CALL_METHYLATION
from f5py.commands.eventalign import EVENTALIGN
from f5py.compute.diagnosis import RunCounts
from f5py.io.files.disk import working_folder
from f5py.options.signal_commands import FinishOptions, RunPartOptions
from f5py.runs import in_parts
from f5py.runs.finish import finish as finish_plan
from f5py.runs.parts.plan import Plan
from f5py.runs.recipe import MappedReadsRecipe

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
