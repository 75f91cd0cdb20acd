"""Faults of the system's calls at every output and input: one line that names the file, and all else intact."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..made_data import ReadSet, error_line, run_process

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: libraries are put before others there"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler (cc)"),
]
#: Outputs of a run, by option.
OUTPUTS = {
    "-o": "calls.tsv",
    "--modbam": "tagged.bam",
    "--bedmethyl": "sites.bed.gz",
    "--failed-reads": "failed.tsv",
    "--report": "report.json",
}
#: Whose rows until an error are kept.
_TABLES = ("calls.tsv", "failed.tsv")


@pytest.fixture(scope="module")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    library = tmp_path_factory.mktemp("layer") / "faults.so"
    source = Path(__file__).with_name("faults.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-pthread", "-o", str(library), str(source), "-ldl"], check=True)
    return library


@pytest.fixture(scope="module")
def inputs(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> ReadSet:
    """Signals in BLOW5, of one read less, so that there is a failed one."""
    return made.with_slow5(tmp_path_factory.mktemp("blow5"), made.names[:-1])


def run(
    layer: Path, inputs: ReadSet, folder: Path, fault: str, *options: object, refused: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run with all outputs in `folder`."""
    command = inputs.command("-K", "4", *map(str, options))
    for option, name in OUTPUTS.items():
        command += [option, str(folder / name)]
    environment = os.environ | {"LD_PRELOAD": str(layer), "F5PY_FAULT": fault, "F5PY_REFUSED": refused}
    return run_process(command, text=True, env=environment)


@pytest.fixture(scope="module")
def sound(layer: Path, inputs: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("sound")
    ran = run(layer, inputs, folder, "none:0:none:1")
    assert ran.returncode == 0, ran.stderr
    return contents(folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def assert_intact(folder: Path, sound: dict[str, bytes], but: str = "") -> None:
    """Rows of tables that end early keep an unfinished name; other files are complete or absent."""
    for name, content in contents(folder).items():
        if (table := name.removeprefix(".unfinished-")) != name and table in _TABLES:
            assert sound[table].startswith(content), name
            assert content == b"" or content.endswith(b"\n"), name
        # those name the command, times and this folder; where records are in a BAM file depends on that
        elif name not in ("report.json", "tagged.bam", "tagged.bam.bai"):
            assert content == sound[name], name
        else:
            assert name != but


@pytest.mark.parametrize("name", OUTPUTS.values())
@pytest.mark.parametrize(
    ("call", "number", "nth"),
    [("write", errno.ENOSPC, 1), ("write", errno.EIO, 2), ("close", errno.EIO, 1), ("rename", errno.EACCES, 1),
     ("open", errno.EMFILE, 1)],
)  # fmt: skip
def test_an_output_that_fails(
    layer: Path, inputs: ReadSet, sound: dict[str, bytes], tmp_path: Path, name: str, call: str, number: int, nth: int
) -> None:
    ran = run(layer, inputs, tmp_path, f"{call}:{number}:{name}:{nth}")
    if ran.returncode == 0:  # less calls than that
        assert nth > 1
        assert {path: content for path, content in contents(tmp_path).items() if path in _TABLES} == {
            path: sound[path] for path in _TABLES
        }
        return
    assert ran.returncode == 1
    line = error_line(ran.stderr)
    assert str(tmp_path / name) in line
    assert os.strerror(number) in line or "its index cannot be written" in line  # htslib tells no more
    assert_intact(tmp_path, sound, name)


@pytest.mark.parametrize("kind", ["slow5", "fast5", "pod5"])
def test_a_sandbox_that_refuses_what_is_not_needed(
    layer: Path, made: ReadSet, inputs: ReadSet, sound: dict[str, bytes], tmp_path: Path, kind: str
) -> None:
    """Also what libraries in C call, and the processes that read signals."""
    chosen = {"slow5": lambda: inputs, "fast5": lambda: made, "pod5": lambda: made.with_pod5(tmp_path)}[kind]()
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "calls.tsv").touch(0o600)
    refused = "chmod,fchmod,fchown,flock,fsync,madvise,memfd_create,sched_setaffinity,statvfs,prctl"
    ran = run(layer, chosen, folder, "none:0:none:1", "--iop", 2, refused=refused)
    assert ran.returncode == 0, ran.stderr
    assert "ERROR" not in ran.stderr
    names = ("calls.tsv", "sites.bed.gz") if kind == "slow5" else ("calls.tsv",)
    found = contents(folder)
    assert found.keys() == sound.keys()
    for name in names:  # of the other kinds no signal is left out
        rows = sound[name].splitlines()
        assert set(rows) <= set(found[name].splitlines()) if kind != "slow5" else found[name] == sound[name]


@pytest.mark.parametrize("how", ["read:short", "read:eintr", "write:short", "write:eintr"])
def test_short_and_interrupted_transfers_change_nothing(
    layer: Path, inputs: ReadSet, sound: dict[str, bytes], tmp_path: Path, how: str
) -> None:
    part = str(tmp_path) if how.startswith("write") else inputs.folder.parent.name
    ran = run(layer, inputs, tmp_path, f"{how}:{part}:1")
    assert ran.returncode == 0, ran.stderr
    found = contents(tmp_path)
    assert set(found) == set(sound)
    assert all(found[name] == sound[name] for name in ("calls.tsv", "failed.tsv", "sites.bed.gz"))


@pytest.mark.parametrize("kind", ["reads", "bam", "genome", "slow5", "fast5", "pod5"])
@pytest.mark.parametrize(("number", "nth"), [(errno.EIO, 1), (errno.ESTALE, 3)])
def test_an_input_that_cannot_be_read(
    layer: Path,
    made: ReadSet,
    inputs: ReadSet,
    sound: dict[str, bytes],
    tmp_path: Path,
    kind: str,
    number: int,
    nth: int,
) -> None:
    """An error of the machine is one of the run, and no bad read."""
    folder = tmp_path / "out"
    folder.mkdir()
    options: list[object] = []
    chosen, part = inputs, {"reads": "slow5.fasta.index", "bam": "reads.bam", "genome": "ref.fa"}.get(kind, "")
    if kind == "slow5":
        part = "signals.blow5"
    elif kind == "fast5":
        chosen, part = made, ".fast5"
    elif kind == "pod5":
        chosen, part = made.with_pod5(tmp_path), ".pod5"
    ran = run(layer, chosen, folder, f"read:{number}:{part}:{nth}", *options)
    if ran.returncode == 0:  # it is read in fewer pieces, or mapped into memory
        assert nth > 1 or kind in ("pod5", "reads", "genome")
        assert contents(folder)["calls.tsv"].startswith(sound["calls.tsv"])
        return
    assert ran.returncode == 1
    line = error_line(ran.stderr)
    assert part in line
    assert os.strerror(number) in line or (kind == "bam" and "cannot read as SAM, BAM or CRAM" in line)
    for name, content in contents(folder).items():
        assert name in _TABLES
        assert content == b"" or content.endswith(b"\n")
