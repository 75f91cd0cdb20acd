"""Slurm script for the parts of a plan."""

import shlex

import numpy as np

from f5py.errors import UsageError
from f5py.runs.parts.plan import Plan

#: Jobs of an array that any Slurm takes.
_MOST_JOBS = 1000


def slurm_script(plan: Plan, numbers: list[int], threads: int, at_a_time: int | None, program: str) -> str:
    """Return the script of a job array for some parts.

    Raises `UsageError` if no script can name the folder of the plan.
    """
    per_job = -(-len(plan) // _MOST_JOBS)
    jobs = _ranges(sorted({number // per_job for number in numbers}))
    if not str(plan.folder).isprintable():
        raise UsageError(f"{str(plan.folder)!r}: a script cannot name a folder with control characters; rename it")
    folder = shlex.quote(str(plan.folder))
    log = shlex.quote(str(plan.folder).replace("%", "%%") + "/slurm-%A_%a.log")
    last = f"$(( last < {len(plan) - 1} ? last : {len(plan) - 1} ))"
    return f"""#!/bin/bash
#SBATCH --job-name=f5py
#SBATCH --array={jobs}{f"%{at_a_time}" if at_a_time else ""}
#SBATCH --cpus-per-task={threads}
#SBATCH --requeue
#SBATCH --output={log}
# Add what your cluster needs, such as --account, --partition, --time, --mem and --gres=gpu:1. When all jobs are done:
#   {program} finish {folder}
# To submit both: sbatch --dependency=afterok:"$(sbatch --parsable THIS_SCRIPT)" --wrap "{program} finish {folder}"
set -eu
first=$(( SLURM_ARRAY_TASK_ID * {per_job} ))
last=$(( first + {per_job - 1} ))
{program} run-part {folder} "$first-{last}" -t "$SLURM_CPUS_PER_TASK"
"""


def _ranges(numbers: list[int]) -> str:
    """Format ascending numbers as Slurm ranges: 0-3,7."""
    ascending = np.array(numbers)
    breaks = np.flatnonzero(np.diff(ascending) != 1) + 1
    runs = [(run[0], run[-1]) for run in np.split(ascending, breaks)]
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in runs)
