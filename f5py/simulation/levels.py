"""Pore models of simulated signals: levels that deviate from those of a caller."""

import math
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from f5py.core.motifs import Motif
from f5py.errors import PoreModelError, UsageError
from f5py.pore_model import BUILTIN_MODELS, PoreModel, builtin, read_model
from f5py.pore_model.model import NUCLEOTIDES_AND_M, Shifts, with_methylation
from f5py.pore_model.shift_file import MOST_SHIFT
from f5py.simulation.settings import SimulationSettings


def simulated_model(
    settings: SimulationSettings, motif: Motif, of_shifts: np.random.Generator, of_levels: np.random.Generator
) -> PoreModel:
    """Return the model for chemistry and motif, with the deviations of the settings.

    Raises `PoreModelError` for an unusable file, and `UsageError` for settings that do not fit the model.
    """
    model = _assumed_model(settings, motif)
    spread = _numbers("--shift-spread", settings.shift_spread or "0", model.k, single=True)
    if any(spread) and "M" not in model.alphabet:
        raise UsageError(f"--shift-spread: {model.name} has no methylated k-mers")
    if not (any(spread) or settings.level_bias):
        return model
    level = model.level_mean.astype(np.float64).reshape((len(model.alphabet),) * model.k)
    if any(spread):
        level += of_shifts.standard_normal(level.shape) * np.sqrt(_variance(spread, model))
    plain = ["ACGT".index(motif.canonical if base == "M" else base) for base in model.alphabet]
    level += of_levels.normal(0.0, settings.level_bias, (4,) * model.k)[np.ix_(*[plain] * model.k)]
    return PoreModel(model.name, model.k, model.alphabet, level.astype(np.float32).ravel(), model.level_stdv)


def _assumed_model(settings: SimulationSettings, motif: Motif) -> PoreModel:
    if settings.meth_model is not None:
        return read_model(settings.meth_model, NUCLEOTIDES_AND_M)
    chemistry = settings.chemistry
    if settings.shifts is not None:
        if chemistry.rna:
            raise UsageError("--shifts: RNA has methylated bases only with a model of them (--meth-model)")
        nucleotide = builtin(chemistry.model.format(motif="nucleotide"))
        return with_methylation(nucleotide, _shifts(settings.shifts, nucleotide), "shifted", motif.canonical)
    name = chemistry.model.format(motif=motif.name)
    if name not in BUILTIN_MODELS:
        raise UsageError(
            f"--motif {settings.motif}: there is no built-in model of it for --pore {settings.pore}; give --meth-model"
        )
    if chemistry.rna and settings.motif != SimulationSettings.motif:
        raise UsageError(f"--motif {settings.motif}: RNA has methylated bases only with a model of them (--meth-model)")
    return builtin(name)


def _shifts(text: str, nucleotide: PoreModel) -> Shifts:
    """Parse the shifts of a file or of a list."""
    if all(map(_is_number, text.split(","))):
        return Shifts.of_places(_numbers("--shifts", text, nucleotide.k))
    model = read_model(text, NUCLEOTIDES_AND_M)
    if model.shifts is None or model.k != nucleotide.k:
        raise PoreModelError(
            f"{text}: is no file of shifts of {nucleotide.k}-mers; give a complete model with --meth-model"
        )
    return model.shifts


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _numbers(option: str, text: str, k: int, single: bool = False) -> list[float]:
    """Parse `k` numbers in pA; with `single` non-negative ones, of which one may represent all places."""
    least = 0.0 if single else -MOST_SHIFT
    words = text.split(",")
    values = [float(word) for word in words if _is_number(word)]
    if len(values) != len(words) or not all(least <= value <= MOST_SHIFT for value in values):
        raise UsageError(f"{option} {text}: give numbers from {least:g} to {MOST_SHIFT:g} with commas between them")
    if single and len(values) == 1:
        return values * k
    if len(values) != k:
        raise UsageError(f"{option} {text}: {k} numbers are needed, one for each place of a {k}-mer")
    return values


def _variance(spread: list[float], model: PoreModel) -> NDArray[np.float64]:
    """Sum the squares of `spread` over the places with M; one element a k-mer, an axis a place."""
    is_methylated = np.array([base == "M" for base in model.alphabet])
    variance: NDArray[np.float64] = reduce(np.add.outer, [math.pow(one, 2) * is_methylated for one in spread])
    return variance
