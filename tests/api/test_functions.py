"""The commands as Python functions: the same bytes as from the command line, and tables instead of files."""

from __future__ import annotations

import gzip
import inspect
import io
import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pysam
import pytest

import f5py
from f5py.api.call import FUNCTIONS
from f5py.cli.commands import COMMANDS
from f5py.cli.options import DOORS
from f5py.errors import InputFileError, OutputFileError
from f5py.options import declarations

from ..made_data import ReadSet, run_command
from ..patience import PATIENCE


@pytest.fixture
def inputs(made: ReadSet) -> dict[str, Any]:
    return {"reads": made.reads, "bam": made.bam, "genome": made.genome, "threads": 2}


def of_command_line(inputs: dict[str, Any]) -> list[str]:
    return [word for name, value in inputs.items() for word in (f"--{name}", str(value))]


# The same bytes


@pytest.mark.parametrize(
    ("command", "words", "options"),
    [
        ("call-methylation", [], {}),
        ("call-methylation", ["--meth-out-version", 1, "-K", 3], {"meth_out_version": 1, "batchsize": 3}),
        ("call-methylation", ["--output-format", "parquet"], {"output_format": "parquet"}),
        ("call-methylation", ["--hard-clips=no", "--min-mapq", 30], {"hard_clips": False, "min_mapq": np.int64(30)}),
        ("call-methylation", ["-x", "laptop-low", "-K", 5], {"profile": "laptop-low", "batchsize": 5}),
        ("eventalign", [], {}),
        ("eventalign", ["--sam"], {"sam": True}),
        ("eventalign", ["-c"], {"paf": True}),
        ("eventalign", ["--signal-index", "--output-format", "parquet"],
         {"signal_index": True, "output_format": "parquet"}),
    ],
)  # fmt: skip
def test_files_are_those_of_the_command_line(
    command: str, words: list[Any], options: dict[str, Any], inputs: dict[str, Any], tmp_path: Path
) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    assert run_command(command, *of_command_line(inputs), *words, "-o", theirs) == 0
    getattr(f5py, command.replace("-", "_"))(**inputs, **options, output=ours)
    assert ours.read_bytes() == theirs.read_bytes()


def test_all_outputs_of_a_run(inputs: dict[str, Any], tmp_path: Path) -> None:
    for folder in ("theirs", "ours"):
        (tmp_path / folder).mkdir()
    files = {"output": "calls.tsv.gz", "modbam": "calls.bam", "bedmethyl": "sites.bed.gz", "failed_reads": "failed.tsv"}
    words = [
        word
        for name, file in files.items()
        for word in (f"--{name.replace('_', '-')}", str(tmp_path / "theirs" / file))
    ]
    assert run_command("call-methylation", *of_command_line(inputs), *words) == 0
    counts = f5py.call_methylation(**inputs, **{name: tmp_path / "ours" / file for name, file in files.items()})
    assert (counts.total, counts.failed) == (16, 0)
    for file in ("calls.tsv.gz", "sites.bed.gz", "sites.bed.gz.tbi", "failed.tsv"):
        assert (tmp_path / "ours" / file).read_bytes() == (tmp_path / "theirs" / file).read_bytes()
    with (
        pysam.AlignmentFile(tmp_path / "ours/calls.bam") as ours,
        pysam.AlignmentFile(tmp_path / "theirs/calls.bam") as theirs,
    ):
        assert [record.to_string() for record in ours] == [record.to_string() for record in theirs]
        line = ours.header["PG"][-1]["CL"]
    assert line.startswith("f5py call-methylation --reads ")
    files_named = f"--modbam {tmp_path}/ours/calls.bam --bedmethyl {tmp_path}/ours/sites.bed.gz"
    assert line.removesuffix(" --threads 2").endswith(files_named)  # which may be the default


# Tables


@pytest.mark.parametrize("function", [f5py.call_methylation, f5py.eventalign])
def test_tables_are_those_of_parquet(function: Any, inputs: dict[str, Any], tmp_path: Path) -> None:
    function(**inputs, output=tmp_path / "rows.parquet", output_format="parquet")
    expected = pq.read_table(tmp_path / "rows.parquet")
    table = function(**inputs, batchsize=5, returns="arrow")
    assert table.num_rows > 500
    assert table.to_pylist() == expected.to_pylist()
    frame = function(**inputs, returns="pandas")
    pd.testing.assert_frame_equal(frame, expected.to_pandas(), check_categorical=False)


@pytest.mark.parametrize(
    ("iterate", "function"), [(f5py.iter_calls, f5py.call_methylation), (f5py.iter_events, f5py.eventalign)]
)
def test_iterators_give_all_rows_in_order(iterate: Any, function: Any, inputs: dict[str, Any]) -> None:
    tables = list(iterate(**inputs, batchsize=3))
    assert len(tables) == 6  # of 16 reads
    assert pa.concat_tables(tables).to_pylist() == function(**inputs, returns="arrow").to_pylist()


def test_calls_may_be_written_and_returned(inputs: dict[str, Any], tmp_path: Path, made_calls: bytes) -> None:
    table = f5py.call_methylation(**inputs, returns="arrow", output=tmp_path / "calls.tsv")
    assert (tmp_path / "calls.tsv").read_bytes() == made_calls
    assert table.num_rows == made_calls.count(b"\n") - 1


def test_without_rows_there_are_the_columns(inputs: dict[str, Any]) -> None:
    nowhere = {**inputs, "window": "simulated:6001-6001"}  # no site fits into it
    columns = next(f5py.iter_calls(**inputs)).column_names
    table = f5py.call_methylation(**nowhere, returns="arrow")
    assert (table.num_rows, table.column_names) == (0, columns)
    assert [one.column_names for one in f5py.iter_calls(**nowhere)] == [columns]
    assert list(f5py.call_methylation(**nowhere, returns="pandas").columns) == columns


def test_frequencies_without_rows(made_calls: bytes) -> None:
    header = made_calls[: made_calls.index(b"\n") + 1]
    columns = f5py.frequencies(io.BytesIO(made_calls), returns="arrow").column_names
    table = f5py.frequencies(io.BytesIO(header), returns="arrow")
    assert (table.num_rows, table.column_names) == (0, columns)


def test_frequencies_as_tables(made_calls: bytes, tmp_path: Path) -> None:
    calls = io.BytesIO(made_calls)
    f5py.frequencies(io.BytesIO(made_calls), output=tmp_path / "x.parquet", output_format="parquet")
    table = f5py.frequencies(calls, returns="arrow")
    assert table.num_rows > 100
    assert table.to_pylist() == pq.read_table(tmp_path / "x.parquet").to_pylist()
    assert list(f5py.frequencies([calls], returns="pandas").columns) == table.column_names


def test_a_closed_iterator_ends_its_run(inputs: dict[str, Any]) -> None:
    before = set(threading.enumerate())  # of other tests
    tables = f5py.iter_calls(**inputs, batchsize=1)
    next(tables)
    tables.close()
    left = set(threading.enumerate()) - before
    for thread in left:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in left)


def test_an_iterator_does_not_run_ahead(inputs: dict[str, Any]) -> None:
    done: list[int] = []
    tables = f5py.iter_calls(**inputs, batchsize=1, progress=lambda unit, n, total: done.append(n))
    next(tables)
    threading.Event().wait(1.0)
    assert max(done) <= 8 * 1300  # of 16 reads: here, in the queue, waiting for it, at work, loaded
    tables.close()


def test_errors_come_after_the_rows_before(made: ReadSet, inputs: dict[str, Any], tmp_path: Path) -> None:
    content = made.bam.read_bytes()
    inputs["bam"] = made.with_bam(tmp_path, content[: len(content) * 2 // 3]).bam
    rows = 0
    with pytest.raises(InputFileError, match="truncated"):  # noqa: PT012 - the rows are the point
        for table in f5py.iter_calls(**inputs, batchsize=1):
            rows += table.num_rows
    assert rows == 0 or rows > 10


# Files of all kinds


def test_inputs_may_be_open_files(made: ReadSet, made_calls: bytes, inputs: dict[str, Any]) -> None:
    with made.bam.open("rb") as file:
        table = f5py.call_methylation(**inputs | {"bam": file}, window="simulated:1-400", returns="arrow")
        assert table.num_rows > 5  # the index beside the file was found
    whole = f5py.call_methylation(**inputs | {"bam": io.BytesIO(made.bam.read_bytes())}, returns="arrow")
    assert whole.num_rows == made_calls.count(b"\n") - 1
    with subprocess.Popen(["cat", made.bam], stdout=subprocess.PIPE) as process:
        piped = f5py.call_methylation(**inputs | {"bam": process.stdout}, returns="arrow")
    assert piped.equals(whole)


def test_outputs_may_be_open_files(inputs: dict[str, Any], made_calls: bytes, tmp_path: Path) -> None:
    in_memory, bed = io.BytesIO(), io.BytesIO()
    f5py.call_methylation(**inputs, output=in_memory, bedmethyl=bed)
    assert in_memory.getvalue() == made_calls
    assert bed.getvalue().count(b"\n") > 100
    with gzip.open(tmp_path / "x.gz", "wb") as packed:
        f5py.call_methylation(**inputs, output=packed)
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()) == made_calls
    with (tmp_path / "x.tsv").open("wb", buffering=0) as raw:
        raw.write(b"before\n")
        f5py.call_methylation(**inputs, output=raw)
    assert (tmp_path / "x.tsv").read_bytes() == b"before\n" + made_calls


def test_what_an_output_raises_is_raised(inputs: dict[str, Any]) -> None:
    class Full(io.RawIOBase):
        def write(self, _: Any) -> int:
            raise ValueError("full")

    with pytest.raises(ValueError, match="full"):
        f5py.call_methylation(**inputs, output=Full())


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": "8"}, "threads: '8' is not a whole number"),
        ({"threads": True}, "threads: True is not a whole number"),
        ({"threads": 0}, "--threads 0: must be at least 1"),
        ({"threads": None}, "threads: None is no value"),
        ({"min_mapq": 2.5}, "min_mapq: 2.5 is not a whole number"),
        ({"per_site": "yes"}, "per_site: 'yes' is neither True nor False"),
        ({"pore": "r8"}, "pore: 'r8' is not one of 'r9', 'r10', 'rna004'"),
        ({"meth_out_version": True}, "meth_out_version: True is not one of 1, 2"),
        ({"call_threshold": "2", "bedmethyl": "x"}, "call_threshold: '2' is not a number"),
        ({"window": 3}, "window: 3 is neither a region nor"),
        ({"output": 1}, "output: 1 is neither a path nor a file that is open for writing"),
        ({"output": io.StringIO()}, "output: is open as text; open it in binary mode"),
        ({"bam": object()}, "is neither a path nor a file that is open for reading"),
        ({"combine_strands": True}, "--combine-strands needs --bedmethyl; add it, or leave --combine-strands out"),
        ({"returns": "table"}, "returns: 'table' is not one of None, 'arrow', 'pandas', 'polars'"),
        ({"watch": "x"}, "--watch and --reads exclude each other"),
    ],
)
def test_wrong_values(inputs: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(f5py.UsageError, match="(?s)" + message.replace("(", "\\(")):
        f5py.call_methylation(**inputs | options)


def test_wrong_keywords(inputs: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=r"call_methylation\(\) has no option 'thread'; did you mean threads\?"):
        f5py.call_methylation(**inputs, thread=3)
    with pytest.raises(TypeError, match=r"call_methylation\(\) needs bam and genome"):
        f5py.call_methylation(pod5="x")
    with pytest.raises(TypeError, match=r"^frequencies\(\) has no option 'unknown'$"):
        f5py.frequencies("x", unknown=3)
    with pytest.raises(TypeError, match=r"needs bam and genome"):
        f5py.iter_calls(pod5="x")
    with pytest.raises(TypeError, match=r"needs genome$"):  # reads without alignments are mapped
        f5py.iter_calls(reads="x")


def test_rows_of_one_kind(inputs: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(f5py.UsageError, match="--paf: is another output"):
        f5py.eventalign(**inputs, paf=True, returns="arrow")
    with pytest.raises(f5py.UsageError, match="the rows are returned"):
        f5py.frequencies(tmp_path / "x", bedmethyl=True, returns="arrow")


def test_a_folder_that_is_missing(inputs: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(OutputFileError, match="No such file or directory"):
        f5py.call_methylation(**inputs, output=tmp_path / "missing" / "x.tsv")


# Progress and messages


def test_progress_is_told(inputs: dict[str, Any], tmp_path: Path) -> None:
    told: list[tuple[str, int, int | None]] = []
    counts = f5py.call_methylation(
        **inputs, batchsize=8, output=tmp_path / "x", progress=lambda *what: told.append(what)
    )
    assert {unit for unit, _, _ in told} == {"bases"}
    assert len(told) == 8  # three parts of the work on each of two batches, and their writing
    done = [done for _, done, _ in told]
    assert done == sorted(done)
    assert told[-1] == ("bases", counts.bases, counts.bases)
    assert all(total is None or total == pytest.approx(counts.bases, rel=0.1) for _, _, total in told)


def test_a_listener_can_end_the_run(inputs: dict[str, Any], tmp_path: Path) -> None:
    def listen(*_: Any) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        f5py.call_methylation(**inputs, output=tmp_path / "x", progress=listen)


def test_messages_go_to_the_logger(
    inputs: dict[str, Any], capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="f5py"):
        f5py.call_methylation(**inputs, returns="arrow")
    assert capfd.readouterr() == ("", "")
    assert "meth_main: total entries: 16, qc fail: 0, could not calibrate: 0, no alignment: 0, bad reads: 0" in [
        record.getMessage() for record in caplog.records if record.name == "f5py"
    ]


def test_a_script_without_a_main_guard(inputs: dict[str, Any], made_calls: bytes, tmp_path: Path) -> None:
    """Reader processes must not run the caller's script again."""
    script = tmp_path / "script.py"
    given = {name: value if isinstance(value, int) else str(value) for name, value in inputs.items()}
    script.write_text(
        f"import f5py\nprint('started')\nfor table in f5py.iter_calls(**{given!r}, iop=2):\n    print(table.num_rows)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["started", str(made_calls.count(b"\n") - 1)]


# What help() and editors show


@pytest.mark.parametrize("name", [name for name in f5py.__all__ if not name.endswith("Error")])
def test_signatures_and_documentation_have_all_options(name: str) -> None:
    function = getattr(f5py, name)
    options = {name for name, one in declarations(FUNCTIONS[name]).items() if not one.is_hidden}
    assert options == inspect.signature(function).parameters.keys() - {"returns", "progress"}
    for name in options:
        assert f"\n{name} : " in function.__doc__


def test_names_of_the_package() -> None:
    assert set(f5py.__all__) <= set(dir(f5py))
    for name in f5py.__all__:
        assert getattr(f5py, name).__name__ == name
    assert {name for name in FUNCTIONS if name[0] != "_"} == {*f5py.__all__} - {"F5pyError", "UsageError"}
    assert COMMANDS.keys() == DOORS.keys()
    assert {name for name in DOORS if DOORS[name].__name__[0] == "_"} == {"compile", "demo", "gpu-check"}


def test_arguments_by_position() -> None:
    with pytest.raises(TypeError, match=r"^plot\(\) takes 1 positional arguments but 2 were given$"):
        f5py.plot("a", "b")
    with pytest.raises(TypeError, match=r"^compare\(\) got multiple values for argument 'a'$"):
        f5py.compare("x", a="y")
    with pytest.raises(TypeError, match=r"^compare\(\) needs b$"):
        f5py.compare("x")
    with pytest.raises(TypeError, match=r"^summary\(\) has no option 'returns'"):
        f5py.summary(returns="arrow")


def test_absent_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = f5py.absent
