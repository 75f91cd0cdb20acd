"""Plans and parts that are damaged, exchanged or made to do harm: one line of an error, and no file is touched."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from f5py.errors import DamagedValueError
from f5py.jit import instructions
from f5py.options import declarations
from f5py.runs.parts import done_part, part_outputs
from f5py.runs.parts.done_part import RECORD, with_checksum
from f5py.runs.parts.plan import OPTIONS_OF, planned_options

from ...made_data import ReadSet, error_line, refused, run_command

OUTPUTS = ("-o", "calls.tsv", "--bedmethyl", "s.bed", "--modbam", "m.bam", "--failed-reads", "failed.tsv")
SECRET = b"a file of the user\n" * 1000


@pytest.fixture
def planned(made: ReadSet, here: Path) -> Path:
    """Make a plan of three parts, of which the last is not done."""
    assert run_command("call-methylation", *made.options(), *OUTPUTS, "--plan", "plan", "--partitions", "3") == 0
    assert run_command("run-part", "plan", "0", "1") == 0
    (here / "secret").write_bytes(SECRET)
    return here / "plan"


@pytest.fixture
def done(planned: Path) -> Path:
    """Do all parts in one process, so that their table is one file."""
    for folder in (planned / "parts" / "0", planned / "parts" / "1", planned / "tables"):
        shutil.rmtree(folder)
    assert run_command("run-part", "plan") == 0
    return planned


def changed(path: Path, change: Callable[[Any], Any]) -> None:
    """Change what JSON says; a part's record gets a checksum that fits, as whoever makes a plan can give it."""
    content = json.loads(path.read_text())
    has_checksum = path.name == RECORD and content.pop("checksum") is not None
    content = change(content) or content
    path.write_bytes(
        with_checksum(content) if has_checksum and isinstance(content, dict) else json.dumps(content).encode()
    )


def table_of(plan: Path, number: int) -> Path:
    return plan / "tables" / json.loads((plan / "parts" / str(number) / "part.json").read_text())["table"][0]


# Nothing outside of the folder is read or written


@pytest.mark.parametrize("name", ["../../secret", "../../../secret", "/etc/hostname", "..", "a/b.txt", "x\0y", ""])
def test_a_table_elsewhere(planned: Path, name: str, capfd: pytest.CaptureFixture[str]):
    def elsewhere(content: Any) -> None:
        content["table"][0] = name
        content["table"][1:3] = 0, 10
        content["host"] = os.uname().nodename

    changed(planned / "parts" / "1" / "part.json", elsewhere)
    capfd.readouterr()
    assert run_command("run-part", "plan") == 0  # which does not need the part before
    assert "parts/1: is damaged" in refused(capfd, "finish", "plan")
    assert (planned.parent / "secret").read_bytes() == SECRET
    assert not (planned.parent / "calls.tsv").exists()


@pytest.mark.parametrize("ending", ["txt", "npz", "bam", "json"])
def test_files_that_are_links(done: Path, ending: str, capfd: pytest.CaptureFixture[str]):
    """To files with the right content, even."""
    paths = {"txt": table_of(done, 1)} | {path.suffix[1:]: path for path in (done / "parts" / "1").iterdir()}
    elsewhere = done.parent / f"elsewhere.{ending}"
    shutil.move(paths[ending], elsewhere)
    paths[ending].symlink_to(elsewhere)
    content = elsewhere.read_bytes()
    assert "link, which is not followed" in refused(capfd, "finish", "plan")
    shutil.rmtree(done / "parts" / "2")
    assert run_command("run-part", "plan") == 0
    assert elsewhere.read_bytes() == content


@pytest.mark.parametrize("name", ["parts", "tables", "parts/1", "plan.json"])
def test_folders_that_are_links(done: Path, name: str, capfd: pytest.CaptureFixture[str]):
    elsewhere = done.parent / "elsewhere"
    shutil.move(done / name, elsewhere)
    (done / name).symlink_to(elsewhere)
    before = sorted(elsewhere.rglob("*"))
    for command in ("run-part", "finish"):
        if name != "parts/1" or command == "finish":
            assert "link" in refused(capfd, command, "plan") or name == "parts/1"
    assert sorted(elsewhere.rglob("*")) == before


def test_a_pipe_is_not_waited_for(done: Path, capfd: pytest.CaptureFixture[str]):
    (done / "parts" / "1" / "sites.npz").unlink()
    os.mkfifo(done / "parts" / "1" / "sites.npz")
    assert "is not a regular file" in refused(capfd, "finish", "plan")


# Scripts


def test_a_script_has_no_lines_of_the_plan(planned: Path, capfd: pytest.CaptureFixture[str]):
    changed(planned / "plan.json", lambda content: content["options"].update(threads="1\ntouch pwned"))
    assert "options.threads has a value that this option cannot have" in refused(capfd, "plan", "plan", "--print-slurm")


@pytest.mark.parametrize("name", ["a b", "it's", "x;touch pwned", "$(touch pwned)", "`touch pwned`", "100%", "a#b"])
def test_folders_in_scripts_are_quoted(planned: Path, name: str, capfd: pytest.CaptureFixture[str]):
    folder = planned.parent / name
    planned.rename(folder)
    capfd.readouterr()
    assert run_command("plan", name, "--print-slurm") == 0
    script = capfd.readouterr().out
    environment = {**os.environ, "SLURM_ARRAY_TASK_ID": "0", "SLURM_CPUS_PER_TASK": "1"}
    said = subprocess.run(
        ["bash"], input=script.replace("f5py run-part", "printf '%s\\n'"), text=True, env=environment,
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    assert said.splitlines()[0] == str(folder)
    assert not (planned.parent / "pwned").exists()


def test_a_folder_that_no_script_can_name(planned: Path, capfd: pytest.CaptureFixture[str]):
    planned.rename(planned.parent / "a\ntouch pwned\nb")
    assert "control characters" in refused(capfd, "plan", "a\ntouch pwned\nb", "--print-slurm", status=2)


# What is not as written


def flipped(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["sites.npz", "modbam.bam", "failed_reads.tsv", "table"])
def test_a_flipped_bit_in_a_file_of_a_part(done: Path, name: str, capfd: pytest.CaptureFixture[str]):
    rng = random.Random(name)
    path = table_of(done, 1) if name == "table" else done / "parts" / "1" / name
    sound = path.read_bytes()
    names = ("calls.tsv", "s.bed", "m.bam", "failed.tsv")
    assert run_command("finish", "plan") == 0
    expected = {one: (done.parent / one).read_bytes() for one in names}
    for _ in range(5):
        for one in names:
            (done.parent / one).unlink(missing_ok=True)
        flipped(path, rng)
        assert "changed since" in refused(capfd, "finish", "plan")
        for one in names:  # a table that has no damage may be there
            assert not (done.parent / one).exists() or (done.parent / one).read_bytes() == expected[one]
        path.write_bytes(sound)


def test_a_flipped_bit_in_a_record(done: Path, capfd: pytest.CaptureFixture[str]):
    """Also in a figure that the report alone shows."""
    path = done / "parts" / "1" / "part.json"
    sound = path.read_bytes()
    values = json.loads(sound)
    for seed in range(25):
        flipped(path, random.Random(seed))
        try:
            is_same = json.loads(path.read_bytes()) == values
        except ValueError:
            is_same = False
        if not is_same:
            assert "parts/1: is damaged" in refused(capfd, "finish", "plan")
        path.write_bytes(sound)
    assert run_command("finish", "plan") == 0


@pytest.mark.parametrize("table", ["c.parquet", "e.parquet"])
def test_flipped_bits_in_rows_of_parquet(made: ReadSet, here: Path, table: str, capfd: pytest.CaptureFixture[str]):
    pytest.importorskip("pyarrow")
    command = "call-methylation" if table == "c.parquet" else "eventalign"
    assert run_command(command, *made.options(), "-o", table, "--plan", "plan", "--partitions", "2") == 0
    assert run_command("run-part", "plan") == 0
    path = here / "plan" / "parts" / "1" / "table.parquet"
    sound = path.read_bytes()
    for seed in range(10):
        flipped(path, random.Random(seed))
        assert "table.parquet has changed since it was written" in refused(capfd, "finish", "plan")
        assert not (here / table).exists()
    path.write_bytes(sound)
    assert run_command("finish", "plan") == 0


def exchange(plan: Path) -> str:
    parts = plan / "parts"
    (parts / "0").rename(parts / "x")
    (parts / "1").rename(parts / "0")
    (parts / "x").rename(parts / "1")
    return "it is part 1 of this plan under another name"


def twice(plan: Path) -> str:
    shutil.rmtree(plan / "parts" / "1")
    shutil.copytree(plan / "parts" / "0", plan / "parts" / "1")
    return "it is part 0 of this plan under another name"


@pytest.mark.parametrize("disorder", [exchange, twice])
def test_exchanged_parts(done: Path, disorder: Callable[[Path], str], capfd: pytest.CaptureFixture[str]):
    assert disorder(done) in refused(capfd, "finish", "plan")


def test_a_part_of_another_plan(done: Path, made: ReadSet, capfd: pytest.CaptureFixture[str]):
    given = (*made.options(), *OUTPUTS, "--min-separation", "2", "--plan", "other", "--partitions", "3")
    assert run_command("call-methylation", *given) == 0
    assert run_command("run-part", "other") == 0
    other = done.parent / "other"
    shutil.rmtree(done / "parts" / "1")
    shutil.copytree(other / "parts" / "1", done / "parts" / "1")
    for path in (other / "tables").iterdir():
        shutil.copy(path, done / "tables")
    assert "it is a part of another plan" in refused(capfd, "finish", "plan")


def without_fused_sums(monkeypatch: pytest.MonkeyPatch, has: bool) -> None:
    for module in (instructions, done_part, part_outputs):
        monkeypatch.setattr(module, "processor_has_fused_sums", lambda: has)


def test_processors_are_not_mixed(planned: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]):
    has = done_part.processor_has_fused_sums()
    without_fused_sums(monkeypatch, not has)
    assert "multiply-add, unlike that of this machine" in refused(capfd, "run-part", "plan")
    without_fused_sums(monkeypatch, has)
    assert run_command("run-part", "plan") == 0
    changed(planned / "parts" / "1" / "part.json", lambda content: content.update(has_fused_sums=not has))
    assert "last digits would differ" in refused(capfd, "finish", "plan")
    assert not (planned.parent / "calls.tsv").exists()


# Other types and bounds

PLANS: list[Callable[[Any], Any]] = [
    lambda j: [1],
    lambda j: j.pop("command") and None,
    lambda j: j.update(command="rm"),
    lambda j: j.update(command=5),
    lambda j: j.update(ranges=None),
    lambda j: j.update(ranges=[[0, None]]),
    lambda j: j.update(ranges=[[0, None, 0.5]]),
    lambda j: j.update(ranges=[["0", None, 0]]),
    lambda j: j.update(ranges=[[-7, None, 0]]),
    lambda j: j.update(ranges=[[2**70, None, 0]]),
    lambda j: j["options"].update(zz=1),
    lambda j: j["options"].pop("bam") and None,
    lambda j: j["options"].update(bam=None),
    lambda j: j["options"].update(bam="a\0b"),
    lambda j: j["options"].update(threads=2**80),
    lambda j: j["options"].update(batchsize=True),
    lambda j: j["options"].update(min_mapq=-1.5),
    lambda j: j.update(options=[1]),
    lambda j: j.update(working_folder=[]),
    lambda j: j.update(working_folder="\ud800"),
    lambda j: j.update(format=1),
    lambda j: j.update(version=None),
    lambda j: j.update(more=1),
    lambda j: next(iter(j["inputs"].values())).pop("sha256") and None,
    lambda j: next(iter(j["inputs"].values())).update(bytes=-1),
    lambda j: j.update(inputs={"x": 5}),
]
RECORDS: list[Callable[[Any], Any]] = [
    lambda j: [1],
    lambda j: j.update(table=5),
    lambda j: j["table"].append(1),
    lambda j: j["table"].__setitem__(1, 2**70),
    lambda j: j["table"].__setitem__(1, j["table"][2] + 1),
    lambda j: j.pop("outcome") and None,
    lambda j: j.pop("has_known", True) and None,
    lambda j: j.update(has_known=1),
    lambda j: j["outcome"]["counts"].update(total="x"),
    lambda j: j["outcome"]["counts"].update(total=-1),
    lambda j: j["outcome"]["counts"].update(causes=[1]),
    lambda j: j["outcome"]["counts"].update(examples=[5]),
    lambda j: j["outcome"].update(processing=1e400),
    lambda j: j["outcome"].update(stages=[]),
    lambda j: j["outcome"]["skipped"].update(more=1),
    lambda j: j.update(files=3),
    lambda j: j.update(files={"../x": [0, 0]}),
    lambda j: j.update(files={}),
    lambda j: j.update(seconds="1"),
    lambda j: j.update(host=None),
]


@pytest.mark.parametrize("command", [("finish",), ("run-part",), ("plan",), ("plan", "--estimate")], ids=" ".join)
def test_plans_with_other_values(planned: Path, command: tuple[str, ...], capfd: pytest.CaptureFixture[str]):
    sound = (planned / "plan.json").read_bytes()
    for at, change in enumerate(PLANS):
        changed(planned / "plan.json", change)
        line = refused(capfd, command[0], "plan", *command[1:])
        assert "plan.json: is " in line, (at, line)
        (planned / "plan.json").write_bytes(sound)
    for text in (b"[" * 200_000, b"", b"\xff\xfe", b'{"format": 2', b"NaN"):
        (planned / "plan.json").write_bytes(text)
        assert "plan.json: is damaged" in refused(capfd, command[0], "plan", *command[1:])


@pytest.mark.parametrize("command", [("finish",), ("plan", "--estimate")], ids=" ".join)
def test_records_with_other_values(done: Path, command: tuple[str, ...], capfd: pytest.CaptureFixture[str]):
    path = done / "parts" / "1" / "part.json"
    sound = path.read_bytes()
    for at, change in enumerate(RECORDS):
        changed(path, change)
        if command == ("plan", "--estimate") and b'"files": {}' in path.read_bytes():
            continue  # its files are not asked for
        line = refused(capfd, command[0], "plan", *command[1:])
        assert "parts/1: is damaged" in line, (at, line)
        path.write_bytes(sound)


def test_names_that_are_no_parts(done: Path):
    for name in ("²", "01", "-1", "9" * 30, "x", "1 "):
        (done / "parts" / name).mkdir()
    assert run_command("finish", "plan") == 0


@pytest.mark.parametrize("command", sorted(OPTIONS_OF))
def test_options_come_back_as_they_were(command: str):
    kind = OPTIONS_OF[command]
    declared = declarations(kind)
    required = {
        field.name: ("x",) if declared[field.name].repeated else "x"
        for field in dataclasses.fields(kind)
        if field.default is dataclasses.MISSING
    }
    options = kind(**required)
    kept = json.loads(json.dumps(dataclasses.asdict(options)))
    assert vars(planned_options(command, kept)) == vars(options)
    for name, value in kept.items():
        for other in ([], {}, 2**80, "x\0y"):
            if type(other) is not type(value):
                with pytest.raises(DamagedValueError):
                    planned_options(command, kept | {name: other})


def test_a_tag_of_a_plan_is_a_tag(planned: Path, capfd: pytest.CaptureFixture[str]):
    for tag in ("H", "HPX", "P" * 4000, "é1"):
        changed(planned / "plan.json", lambda content, tag=tag: content["options"].update(partition_tag=tag))
        assert "must be the two characters of a tag" in refused(capfd, "run-part", "plan")


# Finished again, or ended before


def test_finishing_twice_leaves_nothing(done: Path, capfd: pytest.CaptureFixture[str]):
    for _ in range(3):
        assert run_command("finish", "plan") == 0
        assert [path.name for path in done.parent.iterdir() if "unfinished" in path.name] == []
    assert (done.parent / "calls.tsv").samefile(table_of(done, 0))


def test_a_link_of_a_killed_run_is_taken_up(done: Path):
    """It was made, and had not got its name."""
    os.link(table_of(done, 0), done.parent / ".unfinished-calls.tsv")
    assert run_command("finish", "plan") == 0
    assert [path.name for path in done.parent.iterdir() if "unfinished" in path.name] == []
    other = done.parent / ".unfinished-calls.tsv"
    other.write_bytes(b"of another run")
    (done.parent / "calls.tsv").unlink()
    assert run_command("finish", "plan") == 0
    assert other.read_bytes() == b"of another run"


def test_arrays_that_claim_more_than_there_is(done: Path, capfd: pytest.CaptureFixture[str]):
    """With checksums that fit: whoever makes a plan can make these, too."""
    import zlib

    import numpy as np

    path, record = done / "parts" / "1" / "sites.npz", done / "parts" / "1" / "part.json"
    with np.load(path) as sound:
        arrays = dict(sound)
    n = len(arrays["contig"])
    changes: list[dict[str, Any]] = [
        {"contig": arrays["contig"] + 1000},
        {"contig": arrays["contig"].astype(np.int64)},
        {"contig": arrays["contig"][:-1]},
        {"partition": np.full(n, 5, np.int32)},
        {"step": np.full(n, -1)},
        {"partition_names": np.array(5)},
        {"partition_names": np.array('{"names": [3]}')},
        {"methylated": np.zeros((n, 2), np.uint32)},
        {"failed": np.full(n, "x")},
        {"more": np.zeros(3)},
    ]
    for change in changes:
        np.savez(path, **(arrays | change))
        data = path.read_bytes()
        changed(record, lambda j, data=data: j["files"].update({"sites.npz": [len(data), zlib.crc32(data)]}))
        capfd.readouterr()
        assert run_command("finish", "plan") == 1
        assert "sites.npz: cannot be read" in error_line(capfd.readouterr().err)
