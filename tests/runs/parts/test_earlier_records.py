"""Parts whose results depend on records of other parts: repeated ones, and overlapping alignments of the same read."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pysam
import pytest

from ...made_data import ReadSet, run_command

OUTPUTS = ("-o", "calls.tsv", "--modbam", "m.bam", "--bedmethyl", "s.bed", "--failed-reads", "failed.tsv")
FILES = ("calls.tsv", "m.bam", "s.bed", "failed.tsv")
#: Fails about half of the reads, which take nothing from later alignments.
FAILING = ("--qc-max-events-per-base", "1.73")
BOTH = ("--skip-duplicates", "--skip-overlaps")
N_PARTS = 7


def shortened(record: pysam.AlignedSegment, first: int, end: int) -> pysam.AlignedSegment:
    """Return the alignment of the bases from `first` to `end` of a record as a supplementary one."""
    new = pysam.AlignedSegment.from_dict(record.to_dict(), record.header)
    bases = record.query_sequence or ""
    pairs = [pair for pair in record.get_aligned_pairs() if None not in pair and first <= pair[0] < end]
    cigar, last = [(4, pairs[0][0])], (pairs[0][0] - 1, pairs[0][1] - 1)
    for query, place in pairs:
        for operation, size in ((1, query - last[0] - 1), (2, place - last[1] - 1), (0, 1)):
            if size and cigar[-1][0] == operation:
                cigar[-1] = (operation, cigar[-1][1] + size)
            elif size:
                cigar.append((operation, size))
        last = query, place
    cigar.append((4, len(bases) - last[0] - 1))
    new.cigartuples = [one for one in cigar if one[1]]
    new.reference_start = pairs[0][1]
    new.is_supplementary = True
    return new


@pytest.fixture(scope="module", params=["unsorted", "sorted"])
def tangled(request: pytest.FixtureRequest, made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> ReadSet:
    """Every read with overlapping alignments, some repeated, some marked as duplicates, in any order."""
    chance = random.Random(4)
    header, records = made.records()
    found = []
    for record in records:
        others = [shortened(record, first, first + 500) for first in (0, 300, 650)]
        found += [record, *others, *chance.sample([record, *others], 2)]
        marked = pysam.AlignedSegment.from_dict(others[0].to_dict(), header)
        marked.is_duplicate = True
        found.append(marked)
    chance.shuffle(found)
    if request.param == "sorted":
        found.sort(key=lambda record: (record.reference_id, record.reference_start))
    return made.with_records(tmp_path_factory.mktemp("tangled"), found, index=request.param == "sorted")


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(names: tuple[str, ...]) -> dict[str, bytes]:
    found = {name: Path(name).read_bytes() for name in names}
    for name in names:
        Path(name).unlink()
    return found


def counts_of(report: str) -> dict[str, Any]:
    return json.loads(Path(report).read_text())["run"]["counts"]


def in_parts(command: str, made: ReadSet, *options: str) -> None:
    """Work on parts as several machines would: some one by one from the last, others together, with gaps between."""
    given = (*made.options(), *options, "--plan", "plan", "--partitions", str(N_PARTS))
    assert run_command(command, *given) == 0
    for numbers in ([6], [1, 3, 4], [5], [0, 2]):
        assert run_command("run-part", "plan", *numbers) == 0
    assert run_command("finish", "plan") == 0


@pytest.mark.parametrize("options", [BOTH, ("--skip-duplicates",), ("--skip-overlaps",), (*BOTH, *FAILING)])
def test_parts_are_one_run(tangled: ReadSet, options: tuple[str, ...]) -> None:
    given = (*tangled.options(), *OUTPUTS)
    assert run_command("call-methylation", *given) == 0
    plain = contents(FILES)
    assert run_command("call-methylation", *given, *options, "--report", "one.json") == 0
    expected = contents(FILES)
    assert expected["calls.tsv"].count(b"\n") < plain["calls.tsv"].count(b"\n")
    in_parts("call-methylation", tangled, *OUTPUTS, *options, "--report", "parts.json")
    assert contents(FILES) == expected
    one, parts = counts_of("one.json"), counts_of("parts.json")
    assert parts == one
    assert (one["skipped_overlapping_sites"] > 0) == ("--skip-overlaps" in options)
    assert run_command("call-methylation", *given, *options, "--resume") == 0
    assert contents(FILES) == expected


def test_batches_of_one_read_and_several_motifs(tangled: ReadSet) -> None:
    options = ("-o", "calls.tsv", "-q", "cpg,gpc", *BOTH)
    assert run_command("call-methylation", *tangled.options(), *options) == 0
    expected = contents(("calls.tsv",))
    in_parts("call-methylation", tangled, *options, "-K", "1")
    assert contents(("calls.tsv",)) == expected


def test_events(tangled: ReadSet) -> None:
    options = ("-o", "events.tsv", "--skip-duplicates")
    assert run_command("eventalign", *tangled.options(), *options) == 0
    expected = contents(("events.tsv",))
    in_parts("eventalign", tangled, *options)
    assert contents(("events.tsv",)) == expected


@pytest.mark.parametrize("tangled", ["sorted"], indirect=True)
def test_windows_and_ultra_long_reads(tangled: ReadSet, here: Path) -> None:
    contig = tangled.records()[0].references[0]
    (here / "windows.bed").write_text(f"{contig}\t500\t3000\n{contig}\t3100\t4100\n{contig}\t6000\t11000\n")
    for limit in ("1199", "5000"):  # some reads are too long, or none
        options = ("-o", "calls.tsv", "-w", "windows.bed", "--skip-ultra", "u.bam", "--ultra-thresh", limit, *BOTH)
        assert run_command("call-methylation", *tangled.options(), *options) == 0
        expected = contents(("calls.tsv", "u.bam"))
        assert expected["calls.tsv"].count(b"\n") > 100
        folder = here / limit
        folder.mkdir()
        given = (*tangled.options(), *options, "--plan", str(folder / "plan"), "--partitions", "4")
        assert run_command("call-methylation", *given) == 0
        for number in (3, 1, 2, 0):
            assert run_command("run-part", folder / "plan", number) == 0
        assert run_command("finish", folder / "plan") == 0
        assert contents(("calls.tsv", "u.bam")) == expected


@pytest.mark.parametrize("tangled", ["unsorted"], indirect=True)
def test_alignments_that_are_read_from_the_beginning(tangled: ReadSet, here: Path) -> None:
    sam = here / "reads.sam"
    pysam.view("-h", "-o", str(sam), str(tangled.bam), catch_stdout=False)
    other = ReadSet(tangled.folder, tangled.reads, sam, tangled.genome, tangled.signal_path)
    assert run_command("call-methylation", *other.options(), *OUTPUTS, *BOTH) == 0
    expected = contents(FILES)
    in_parts("call-methylation", other, *OUTPUTS, *BOTH)
    assert contents(FILES) == expected
