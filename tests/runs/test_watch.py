"""A folder that is being filled is called as it is filled, with the results of one run over everything."""

from __future__ import annotations

import csv
import errno
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pysam
import pytest

from f5py.errors import InputFileError
from f5py.io.signals.run_folder import RunFolder
from f5py.runs import watch
from f5py.runs.watch import files_with_earlier_reads

from ..made_data import ReadSet, error_line, process_of, run_command, start_process, write_signals
from ..patience import PATIENCE, comes_true

pytest.importorskip("pod5")
N_BAMS, N_SIGNALS = 3, 2
OUTPUTS = ("-o", "calls.tsv", "--bedmethyl", "s.bed", "--modbam", "m.bam", "--failed-reads", "failed.tsv")
TEXTS = ("calls.tsv", "s.bed", "failed.tsv")


@pytest.fixture(scope="module")
def pieces(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Split the read set into several BAM, FASTQ and POD5 files, and run once over all of them."""
    folder = tmp_path_factory.mktemp("pieces")
    header, records = made.records()
    for i in range(N_BAMS):
        with pysam.AlignmentFile(str(folder / f"run_{i}.bam"), "wb", header=header) as bam:
            for record in records[i::N_BAMS]:
                bam.write(record)
        with (folder / f"run_{i}.fastq").open("w") as fastq:
            for record in records[i::N_BAMS]:
                bases = record.get_forward_sequence()
                fastq.write(f"@{record.query_name}\n{bases}\n+\n{'5' * len(bases or '')}\n")
    signals = made.signals()
    random.Random(5).shuffle(signals)
    for i in range(N_SIGNALS):
        write_signals(folder / f"signals_{i}.pod5", signals[i::N_SIGNALS])
    (folder / "pod5").mkdir()
    for i in range(N_SIGNALS):
        shutil.copy(folder / f"signals_{i}.pod5", folder / "pod5")
    pysam.cat("-o", str(folder / "all.bam"), *(str(folder / f"run_{i}.bam") for i in range(N_BAMS)))
    given = ("-b", folder / "all.bam", "-g", made.genome, "--pod5", folder / "pod5", "-t", "2")
    outputs = [folder / word if "." in word else word for word in OUTPUTS]
    assert run_command("call-methylation", *given, *outputs) == 0
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "run" / "bam_pass").mkdir(parents=True)
    (tmp_path / "run" / "pod5_pass").mkdir()
    return tmp_path


def watching(made: ReadSet, *options: str, outputs: tuple[str, ...] = OUTPUTS) -> list[str]:
    return [
        "call-methylation", "-g", str(made.genome), "-t", "2", "--iop", "1", "--watch", "run",
        "--watch-interval", "0.2", *outputs, *options,
    ]  # fmt: skip


def fill(pieces: Path, run: Path) -> None:
    for i in range(N_BAMS):
        shutil.copy(pieces / f"run_{i}.bam", run / "bam_pass")
    for i in range(N_SIGNALS):
        shutil.copy(pieces / f"signals_{i}.pod5", run / "pod5_pass")


def check_same(pieces: Path, here: Path) -> None:
    for name in TEXTS:
        assert (here / name).read_bytes() == (pieces / name).read_bytes(), name
    assert records(here / "m.bam") == records(pieces / "m.bam")


def records(path: Path) -> list[str]:
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        return [record.to_string() for record in file.fetch(until_eof=True)]


def test_a_folder_that_is_full(made: ReadSet, pieces: Path, here: Path):
    fill(pieces, here / "run")
    assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 0
    check_same(pieces, here)
    assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 0  # everything is done already
    check_same(pieces, here)


@pytest.mark.parametrize("seed", range(3))
def test_a_folder_that_is_being_filled(made: ReadSet, pieces: Path, here: Path, seed: int):
    """Files come in any order, some in pieces, some renamed; the first process is killed or interrupted."""
    process = start_process(process_of(*watching(made, "--watch-until-idle", "0.06")), stderr=subprocess.DEVNULL)
    chance = random.Random(seed)
    files = [(path, here / "run" / "bam_pass") for path in pieces.glob("run_?.bam")]
    files += [(path, here / "run" / "pod5_pass") for path in pieces.glob("signals_?.pod5")]
    chance.shuffle(files)
    writers = [threading.Thread(target=deliver, args=(*file, chance.random())) for file in files]
    for writer in writers:
        writer.start()
    if seed:
        time.sleep(1.3)
        process.send_signal(signal.SIGKILL if seed == 1 else signal.SIGINT)
        process.wait(timeout=PATIENCE)
    for writer in writers:
        writer.join()
    if seed:
        assert run_command(*watching(made, "--watch-until-idle", "0.02")) == 0
    else:
        assert process.wait(timeout=PATIENCE) == 0
    check_same(pieces, here)


@pytest.mark.parametrize("when", range(N_BAMS))
def test_ctrl_c_waits_for_the_file_at_work(
    made: ReadSet, pieces: Path, here: Path, monkeypatch: pytest.MonkeyPatch, when: int
):
    """And what is there is called before the results are written."""
    fill(pieces, here / "run")
    begun = []

    def run_parts(*arguments: object) -> None:
        if len(begun) == when:
            signal.raise_signal(signal.SIGINT)
        begun.append(arguments)
        run_parts_as_usual(*arguments)

    run_parts_as_usual = watch.run_parts
    monkeypatch.setattr(watch, "run_parts", run_parts)
    assert run_command(*watching(made)) == 0
    assert len(begun) == N_BAMS
    check_same(pieces, here)


def test_ctrl_c_twice(made: ReadSet, pieces: Path, here: Path, monkeypatch: pytest.MonkeyPatch):
    fill(pieces, here / "run")

    def run_parts(*_: object) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patched:
        patched.setattr(watch, "run_parts", run_parts)
        assert run_command(*watching(made)) == 130
    assert not (here / "calls.tsv").exists()
    assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 0
    check_same(pieces, here)


def deliver(path: Path, folder: Path, chance: float) -> None:
    """Put a file into a folder: in pieces, under another name first, or at once."""
    time.sleep(1.6 * chance)
    content = path.read_bytes()
    if chance < 0.4:
        with (folder / path.name).open("wb", buffering=0) as file:
            for begin in range(0, len(content), len(content) // 4):
                file.write(content[begin : begin + len(content) // 4])
                time.sleep(0.25)  # longer than from one look to the next
    elif chance < 0.7:
        (folder / f".{path.name}.part").write_bytes(content)
        (folder / f".{path.name}.part").rename(folder / path.name)
    else:
        shutil.copy(path, folder)


def test_half_written_files_are_left_alone(made: ReadSet, pieces: Path, here: Path):
    from f5py.io.signals.run_folder import RunFolder

    fill(pieces, here / "run")
    for path in [*(here / "run").rglob("*.bam"), *(here / "run").rglob("*.pod5")]:
        path.write_bytes(path.read_bytes()[:-1])
    (here / "run" / "fastq_fail").mkdir()
    shutil.copy(pieces / "run_0.fastq", here / "run" / "fastq_fail")
    (here / "run" / ".hidden.bam").write_bytes((pieces / "run_0.bam").read_bytes())
    folder = RunFolder("run")
    for _ in range(3):
        found = folder.look()
        assert (found.alignments, found.reads, found.signals) == ([], [], [])
    assert len(found.unfinished) == N_BAMS + N_SIGNALS
    assert not found.is_growing
    fill(pieces, here / "run")
    assert folder.look().alignments == []  # they have just changed
    assert len(folder.look().alignments) == N_BAMS


def test_a_file_that_stays_incomplete(made: ReadSet, pieces: Path, here: Path, capfd: pytest.CaptureFixture[str]):
    """It keeps nobody waiting, and is named."""
    fill(pieces, here / "run")
    (here / "run" / "cut.bam").write_bytes((pieces / "run_0.bam").read_bytes()[:3000])
    (here / "run" / "empty.pod5").touch()
    assert run_command(*watching(made, "--watch-until-idle", "0.01")) == 0
    check_same(pieces, here)
    messages = capfd.readouterr().err
    assert "watch::WARNING] cut.bam, empty.pod5 in run are not complete and were left out" in messages


def test_running_totals(made: ReadSet, pieces: Path, here: Path):
    """The counts of sites and the report are there before the end."""
    fill(pieces, here / "run")
    (here / "run" / "bam_pass" / "run_2.bam").unlink()
    command = watching(made, "--report", "report.json")
    process = start_process(process_of(*command), stderr=subprocess.DEVNULL)
    wait_for(lambda: (here / "report.json").exists())
    wait_for(lambda: json.loads((here / "report.json").read_text())["run"]["counts"]["total_entries"] > 0)
    assert (here / "s.bed").stat().st_size > 0
    assert not (here / "calls.tsv").exists()
    shutil.copy(pieces / "run_2.bam", here / "run" / "bam_pass")
    wait_for(lambda: (here / "calls.tsv.f5py-watch" / "files" / "bam_pass%2Frun_2.bam" / "parts" / "0").exists())
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=PATIENCE) == 0
    check_same(pieces, here)


def wait_for(holds: Callable[[], object]) -> None:
    assert comes_true(holds)


def test_two_processes_share_a_folder(made: ReadSet, pieces: Path, here: Path):
    fill(pieces, here / "run")
    tables = []
    for i in range(2):
        options = ("-c", "2", "-i", str(i), "--watch-until-idle", "0.005")
        assert run_command(*watching(made, *options, outputs=("-o", f"{i}.tsv"))) == 0
        tables += (here / f"{i}.tsv").read_text().splitlines()[1:]
    assert sorted(tables) == sorted((pieces / "calls.tsv").read_text().splitlines()[1:])


def test_fastq_is_mapped(made: ReadSet, pieces: Path, here: Path):
    fill(pieces, here / "run")
    shutil.rmtree(here / "run" / "bam_pass")
    (here / "run" / "fastq_pass").mkdir()
    for i in range(N_BAMS):
        shutil.copy(pieces / f"run_{i}.fastq", here / "run" / "fastq_pass")
    assert run_command(*watching(made, "--watch-until-idle", "0.005", "--plan", "plan")) == 0
    called = {line.split("\t")[4] for line in (here / "calls.tsv").read_text().splitlines()[1:]}
    assert called == {line.split("\t")[4] for line in (pieces / "calls.tsv").read_text().splitlines()[1:]}
    assert len(list((here / "plan" / "mapped").glob("*.bam"))) == N_BAMS


@pytest.mark.parametrize("comes_later", [False, True])
def test_reads_that_come_as_fastq_and_as_bam_count_once(
    made: ReadSet, pieces: Path, here: Path, comes_later: bool, capfd: pytest.CaptureFixture[str]
):
    """BAM is taken if there is any, even half-written; if it comes after FASTQ has been mapped, it is left alone."""
    fill(pieces, here / "run")
    shutil.copy(pieces / "run_0.fastq", here / "run")
    if comes_later:
        for i in range(N_BAMS):
            (here / "run" / "bam_pass" / f"run_{i}.bam").unlink()
        assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 0
        one = (here / "calls.tsv").read_bytes()
        fill(pieces, here / "run")
        assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 0
        assert "they are left alone" in capfd.readouterr().err
        assert (here / "calls.tsv").read_bytes() == one
    else:
        assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 0
        check_same(pieces, here)


def test_a_damaged_file_stops_nothing(made: ReadSet, pieces: Path, here: Path, capfd: pytest.CaptureFixture[str]):
    fill(pieces, here / "run")
    content = bytearray((pieces / "run_0.bam").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (here / "run" / "bam_pass" / "bad_9.bam").write_bytes(content)
    assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 1
    assert "bam_pass/bad_9.bam was left out" in error_line(capfd.readouterr().err)
    check_same(pieces, here)


def test_files_that_were_taken_away(made: ReadSet, pieces: Path, here: Path):
    fill(pieces, here / "run")
    assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 0
    (here / "run" / "bam_pass" / "run_0.bam").unlink()
    (here / "calls.tsv").unlink()
    assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 0
    check_same(pieces, here)


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["-b", "x.bam"], 2, "both given"),
        (["-w", "x:1-2"], 2, "--window"),
        (["--resume"], 2, "--resume"),
        (["--output-format", "none", "-o", "-"], 2, "nothing to write"),
        (["-c", "2", "-i", "2"], 2, "--watch-process-index 2"),
        (["--watch-write-bam"], 2, "below mapped"),
        ([], 1, "nothing was called"),
    ],
)
def test_refused(
    made: ReadSet, here: Path, options: list[str], status: int, message: str, capfd: pytest.CaptureFixture[str]
):
    outputs = () if "-o" in options else ("-o", "x.tsv")
    assert run_command(*watching(made, "--watch-until-idle", "0.001", *options, outputs=outputs)) == status
    assert message in error_line(capfd.readouterr().err)


def test_options_of_watching_need_a_folder(made: ReadSet, capfd: pytest.CaptureFixture[str]):
    assert run_command("call-methylation", *made.options(), "--watch-until-idle", "3") == 2
    assert "--watch-until-idle needs --watch" in error_line(capfd.readouterr().err)


def test_other_options_than_before(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 1  # there is nothing
    capfd.readouterr()
    assert run_command(*watching(made, "--watch-until-idle", "0.005", "--min-mapq", "0")) == 2
    assert "--min-mapq: 20 then, 0 now" in error_line(capfd.readouterr().err)
    assert os.path.isdir("calls.tsv.f5py-watch")


def test_tables_of_csv(made: ReadSet, pieces: Path, here: Path):
    fill(pieces, here / "run")
    outputs = ("-o", "calls.csv", "--failed-reads", "failed.csv")
    assert run_command(*watching(made, "--watch-until-idle", "0.005", outputs=outputs)) == 0
    for name in ("calls", "failed"):
        with (here / f"{name}.csv").open(newline="") as file:
            rows = list(csv.reader(file))
        assert rows == [line.split("\t") for line in (pieces / f"{name}.tsv").read_text().splitlines()]


@pytest.mark.parametrize("options", [("--skip-duplicates",), ("--skip-overlaps",)])
def test_reads_of_several_files(
    made: ReadSet, pieces: Path, here: Path, options: tuple[str, ...], capfd: pytest.CaptureFixture[str]
):
    """The file that is called first comes last, and has reads of the other ones, of which one has those of another."""
    header, all_records = made.records()
    run = here / "run" / "bam_pass"
    shares = {"a": all_records[:6], "b": all_records[4:9], "c": all_records[2:8], "d": all_records[9:]}
    for name, some in shares.items():
        with pysam.AlignmentFile(str(here / f"{name}.bam"), "wb", header=header) as bam:
            for i, record in enumerate(some):
                other = pysam.AlignedSegment.from_dict(record.to_dict(), record.header)
                other.is_supplementary = name == "c" and i % 2 == 0
                bam.write(other)
    pysam.cat("-o", str(here / "all.bam"), *(str(here / f"{name}.bam") for name in shares))
    given = ("-b", here / "all.bam", "-g", made.genome, "--pod5", pieces / "pod5", "-t", "2")
    assert run_command("call-methylation", *given, *OUTPUTS, *options, "--report", "one.json") == 0
    expected = {name: (here / name).read_bytes() for name in TEXTS}
    tagged = records(here / "m.bam")
    for i in range(N_SIGNALS):
        shutil.copy(pieces / f"signals_{i}.pod5", here / "run" / "pod5_pass")
    stop = ("--watch-until-idle", "0.005", "--report", "watched.json")
    for names in ("cd", "ab"):
        for name in names:
            shutil.copy(here / f"{name}.bam", run)
        capfd.readouterr()
        assert run_command(*watching(made, *stop, *options)) == 0
    told = capfd.readouterr().err
    assert [name for name in shares if f"{name}.bam: has reads of files before it; it is called again" in told] == [
        "b",
        "c",
    ]
    assert {name: (here / name).read_bytes() for name in TEXTS} == expected
    assert records(here / "m.bam") == tagged
    counts = [json.loads((here / f"{name}.json").read_text())["run"]["counts"] for name in ("one", "watched")]
    assert counts[0] == counts[1]
    (run / "a.bam").unlink()
    assert run_command(*watching(made, *stop, *options)) == 0
    assert "bam_pass/a.bam: removed since the calls; whether other files" in capfd.readouterr().err


def test_files_that_share_reads_but_no_reference(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    header, all_records = made.records()
    other = header.to_dict()
    other["SQ"] = [*other["SQ"], {"SN": "more", "LN": 1000}]
    paths = []
    for name, one in (("a", header), ("b", pysam.AlignmentHeader.from_dict(other))):
        paths.append(str(here / f"{name}.bam"))
        with pysam.AlignmentFile(paths[-1], "wb", header=one) as bam:
            bam.write(all_records[0])
    with pytest.raises(InputFileError, match="which was mapped to other contigs; map both to one reference"):
        list(files_with_earlier_reads(paths, str(here)))


def test_links_are_followed_once(made: ReadSet, pieces: Path, here: Path):
    """Also where they lead back, and where they lead to nothing."""
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    fill(pieces, here / "run")
    os.rename(here / "run" / "pod5_pass", elsewhere / "pod5_pass")
    (here / "run" / "linked").symlink_to(elsewhere)
    (elsewhere / "back").symlink_to(here / "run")
    (here / "run" / "bam_pass" / "up").symlink_to("..")
    (here / "run" / "bam_pass" / "lost.bam").symlink_to("nowhere.bam")
    folder = RunFolder("run")
    for _ in range(2):
        found = folder.look()
    assert found.alignments == [f"bam_pass/run_{i}.bam" for i in range(N_BAMS)]
    assert [name for name, _ in found.signals] == [f"linked/pod5_pass/signals_{i}.pod5" for i in range(N_SIGNALS)]
    assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 0
    check_same(pieces, here)


def test_folders_that_cannot_be_listed(
    made: ReadSet, pieces: Path, here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    """One that may not be read would lose its files without a word; one that has been renamed meanwhile comes again."""
    fill(pieces, here / "run")
    list_folder = os.scandir

    def refuse(number: int) -> None:
        def scandir(path: str) -> object:
            if str(path).endswith("pod5_pass"):
                raise OSError(number, os.strerror(number), path)
            return list_folder(path)

        monkeypatch.setattr(os, "scandir", scandir)

    refuse(errno.ENOENT)
    assert RunFolder("run").look().signals == []
    refuse(errno.EACCES)
    assert run_command(*watching(made, "--watch-until-idle", "0.005")) == 1
    assert error_line(capfd.readouterr().err).endswith("--watch run/pod5_pass: cannot be read: Permission denied")
