"""The same protocol for every command: whatever is in the place of one of its files, it says so in one line.

Which files a command has is taken from the declarations of its options, so none is forgotten.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import f5py
from f5py.cli import commands
from f5py.cli.commands import Command
from f5py.cli.options import DOORS, options_of
from f5py.errors import F5pyError
from f5py.options import declarations
from f5py.options.declaration import Group, Kind, Option

from ...made_data import ReadSet, error_line, process_of, refused, run_command, run_process, standard_input

COMMANDS = {name: one for name, one in commands.COMMANDS.items() if hasattr(f5py, DOORS[name].__name__)}
Values = dict[str, Any]

#: What stands in the place of a file, and is none of ours.
BAD = ("missing", "empty", "folder", "rubbish", "other")
#: Options whose values look like files.
_NO_FILES = {("plot", "read"), ("run-part", "parts")} | {(name, "scheduler") for name in COMMANDS}
#: What is no mistake, by command, field and what stands there.
FINE = {
    ("index", "summary_lists", "empty"),
    *((name, "reads", "empty") for name in ("index", "map", "resquiggle")),  # a sample without reads
    ("index", "output", "folder"),  # which is what names begin with
    *(("simulate", "output", name) for name in ("missing/out", "folder")),  # folders are made
    # only looked at if they are needed: for bigWig, for tables without a motif, for CRAM
    *((name, field, bad) for name, field in (("meth-freq", "chrom_sizes"), ("validate", "genome"),
                                             ("plot-region", "genome"), ("extract", "genome"),
                                             ("summary", "genome")) for bad in BAD),
}  # fmt: skip
#: Where the line names something else: the reads without signals, a file in a list.
NAMED = {("index", "directories"): "out/index", ("index", "summary_lists"): "a text"}


def files_of(command: Command, written: bool) -> dict[str, Option]:
    """Find the options of a command that name a file or folder which is read, or written, by field."""
    return {
        field: option
        for field, option in declarations(options_of(command.name)).items()
        if (option.kind in (Kind.FILE, Kind.PATH) or "FILE" in (option.metavar or ""))
        and (command.name, field) not in _NO_FILES
        and option.group is not Group.PARTS
        and not option.is_hidden
        and (option.group is Group.OUTPUT or option.written) == written
    }


@pytest.fixture(scope="module")
def sound(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Values]]:
    """For every command the values of options with which it succeeds, by field, in its different uses."""
    folder = tmp_path_factory.mktemp("sound")
    names = ("calls.tsv", "freq.tsv", "events.tsv", "mod.bam", "sites.bed")
    calls, frequencies, events, modbam, sites = (folder / name for name in names)
    mapped = {"reads": made.reads, "bam": made.bam, "genome": made.genome, "threads": 2, "iop": 1}
    given = [*made.options()]
    assert run_command("call-methylation", *given, "-o", calls, "--modbam", modbam, "--bedmethyl", sites) == 0
    assert run_command("meth-freq", "-i", calls, "-o", frequencies) == 0
    assert run_command("eventalign", *given, "--print-read-names", "-o", events) == 0
    assert run_command("call-methylation", *given, "-o", folder / "of_plan.tsv", "--plan", folder / "plan") == 0
    contig = made.records()[1][0].reference_name
    regions = folder / "regions.bed"
    regions.write_text(f"{contig}\t0\t5000\tone\n")
    uses: dict[str, Values] = {
        "index": {"directories": (made.signal_path,), "output": "out/index", "reads": (made.reads,)},
        "call-methylation": {**mapped, "output": "out/calls.tsv"},
        "eventalign": {**mapped, "output": "out/events.tsv"},
        "resquiggle": {"reads": made.reads, "signals": made.signal_path, "iop": 1, "output": "out/moves.tsv"},
        "meth-freq": {"calls": calls, "output": "out/freq.tsv"},
        "freq-merge": {"tables": (frequencies, frequencies), "output": "out/freq.tsv"},
        "extract": {"inputs": (modbam,), "output": "out/extracted.tsv"},
        "regions": {"bed": regions, "tables": (frequencies,), "output": "out/regions.tsv"},
        "fast5-check": {"reads": made.reads, "iop": 1, "output": "out/check.tsv"},
        "summary": {"tables": (calls,), "output": "out/summary.tsv"},
        "validate": {"calls": frequencies, "truth": made.folder / "truth.tsv", "output": "out/validation.tsv"},
        "compare": {"a": events, "b": events, "min_coverage": 2, "output": "out/compared.tsv"},
        "train": {
            "reads": made.reads, "unmethylated": (made.bam,), "genome": made.genome, "iop": 1, "prior_events": 1,
            "force": True,
            "output": "out/new.model",
        },
        "plot": {"read": made.names[0], "reads": made.reads, "output": "out/plot.svg"},
        "plot-region": {"bam": modbam, "genome": made.genome, "window": f"{contig}:1-900", "output": "out/region.svg"},
        "simulate": {"reference": made.genome, "n_reads": 1, "output": "out/simulated"},
        "run-part": {"plan": folder / "plan"},
        "plan": {"plan": folder / "plan", "output": "out/plan.txt"},
        "finish": {"plan": folder / "plan"},
        "merge": {"inputs": (calls, calls), "output": "out/merged.tsv"},
        "map": {"reference": made.genome, "reads": (made.reads,), "output": "out/mapped.bam", "threads": 2},
    }  # fmt: skip
    others: dict[str, Values] = {
        "call-methylation": {
            "watch": folder, "watch_until_idle": 0, "watch_interval": 0.1, "genome": made.genome,
            "output": "out/calls.tsv",
        },
        "meth-freq": {"tables": (calls, calls), "output": "out/freq.tsv"},
        "extract": {"inputs": (calls,), "output": "out/extracted.parquet"},
        "validate": {"methylated": (calls,), "unmethylated": (calls,), "output": "out/validation.tsv"},
        "compare": {
            "a": made.bam, "b": made.bam, "reads": (made.reads,), "genome": made.genome, "slow5": (), "pod5": (),
            "fast5": (), "kmer_model": None, "min_coverage": 2, "output": "out/compared.tsv",
        },
        "train": {
            "reads": made.reads, "genome": made.genome, "bam": made.bam, "truth": sites, "output": "out/new.model",
            "force": True,
        },
        "plot": {
            "read": made.names[0], "reads": made.reads, "bam": made.bam, "genome": made.genome, "meth_model": None,
            "output": "out/plot.svg",
        },
    }  # fmt: skip
    return {name: [values, *([others[name]] if name in others else [])] for name, values in uses.items()}


def words(command: Command, values: Values) -> list[str]:
    """Write the command line with these values of options."""
    options: list[str] = []
    arguments: list[str] = []
    for field, declared in declarations(options_of(command.name)).items():
        value = values.get(field)
        several = value if isinstance(value, tuple) else () if value is None else (value,)
        for one in several:
            if declared.is_argument:
                arguments.append(str(one))
            elif declared.kind is Kind.FLAG:
                options.append(declared.names[-1])
            else:
                options += [declared.names[-1], str(one)]
    return [command.name, *options, *arguments]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a working folder with what is bad, and a folder for outputs."""
    (tmp_path / "empty").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "rubbish").write_bytes(random.Random(1).randbytes(5000))
    (tmp_path / "other").write_text('{"a text": "of another kind"}\n' * 20)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_all_commands_are_here(sound: dict[str, list[Values]]):
    assert set(sound) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_sound_files(name: str, sound: dict[str, list[Values]], here: Path):
    """Else the tests below would say nothing."""
    assert run_command(*words(COMMANDS[name], sound[name][0])) == 0


def with_value(uses: list[Values], field: str, option: Option, value: str) -> Values:
    values = next((values for values in uses if field in values), uses[0])
    return values | {field: (value,) if option.repeated else value}


@pytest.mark.parametrize("name", COMMANDS)
def test_inputs(name: str, sound: dict[str, list[Values]], here: Path, capfd: pytest.CaptureFixture[str]):
    command = COMMANDS[name]
    for field, option in files_of(command, written=False).items():
        for bad in BAD:
            status = run_command(*words(command, with_value(sound[name], field, option, bad)))
            told = capfd.readouterr()
            if (name, field, bad) in FINE:
                assert status == 0, (field, bad, told.err)
            else:
                assert status in (1, 2), (field, bad)
                line = error_line(told.err)
                assert bad in line or NAMED.get((name, field), " ") in line, (field, bad)
                assert not (here / str(sound[name][0].get("output", "none"))).exists(), (field, bad)
            shutil.rmtree(here / "out")
            (here / "out").mkdir()


@pytest.mark.parametrize("name", COMMANDS)
def test_outputs(name: str, sound: dict[str, list[Values]], here: Path, capfd: pytest.CaptureFixture[str]):
    command = COMMANDS[name]
    for field, option in files_of(command, written=True).items():
        ending = Path(str(sound[name][0]["output"])).suffix if field == "output" else ""
        for bad in (f"missing/out{ending}", "folder", f"empty/out{ending}"):
            status = run_command(*words(command, with_value(sound[name], field, option, bad)))
            told = capfd.readouterr()
            if (name, field, bad) in FINE:
                assert status == 0, (field, bad, told.err)
            else:
                assert status in (1, 2), (field, bad)
                line = error_line(told.err)
                assert bad in line or option.names[-1] in line, (field, bad)
                assert list((here / "out").iterdir()) == [], (field, bad)
            shutil.rmtree(here / "out")
            (here / "out").mkdir()


#: Outputs that are folders, or what names begin with: what is in them is looked at below. And one that is --modbam.
_FOLDERS = {("index", "output"), ("simulate", "output"), ("eventalign", "m6anet_json")}
_FOLDERS |= {("call-methylation", "modbam_output_name")}
_ENDINGS = {"report": ".json", "modbam": ".bam", "skip_ultra": ".bam", "keep_bam": ".bam"}


@pytest.mark.parametrize("name", COMMANDS)
def test_no_input_is_written_over(name: str, sound: dict[str, list[Values]], here: Path, capfd):
    """Not by its name, nor by a link to it; nor are the files that belong to it."""
    command = COMMANDS[name]
    outputs = [field for field in files_of(command, written=True) if (name, field) not in _FOLDERS]
    n_tried = 0
    for values in sound[name]:
        for field, option in files_of(command, written=False).items():
            value = values.get(field)
            for path in map(Path, value if isinstance(value, tuple) else () if value is None else (value,)):
                for read in [path, *(Path(f"{path}{suffix}") for suffix in option.beside)]:
                    if not read.is_file():
                        continue
                    before = read.read_bytes()
                    for output in outputs:
                        given = values
                        if output == "keep_bam":  # for reads without alignments
                            if field == "bam" or values.get("reads") is None:
                                continue
                            given = {name: value for name, value in values.items() if name != "bam"}
                        ending = _ENDINGS.get(output, Path(str(values["output"])).suffix)
                        for target in (here / f"soft{ending}", here / f"hard{ending}", read):
                            if target != read:
                                target.unlink(missing_ok=True)
                                (os.symlink if target.name.startswith("soft") else os.link)(read, target)
                            if target.suffix != ending:
                                continue
                            repeated = declarations(options_of(command.name))[output].repeated
                            chosen = given | {output: (target,) if repeated else os.path.relpath(target)}
                            assert run_command(*words(command, chosen)) == 2, (read, output, target)
                            line = error_line(capfd.readouterr().err)
                            assert re.search("is an input as well|is a signal file|is not possible: training", line)
                            assert read.read_bytes() == before
                            assert not list(here.glob(".unfinished*"))
                            n_tried += 1
    assert n_tried or name in ("run-part", "finish", "plan", "index", "simulate"), "nothing was tried"


def test_no_input_is_written_over_in_folders_and_pipes(made: ReadSet, here: Path, capfd: pytest.CaptureFixture[str]):
    copy = here / "ref.fa"
    shutil.copy(made.genome, copy)
    (here / "run.index").write_bytes(made.reads.read_bytes())
    assert run_command("simulate", "-g", copy, "-n", 1, "-o", here / "new") == 0
    simulate = ["simulate", "-g", here / "new/ref.fa", "-n", 1, "-o", here / "new", "--force"]
    index = ["index", "-d", made.signal_path, "-o", here / "run", here / "run.index"]
    for command, path in ((simulate, here / "new/ref.fa"), (index, here / "run.index")):
        before = path.read_bytes()
        assert f"{path}: is an input as well" in refused(capfd, *command, status=2)
        assert path.read_bytes() == before
    table = here / "calls.tsv"
    assert run_command("call-methylation", *made.options(), "-o", table) == 0
    before = table.read_bytes()
    for given, end in (("-o calls.tsv", "<calls.tsv"), ("-i calls.tsv", ">>calls.tsv"), ("", "<calls.tsv >>calls.tsv")):
        told = run_process(["sh", "-c", f'"$@" {given} {end}', "sh", *process_of("meth-freq")])
        assert told.returncode == 2
        assert "is an input as well" in error_line(told.stderr.decode())
        assert table.read_bytes() == before
    # what is no file cannot be lost
    for output in ("/dev/stdout", "/dev/null"):
        assert run_process(process_of("meth-freq", "-i", table, "-o", output)).returncode == 0


@pytest.mark.parametrize("name", [name for name in commands.COMMANDS if name not in ("demo", "compile")])  # need none
def test_without_arguments(name: str, here: Path, capfd: pytest.CaptureFixture[str]):
    """Also of the functions: what is missing is said in words."""
    with standard_input(Path(os.devnull)):
        status = run_command(name)
    told = capfd.readouterr()
    assert status in (1, 2)
    assert "Traceback" not in told.err
    assert told.err.count("ERROR]") + told.err.count("Error: ") == 1
    assert told.out == ""
    if status == 2:
        with pytest.raises((F5pyError, TypeError), match=r"give |needs |name a file|no files"):
            DOORS[name]()
