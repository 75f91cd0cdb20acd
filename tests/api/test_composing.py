"""Results of one function as the input of the next; results that are returned instead of printed; lists as options."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pytest

import f5py
from f5py.options import declarations

from ..made_data import ReadSet, run_command


@pytest.fixture(scope="module")
def inputs(made: ReadSet) -> dict[str, Any]:
    return {"reads": made.reads, "bam": made.bam, "genome": made.genome, "threads": 2}


@pytest.fixture(scope="module")
def calls(inputs: dict[str, Any]) -> pa.Table:
    return f5py.call_methylation(**inputs)


@pytest.fixture(scope="module")
def events(inputs: dict[str, Any]) -> pa.Table:
    return f5py.eventalign(**inputs, scale_events=True)


@pytest.fixture(scope="module")
def sites(calls: pa.Table) -> pa.Table:
    return f5py.frequencies(calls, split_groups=True)


def polars(table: pa.Table) -> Any:
    return pytest.importorskip("polars").from_arrow(table)


class Stream:
    """A table of any library: something with an Arrow stream."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._table.__arrow_c_stream__(requested_schema)


FORMS: dict[str, Callable[[pa.Table], Any]] = {
    "table": lambda table: table,
    "batches": lambda table: iter(table.to_batches(max_chunksize=100)),
    "reader": lambda table: table.to_reader(max_chunksize=100),
    "pandas": lambda table: table.to_pandas(),
    "polars": polars,
    "stream": Stream,
    "plain text": lambda table: table.set_column(
        0, "chromosome", table["chromosome"].cast(pa.string()).cast(pa.large_string())
    ),
    "other order": lambda table: table.select(table.column_names[::-1]),
    "more columns": lambda table: table.to_pandas().assign(is_island=True, when=pd.Timestamp(0)),
}


@pytest.mark.parametrize("form", FORMS)
def test_calls_in_memory_are_as_those_in_a_file(form: str, calls: pa.Table, sites: pa.Table, made_calls: bytes) -> None:
    assert sites.to_pylist() == f5py.frequencies(io.BytesIO(made_calls), split_groups=True).to_pylist()
    assert f5py.frequencies(FORMS[form](calls), split_groups=True).equals(sites)


def test_calls_as_they_come(inputs: dict[str, Any], sites: pa.Table) -> None:
    assert f5py.frequencies(f5py.iter_calls(**inputs, batchsize=5), split_groups=True).equals(sites)


def test_rows_that_were_chosen(calls: pa.Table) -> None:
    frame = calls.to_pandas()
    plus = frame[frame.strand == "+"]  # which has an index with gaps
    found = f5py.frequencies(plus, threshold=2, returns="pandas")
    beyond = plus[plus.log_lik_ratio.round(2).abs() >= 2]
    assert found.called_sites.sum() == beyond.num_motifs.sum()
    assert found.called_sites_methylated.sum() == beyond[beyond.log_lik_ratio > 0].num_motifs.sum()


def test_an_index_with_a_name_is_a_column(calls: pa.Table, sites: pa.Table) -> None:
    assert f5py.frequencies(calls.to_pandas().set_index("read_name"), split_groups=True).equals(sites)


def test_several_tables_are_one(calls: pa.Table, made_calls: bytes, sites: pa.Table, tmp_path: Path) -> None:
    twice = f5py.frequencies([calls, calls.to_pandas()], split_groups=True).to_pandas()
    assert list(twice.called_sites) == [2 * n for n in sites["called_sites"].to_pylist()]
    (tmp_path / "calls.tsv").write_bytes(made_calls)
    mixed = f5py.frequencies([calls, tmp_path / "calls.tsv", io.BytesIO(made_calls)], split_groups=True).to_pandas()
    assert list(mixed.called_sites) == [3 * n for n in sites["called_sites"].to_pylist()]


def test_frequencies_are_merged(sites: pa.Table, tmp_path: Path) -> None:
    merged = f5py.merge_frequencies([sites, sites.to_pandas()])
    assert merged.column_names == sites.column_names
    assert merged["called_sites"].to_pylist() == [2 * n for n in sites["called_sites"].to_pylist()]
    f5py.merge_frequencies((sites, sites), output=tmp_path / "sum.tsv")
    written = pa.csv.read_csv(tmp_path / "sum.tsv", parse_options=pa.csv.ParseOptions(delimiter="\t"))
    assert written["called_sites"].to_pylist() == merged["called_sites"].to_pylist()


def test_calls_are_summarised_and_compared_with_the_truth(
    calls: pa.Table, sites: pa.Table, made: ReadSet, made_calls: bytes
) -> None:
    truth = made.folder / "truth.tsv"
    assert f5py.summary(calls) == f5py.summary(io.BytesIO(made_calls))
    of_calls = f5py.validate(calls.to_pandas(), truth)
    assert of_calls["frequencies"]["sites"] > 100
    known = pa.csv.read_csv(truth, parse_options=pa.csv.ParseOptions(delimiter="\t"))
    assert f5py.validate(calls, known) == of_calls
    assert f5py.validate(sites, known)["frequencies"]["correlation"] > 0.5
    controls = f5py.validate(methylated=calls, unmethylated=[calls, calls])
    assert controls["calls"] == 3 * len(calls)


def test_events_are_compared(events: pa.Table, inputs: dict[str, Any], tmp_path: Path) -> None:
    f5py.eventalign(**inputs, scale_events=True, output=tmp_path / "events.parquet")
    files = f5py.compare(tmp_path / "events.parquet", tmp_path / "events.parquet", min_coverage=2)
    assert files.num_rows > 100
    assert f5py.compare(events, f5py.iter_events(**inputs, scale_events=True), min_coverage=2).equals(files)
    frame = f5py.compare(events, events.to_pandas(), min_coverage=2, returns="pandas")
    pd.testing.assert_frame_equal(frame, files.to_pandas())


# What is no table


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (pa.table({"a": [1]}), "^tables, line 1: not the header of call-methylation"),
        (pd.DataFrame({"start": [1], "log_lik_ratio": [2.0]}), "^tables, line 1: has no column chromosome"),
        (iter([]), "^tables: has no table in it$"),
        (iter([3]), "^tables: yields a int, which is no table$"),
        (pd.DataFrame({"a": [1, "x"]}), "^tables: is no table that Arrow can read: .*column a with type object"),
        (object(), "^tables: <object object at 0x[0-9a-f]+> is neither a path nor a file .*, nor a table$"),
    ],
)
def test_what_is_no_table_of_calls(table: Any, message: str) -> None:
    with pytest.raises(f5py.F5pyError, match=message):
        f5py.frequencies(table)


def test_columns_that_one_table_lacks(calls: pa.Table) -> None:
    with pytest.raises(f5py.UsageError, match=r"^tables: one of the tables has no column sequence, which the first"):
        f5py.frequencies(iter([calls, calls.drop_columns(["sequence"])]))


def test_a_table_is_no_alignment_file(calls: pa.Table, inputs: dict[str, Any]) -> None:
    with pytest.raises(f5py.UsageError, match=r"^bam: pyarrow.Table chromosome: .* is neither a path nor a file"):
        f5py.call_methylation(**inputs | {"bam": calls})


def test_what_goes_wrong_while_a_table_comes(inputs: dict[str, Any]) -> None:
    with pytest.raises(f5py.F5pyError, match="there is no contig 'nowhere'"):
        f5py.frequencies(f5py.iter_calls(**inputs, window="nowhere:1-9"))


# What is returned without an output, and nothing is printed


def text_of(table: pa.Table) -> list[list[str]]:
    return [["." if value is None else str(value) for value in row.values()] for row in table.to_pylist()]


def test_tables_of_text_are_returned(made: ReadSet, tmp_path: Path) -> None:
    blow5 = made.with_slow5(tmp_path).folder / "signals.blow5"
    f5py.resquiggle(made.reads, blow5, output=tmp_path / "kmers.tsv")
    header, *rows = [line.split("\t") for line in (tmp_path / "kmers.tsv").read_text().splitlines()]
    table = f5py.resquiggle(made.reads, blow5)
    assert (table.column_names, text_of(table)) == (header, rows)
    assert table["start_raw_idx"].null_count > 0
    assert str(table.schema.field("start_raw_idx").type) == "int64"

    f5py.fast5_check(reads=made.reads, output=tmp_path / "check.tsv")
    header, *rows = [line.split("\t") for line in (tmp_path / "check.tsv").read_text().splitlines()]
    table = f5py.fast5_check(reads=made.reads)
    assert (table.column_names, text_of(table)) == (header, rows)
    with pytest.raises(f5py.UsageError, match=r"^output: the rows are returned instead of written"):
        f5py.fast5_check(reads=made.reads, output=tmp_path / "check.tsv", returns="arrow")


def test_polars_frames(calls: pa.Table, inputs: dict[str, Any]) -> None:
    library = pytest.importorskip("polars")
    frame = f5py.call_methylation(**inputs, returns="polars")
    assert isinstance(frame, library.DataFrame)
    assert frame.rows() == library.from_arrow(calls).rows()


def test_a_library_that_is_broken(inputs: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its reason is told, not that it has to be installed."""
    (tmp_path / "polars.py").write_text("raise ImportError('libsomething.so.3: cannot open shared object file')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "polars", raising=False)
    with pytest.raises(f5py.F5pyError, match=r"polars, which is installed but cannot be loaded: libsomething\.so\.3: "):
        f5py.call_methylation(**inputs, returns="polars")


def test_other_outputs_need_a_name(calls: pa.Table, inputs: dict[str, Any], made: ReadSet, tmp_path: Path) -> None:
    for refused in (
        lambda: f5py.frequencies(calls, bedmethyl=True),
        lambda: f5py.eventalign(**inputs, sam=True),
        lambda: f5py.eventalign(**inputs, paf=True),
        lambda: f5py.eventalign(**inputs, resume=True),
        lambda: f5py.call_methylation(**inputs, plan=tmp_path / "plan"),
        lambda: f5py.resquiggle(made.reads, made.folder / "fast5", paf=True),
        lambda: f5py.map_reads(made.genome, made.reads),
        lambda: f5py.merge(["a.tsv", "b.tsv"]),
    ):
        with pytest.raises(f5py.UsageError, match=r"name (the|a) file"):
            refused()


def test_without_a_table_there_are_counts(inputs: dict[str, Any], calls: pa.Table, tmp_path: Path) -> None:
    assert f5py.call_methylation(**inputs, modbam=tmp_path / "a.bam", output_format="none").total == 16
    assert f5py.call_methylation(**inputs, modbam_output_name=tmp_path / "b.bam").total == 16
    assert f5py.call_methylation(**inputs, modbam=tmp_path / "c.bam", output_format="tsv").equals(calls)
    with pytest.raises(f5py.UsageError, match="--kmer-view 5"):  # of a model of 6; rows are not asked for
        f5py.eventalign(**inputs, m6anet_json=tmp_path / "json")


def test_nothing_is_printed(
    inputs: dict[str, Any], made: ReadSet, calls: pa.Table, sites: pa.Table, events: pa.Table, tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    capfd.readouterr()
    f5py.call_methylation(**inputs)
    f5py.eventalign(**inputs, window="simulated:1-200")
    f5py.frequencies(calls)
    f5py.merge_frequencies([sites])
    f5py.summary(calls)
    f5py.validate(calls, made.folder / "truth.tsv")
    f5py.compare(events, events, min_coverage=2)
    f5py.fast5_check(reads=made.reads)
    f5py.map_reads(made.genome, made.reads, output=tmp_path / "reads.bam")
    drawn = f5py.plot(made.names[0], reads=made.reads)
    repr(drawn)
    assert capfd.readouterr() == ("", "")


def test_standard_output_if_it_is_asked_for(calls: pa.Table, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    f5py.frequencies(calls, output="-")
    assert capfdbinary.readouterr().out.startswith(b"chromosome\tstart\tend\t")


def test_a_plan_is_told(
    inputs: dict[str, Any], tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    options = {**inputs, "plan": tmp_path / "plan", "output": tmp_path / "calls.tsv"}
    with pytest.raises(f5py.F5pyError, match="there is no sbatch"):
        f5py.call_methylation(**options, partitions=2, engine="slurm")
    capfd.readouterr()
    told = f5py.plan(tmp_path / "plan")
    assert capfd.readouterr().out == ""
    assert "not done\t2: 0 1\n" in told
    assert run_command("plan", tmp_path / "plan", "-o", tmp_path / "told") == 0
    assert (tmp_path / "told").read_text() == told


# Pictures


def test_a_picture_of_a_read(made: ReadSet, tmp_path: Path) -> None:
    read = {"reads": made.reads, "bam": made.bam, "genome": made.genome}
    picture = f5py.plot(made.names[0], **read)
    f5py.plot(made.names[0], **read, output=tmp_path / "theirs.html")
    assert picture.page() == (tmp_path / "theirs.html").read_text()
    shown = picture._repr_html_()
    assert shown.startswith('<iframe srcdoc="')
    assert unescape(shown.partition('srcdoc="')[2].partition('"')[0]) == picture.page()
    f5py.plot(made.names[0], **read, output=tmp_path / "theirs.svg")
    picture.save(tmp_path / "ours.svg")
    assert (tmp_path / "ours.svg").read_bytes() == (tmp_path / "theirs.svg").read_bytes()
    assert picture.figure().axes[0].get_ylabel() == "current (pA)"
    assert repr(picture) == f"<Picture of read {made.names[0]}>"
    with pytest.raises(f5py.UsageError):
        picture.save(tmp_path / "ours.gif")


def test_a_picture_of_a_locus(inputs: dict[str, Any], tmp_path: Path) -> None:
    bam = tmp_path / "calls.bam"
    f5py.call_methylation(**inputs, modbam=bam, output_format="none")
    picture = f5py.plot_region(bam=bam, window=("simulated", 1000, 3000))
    for name in ("x.html", "x.svg"):
        f5py.plot_region(bam=bam, window="simulated:1001-3000", output=tmp_path / name)
        picture.save(tmp_path / f"our_{name}")
        assert (tmp_path / f"our_{name}").read_bytes() == (tmp_path / name).read_bytes()
    assert picture.figure() is not picture.figure()
    assert repr(picture) == "<Picture of simulated:1001-3000>"


# Lists and tuples


def test_windows(inputs: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "windows.bed").write_text("simulated\t0\t2000\nsimulated\t4000\t5000\n")
    expected = f5py.call_methylation(**inputs, window=tmp_path / "windows.bed")
    several = [("simulated", 0, 2000), "simulated:4001-5000"]
    assert f5py.call_methylation(**inputs, window=several).equals(expected)
    assert f5py.call_methylation(**inputs, window=tuple(several)).equals(expected)
    events = f5py.eventalign(**inputs, window="simulated:101-300")
    assert f5py.eventalign(**inputs, window=("simulated", 100, 300)).equals(events)
    assert f5py.eventalign(**inputs, window=["simulated:101-300"]).equals(events)


def test_kinds_of_methylation(inputs: dict[str, Any], calls: pa.Table) -> None:
    assert f5py.call_methylation(**inputs, methylation=["cpg"]).equals(calls)
    assert f5py.frequencies(calls, methylation=("cpg",)).num_rows > 100
    with pytest.raises(f5py.UsageError, match="is not one of 'cpg', 'gpc'"):
        f5py.frequencies(calls, methylation=["cpg", "dam"])


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("methylation", ["cpg", "gpc"], "cpg,gpc"),
        ("methylation", ("cpg",), "cpg"),
        ("cuda_dev_id", [0, 1], "0,1"),
        ("cuda_dev_id", 1, "1"),
        ("motif", ("CHG", 0), "CHG:0"),
        ("window", ("chr1", 0, 100), ("chr1:1-100",)),
        ("window", [("chr1", 0, 100), "chr2", ["chr3", 5, 6]], ("chr1:1-100", "chr2", "chr3:6-6")),
        ("window", ["chr1", "chr2"], ("chr1", "chr2")),
        ("window", Path("a.bed"), ("a.bed",)),
    ],
)
def test_lists_are_what_the_command_line_has(name: str, value: Any, text: Any) -> None:
    from f5py.api.values import GivenFiles, option_value
    from f5py.options.signal_commands import CallOptions

    with GivenFiles() as files:
        assert option_value(name, declarations(CallOptions)[name], value, files) == text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": ("simulated", 5, 5)}, r"^window: \('simulated', 5, 5\): the end must be after the start"),
        ({"window": ("simulated", -1, 5)}, r"^window: \('simulated', -1, 5\): the end must be after the start"),
        ({"window": [("simulated", 5)]}, r"^window: \('simulated', 5\) is neither a region nor \(contig, start, end\)"),
        ({"window": []}, "^window: has no region in it"),
        ({"window": ["simulated:1-5", "elsewhere"]}, "^-w elsewhere: there is no contig 'elsewhere'"),
        ({"methylation": ["cpg", None]}, "^methylation: None is not text or a number"),
        ({"sample": ["a", "b"]}, r"^sample: \['a', 'b'\] is no text"),
    ],
)
def test_lists_that_are_wrong(inputs: dict[str, Any], options: dict[str, Any], message: str) -> None:
    with pytest.raises(f5py.F5pyError, match=message):
        f5py.call_methylation(**inputs, **options)


def test_one_region_is_one(inputs: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(f5py.F5pyError, match="give one region"):
        f5py.plot_region(bam=inputs["bam"], window=[("simulated", 0, 9), ("simulated", 20, 90)])
