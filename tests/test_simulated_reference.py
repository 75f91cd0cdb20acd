"""Equality with nanopolish on simulated reads, which needs nothing but this folder; see ``data/README.md``."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from f5py.commands.simulate import simulate
from f5py.simulation.settings import SimulationSettings

from .index_files import index_quietly
from .made_data import run_command

DATA = Path(__file__).parent / "data"
SETTINGS = SimulationSettings(seed=11, genome_length=20_000, n_reads=24, fixed_length=3000, reads_per_file=8)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("simulated")
    simulate(folder, SETTINGS, fasta=True)
    reads = str(folder / "reads.fasta")
    index_quietly(reads, folder / "fast5")
    return ["-r", reads, "-b", str(folder / "reads.bam"), "-g", str(folder / "ref.fa"), "-t", "2"]


def rows_of(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return list(csv.DictReader(file, delimiter="\t"))


def test_calls_are_nanopolishs(inputs: list[str], tmp_path: Path):
    out = tmp_path / "calls.tsv"
    assert run_command("call-methylation", *inputs, "-o", out) == 0
    found, expected = rows_of(out), rows_of(DATA / "nanopolish_calls.tsv.gz")
    assert len(expected) == 2069
    names = ["chromosome", "strand", "start", "end", "read_name", "num_calling_strands", "num_motifs", "sequence"]
    assert [[row[name] for name in names] for row in found] == [[row[name] for name in names] for row in expected]
    for name in ("log_lik_ratio", "log_lik_methylated", "log_lik_unmethylated"):
        ours, theirs = (np.array([float(row[name]) for row in rows]) for rows in (found, expected))
        assert np.abs(ours - theirs).max() <= 0.0501, name


def test_events_are_nanopolishs(inputs: list[str], tmp_path: Path):
    out = tmp_path / "events.tsv"
    assert run_command("eventalign", *inputs, "-o", out) == 0
    expected = rows_of(DATA / "nanopolish_events.tsv.gz")
    found = [row for row in rows_of(out) if row["read_index"] in ("0", "1")]
    assert len(expected) > 5000
    keys = [
        {(row["read_index"], row["position"], row["event_index"]): row for row in rows} for rows in (found, expected)
    ]
    assert len(keys[0].keys() & keys[1].keys()) >= 0.999 * len(expected)
    for key in keys[0].keys() & keys[1].keys():
        for name in ("event_level_mean", "event_stdv", "event_length", "model_kmer"):
            assert keys[0][key][name] == keys[1][key][name], (key, name)
