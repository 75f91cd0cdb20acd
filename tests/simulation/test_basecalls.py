"""Basecalls with errors and their CIGAR."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.simulation.current import DELETION, INSERTION, MATCH, basecall


def unpack(call):
    return np.repeat(call.operations, call.lengths)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=300), st.floats(0, 0.9), st.integers(0, 999))
def test_the_cigar_turns_the_molecule_into_the_read(molecule, error_rate, seed):
    molecule = np.array(molecule, dtype=np.uint8)
    call = basecall(molecule, error_rate, np.random.default_rng(seed))
    operations = unpack(call)
    assert (operations != INSERTION).sum() == len(molecule)
    assert (operations != DELETION).sum() == len(call.codes) == len(call.qualities)
    assert (np.diff(call.operations.astype(int)) != 0).all(), "runs are joined"
    assert operations[0] == operations[-1] == MATCH
    touching = {*zip(call.operations[:-1], call.operations[1:], strict=True)}
    assert not touching & {(INSERTION, DELETION), (DELETION, INSERTION)}
    from_molecule = molecule[operations[operations != INSERTION] == MATCH]
    from_read = call.codes[operations[operations != DELETION] == MATCH]
    mismatches = (from_molecule != from_read).sum()
    assert call.edit_distance == mismatches + (operations != MATCH).sum()
    assert call.codes.max() < 4


def test_error_rate_and_kinds():
    molecule = np.random.default_rng(1).integers(0, 4, 200_000).astype(np.uint8)
    call = basecall(molecule, 0.1, np.random.default_rng(2))
    n_insertions = (call.operations == INSERTION).sum()
    n_deleted = call.lengths[call.operations == DELETION].sum()
    n_mismatches = call.edit_distance - call.lengths[call.operations != MATCH].sum()
    assert n_mismatches == pytest.approx(8000, rel=0.05)
    assert n_insertions == pytest.approx(5000, rel=0.06)
    assert n_deleted == pytest.approx(7000, rel=0.05)
