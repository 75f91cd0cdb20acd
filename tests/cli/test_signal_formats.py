"""The same results from every format of the same signals, and reads whose signal is missing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from f5py.io.signals.pod5.direct_source import DirectPod5Source
from f5py.io.signals.slow5.reader import Slow5Source

from ..made_data import N_READS, ReadSet, refused, rows_by_read, run_command, run_main
from ..runs.kernel_signatures import gpus_of_small_runs

Index = Callable[[str], Path]

# Real reads


@pytest.fixture(scope="module")
def formats(ecoli: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write the signals of the E. coli reads in each format, by what ``f5py index`` is told of them."""
    folder = tmp_path_factory.mktemp("formats")
    (folder / "gzip").mkdir()
    (folder / "gzip" / "reads.fast5").symlink_to(ecoli / "formats" / "multi_gzip.fast5")
    (folder / "vbz").mkdir()
    (folder / "vbz" / "reads.fast5").symlink_to(ecoli / "formats" / "multi_vbz.fast5")
    shutil.copy(ecoli / "formats" / "reads.blow5", folder)  # its index is made beside it
    return {
        "-d single": ecoli / "fast5",
        "-d multi gzip": folder / "gzip",
        "-d multi VBZ": folder / "vbz",
        "--slow5": folder / "reads.blow5",
        "--pod5": ecoli / "formats" / "reads.pod5",
    }


@pytest.fixture(scope="module")
def index(formats: dict[str, Path], ecoli: Path, tmp_path_factory: pytest.TempPathFactory) -> Index:
    """Return a function from a format to the reads with an index that names the files of that format."""
    made: dict[str, Path] = {}

    def prepare(name: str) -> Path:
        if name not in made:
            reads = tmp_path_factory.mktemp("reads") / "reads.fasta"
            reads.symlink_to(ecoli / "reads.fasta")
            assert run_command("index", name.split()[0], formats[name], reads) == 0
            made[name] = reads
        return made[name]

    return prepare


@pytest.fixture
def run_ecoli(ecoli: Path, tmp_path: Path) -> Callable[..., bytes]:
    def run(subcommand: str, reads: Path, bam: str, *options: object) -> bytes:
        out = tmp_path / "out.txt"
        inputs = ["-r", reads, "-b", ecoli / bam, "-g", ecoli / "ref.fa", "-t", 2, "-o", out]
        assert run_command(subcommand, *inputs, *options) == 0
        return out.read_bytes()

    return run


FORMATS = ["-d single", "-d multi gzip", "-d multi VBZ", "--slow5", "--pod5"]


@pytest.mark.shared
@pytest.mark.parametrize("name", FORMATS)
def test_events_of_all_formats_are_the_same_bytes(index: Index, run_ecoli, ecoli: Path, name: str):
    """With the samples in picoamperes, and from reader processes too."""
    options = ["--samples", "--signal-index", "--hard-clips=no"]
    rows = run_ecoli("eventalign", index(name), "reads8.bam", *options, "--iop", 2)
    assert rows.count(b"\n") > 60_000
    assert rows == run_ecoli("eventalign", index(FORMATS[0]), "reads8.bam", *options)


@pytest.mark.shared
@pytest.mark.parametrize("option", ["--slow5", "--pod5"])
@pytest.mark.parametrize("iop", [1, 2])
def test_options_of_the_run_count_more_than_the_index(
    index: Index, formats: dict[str, Path], run_ecoli, tmp_path: Path, capfd, option: str, iop: int
):
    """They also do without the list of signal files in the index."""
    reads = index(FORMATS[0])
    expected = run_ecoli("call-methylation", reads, "reads8.bam")
    bare = tmp_path / "bare.fasta"
    for suffix in (".index", ".index.fai", ".index.gzi"):
        shutil.copy(f"{reads}{suffix}", f"{bare}{suffix}")
    Path(f"{bare}.index.readdb").write_text("")
    capfd.readouterr()
    for signals in (formats[option], formats[option].parent if option == "--pod5" else formats[option]):
        assert run_ecoli("call-methylation", bare, "reads8.bam", option, signals, "--iop", iop) == expected
        told = capfd.readouterr().err
        assert f"- {option[2:]} load time: " in told
        assert ("--iop has no effect on SLOW5" in told) == (option == "--slow5" and iop > 1)
    Path(f"{bare}.index.readdb").unlink()
    assert run_ecoli("call-methylation", bare, "reads8.bam", option, formats[option]) == expected


@pytest.mark.shared
@pytest.mark.parametrize("use", ["off", "on"])
@pytest.mark.parametrize("kind", [Slow5Source, DirectPod5Source])
def test_samples_that_stay_packed(
    index: Index, formats: dict[str, Path], run_ecoli, played_gpu, monkeypatch, capfd, use: str, kind: type
):
    """Until events are looked for, by whomever, or a table has them; some reads have several pieces."""
    option = "--slow5" if kind is Slow5Source else "--pod5"
    reads, packed = index(FORMATS[0]), []
    expected = run_ecoli("call-methylation", reads, "reads8.bam", "--gpu", "off")
    fetch = kind.fetch

    def noted(source, names):
        block = fetch(source, names)
        packed.append(block.packed.stored.is_packed.all() if block.packed is not None else False)
        return block

    monkeypatch.setattr(kind, "fetch", noted)
    capfd.readouterr()
    table = ["--samples", "--signal-index", "--gpu", use]
    with gpus_of_small_runs():
        assert run_ecoli("call-methylation", reads, "reads8.bam", option, formats[option], "--gpu", use) == expected
        told = capfd.readouterr().err
        rows = run_ecoli("eventalign", reads, "reads8.bam", option, formats[option], *table)
    assert (" by GPU 0, 0 by the CPU threads" in told) == (use == "on"), told
    assert packed == [True, True]
    assert rows.count(b"\n") > 60_000
    assert rows == run_ecoli("eventalign", reads, "reads8.bam", *table)


# Reads without a signal


SUFFIX = {"slow5": "blow5", "pod5": "pod5"}


def counts(messages: str) -> str:
    (line,) = [line for line in messages.splitlines() if "total entries: " in line]
    return line.split("] ", 1)[1]


@pytest.mark.parametrize("kind", ["slow5", "pod5"])
@pytest.mark.parametrize("missing", [1, N_READS // 2, N_READS - 1])
def test_a_missing_read_counts_once(made: ReadSet, made_calls: bytes, tmp_path: Path, capfd, kind: str, missing: int):
    """f5c counts it twice in SLOW5 files, and so ends with an error when half of the reads are missing."""
    there = made.names[missing:]
    changed = getattr(made, f"with_{kind}")(tmp_path, there)
    out = tmp_path / "calls.tsv"
    for options in ([], [f"--{kind}", tmp_path / f"signals.{SUFFIX[kind]}"]):
        capfd.readouterr()
        assert run_main(*changed.options(), "-o", out, *options) == 0
        told = capfd.readouterr().err
        assert counts(told) == (
            f"total entries: {N_READS}, qc fail: 0, could not calibrate: 0, no alignment: 0, bad reads: {missing}"
        )
        expected = rows_by_read(made_calls)
        assert rows_by_read(out.read_bytes()) == {name: rows for name, rows in expected.items() if name in there}
        (warning,) = [line for line in told.splitlines() if "WARNING" in line]
        assert f"{missing} of {N_READS} reads" in warning
        assert all((name in warning) == (name in made.names[: min(missing, 3)]) for name in made.names)


@pytest.mark.parametrize("kind", ["slow5", "pod5"])
@pytest.mark.parametrize("subcommand", ["call-methylation", "eventalign"])
def test_a_missing_read_can_end_the_run(made: ReadSet, tmp_path: Path, capfd, kind: str, subcommand: str):
    changed = getattr(made, f"with_{kind}")(tmp_path, made.names[1:])
    capfd.readouterr()
    options = [f"--{kind}", tmp_path / f"signals.{SUFFIX[kind]}", "--skip-unreadable=no"]
    line = refused(capfd, subcommand, *changed.options(), "-o", tmp_path / "out", *options)
    # a read can be in any POD5 file of a folder, so that none is named
    place = f"{tmp_path}/signals.blow5" if kind == "slow5" else "is in no signal file known"
    for words in (place, made.names[0], "--skip-unreadable=no", "the output is incomplete"):
        assert words in line
    assert not (tmp_path / "out").exists()
