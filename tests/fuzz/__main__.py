"""``python -m tests.fuzz``; see the package."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

from . import corpus
from .base import git_version, make_base
from .runner import GOOD, OUTCOMES, Outcome, Runner, chosen_targets, run_cases, without_gpu


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--hours", type=float, help="stop after this time")
    parser.add_argument("--cases", type=int, help="stop after so many cases")
    parser.add_argument("--seed", type=int, default=None, help="number of the first case (default: by the clock)")
    parser.add_argument("--target", action="append", help="only this input; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--report", type=Path, help="write a Markdown table of the outcomes here")
    parser.add_argument("--keep", type=Path, help="with one case: copy its folder here")
    parser.add_argument("--corpus", action="store_true", help="run all cases that failed once; --cases adds others")
    parser.add_argument("--save", action="store_true", help="with one case: put it into the corpus")
    parser.add_argument(
        "--checked", action="store_true", help="compiled code checks every index (slower; NUMBA_BOUNDSCHECK)"
    )
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.corpus:
        chosen.cases, chosen.jobs = chosen.cases or 0, 1
    elif chosen.cases is None:
        chosen.cases = 1_000_000_000
    return chosen


def _with_checks() -> None:
    """Start again with code that checks its indices, kept in a cache folder of its own."""
    if os.environ.get("NUMBA_BOUNDSCHECK") != "1":
        # not that of code without checks: each would compile anew what the other has kept
        cache = os.environ.get("NUMBA_CACHE_DIR", os.path.join(tempfile.gettempdir(), f"f5py-{os.geteuid()}"))
        os.environ |= {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": f"{cache}-checked"}
        os.execv(sys.executable, [sys.executable, "-m", "tests.fuzz", *sys.argv[1:]])


def _part(chosen: argparse.Namespace) -> list[Outcome]:
    """Run the cases of one process, those of the corpus first."""
    end = None if chosen.hours is None else time.monotonic() + 3600 * chosen.hours
    with tempfile.TemporaryDirectory(prefix="f5py-fuzz-") as folder:
        base = make_base(Path(folder) / "base")
        runner = Runner(base, Path(folder))
        kept = sorted(corpus.FOLDER.glob("*.zip")) if chosen.corpus else []
        of_kept = chosen_targets(sorted({corpus.target_of(path) for path in kept})) if kept else []
        targets = chosen_targets(chosen.target) if chosen.cases else []
        runner.prepare(list(dict.fromkeys([*of_kept, *targets])))
        outcomes = [runner.kept_case(path) for path in kept]
        for outcome in outcomes:
            print(json.dumps(vars(outcome)), flush=True)
        if chosen.keep is not None or chosen.save:
            return [runner.case(targets[0], chosen.seed, chosen.keep, chosen.save)]
        seeds = range(chosen.seed + (chosen.part or 0), chosen.seed + chosen.cases, chosen.jobs)
        return outcomes + run_cases(runner, targets, seeds, end)


def _all(chosen: argparse.Namespace) -> list[Outcome]:
    """Run the parts in processes of their own."""
    arguments = [f"--seed={chosen.seed}", f"--cases={chosen.cases}", f"--jobs={chosen.jobs}"]
    arguments += [f"--target={name}" for name in chosen.target or []]
    if chosen.hours is not None:
        arguments.append(f"--hours={chosen.hours}")
    parts = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz", *arguments, f"--part={part}"], stdout=subprocess.PIPE, text=True
        )
        for part in range(chosen.jobs)
    ]
    outcomes = []
    for part in parts:
        assert part.stdout is not None
        for line in part.stdout:
            if line.startswith("{"):
                outcomes.append(Outcome(**json.loads(line)))
            else:
                print(line, end="", flush=True)
        if part.wait():
            raise SystemExit(f"a part ended with status {part.returncode}")
    return outcomes


def _table(outcomes: list[Outcome], seconds: float) -> str:
    counts = Counter((outcome.target, outcome.kind) for outcome in outcomes)
    kinds = [kind for kind in OUTCOMES if any(counts[target, kind] for target, _ in counts) or kind not in GOOD]
    lines = [
        "# Fuzzing",
        "",
        f"{len(outcomes):,} cases in {seconds / 60:.0f} minutes on {os.cpu_count()} cores, "
        f"{datetime.now(timezone.utc):%Y-%m-%d}, {platform.machine()}, Python {platform.python_version()}, "
        f"commit {git_version()}.",
        "",
        "same: the sound output; told: other output, with a count or a warning; other: another output of an input",
        "that has no checksum, the rows of untouched reads as they were; error: one line and status 1 or 2. The rest",
        "are failures: a traceback, an end by a signal, no end within 60 s (with reader processes 120), rows that",
        "changed without a word, an error that is not one line, and damage that could not be made.",
        "",
        "| input | cases | " + " | ".join(kinds) + " |",
        "|---|" + "---:|" * (1 + len(kinds)),
    ]
    for target in sorted({target for target, _ in counts}):
        numbers = [counts[target, kind] for kind in kinds]
        lines.append(f"| {target} | {sum(numbers):,} | " + " | ".join(f"{number:,}" for number in numbers) + " |")
    totals = [sum(counts[target, kind] for target in {target for target, _ in counts}) for kind in kinds]
    lines.append(f"| **all** | {len(outcomes):,} | " + " | ".join(f"{number:,}" for number in totals) + " |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run what was asked for; status 1 if a case failed."""
    chosen = _arguments()
    without_gpu()
    if chosen.checked:
        _with_checks()
    if chosen.seed is None:
        chosen.seed = int(time.time()) * 1000
    if chosen.part is not None:
        for outcome in _part(chosen):
            detail = outcome.detail if outcome.kind not in GOOD else ""
            print(json.dumps(vars(outcome) | {"detail": detail}), flush=True)
        return 0
    began = time.monotonic()
    alone = chosen.keep is not None or chosen.save or chosen.jobs == 1
    outcomes = _part(chosen) if alone else _all(chosen)
    failed = [outcome for outcome in outcomes if outcome.kind not in GOOD]
    for outcome in failed:
        print(f"{outcome.kind}: --target {outcome.target!r} --seed {outcome.seed}\n{outcome.detail}\n")
    table = _table(outcomes, time.monotonic() - began)
    print(table)
    if chosen.report is not None:
        chosen.report.write_text(table)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
