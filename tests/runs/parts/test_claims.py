"""Parts that several processes of a machine take in turn."""

from __future__ import annotations

import pickle
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import pytest

from f5py.errors import OutputFileError
from f5py.runs.parts.job import ClaimingJob, Claims, PartJob
from f5py.runs.parts.plan import Plan

from ...made_data import ReadSet, run_command


@pytest.fixture
def plan(made: ReadSet, here: Path) -> Plan:
    """Of eight parts, of which one is done."""
    given = ("call-methylation", *made.options(), "-o", "calls.tsv", "--plan", "p", "--partitions", "8")
    assert run_command(*given) == 0
    assert run_command("run-part", "p", "3") == 0
    return Plan.load("p")


def test_each_part_is_taken_once(plan: Plan):
    with Claims(plan, [0, 2, 3, 5, 7]) as claims:
        one, other = claims.take(), pickle.loads(pickle.dumps(claims)).take()
        assert [next(one), next(other), next(other), next(one)] == [0, 2, 3, 5]
        assert plan.done() == {3}
        with Claims(plan, [0, 1]) as of_another_run:
            assert of_another_run.name != claims.name
            assert list(of_another_run.take()) == [0, 1]
        assert list(other) == [7]
        assert list(one) == []
    assert sorted(path.name for path in (plan.folder / "parts").iterdir()) == ["3"]
    with pytest.raises(OutputFileError, match="cannot write"):
        next(claims.take())


def test_a_job_takes_parts_as_they_are_asked_for(plan: Plan):
    with Claims(plan, range(8)) as claims:
        job, loader = ClaimingJob(plan, claims.take()), SimpleNamespace()
        assert job
        assert job.checks_chemistry
        taken = job.parts_of(loader)
        assert taken == deque()
        assert next(loader.parts).number == 0
        assert [part.number for part in taken] == [0]
        other = ClaimingJob(plan, claims.take())
        assert not other.checks_chemistry
        assert [part.number for part in loader.parts] == [2, 4, 5, 6, 7]  # 3 is done
        assert [part.number for part in taken] == [0, 2, 4, 5, 6, 7]
        assert job.n_taken == 6
        known = SimpleNamespace()
        assert list(PartJob(plan, [0, 2, 4, 5, 6, 7], True).parts_of(known)) == list(taken)
        assert not ClaimingJob(plan, claims.take())
