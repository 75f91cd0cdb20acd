"""The same protocol for every command: the same results, in whatever format its signals or its tables come.

Which commands read signals, and which tables, is taken from the declarations of their options, so none is forgotten.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from f5py.cli.commands import COMMANDS
from f5py.cli.options import options_of
from f5py.commands import train
from f5py.io.signals.source import CALIBRATION
from f5py.options import Kind, declarations

from ..examples import SHARE
from ..io.signals.made_signals import GZIP, VBZ, MadeRead, write_multi, write_single
from ..io.signals.made_slow5 import write_blow5, write_slow5
from ..made_data import ReadSet, error_line, run_command, standard_input, write_signals

# Signals


#: For every format how it is written into a folder; what the commands are told is returned.
FORMATS: dict[str, Callable[[Path, list[MadeRead]], Path]] = {
    "fast5 multi": lambda folder, reads: _multi(folder, reads, GZIP),
    "fast5 multi VBZ": lambda folder, reads: _multi(folder, reads, VBZ),
    "fast5 single": lambda folder, reads: _single(folder, reads),
    "slow5": lambda folder, reads: Path(write_slow5(folder / "signals.slow5", reads)),
    "blow5 zlib": lambda folder, reads: Path(write_blow5(folder / "signals.blow5", reads)),
    "blow5 plain": lambda folder, reads: Path(write_blow5(folder / "signals.blow5", reads, zipped=False)),
    "pod5": lambda folder, reads: write_signals(folder / "signals.pod5", reads),
}
#: Where the reads and their signals are found.
WAYS = ("index", "no index", "reads in the BAM")


def _multi(folder: Path, reads: list[MadeRead], storage: dict[str, Any]) -> Path:
    if storage is VBZ:
        pytest.importorskip("vbz_h5py_plugin", exc_type=ImportError)
    half = len(reads) // 2
    write_multi(folder / "first.fast5", reads[:half], **storage)
    write_multi(folder / "second.fast5", reads[half:], **storage)
    return folder


def _single(folder: Path, reads: list[MadeRead]) -> Path:
    for i, read in enumerate(reads):
        write_single(folder / f"{i}.fast5", read)
    return folder


def option_of(name: str) -> str:
    return "--fast5" if name.startswith("fast5") else "--pod5" if name == "pod5" else "--slow5"


class Signals:
    """One read set in every format."""

    def __init__(self, made: ReadSet, folder: Path) -> None:
        # a calibration that every format holds exactly
        self.reads = [_with_plain_calibration(read) for read in made.signals()]
        self.made = replace(made, folder=folder)
        self.expected: dict[str, bytes] = {}
        self._folders: dict[str, ReadSet] = {}

    def of(self, name: str) -> ReadSet:
        """Return the reads, their index and their signals in this format."""
        if name not in self._folders:
            folder = self.made.folder / name
            (folder / "signals").mkdir(parents=True)
            place = FORMATS[name](folder / "signals", self.reads)
            reads = folder / "reads.fasta"
            shutil.copy(self.made.reads, reads)
            option = {"--fast5": "-d"}.get(option_of(name), option_of(name))
            assert run_command("index", option, place, reads) == 0
            shutil.copy(self.made.reads, folder / "bare.fasta")
            self._folders[name] = replace(self.made, folder=folder, reads=reads, signal_path=place)
        return self._folders[name]


def _with_plain_calibration(read: MadeRead) -> MadeRead:
    values = {what: float(getattr(read, what)) for what in CALIBRATION}
    return replace(read, **values)


@pytest.fixture(scope="module")
def signals(short: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Signals:
    return Signals(short, tmp_path_factory.mktemp("formats"))


def _mapped(*more: object) -> Callable[[ReadSet], list[object]]:
    return lambda reads: ["-b", reads.bam, "-g", reads.genome, "-t", 2, "--iop", 1, *more]


#: For every command that reads signals what else it is given. The last word is the option of its output.
SIGNAL_COMMANDS: dict[str, Callable[[ReadSet], list[object]]] = {
    "call-methylation": _mapped("-K", 5, "-o"),
    "eventalign": _mapped("-K", 5, "--print-read-names", "--signal-index", "--samples", "-o"),
    "resquiggle": lambda reads: ["-t", 2, "--iop", 1, "-o"],
    "train": lambda reads: [
        "--methylated", reads.bam, "--unmethylated", reads.bam, "-g", reads.genome, "-t", 2, "--iop", 1,
        "--rounds", 1, "--force", "-o",
    ],
    "compare": lambda reads: [reads.bam, reads.bam, "-g", reads.genome, "--min-coverage", 2, "-t", 2, "-o"],
    "plot": lambda reads: [reads.names[0], "-b", reads.bam, "-g", reads.genome, "-o"],
    "fast5-check": lambda reads: ["-t", 2, "--iop", 1, "-o"],
}  # fmt: skip
#: Commands that do not have all the ways: they take no index, or need one.
WAYS_OF = {"resquiggle": ("no index",), "plot": ("index",), "fast5-check": ("index",)}
ENDING = {"plot": ".svg"}


def inputs_of(command: str, way: str, name: str, reads: ReadSet) -> list[object]:
    """Write what tells a command where the reads and their signals are."""
    place = reads.signal_path
    if command == "resquiggle":
        return [reads.folder / "bare.fasta", place]
    if way == "index":
        return ["-r", reads.reads]
    return [option_of(name), place, *(["-r", reads.folder / "bare.fasta"] if way == "no index" else [])]


def without_places(command: str, table: bytes) -> bytes:
    """Remove the names of signal files, which are other ones, from the output."""
    if command != "fast5-check":
        return table
    return b"".join(b"\t".join(line.split(b"\t")[:1] + line.split(b"\t")[2:]) for line in table.splitlines(True))


def test_all_commands_that_read_signals_are_here():
    takes_signals = {"slow5", "signals"}
    named = {one.name for one in COMMANDS.values() if takes_signals & set(declarations(options_of(one.name)))}
    # every test begins with index; plot-region draws eventalign's rows
    assert set(SIGNAL_COMMANDS) == named - {"index", "plot-region"}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(
    ("command", "way"), [(command, way) for command in SIGNAL_COMMANDS for way in WAYS_OF.get(command, WAYS)]
)
def test_signals(command: str, name: str, way: str, signals: Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(train, "_NOISE_EVENTS", 1_000)  # it takes longer than all else of training
    reads = signals.of(name)
    out = tmp_path / f"out{ENDING.get(command, '')}"
    given = [*inputs_of(command, way, name, reads), *SIGNAL_COMMANDS[command](reads), out]
    assert run_command(command, *given) == 0
    found = without_places(command, out.read_bytes())
    assert found.count(b"\n") > 10
    assert found == signals.expected.setdefault(command, found)


# Tables


class Tables:
    """Tables of one read set, by kind and ending."""

    def __init__(self, made: ReadSet, folder: Path) -> None:
        self.folder = folder
        self.truth = made.folder / "truth.tsv"
        for ending in ("tsv", "tsv.gz", "parquet"):
            calls = folder / f"calls.{ending}"
            assert run_command("call-methylation", *made.options(), "-o", calls) == 0
            assert run_command("meth-freq", "-i", calls, "-o", folder / f"frequencies.{ending}") == 0
            events = folder / f"events.{ending}"
            assert run_command("eventalign", *made.options(), "--print-read-names", "-o", events) == 0
        sites = folder / "sites.bed"
        assert run_command("meth-freq", "-i", folder / "calls.tsv", "--bedmethyl", "-o", sites) == 0
        assert run_command("meth-freq", "-i", folder / "calls.tsv", "--bedmethyl", "-o", f"{sites}.gz") == 0
        contig = made.records()[1][0].reference_name
        rows = [f"{contig}\t{at}\t{at + 200}\n" for at in range(0, 1500, 100)]
        (folder / "regions.bed").write_text("".join(rows))
        self.expected: dict[str, bytes] = {}


@pytest.fixture(scope="module")
def tables(short: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    return Tables(short, tmp_path_factory.mktemp("tables"))


#: For every use of a command that reads tables: the kind of its table and its arguments, with TABLE and TRUTH.
TABLE_USES: dict[str, tuple[str, list[str]]] = {
    "meth-freq": ("calls", ["-i", "TABLE"]),
    "meth-freq of several": ("calls", ["TABLE", "calls.tsv"]),
    "meth-freq --bedmethyl": ("calls", ["-i", "TABLE", "--bedmethyl"]),
    "freq-merge": ("frequencies", ["TABLE", "frequencies.tsv"]),
    "extract": ("calls", ["TABLE"]),
    "regions": ("frequencies", ["regions.bed", "TABLE", "--sample", "one"]),
    "regions of bedMethyl": ("sites", ["regions.bed", "TABLE", "--sample", "one"]),
    "summary": ("calls", ["TABLE"]),
    "summary of controls": ("calls", ["calls.tsv", "--methylated", "TABLE", "--unmethylated", "calls.tsv"]),
    "validate calls": ("calls", ["TABLE", "TRUTH"]),
    "validate frequencies": ("frequencies", ["TABLE", "TRUTH"]),
    "validate with frequencies": ("frequencies", ["calls.tsv", "TABLE"]),
    "validate with bedMethyl": ("sites", ["calls.tsv", "TABLE"]),
    "validate controls": ("calls", ["--methylated", "TABLE", "--unmethylated", "calls.tsv"]),
    "compare": ("events", ["TABLE", "events.tsv", "--min-coverage", "2"]),
    "merge calls": ("calls", ["TABLE", "calls.tsv"]),
    "merge events": ("events", ["TABLE", "events.tsv"]),
}
#: Parquet has the numbers before they are rounded to what the text has.
ROUNDED = {"compare"}


def test_all_commands_that_read_tables_are_here():
    fields = {"calls", "tables", "a", "inputs"}
    named = {
        one.name
        for one in COMMANDS.values()
        if any(declared.kind in (Kind.FILE, Kind.PATH) for field, declared in declarations(options_of(one.name)).items()
               if field in fields)
    }  # fmt: skip
    assert {use.split()[0] for use in TABLE_USES} == named


def run_on(tables: Tables, use: str, table: str, out: Path) -> int:
    stand_ins = {"TABLE": table, "TRUTH": str(tables.truth)}
    words = [stand_ins.get(word, word) for word in TABLE_USES[use][1]]
    words = [str(tables.folder / word) if (tables.folder / word).is_file() else word for word in words]
    return run_command(use.split()[0], *words, "-o", out)


@pytest.mark.parametrize("ending", ["tsv", "tsv.gz", "parquet"])
@pytest.mark.parametrize("use", TABLE_USES)
def test_tables(use: str, ending: str, tables: Tables, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    kind = TABLE_USES[use][0]
    if kind == "sites" and ending == "parquet":
        pytest.skip("there is no such format")
    if use.startswith("merge") and ending == "parquet":
        pytest.skip("tables of one format are joined")
    table = tables.folder / f"{kind}.{ending.replace('tsv', 'bed') if kind == 'sites' else ending}"
    out = tmp_path / "out.tsv"
    assert run_on(tables, use, str(table), out) == 0
    found = out.read_bytes()
    assert found.count(b"\n") > 3
    expected = tables.expected.setdefault(use, found)
    if use in ROUNDED and ending == "parquet":
        assert [line.split(b"\t")[:3] for line in found.splitlines()] == [
            line.split(b"\t")[:3] for line in expected.splitlines()
        ]
    else:
        assert found == expected
    # from standard input: the same, or one line that says why not
    capfd.readouterr()
    with standard_input(table):
        status = run_on(tables, use, "-", tmp_path / "piped.tsv")
    if status == 0:
        assert (tmp_path / "piped.tsv").read_bytes() == found
    else:
        assert ending == "parquet" or use.startswith(("validate", "summary of controls"))
        line = error_line(capfd.readouterr().err)
        assert "standard input" in line or "a pipe" in line
        assert not (tmp_path / "piped.tsv").exists()


#: What other programs may make of a column: values of a type that tables of f5py do not have, or none at all.
OTHER_COLUMNS = {
    "lists": lambda arrow, column: arrow.array([[1.0, 2.0]] * len(column)),
    "structures": lambda arrow, column: arrow.array([{"x": 1}] * len(column)),
    "truth values": lambda arrow, column: arrow.array([True] * len(column)),
    "nothing": lambda arrow, column: arrow.nulls(len(column)),
    "a row without a value": lambda arrow, column: arrow.array([None, *column.to_pylist()[1:]], _plain(arrow, column)),
    "text": lambda arrow, column: arrow.array(["x"] * len(column)),
    "large numbers": lambda arrow, column: arrow.array([1 << 62] * len(column)),
    "negative numbers": lambda arrow, column: arrow.array([-5] * len(column)),
}


def _plain(arrow, column):
    return column.type.value_type if arrow.types.is_dictionary(column.type) else column.type


@pytest.mark.parametrize("use", [use for use, (kind, _) in TABLE_USES.items() if kind != "sites"])
def test_columns_of_other_types(use: str, tables: Tables, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    """One line that says what is wrong, or results: the column may not matter, or be taken as it is."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    sound = parquet.read_table(tables.folder / f"{TABLE_USES[use][0]}.parquet")
    changed, out = tmp_path / "changed.parquet", tmp_path / ("out.parquet" if use.startswith("merge") else "out.tsv")
    refused = set()
    for at, name in enumerate(sound.column_names):
        for nth, (what, change) in enumerate(OTHER_COLUMNS.items()):
            if (at + nth + list(TABLE_USES).index(use)) % 3 and SHARE < 1:
                continue  # another use has it
            parquet.write_table(sound.set_column(at, name, change(arrow, sound.column(at))), changed)
            capfd.readouterr()
            status = run_on(tables, use, str(changed), out)
            told = capfd.readouterr().err
            assert status == 0 or error_line(told), (name, what)
            refused |= {what} if status else set()
    assert refused >= {"lists", "structures", "truth values", "nothing"}


@pytest.mark.parametrize("use", [use for use, (kind, _) in TABLE_USES.items() if kind in ("calls", "events")])
def test_names_with_quotes(use: str, tables: Tables, tmp_path: Path):
    """What SAM allows as the name of a read: quotes are letters like others, in text and in Parquet."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kind = TABLE_USES[use][0]
    sound = parquet.read_table(tables.folder / f"{kind}.parquet")
    at = sound.column_names.index("read_name")
    names = sound.column(at).to_pylist()
    renamed = [f'"{name[:9]}"{name[9:]}\'' for name in names]
    kind_of_names = sound.schema.field(at).type
    column = arrow.array(renamed, _plain(arrow, sound.column(at)))
    column = column.dictionary_encode() if arrow.types.is_dictionary(kind_of_names) else column
    parquet.write_table(sound.set_column(at, "read_name", column), tmp_path / "quoted.parquet")
    text = (tables.folder / f"{kind}.tsv").read_text()
    for name, new in dict(zip(names, renamed, strict=True)).items():
        text = text.replace(f"\t{name}\t", f"\t{new}\t")
    (tmp_path / "quoted.tsv").write_text(text)
    if use.startswith("merge"):
        assert run_command("merge", *[tmp_path / "quoted.parquet"] * 2, "-o", tmp_path / "out.parquet") == 0
        joined = parquet.read_table(tmp_path / "out.parquet")
        assert joined["read_name"].to_pylist() == renamed * 2
        return
    for ending in ("tsv", "parquet"):
        assert run_on(tables, use, str(tmp_path / f"quoted.{ending}"), tmp_path / ending) == 0
    if use not in ROUNDED:
        assert (tmp_path / "parquet").read_bytes() == (tmp_path / "tsv").read_bytes()
    assert (tmp_path / "parquet").read_bytes().count(b"\n") > 3
