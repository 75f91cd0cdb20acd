"""Working on parts of a plan, and their end: what ``f5py run-part`` and ``f5py finish`` do."""

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
    """Work on some parts of a plan: those that are named, or all that are not done.

    Raises `F5pyError` for anything wrong with the options, the input or the output. Parts that are done stay so.
    """
    plan = _plan(options.plan)
    in_parts.run_part(options, _RECIPES[plan.command], plan)


def finish(options: FinishOptions) -> RunCounts:
    """Write the outputs of a plan whose parts are all done.

    Raises `F5pyError` if a part is not done or damaged, an input has changed, or an output cannot be written.
    """
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
