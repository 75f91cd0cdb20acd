"""Expected time of a run from the sizes of its inputs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from f5py.compute.gpu.expected_work import seconds_of_threads
from f5py.options.signal_commands import CallOptions


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, size in (("reads.fasta", 10_000_000), ("small.fastq", 100_000), ("all.bam", 4_000_000)):
        with (tmp_path / name).open("wb") as file:
            file.truncate(size)
    (tmp_path / "pod5").mkdir()
    for i in range(3):
        with (tmp_path / "pod5" / f"{i}.pod5").open("wb") as file:
            file.truncate(20_000_000)
    return tmp_path


def _seconds(files: Path, threads: int = 1, per_site: bool = False, **names: str) -> Any:
    paths: dict[str, Any] = {name: str(files / file) for name, file in names.items()}
    if "pod5" in paths:
        paths["pod5"] = (paths["pod5"],)
    return seconds_of_threads(CallOptions(genome="-", per_site=per_site, **{"bam": "-", "threads": threads} | paths))


def test_the_least_input_decides(files: Path) -> None:
    whole = _seconds(files, reads="reads.fasta", bam="all.bam", pod5="pod5")
    assert whole == _seconds(files, pod5="pod5")
    assert whole is not None
    assert _seconds(files, reads="small.fastq", bam="all.bam", pod5="pod5") < whole / 50
    assert _seconds(files, reads="reads.fasta", bam="missing.bam") >= whole
    assert _seconds(files, reads="reads.fasta", threads=10) == pytest.approx(_seconds(files, reads="reads.fasta") / 10)


def test_a_folder_counts_with_all_its_files(files: Path) -> None:
    assert _seconds(files, pod5="pod5") == pytest.approx(3 * _seconds(files / "pod5", pod5="0.pod5"))


def test_files_behind_links_count(files: Path) -> None:
    (files / "linked").mkdir()
    (files / "linked" / "run").symlink_to(files / "pod5")
    (files / "linked" / "back").symlink_to(".")
    assert _seconds(files, pod5="linked") == _seconds(files, pod5="pod5")


def test_single_sites_take_longer(files: Path) -> None:
    assert _seconds(files, reads="reads.fasta", per_site=True) > 1.5 * _seconds(files, reads="reads.fasta")


def test_nothing_is_told_where_it_cannot_be(files: Path) -> None:
    assert _seconds(files, bam="missing.bam") is None
    options = CallOptions(genome="-", bam="-", reads=str(files / "reads.fasta"), window=("chr1:1-20",))
    assert seconds_of_threads(options) is None
