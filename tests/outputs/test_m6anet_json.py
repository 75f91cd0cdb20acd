"""Input of m6anet, against what m6anet's own preparation makes of the table of events."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ..made_data import run_command

pytestmark = pytest.mark.shared

_DRACH = ["".join(kmer) for kmer in itertools.product("AGT", "AG", "A", "C", "ACT")]

Sites = dict[tuple[str, int, str], list[list[float]]]


def sites_of_table(path: Path) -> Sites:
    """Prepare a table as ``m6anet dataprep`` does, written down plainly from its description."""
    groups: dict[tuple[str, float], dict[int, tuple[str, list[tuple[int, float, float, float]]]]] = {}
    with path.open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["reference_kmer"] != row["model_kmer"]:
                continue
            of_read = groups.setdefault((row["contig"], float(row["read_index"])), {})
            weight = int(row["end_idx"]) - int(row["start_idx"])
            values = (float(row["event_length"]), float(row["event_stdv"]), float(row["event_level_mean"]))
            of_read.setdefault(int(row["position"]) + 2, (row["reference_kmer"], []))[1].append((weight, *values))
    sites: Sites = {}
    for (contig, read), positions in groups.items():
        features = {}
        for position, (_, events) in positions.items():
            total = sum(event[0] for event in events)
            seconds, stdv, mean = (sum(event[0] * event[i] for event in events) / total for i in (1, 2, 3))
            features[position] = [seconds, stdv, float(np.round(mean, 1))]
        for position, (kmer, _) in sorted(positions.items()):
            if kmer in _DRACH and position - 1 in positions and position + 1 in positions:
                text = positions[position - 1][0] + kmer[-1] + positions[position + 1][0][-1]
                around = [value for at in (-1, 0, 1) for value in features[position + at]]
                sites.setdefault((contig, position, text), []).append([*around, read])
    return sites


def sites_of_folder(folder: Path) -> Sites:
    """Read what is in ``data.json`` through ``data.info``."""
    data = (folder / "data.json").read_bytes()
    sites: Sites = {}
    end = 0
    with (folder / "data.info").open() as file:
        for row in csv.DictReader(file):
            assert int(row["start"]) == end
            end = int(row["end"])
            (contig, positions), = json.loads(data[int(row["start"]) : end]).items()  # fmt: skip
            (position, sequences), = positions.items()  # fmt: skip
            (sequence, features), = sequences.items()  # fmt: skip
            assert (contig, position, len(features)) == (
                row["transcript_id"], row["transcript_position"], int(row["n_reads"]),
            )  # fmt: skip
            sites[contig, int(position), sequence] = features
    assert end == len(data)
    return sites


def assert_same(found: Sites, expected: Sites) -> None:
    """Equal but for the order of reads, and for a mean that is halfway between two tenths."""
    assert found.keys() == expected.keys()
    n_ties = n_values = 0
    for key, features in found.items():
        ours, theirs = (np.array(sorted(of, key=lambda one: one[-1])) for of in (features, expected[key]))
        np.testing.assert_allclose(ours[:, [0, 1, 3, 4, 6, 7, 9]], theirs[:, [0, 1, 3, 4, 6, 7, 9]], rtol=1e-12)
        difference = np.abs(ours - theirs)[:, [2, 5, 8]]
        assert difference.max() < 0.11
        n_ties += int((difference > 0.01).sum())
        n_values += difference.size
    assert n_ties <= 0.01 * n_values


@pytest.fixture
def align(shared_data: Path, tmp_path: Path) -> Callable[..., None]:
    def run(name: str, *options: object) -> None:
        folder = shared_data / name
        if not folder.is_dir():
            pytest.skip(f"the data set {name} is not there")
        inputs = ["-b", folder / "reads.bam", "-g", folder / "ref.fa", "--slow5", folder / "reads.blow5", "--rna"]
        assert run_command("eventalign", *inputs, "-t", 2, *options) == 0

    return run


@pytest.mark.parametrize(("name", "n_sites"), [("rna002_sequin", 36), ("rna004_lacz", 18)])
def test_equals_the_plain_preparation_of_the_table(align, tmp_path: Path, name: str, n_sites: int):
    """Of 5-mers, and of the 5-mers in the middle of 9-mers."""
    table = tmp_path / "events.tsv"
    align(name, "--scale-events", "--signal-index", "--kmer-view", 5, "-o", table)
    align(name, "--m6anet-json", tmp_path / "m6anet", "--m6anet-min-reads", 1, "-K", 7)
    found = sites_of_folder(tmp_path / "m6anet")
    assert len(found) == n_sites
    assert_same(found, sites_of_table(table))


def test_numbers_of_reads(align, tmp_path: Path):
    align("rna004_lacz", "--m6anet-json", tmp_path / "all", "--m6anet-min-reads", 1)
    everything = sites_of_folder(tmp_path / "all")
    align("rna004_lacz", "--m6anet-json", tmp_path / "many")
    many = sites_of_folder(tmp_path / "many")
    assert many == {key: features for key, features in everything.items() if len(features) >= 20}
    assert 0 < len(many) < len(everything)
    # the first 10 reads and, as m6anet counts, one more; in batches of any size
    for batch_size in (3, 512):
        folder = tmp_path / f"few{batch_size}"
        align(
            "rna004_lacz", "--m6anet-json", folder, "--m6anet-min-reads", 1, "--m6anet-max-reads", 10, "-K", batch_size
        )
        numbers = {features[-1] for of_site in sites_of_folder(folder).values() for features in of_site}
        assert max(numbers) <= 11  # one of the first reads has no rows
        assert len(numbers) > 5


@pytest.mark.parametrize("name", ["rna002_sequin", "rna004_lacz"])
def test_parts_make_the_bytes_of_one_run(align, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    """Also the first reads of a transcript are those of the whole run."""
    monkeypatch.chdir(tmp_path)
    options = ["--m6anet-min-reads", 2, "--m6anet-max-reads", 9]
    align(name, "--m6anet-json", "one", *options)
    align(name, "--m6anet-json", "parts", *options, "--print-read-names", "--plan", "plan", "--partitions", 5)
    for numbers in ([4, 1], [3], [0, 2]):
        assert run_command("run-part", "plan", *numbers) == 0
    assert run_command("finish", "plan") == 0
    align(name, "--m6anet-json", "resumed", *options, "--resume")
    expected = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert len(expected["data.info"].splitlines()) > 4
    for folder in ("parts", "resumed"):
        assert {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()} == expected


def test_nothing_is_left_of_a_failed_run(shared_data: Path, tmp_path: Path):
    folder = shared_data / "rna004_lacz"
    other = shared_data / "rna002_sequin" / "reads.blow5"
    inputs = ["-b", folder / "reads.bam", "-g", folder / "ref.fa", "--slow5", other, "--skip-unreadable=no"]
    assert run_command("eventalign", *inputs, "--m6anet-json", tmp_path / "m6anet") == 1
    assert list((tmp_path / "m6anet").iterdir()) == []
