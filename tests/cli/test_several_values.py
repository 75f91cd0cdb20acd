"""Options that take several values, and others, which are refused the second time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import f5py
from f5py.cli.commands import COMMANDS
from f5py.cli.options import expand, options_of
from f5py.errors import UsageError
from f5py.options import Kind, Option, declarations

from ..made_data import N_READS, ReadSet, refused, run_command, run_main, write_signals

#: Windows with room between them; reads of 1,200 bases lie in several.
_WINDOWS = ("simulated:2001-2500", "simulated:2801-3300", "simulated:7001-9000")

# -- given twice


def _written(option: Option, name: str) -> list[str]:
    if option.kind is Kind.FLAG:
        return [name]
    value = {Kind.YES_NO: "yes", Kind.CHOICE: str((*option.choices, "")[0])}.get(option.kind, "1")
    return [f"{name}={value}"] if name.startswith("--") else [name, value]


@pytest.mark.parametrize("command", COMMANDS)
def test_other_options_are_refused_the_second_time(command: str) -> None:
    """Also by another of their names."""
    options = declarations(options_of(command)).values()
    for option in options:
        if option.is_argument or option.refused is not None:
            continue
        for other in option.spellings:
            words = [*_written(option, option.names[0]), "x", *_written(option, other)]
            if option.repeated:
                assert expand(words, options) == words
                continue
            with pytest.raises(UsageError, match="twice"):
                expand(words, options)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-b a.bam -g r.fa -b b.bam", "-b is given twice; leave one out"),
        ("--bam a.bam -b b.bam", "--bam and -b are one option, given twice"),
        ("-r a -b b --region chr1 --reference g -g g", "--reference and -g are one option, given twice"),
        ("--quiet -b a --quiet", "--quiet is given twice"),
        ("--log-file a --log-file b", "--log-file is given twice"),
        ("-v -v", "-v is given twice"),
        ("-t8 -b a -t 4", "-t is given twice"),
        ("-q cpg --methylation gpc", "-q and --methylation are one option, given twice; write several values with com"),
    ],
)
def test_how_it_is_told(words: str, said: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert said in refused(capfd, "call-methylation", *words.split(), status=2)


def test_values_are_no_options(capfd: pytest.CaptureFixture[str]) -> None:
    """What stands in the place of a value is one, whatever it looks like."""
    options = list(declarations(options_of("map")).values())
    for words in (["-R", "-t", "-t", "4"], ["-t", "4", "--", "-t", "4"], ["-x", "-x", "-k", "-x"]):
        assert expand(words, options) == words


def test_a_profile_is_no_second_time(made: ReadSet, made_calls: bytes, tmp_path: Path) -> None:
    out = tmp_path / "calls.tsv"
    for options in (["-t", 1, "-x", "laptop"], ["--profile=laptop", "--max-bases", "1M"]):
        inputs = ["-r", made.reads, "-b", made.bam, "-g", made.genome, "--iop", 1, "-o", out]
        assert run_main(*inputs, *options) == 0
        assert out.read_bytes() == made_calls


# -- windows


@pytest.mark.parametrize("command", ["call-methylation", "eventalign"])
def test_windows_are_joined(command: str, made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "last.bed").write_text("simulated\t7000\t9000\n")
    forms = {
        "one": ["-w", " ".join(_WINDOWS)],
        "each": [word for window in _WINDOWS for word in ("-w", window)],
        "mixed": ["--window", " ".join(_WINDOWS[:2]), "--region", tmp_path / "last.bed", "-w", _WINDOWS[0]],
    }
    for name, options in forms.items():
        assert run_command(command, *made.options(), *options, "-o", tmp_path / name) == 0
    one, *others = ((tmp_path / name).read_bytes() for name in forms)
    assert others == [one, one]
    assert len(one.splitlines()) > 20
    shown = [line for line in capfd.readouterr().err.splitlines() if "total entries" in line]
    assert len(set(shown)) == 1
    n_reads = int(shown[0].split("total entries: ")[1].split(",")[0])
    assert 0 < n_reads <= N_READS
    if command == "call-methylation":  # rows of the windows, each once
        rows = set()
        for i, window in enumerate(_WINDOWS):
            assert run_command(command, *made.options(), "-w", window, "-o", tmp_path / f"{i}") == 0
            rows.update((tmp_path / f"{i}").read_bytes().splitlines())
        assert set(one.splitlines()) == rows
        assert len(one.splitlines()) == len(rows)


def test_windows_from_python(made: ReadSet, tmp_path: Path) -> None:
    inputs = {"reads": made.reads, "bam": made.bam, "genome": made.genome, "iop": 1, "threads": 1}
    whole = f5py.call_methylation(**inputs, window=None)
    one = f5py.call_methylation(**inputs, window=" ".join(_WINDOWS))
    assert 0 < one.num_rows < whole.num_rows
    places = [("simulated", 2000, 2500), _WINDOWS[1], ("simulated", 7000, 9000)]
    for windows in (_WINDOWS, list(_WINDOWS), places, iter(places)):
        assert f5py.call_methylation(**inputs, window=windows).equals(one)
    assert f5py.call_methylation(**inputs, window=places[0]).equals(
        f5py.call_methylation(**inputs, window=[_WINDOWS[0]])
    )
    for wrong in ([], (), [places[0], ("simulated", 5)]):
        with pytest.raises(UsageError, match="window: "):
            f5py.call_methylation(**inputs, window=wrong)


# -- signals


@pytest.fixture
def several(made: ReadSet, tmp_path: Path) -> dict[str, list[Path]]:
    """Signals of the reads in files and folders of all formats, some reads in two of them."""
    names = made.names
    (tmp_path / "pod5").mkdir()
    (tmp_path / "blow5").mkdir()
    return {
        "slow5": [
            write_signals(tmp_path / "a.blow5", made.signals(names[:5])),
            write_signals(tmp_path / "blow5" / "b.blow5", made.signals(names[4:8])).parent,
        ],
        "pod5": [
            write_signals(tmp_path / "a.pod5", made.signals(names[8:11])),
            write_signals(tmp_path / "pod5" / "b.pod5", made.signals(names[11:13])).parent,
        ],
        "fast5": [made.signal_path / made.signal_file(name).name for name in dict.fromkeys(names[13:])],
    }


def _without_index(made: ReadSet) -> list[object]:
    return ["-b", made.bam, "-g", made.genome, "-t", 2, "--iop", 1]


@pytest.mark.parametrize("more", [[], ["--resume"]])
def test_signals_of_several_files(
    more: list[str], several: dict[str, list[Path]], made: ReadSet, made_calls: bytes, tmp_path: Path
) -> None:
    pytest.importorskip("pod5", reason="needs pod5")
    out = tmp_path / "calls.tsv"
    options = [word for kind, paths in several.items() for path in paths for word in (f"--{kind}", path)]
    assert run_main(*_without_index(made), *options, *more, "-o", out) == 0
    assert out.read_bytes() == made_calls
    inputs = {"bam": made.bam, "genome": made.genome, "threads": 1, "iop": 1}
    f5py.call_methylation(**inputs, **several, output=tmp_path / "python.tsv")
    assert (tmp_path / "python.tsv").read_bytes() == made_calls


def test_several_files_of_resquiggle(several: dict[str, list[Path]], made: ReadSet, tmp_path: Path) -> None:
    pytest.importorskip("pod5", reason="needs pod5")
    assert run_command("resquiggle", made.reads, made.signal_path, "-o", tmp_path / "one.tsv", "--iop", 1) == 0
    paths = [path for paths in several.values() for path in paths]
    assert run_command("resquiggle", made.reads, *paths, "-o", tmp_path / "all.tsv", "--iop", 1) == 0
    assert (tmp_path / "all.tsv").read_bytes() == (tmp_path / "one.tsv").read_bytes()
    table = f5py.resquiggle(made.reads, several["slow5"], threads=1)
    assert len(set(table["read_id"].to_pylist())) == 8


def test_an_index_of_several_slow5_files(made: ReadSet, made_calls: bytes, tmp_path: Path) -> None:
    names = made.names
    files = [
        write_signals(tmp_path / f"{i}.blow5", made.signals(some)) for i, some in enumerate((names[:7], names[7:]))
    ]
    reads = tmp_path / "reads.fasta"
    reads.write_bytes(made.reads.read_bytes())
    assert f5py.index(reads, slow5=files) == (N_READS, N_READS)
    assert run_main("-r", reads, "-b", made.bam, "-g", made.genome, "-o", tmp_path / "calls.tsv") == 0
    assert (tmp_path / "calls.tsv").read_bytes() == made_calls


def test_a_mistake_in_one_of_several(several: dict[str, list[Path]], made: ReadSet, capfd, tmp_path: Path) -> None:
    out = tmp_path / "calls.tsv"
    good = ["--slow5", several["slow5"][0]]
    for wrong, said in (
        (["--slow5", tmp_path / "gone.blow5"], "gone.blow5: not found"),
        (["--fast5", several["slow5"][0]], "is a SLOW5 file; give it with --slow5"),
        (["--fast5", tmp_path / "pod5"], "no file below this folder is named *.fast5"),
    ):
        assert said in refused(capfd, "call-methylation", *_without_index(made), *good, *wrong, "-o", out)
        assert not out.exists()


# -- reports and tables


def test_several_reports(made: ReadSet, tmp_path: Path) -> None:
    names = ["run.html", "run.json", "run_mqc.json"]
    reports = [word for name in names for word in ("--report", tmp_path / name)]
    assert run_main(*made.options(), "-o", tmp_path / "calls.tsv", *reports) == 0
    assert run_command("map", made.genome, made.reads, "-o", tmp_path / "x.bam", *reports, "--gpu", "off") == 0
    run = json.loads((tmp_path / "run.json").read_text())["run"]
    assert run["parameters"]["report"] == [str(tmp_path / name) for name in names]
    assert json.loads((tmp_path / "run_mqc.json").read_text())["run"] == run
    assert (tmp_path / "run_reads_mqc.json").exists()
    assert "<html" in (tmp_path / "run.html").read_text()


def test_a_report_given_twice_is_refused(made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    report = ["--report", tmp_path / "a.json"]
    assert "cannot be the output of both" in refused(
        capfd, "call-methylation", *made.options(), "-o", tmp_path / "x.tsv", *report, *report, status=2
    )


def test_tables_of_meth_freq(made_calls: bytes, tmp_path: Path) -> None:
    header, *rows = made_calls.splitlines(keepends=True)
    parts = [tmp_path / f"{i}.tsv" for i in range(3)]
    for i, path in enumerate(parts):
        path.write_bytes(header + b"".join(rows[i::3]))
    (tmp_path / "all.tsv").write_bytes(made_calls)
    assert run_command("meth-freq", "-i", tmp_path / "all.tsv", "-o", tmp_path / "one.tsv") == 0
    forms = [
        ["-i", parts[0], "--input", parts[1], "-i", parts[2]], ["-i", parts[0], parts[1], parts[2]],
        ["-i", parts[0], "-s", "-i", parts[1], parts[2]],
    ]  # fmt: skip
    for form in forms[:2]:
        assert run_command("meth-freq", *form, "-o", tmp_path / "several.tsv") == 0
        assert (tmp_path / "several.tsv").read_bytes() == (tmp_path / "one.tsv").read_bytes()
    assert run_command("meth-freq", *forms[2], "-o", tmp_path / "split.tsv") == 0
    assert f5py.frequencies(calls=parts).equals(f5py.frequencies(tmp_path / "all.tsv"))
