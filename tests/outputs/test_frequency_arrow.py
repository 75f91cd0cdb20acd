"""Calls and frequencies as Parquet."""

from __future__ import annotations

import io
import os
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest

from f5py.cli import command_of
from f5py.errors import MissingDependencyError
from f5py.site_frequencies.frequency import methylation_frequency

command = command_of("meth-freq")


def _as_text(table) -> str:
    lines = ["\t".join(table.column_names)]
    for row in table.to_pylist():
        row["methylated_frequency"] = f"{row['methylated_frequency']:.3f}"
        lines.append("\t".join(map(str, row.values())))
    return "\n".join(lines) + "\n"


@pytest.mark.shared
@pytest.mark.parametrize(("options", "expected"), [([], "freq.tsv"), (["-s"], "freq_split.tsv")])
def test_real_frequencies_read_back_as_the_text_table(
    ecoli: Path, tmp_path: Path, options: list[str], expected: str
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    out = tmp_path / "freq.parquet"
    calls = str(ecoli / "expected" / "meth.tsv.gz")
    command.main(["-i", calls, "-o", str(out), "--output-format", "parquet", *options], standalone_mode=False)
    table = parquet.read_table(out)
    assert _as_text(table) == (ecoli / "expected" / expected).read_text()
    types = {field.name: str(field.type) for field in table.schema}
    assert types == {
        "chromosome": "dictionary<values=string, indices=int32, ordered=0>",
        "start": "int64",
        "end": "int64",
        "num_motifs_in_group": "int32",
        "called_sites": "int64",
        "called_sites_methylated": "int64",
        "methylated_frequency": "double",
        "group_sequence": "large_string",
    }


def test_several_blocks_and_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    from f5py.outputs.sites import bedmethyl

    monkeypatch.setattr(bedmethyl, "_ROWS_PER_TABLE", 7)
    monkeypatch.setattr(bedmethyl, "ROWS_PER_GROUP", 20)
    header = (
        "chromosome\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
        "num_calling_strands\tnum_cpgs\tsequence\n"
    )
    rows = "".join(
        f"contig{i % 3}\t{i}\t{i + i % 2 * 2}\tr\t{i % 7 - 3}.00\t0\t0\t1\t{i % 2 + 1}\t{'CGCG' + 'A' * i}\n"
        for i in range(100)
    )
    for split in (False, True):
        frequencies = methylation_frequency(io.BytesIO((header + rows).encode()), 0.0, split)
        path = tmp_path / "x.parquet"
        with open(path, "wb") as out:
            bedmethyl.write_frequency_rows(out, frequencies)
        content = path.read_bytes()
        for n_rows in (1, 1000):
            monkeypatch.setattr(bedmethyl, "_ROWS_PER_TABLE", n_rows)
            with open(path, "wb") as out:
                bedmethyl.write_frequency_rows(out, frequencies)
            assert path.read_bytes() == content
        text = io.BytesIO()
        frequencies.write(text)
        assert _as_text(parquet.read_table(path)) == text.getvalue().decode()
        groups = parquet.ParquetFile(path).metadata
        sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
        assert sizes[:-1] == [20] * ((len(frequencies) - 1) // 20)


def test_memory_does_not_grow_with_the_number_of_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each block takes its own sites, and nobody copies the sequences of all, which are 4 MB here."""
    pytest.importorskip("pyarrow.parquet")
    from f5py.outputs.sites import bedmethyl

    monkeypatch.setattr(bedmethyl, "_ROWS_PER_TABLE", 500)
    monkeypatch.setattr(bedmethyl, "ROWS_PER_GROUP", 500)
    header = (
        "chromosome\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
        "num_calling_strands\tnum_cpgs\tsequence\n"
    )
    rows = "".join(f"c\t{i}\t{i}\tr\t9\t0\t0\t1\t1\t{'A' * 200}\n" for i in range(20_000))
    group = "c\t30000\t30002\tr\t9\t0\t0\t1\t2\tCGCG\n"
    frequencies = methylation_frequency(io.BytesIO((header + rows + group).encode()), split_groups=True)
    peaks = []
    for _ in range(2):  # the first time, code is imported and compiled
        tracemalloc.start()
        with open(os.devnull, "wb") as out:
            bedmethyl.write_frequency_rows(out, frequencies)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 600_000


def test_a_table_without_sites(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    from f5py.outputs.sites.bedmethyl import write_frequency_rows

    calls = (
        b"chromosome\tstrand\tstart\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
        b"num_calling_strands\tnum_motifs\tsequence\n"
    )
    out = io.BytesIO()
    write_frequency_rows(out, methylation_frequency(io.BytesIO(calls)))
    table = parquet.read_table(io.BytesIO(out.getvalue()))
    assert table.num_rows == 0
    assert table.column_names[0] == "chromosome"


def test_without_pyarrow_the_message_names_the_command(
    ecoli: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    arguments = ["-i", str(ecoli / "expected" / "meth.tsv.gz"), "-o", str(tmp_path / "x"), "--output-format", "parquet"]
    with pytest.raises(MissingDependencyError, match="pip install pyarrow"):
        command.main(arguments, standalone_mode=False)
    assert list(tmp_path.iterdir()) == []


pytestmark = pytest.mark.shared


@pytest.mark.parametrize("region", [None, "NC_000913.3_500001_760000:20,001-60,000"])
def test_real_calls_read_back_as_the_text_table(call_ecoli, region: str | None) -> None:
    # small batches, so that dictionaries differ between the pieces
    options = ["-K", "30", *(["-w", region] if region else [])]
    text = call_ecoli("reads.bam", *options).decode()
    content = call_ecoli("reads.bam", *options, "--output-format", "parquet")
    table = pyarrow.parquet.read_table(io.BytesIO(content))
    header, *lines = text.splitlines()
    assert table.column_names == header.split("\t")
    rows = [line.split("\t") for line in lines]
    assert len(rows) > 1000
    columns = table.to_pydict()
    for number, name in enumerate(table.column_names):
        expected = [row[number] for row in rows]
        if name.startswith("log_lik"):
            values = np.array(columns[name], np.float64)
            assert [f"{value:.2f}" for value in values.tolist()] == expected
        else:
            assert list(map(str, columns[name])) == expected
    assert [str(field.type) for field in table.schema] == [
        "dictionary<values=string, indices=int32, ordered=0>",
        "dictionary<values=string, indices=int32, ordered=0>",
        "int64",
        "int64",
        "dictionary<values=string, indices=int32, ordered=0>",
        "double",
        "float",
        "float",
        "int32",
        "int32",
        "large_string",
    ]
    assert len(content) < len(text) / 2
    assert call_ecoli("reads.bam", *options[2:], "-K", "7", "--output-format", "parquet") == content
