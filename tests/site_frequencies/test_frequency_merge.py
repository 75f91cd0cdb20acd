"""Adding up tables of frequencies."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.errors import InputFileError
from f5py.site_frequencies.frequency_merge import FrequencyMerger

_HEADER = (
    "chromosome\tstart\tend\tnum_motifs_in_group\tcalled_sites\tcalled_sites_methylated\tmethylated_frequency\t"
    "group_sequence\n"
)
_HEADER_CPG = _HEADER.replace("num_motifs", "num_cpgs")


def _row(chromosome="chr1", start=5, end=5, size=1, called=2, methylated=1, sequence="AACGT") -> str:
    return f"{chromosome}\t{start}\t{end}\t{size}\t{called}\t{methylated}\t{methylated / called:.3f}\t{sequence}\n"


def _merge(*tables: str | bytes, chunk_size: int = 1 << 16) -> tuple[str, int]:
    merger = FrequencyMerger()
    for number, table in enumerate(tables):
        data = table if isinstance(table, bytes) else table.encode()
        merger.add(io.BytesIO(data), f"{number}.tsv", chunk_size)
    out = io.BytesIO()
    merger.result().write(out)
    return out.getvalue().decode(), merger.n_conflicts


def _model(*tables: str) -> tuple[str, int]:
    """Merge tables in plain Python."""
    sites: dict = {}
    conflicts = 0
    for table in tables:
        head, *lines = table.split("\n")
        for line in lines:
            if not line:
                continue
            chromosome, start, end, size, called, methylated, _, sequence = line.split("\t")
            site = sites.setdefault((chromosome, int(start), int(end)), [size, 0, 0, sequence])
            if sequence not in (site[3], "split-group"):
                if site[3] == "split-group":
                    site[0], site[3] = size, sequence
                else:
                    conflicts += 1
                    if len(sequence) > len(site[3]):
                        site[0], site[3] = size, sequence
            site[1] += int(called)
            site[2] += int(methylated)
    out = head + "\n"
    for (chromosome, start, end), (size, called, methylated, sequence) in sorted(sites.items()):
        out += f"{chromosome}\t{start}\t{end}\t{size}\t{called}\t{methylated}\t{methylated / called:.3f}\t{sequence}\n"
    return out, conflicts


_rows = st.builds(
    lambda methylated, rest, **others: _row(methylated=methylated, called=methylated + rest, **others),
    methylated=st.integers(0, 40),
    rest=st.integers(1, 40),
    chromosome=st.sampled_from(["chr1", "chr10", "chr2", "M"]),
    start=st.integers(0, 5),
    end=st.integers(0, 7),
    size=st.integers(0, 4),
    sequence=st.sampled_from(["split-group", "ACGT", "CCGT", "AACGTT", "ACGT" * 40]),
)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.lists(_rows, max_size=25), st.booleans()), min_size=2, max_size=4),
    st.sampled_from([_HEADER, _HEADER_CPG]),
    st.integers(1, 700),
)
def test_any_tables_in_any_order_and_chunks_equal_the_plain_model(tables, header: str, chunk: int) -> None:
    texts = [header + "".join(rows) for rows, _ in tables]
    texts = [text if ended else text.removesuffix("\n") for text, (_, ended) in zip(texts, tables, strict=True)]
    assert _merge(*texts, chunk_size=chunk) == _model(*texts)


def test_sites_without_calls_are_left_out_and_nothing_is_divided_by_zero() -> None:
    row = "chr1\t5\t5\t1\t0\t0\t-nan\tACG\n"
    assert _merge(_HEADER + row, _HEADER + row) == (_HEADER, 0)


def test_empty_lines_and_repeated_headers_are_passed_over() -> None:
    assert _merge(_HEADER + "\n" + _row() + "\n\n" + _HEADER + _row(), _HEADER)[0] == _HEADER + _row(
        called=4, methylated=2
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (_row().replace("\tAACGT", ""), "7 columns, fewer than the header's 8"),
        (_row().replace("\n", "\tmore\n"), "9 columns, more than the header's 8"),
        (_row(start=-5), "start is '-5', which is negative"),
        (_row(end="x"), "end is 'x', not a whole number from 0 to 2147483647"),
        (_row(size=2**31), "num_motifs_in_group is '2147483648', not a whole number"),
        (_row(called=1, methylated=2), "2 of 1 sites are methylated"),
        (_row(called=2**62), "the counts of this site add up to more than"),
        (_row(called=10**19), "called_sites is '10000000000000000000', not a whole number"),
    ],
)
@pytest.mark.parametrize("chunk_size", [7, 1 << 16])
def test_a_wrong_row_is_named_with_its_line(wrong: str, message: str, chunk_size: int) -> None:
    with pytest.raises(InputFileError, match=re.escape(f"1.tsv, line 3: {message}")):
        _merge(_HEADER + _row(), _HEADER + "\n" + wrong + _row(), chunk_size=chunk_size)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no header"),
        (_row(), "line 1: not the header of meth-freq"),
        (_HEADER.replace("\n", "\r\n"), "line 1: the header ends with a carriage return"),
        ("x" * 100_000, "line 1: not the header"),
    ],
)
def test_a_wrong_header_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputFileError, match=re.escape(f"1.tsv, {message}")):
        _merge(_HEADER, text)


def test_many_sites_outgrow_the_first_tables() -> None:
    rng = np.random.default_rng(5)
    tables = []
    for _ in range(3):
        starts = np.unique(rng.integers(0, 20_000, 8000)).tolist()
        names = [f"contig_{i:04}" for i in rng.integers(0, 1500, len(starts)).tolist()]
        rows = [_row(n, s, s + 2, sequence="CG" * (s % 30 + 1)) for n, s in zip(names, starts, strict=True)]
        tables.append(_HEADER + "".join(rows))
    assert _merge(*tables) == _model(*tables)
