"""Whole simulations of every chemistry, motif and signal format, as the other commands see them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pysam
import pytest

import f5py
from f5py.errors import MissingDependencyError
from f5py.io.signals import open_signals

SMALL = {"genome_length": 4_000, "n_reads": 12, "median_length": 1_500, "length_sigma": 0.1, "seed": 4}


def inputs(folder: Path, **signals) -> dict:
    return {"bam": folder / "reads.bam", "genome": folder / "ref.fa", **(signals or {"fast5": folder / "fast5"})}


@pytest.mark.parametrize("motif", ["cpg", "gpc", "dam", "dcm"])
def test_calls_of_every_motif_follow_the_truth(motif: str, tmp_path: Path):
    f5py.simulate(output=tmp_path, motif=motif, methylation="per-read", reference=None, **SMALL | {"n_reads": 20})
    f5py.call_methylation(**inputs(tmp_path), methylation=motif, output=tmp_path / "calls.tsv")
    found = f5py.validate(tmp_path / "calls.tsv", tmp_path / "truth_reads.tsv", output=tmp_path / "text")
    assert found["calls"] > 30
    assert found["unknown"] == found["mixed_groups"] == 0
    assert found["auc"] > 0.9


@pytest.mark.parametrize(("pore", "spread"), [("rna002", 0.75), ("rna004", 0.7)])
def test_direct_rna_is_read_from_the_end_of_transcripts(pore: str, spread: float, tmp_path: Path):
    f5py.simulate(output=tmp_path, pore=pore, **SMALL | {"n_reads": 30})
    with pysam.AlignmentFile(str(tmp_path / "reads.bam")) as file:
        records = list(file)
        assert {record.is_reverse for record in records} == {False}
        assert all(record.reference_end == file.get_reference_length(record.reference_name) for record in records)
    assert len({record.reference_name for record in records}) > 1
    # the kit in the signals says what they are, but not that DNA would be wrong
    events = f5py.eventalign(
        **inputs(tmp_path), rna=True, scale_events=True, returns="pandas", summary=tmp_path / "summary.tsv"
    )
    assert len(pd.read_csv(tmp_path / "summary.tsv", sep="\t")) == 30
    events = events[events["model_kmer"].astype(str).str[0] != "N"]
    reads = events.groupby(["read_index", "contig"], observed=True)["position"].agg(["min", "max", "nunique"])
    assert (reads["nunique"] / (reads["max"] - reads["min"] + 1)).mean() > 0.9
    level = events["standardized_level"]
    assert (level.quantile(0.75) - level.quantile(0.25)) / 1.349 == pytest.approx(spread, abs=0.15)
    assert (tmp_path / "truth.tsv").read_text().count("\n") == 1


def test_all_formats_have_the_same_signals(tmp_path: Path):
    paths = {"fast5": "fast5", "blow5": "reads.blow5", "pod5": "pod5"}
    found = {}
    for kind, name in paths.items():
        folder = tmp_path / kind
        f5py.simulate(output=folder, signal_format=kind, reads_per_file=5, pore="r10", **SMALL)
        names = [line[1:] for line in (folder / "reads.fastq").read_text().splitlines()[::4]]
        given = {"fast5": "fast5", "blow5": "slow5", "pod5": "pod5"}[kind]
        source = open_signals("", **{given: [str(folder / name)]})
        try:
            found[kind] = source.fetch(names)
            assert "114" in source.run_info(names)["sequencing_kit"]
        finally:
            source.close()
    assert len(list((tmp_path / "pod5" / "pod5").iterdir())) == 3
    for kind in ("blow5", "pod5"):
        np.testing.assert_array_equal(found[kind].samples, found["fast5"].samples)
        np.testing.assert_array_equal(found[kind].offsets, found["fast5"].offsets)
        one, other = (found[name].calibration[2] / found[name].calibration[0] for name in (kind, "fast5"))
        np.testing.assert_allclose(one, other, rtol=1e-6)
    again = tmp_path / "again"
    f5py.simulate(output=again, signal_format="blow5", reads_per_file=5, pore="r10", **SMALL)
    assert (again / "reads.blow5").read_bytes() == (tmp_path / "blow5" / "reads.blow5").read_bytes()
    f5py.simulate(output=again, force=True, **SMALL)
    assert not (again / "reads.blow5").exists()


def test_haplotypes_are_in_tags_and_truth(tmp_path: Path):
    f5py.simulate(output=tmp_path, haplotypes=True, haplotype_sites=1, **SMALL | {"n_reads": 60})
    with pysam.AlignmentFile(str(tmp_path / "reads.bam")) as file:
        haplotype = {record.query_name: record.get_tag("HP") for record in file}
    assert set(haplotype.values()) == {1, 2}
    reads = pd.read_csv(tmp_path / "truth_reads.tsv", sep="\t")
    reads["haplotype"] = reads["read_name"].map(haplotype)
    for number in (1, 2):
        expected = reads[reads["haplotype"] == number].groupby("position")["methylated"].agg(["size", "sum"])
        found = pd.read_csv(tmp_path / f"truth_hp{number}.tsv", sep="\t").set_index("start")
        assert found["n_reads"].tolist() == expected["size"].tolist()
        assert found["n_methylated"].tolist() == expected["sum"].tolist()
    both = pd.read_csv(tmp_path / "truth.tsv", sep="\t").set_index("start")
    assert both["n_reads"].tolist() == reads.groupby("position").size().tolist()


def test_a_missing_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pod5", None)
    with pytest.raises(MissingDependencyError, match=r"needs pod5; install it: pip install"):
        f5py.simulate(output=tmp_path / "out", signal_format="pod5", **SMALL)
    assert not list((tmp_path / "out").iterdir())
