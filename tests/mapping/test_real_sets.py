"""Hits of whole read sets against minimap2 2.24's PAF files: every column and tag, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from f5py.mapping.settings import PRESETS

from .real_sets import map_all, paf_of, rows_of, sequences_of

pytestmark = pytest.mark.shared
ECOLI = ("ecoli_r94/ref.fa", "ecoli_r94/reads.fasta")
K12 = ("map_ecoli/k12.fa.gz", "ecoli_r94/reads.fasta")
STRESS = ("map_ecoli/stress_ref.fa.gz", "map_ecoli/stress_reads.fa.gz")
R10 = ("r10_wga/ref.fa", "r10_wga/reads.fastq")
RNA = ("rna002_sequin/ref.fa", "rna002_sequin/reads.fastq")
NO_SKIP = {"max_skip": 1_000_000}
FREQUENT = {"mid_occ_frac": 2000.0}
SETS = {
    "ecoli": (*ECOLI, "map-ont", {}),
    "ecoli.noskip": (*ECOLI, "map-ont", NO_SKIP),
    "ecoli.chains": (*ECOLI, "map-ont", {}),
    "k12": (*K12, "map-ont", {}),
    "stress": (*STRESS, "map-ont", {}),
    "stress.noskip": (*STRESS, "map-ont", NO_SKIP),
    "stress.f2000": (*STRESS, "map-ont", FREQUENT),
    "stress.f2000.noskip": (*STRESS, "map-ont", FREQUENT | NO_SKIP),
    "stress.map-hifi": (*STRESS, "map-hifi", {}),
    "stress.map-pb": (*STRESS, "map-pb", {}),
    "r10": (*R10, "map-ont", {}),
    "rna002": (*RNA, "rna", {}),
    "ava": (ECOLI[1], ECOLI[1], "ava-ont", {}),
}


@pytest.mark.parametrize("name", SETS)
def test_hits_are_those_of_minimap2(name: str, shared_data: Path):
    reference, reads, preset, changes = SETS[name]
    aligned = name not in ("ecoli.chains", "ava")
    settings = PRESETS[preset]._replace(**changes)
    index, batch = map_all(sequences_of(shared_data / reference), sequences_of(shared_data / reads), settings, aligned)
    expected = rows_of(shared_data / "map_ecoli" / f"{name}.paf.gz")
    expected = [[value for value in row if not value.startswith("cs:")] for row in expected]
    assert paf_of(index, batch, aligned) == expected
