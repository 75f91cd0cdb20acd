"""A whole simulated data set: its files agree with each other, with the settings, and from run to run."""

from __future__ import annotations

import csv
import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pysam
import pytest

from f5py.commands import simulate as run
from f5py.commands.simulate import simulate
from f5py.errors import OutputFileError
from f5py.pore_model import builtin
from f5py.simulation.settings import SimulationSettings

SETTINGS = SimulationSettings(genome_length=6000, n_reads=25, median_length=1200, seed=5)
COMPLEMENT = str.maketrans("ACGT", "TGCA")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("simulated")
    simulate(folder, replace(SETTINGS, reads_per_file=10))
    return folder


def table(path: Path) -> list[dict[str, str]]:
    with open(path) as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def sequences(path: Path) -> dict[str, str]:
    with pysam.FastxFile(str(path)) as records:
        return {record.name: record.sequence for record in records}


def alignments(folder: Path) -> list[pysam.AlignedSegment]:
    with pysam.AlignmentFile(str(folder / "reads.bam")) as records:
        assert records.header["HD"]["SO"] == "coordinate"
        return list(records)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_all_files_hold_all_reads(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "fast5",
        "reads.bam",
        "reads.bam.bai",
        "reads.fastq",
        "ref.fa",
        "ref.fa.fai",
        "truth.tsv",
        "truth_reads.tsv",
    ]
    names = list(sequences(folder / "reads.fastq"))
    assert len(names) == 25
    in_files = []
    for number in range(3):
        with h5py.File(folder / "fast5" / f"reads_{number}.fast5") as signals:
            in_files.append({name.removeprefix("read_") for name in signals})
    assert [len(part) for part in in_files] == [10, 10, 5]
    assert in_files[0] | in_files[1] | in_files[2] == set(names)
    assert {record.query_name for record in alignments(folder)} == set(names)


def test_alignments_are_sorted_and_true(folder):
    reference = sequences(folder / "ref.fa")["simulated"]
    reads = sequences(folder / "reads.fastq")
    records = alignments(folder)
    starts = [record.reference_start for record in records]
    assert starts == sorted(starts)
    assert len({record.is_reverse for record in records}) == 2
    for record in records:
        assert record.mapping_quality == 60
        assert record.get_forward_sequence() == reads[record.query_name]
        distance = sum(
            query is None or target is None or record.query_sequence[query] != reference[target]
            for query, target in record.get_aligned_pairs()
        )
        assert record.get_tag("NM") == distance > 0
    with pysam.AlignmentFile(str(folder / "reads.bam")) as indexed:
        assert indexed.count("simulated", 0, 6000) == 25


def test_qualities_are_those_of_the_fastq(folder):
    with pysam.FastxFile(str(folder / "reads.fastq")) as records:
        expected = {record.name: record.quality for record in records}
    for record in alignments(folder):
        qualities = record.query_qualities_str
        assert (qualities[::-1] if record.is_reverse else qualities) == expected[record.query_name]


def test_the_tables_of_sites_and_reads_agree(folder):
    reference = sequences(folder / "ref.fa")["simulated"]
    spans = {record.query_name: record for record in alignments(folder)}
    counts = defaultdict(lambda: [0, 0])
    listed = defaultdict(set)
    for row in table(folder / "truth_reads.tsv"):
        position = int(row["position"])
        assert row["strand"] == ("-" if spans[row["read_name"]].is_reverse else "+")
        counts[position][0] += 1
        counts[position][1] += int(row["methylated"])
        listed[row["read_name"]].add(position)
    for name, record in spans.items():
        inside = range(record.reference_start, record.reference_end - 1)
        assert listed[name] == {i for i in inside if reference[i : i + 2] == "CG"}
    sites = table(folder / "truth.tsv")
    assert [int(row["start"]) for row in sites] == sorted(counts)
    for row in sites:
        n, n_methylated = counts[int(row["start"])]
        assert (row["chromosome"], row["end"]) == ("simulated", row["start"])
        assert (int(row["n_reads"]), int(row["n_methylated"])) == (n, n_methylated)
        assert float(row["frequency"]) == pytest.approx(n_methylated / n, abs=5e-5)
        assert 0 <= float(row["rate"]) <= 1
    assert 0.1 < np.mean([float(row["frequency"]) for row in sites]) < 0.9


def test_signals_are_those_of_the_methylated_strand(tmp_path):
    quiet = replace(SETTINGS, n_reads=6, level_noise=0.0, sample_noise=0.0, shift_sd=0.0, scale_sd=0.0)
    simulate(tmp_path, quiet)
    model = builtin("r9.4_450bps.cpg.6mer")
    reference = sequences(tmp_path / "ref.fa")["simulated"]
    methylated = defaultdict(set)
    for row in table(tmp_path / "truth_reads.tsv"):
        if row["methylated"] == "1":
            methylated[row["read_name"]].add(int(row["position"]))
    with h5py.File(tmp_path / "fast5" / "reads_0.fast5") as signals:
        for record in alignments(tmp_path):
            start, end = record.reference_start, record.reference_end
            segment = list(reference[start:end])
            if record.is_reverse:
                segment = list("".join(segment).translate(COMPLEMENT))
            for site in methylated[record.query_name]:
                # the C of this strand
                segment[site - start + record.is_reverse] = "M"
            molecule = "".join(reversed(segment) if record.is_reverse else segment)
            assert molecule.count("MG") == len(methylated[record.query_name])
            ranks = [
                sum("ACGMT".index(base) * 5 ** (5 - j) for j, base in enumerate(molecule[i : i + 6]))
                for i in range(len(molecule) - 5)
            ]
            group = signals[f"read_{record.query_name}"]
            calibration = dict(group["channel_id"].attrs)
            unit = float(calibration["range"]) / float(calibration["digitisation"])
            pa = (group["Raw/Signal"][:].astype(float) + float(calibration["offset"])) * unit
            assert float(calibration["sampling_rate"]) == 4000
            observed = pa[np.concatenate(([0], np.flatnonzero(np.diff(pa)) + 1))]
            assert len(methylated[record.query_name]) > 0
            assert visits_all(observed, model.level_mean[ranks], 0.51 * unit)


def visits_all(observed: np.ndarray, levels: np.ndarray, tolerance: float) -> bool:
    """Check that `observed`, one value per change, runs through `levels`; equal neighbours may merge."""
    reached = {0}  # numbers of levels that may be after us
    for value in observed:
        onwards = set()
        for i in reached:
            while i < len(levels) and abs(levels[i] - value) <= tolerance:
                i += 1
                onwards.add(i)
        reached = onwards
    return len(levels) in reached


def test_same_seed_same_bytes(folder, tmp_path):
    simulate(tmp_path / "again", replace(SETTINGS, reads_per_file=10))
    assert files_of(tmp_path / "again") == files_of(folder)


def test_another_seed_changes_every_file_of_data(folder, tmp_path):
    simulate(tmp_path / "other", replace(SETTINGS, reads_per_file=10, seed=6))
    first, other = files_of(folder), files_of(tmp_path / "other")
    assert [name for name in first if first[name] == other[name]] == ["ref.fa.fai"]


def test_a_given_reference_with_several_contigs(tmp_path):
    rng = np.random.default_rng(3)
    letters = ["".join(rng.choice(list("ACGT"), size=n)) for n in (3000, 50, 2000)]
    letters[0] = letters[0][:1500] + "NNRY" + letters[0][1500:]
    (tmp_path / "in.fa").write_text("".join(f">c{i}\n{text.lower()}\n" for i, text in enumerate(letters)))
    settings = replace(SETTINGS, error_rate=0.0, site_rates="0,1", min_length=100, n_reads=60)
    summary = simulate(tmp_path / "out", settings, reference=tmp_path / "in.fa", fasta=True)
    assert summary.n_reads == 60
    reads = sequences(tmp_path / "out" / "reads.fasta")
    seen = set()
    for record in alignments(tmp_path / "out"):
        seen.add(record.reference_name)
        contig = letters[int(record.reference_name[1:])]
        assert record.query_sequence == contig[record.reference_start : record.reference_end]
        assert (record.cigarstring, record.get_tag("NM")) == (f"{len(record.query_sequence)}M", 0)
        assert record.get_forward_sequence() == reads[record.query_name]
    assert seen == {"c0", "c2"}
    # sites are always or never methylated, whatever the strand
    sites = table(tmp_path / "out" / "truth.tsv")
    assert {row["frequency"] for row in sites} == {"0.0000", "1.0000"}
    assert all(letters[int(row["chromosome"][1:])][int(row["start"]) :][:2] == "CG" for row in sites)


def test_refuses_a_folder_in_use_but_replaces_a_simulation(tmp_path):
    simulate(tmp_path / "out", replace(SETTINGS, n_reads=5, reads_per_file=2))
    (tmp_path / "out" / "mine.txt").write_text("keep")
    (tmp_path / "out" / "reads.fastq.index.readdb").write_text("of the old reads")
    with pytest.raises(OutputFileError, match="is not empty"):
        simulate(tmp_path / "out", SETTINGS)
    simulate(tmp_path / "out", replace(SETTINGS, n_reads=3), fasta=True, read_truth=False, force=True)
    assert sorted(files_of(tmp_path / "out")) == [
        "fast5/reads_0.fast5",
        "mine.txt",
        "reads.bam",
        "reads.bam.bai",
        "reads.fasta",
        "ref.fa",
        "ref.fa.fai",
        "truth.tsv",
    ]
    with pytest.raises(OutputFileError, match="not a folder"):
        simulate(tmp_path / "out" / "mine.txt", SETTINGS)


def test_a_failure_leaves_nothing_that_looks_complete(tmp_path, monkeypatch):
    def fail(folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run, "sort_alignments", fail)
    with pytest.raises(OSError, match="No space"):
        simulate(tmp_path / "out", replace(SETTINGS, n_reads=2))
    assert list((tmp_path / "out").iterdir()) == []


def test_a_disk_that_is_too_small_is_noticed_before_the_work(folder, tmp_path, monkeypatch):
    size = sum(map(len, files_of(folder).values()))
    asked = []

    def disk_usage(place):
        asked.append(place)
        return SimpleNamespace(free=size)

    monkeypatch.setattr(shutil, "disk_usage", disk_usage)
    with pytest.raises(OutputFileError, match="MB are free"):
        simulate(tmp_path / "new" / "out", SETTINGS)
    assert asked == [tmp_path]
    assert list(tmp_path.iterdir()) == []


def test_no_reads_at_all(tmp_path):
    summary = simulate(tmp_path, replace(SETTINGS, n_reads=0))
    assert (summary.n_reads, summary.longest, summary.n_covered_sites) == (0, 0, 0)
    assert alignments(tmp_path) == []
    assert (tmp_path / "reads.fastq").read_bytes() == b""
