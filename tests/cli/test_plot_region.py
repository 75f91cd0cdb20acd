"""``f5py plot-region`` on the modBAM of a run, and one clear line for whatever is wrong."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pysam
import pytest

import f5py
from f5py.cli import command_of
from f5py.commands.plot_region import collect
from f5py.options.plot_commands import PlotRegionOptions

from ..made_data import ReadSet

command = command_of("plot-region")


def plot_region(*arguments: object) -> None:
    command.main([str(argument) for argument in arguments], standalone_mode=False)


@pytest.fixture(scope="module")
def modbam(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("region")
    f5py.call_methylation(
        reads=made.reads, bam=made.bam, genome=made.genome, output=folder / "calls.tsv", modbam=folder / "calls.bam"
    )
    pysam.index(str(folder / "calls.bam"))
    return folder / "calls.bam"


def test_calls_are_those_of_the_table(modbam: Path):
    with pysam.AlignmentFile(str(modbam)) as file:
        contig, length = file.references[0], file.lengths[0]
    data = collect(PlotRegionOptions(bam=(str(modbam),), window=f"{contig}:1-{length}", output="", min_mapq=0))
    table = f5py.frequencies([modbam.parent / "calls.tsv"], split_groups=True, returns="pandas")
    table = table[table.chromosome == contig]
    shares = data.shares()
    columns = (part.tolist() for part in shares)
    ours = {start: (called, modified) for start, modified, called in zip(*columns, strict=True)}
    same = [ours.get(row.start) == (row.called_sites, row.called_sites_methylated) for row in table.itertuples()]
    # a read that lacks a base of the site, and probabilities in steps of 1/256, make a few differ
    assert len(same) > 100
    assert np.mean(same) > 0.8
    assert abs(shares.modified.sum() - table.called_sites_methylated.sum()) < 0.03 * table.called_sites.sum()


def test_files_with_and_without_index_are_the_same(modbam: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    with pysam.AlignmentFile(str(modbam)) as file:
        contig = file.references[0]
    shutil.copyfile(modbam, tmp_path / "bare.bam")
    window = f"{contig}:100-900"
    plot_region("-b", modbam, "-w", window, "-o", tmp_path / "a.svg")
    plot_region("-b", tmp_path / "bare.bam", "-w", window, "-o", tmp_path / "b.svg")
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    note = capsys.readouterr().err.splitlines()
    assert note[0].startswith(f"[plot_region_main] {tmp_path / 'a.svg'}: {window}, ")
    assert "5mC (C+m)" in note[0]


def test_samples_have_names(modbam: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Of their read groups, else of their files, or as they are given."""
    for sample in ("liver", "brain"):
        with pysam.AlignmentFile(str(modbam)) as file:
            header = file.header.to_dict() | {"RG": [{"ID": "1", "SM": sample}]}
            with pysam.AlignmentFile(str(tmp_path / f"{sample}.bam"), "wb", header=header) as out:
                for record in file:
                    out.write(record)
    contig = header["SQ"][0]["SN"]
    liver, brain = (str(tmp_path / f"{sample}.bam") for sample in ("liver", "brain"))
    for options, names in (
        ({"bam": (liver, brain)}, ("liver", "brain")),
        ({"bam": (liver, str(modbam))}, ("liver", "calls")),
        ({"sample": (f"treated={liver}", f"control={brain}")}, ("treated", "control")),
        ({"bam": (liver,), "sample": (f"x={brain}",)}, ("liver", "x")),
    ):
        assert collect(PlotRegionOptions(window=f"{contig}:1-500", output="", **options)).sample_names == names
    plot_region(
        "-b", liver, "--sample", f"x={brain}", "-w", f"{contig}:1-500", "-o", tmp_path / "a.html", "--smooth", 3
    )
    page = (tmp_path / "a.html").read_text()
    assert "lines: means of 3 sites" in page
    assert '"words":"x"' in page
