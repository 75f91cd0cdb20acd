"""Conventions of other tools: samtools' spellings, help, quiet runs, logs, no more threads than cores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from f5py.cli import f5py
from f5py.cli.commands import COMMANDS
from f5py.cli.options import COMMON, OptionsCommand, options_of
from f5py.messages import console
from f5py.options import cores, declarations
from f5py.options.declaration import REQUIRED
from f5py.options.profiles import PROFILES

from ..made_data import ReadSet, refused, run_command


def shown(capfd: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert run_command(*arguments) == 0
    return capfd.readouterr().out


def test_spellings_of_samtools(made: ReadSet, made_calls: bytes, tmp_path: Path) -> None:
    out = tmp_path / "calls.tsv"
    inputs = ["-r", made.reads, "-b", made.bam, "--iop", "1"]
    assert run_command("call-methylation", *inputs, "--reference", made.genome, "-@", 2, "-o", out) == 0
    assert out.read_bytes() == made_calls


def test_help_as_a_command(capfd: pytest.CaptureFixture[str]) -> None:
    assert shown(capfd, "help") == shown(capfd, "--help")
    assert shown(capfd, "help", "meth-freq") == shown(capfd, "meth-freq", "--help")
    assert "did you mean call-methylation?" in refused(capfd, "help", "call-meth", status=2)


def test_required_options_come_first_and_rare_ones_on_request(capfd: pytest.CaptureFixture[str]) -> None:
    text = shown(capfd, "call-methylation", "--help")
    assert text.index("  -g, --genome") < text.index("  -r, --reads")
    assert "--max-gap" not in text
    assert "--cuda-max-lf" not in text
    assert "--help-all" in text
    every = shown(capfd, "call-methylation", "--help-all")
    assert "--max-gap" in every
    assert "--cuda-max-lf" in every
    assert "--help-all" not in shown(capfd, "gpu-check", "--help")  # of which there is no more to say


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_on_a_screen(name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 80 columns; it has what must be given, and all options are in that of all."""
    monkeypatch.setenv("COLUMNS", "80")
    text, every = shown(capfd, name, "--help"), shown(capfd, name, "--help-all")
    assert len(text.splitlines()) <= 60
    words = {word.strip(",") for word in every.split()}
    for option in declarations(options_of(name)).values():
        names = set(option.names) if option.names else {(option.metavar or "").split()[0]}
        assert names.isdisjoint(words) == option.is_hidden
        if option.default is REQUIRED:
            assert names <= {word.strip(",") for word in text.split()}
    assert "\n  --help-all " not in every


#: What descriptions say of options of other commands and programs.
_OF_OTHERS = {
    ("train", "--meth-model"), ("summary", "--accurate"), ("validate", "--accurate"), ("plot-region", "--modbam"),
    ("extract", "--modbam"),
    ("run-part", "--plan"), ("run-part", "--partitions"), ("plan", "--plan"), ("eventalign", "--min_segment_count"),
    ("eventalign", "--readcount_max"), ("simulate", "--unlabeled"),
}  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_help_names_options_that_the_command_has(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    described = shown(capfd, name, "--help-all").partition("Examples:")[0]
    named = set(re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", described))
    declared = declarations(options_of(name)).values()
    has = {spelling for option in declared if not option.is_hidden for spelling in option.spellings}
    assert {word for word in named - has - set(COMMON) if (name, word) not in _OF_OTHERS} == set()


def test_what_map_calls_its_options(capfd: pytest.CaptureFixture[str]) -> None:
    for text in (shown(capfd, "map", "--help"), shown(capfd, "map", "--help-all")):
        of_mapping = text.partition("Mapping:")[2].partition("\n\n")[0]
        assert [f"\n  {name}" in of_mapping for name in ("-x, --preset", "-k ", "-w ")] == [True] * 3


def test_quiet_runs(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "calls.tsv"
    assert run_command("call-methylation", *made.options(), "-o", out, "--quiet") == 0
    assert capfd.readouterr() == ("", "")
    assert run_command("call-methylation", *made.options(), "-o", out, "--quiet", "--min-mapq", 255) == 0
    assert [line.split("]")[0] for line in capfd.readouterr().err.splitlines()] == ["[meth_main::WARNING"] * 2
    assert "nowhere" in refused(capfd, "call-methylation", *made.options(), "--quiet", "-w", "nowhere:1-2")
    assert run_command("call-methylation", *made.options(), "-o", out) == 0
    assert "total entries: 16" in capfd.readouterr().err  # only the run that was asked is quiet


def test_logs(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    log, out = tmp_path / "run.log", tmp_path / "calls.tsv"
    for n in (1, 2):
        assert run_command("call-methylation", *made.options(), "-o", out, "--quiet", "--log-file", log) == 0
        text = log.read_text()
        assert text.count("[meth_main] total entries: 16") == n
        assert text.count("CMD: ") == n
    assert capfd.readouterr().err == ""
    refused(capfd, "call-methylation", *made.options(), "-w", "nowhere:1-2", "--log-file", log)
    assert "ERROR] " in log.read_text()
    assert "\x1b" not in log.read_text()


def test_logs_that_cannot_be_written(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    content = made.genome.read_bytes()
    for log, why in ((made.genome, "is there and no log of f5py"), (tmp_path / "no" / "log", "cannot write: No such")):
        assert why in refused(capfd, "call-methylation", *made.options(), "--log-file", log)
    assert made.genome.read_bytes() == content
    assert console._log is None


# -- cores


def groups(folder: Path, monkeypatch: pytest.MonkeyPatch, text: str, **files: str) -> int:
    """Return how many of 64 cores may be used in these control groups."""
    (folder / "cgroup").write_text(text)
    for name, content in files.items():
        path = folder / "fs" / name.replace("__", "/").replace("cpu_", "cpu.", 1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    monkeypatch.setattr(cores, "_CGROUPS", str(folder / "fs"))
    monkeypatch.setattr(cores, "_OF_PROCESS", str(folder / "cgroup"))
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda process: set(range(64)))
    return cores.usable_cores.__wrapped__()


def test_cores_of_control_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n, (text, files, expected) in enumerate(
        [
            ("0::/\n", {}, 64),
            ("0::/job/step\n", {"job__cpu_max": "400000 100000\n", "job__step__cpu_max": "max 100000\n"}, 4),
            ("0::/job\n", {"cpu_max": "150000 100000\n", "job__cpu_max": "900000 100000\n"}, 2),
            ("0::/job\n", {"job__cpu_max": "damaged\n"}, 64),
            ("4:memory:/x\n3:cpu,cpuacct:/x\n", {
                "cpu,cpuacct__x__cpu_cfs_quota_us": "300000", "cpu,cpuacct__x__cpu_cfs_period_us": "100000",
            }, 3),
            ("3:cpu,cpuacct:/x\n", {
                "cpu,cpuacct__x__cpu_cfs_quota_us": "-1", "cpu,cpuacct__x__cpu_cfs_period_us": "100000",
            }, 64),
        ]
    ):  # fmt: skip
        folder = tmp_path / str(n)
        folder.mkdir()
        assert groups(folder, monkeypatch, text, **files) == expected, text


def test_no_more_threads_than_cores(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("call-methylation", "eventalign", "map", "merge"):
        command = f5py.get_command(None, name)  # type: ignore[arg-type]
        assert isinstance(command, OptionsCommand)
        assert command.declared["threads"].default == cores.usable_cores()
    made = made.with_slow5(tmp_path)  # which needs no reader process for each of the cores
    inputs = ["-r", made.reads, "-b", made.bam, "-g", made.genome, "-o", tmp_path / "calls.tsv", "-x", "hpc"]
    assert run_command("call-methylation", *inputs) == 0
    assert f" t: {min(PROFILES['hpc'].threads or 0, cores.usable_cores())}, " in capfd.readouterr().err
