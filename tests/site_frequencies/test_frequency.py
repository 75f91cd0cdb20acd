"""Counts of calls per site."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.motifs import IUPAC, parse_motif, reverse_complement
from f5py.errors import InputFileError
from f5py.site_frequencies.frequency import methylation_frequency

_HEADERS = [
    "chromosome\t" + strand + "start\tend\tread_name\tlog_lik_ratio\tlog_lik_methylated\tlog_lik_unmethylated\t"
    "num_calling_strands\t" + count + "\tsequence\n"
    for strand in ("strand\t", "")
    for count in ("num_motifs", "num_cpgs")
]
_HEADER = _HEADERS[0]


def _row(chromosome="chr1", start="5", end="5", ratio="3.00", number="1", sequence="AACGTT", header=_HEADER) -> str:
    strand = "+\t" if "strand\t" in header[:20] else ""
    return f"{chromosome}\t{strand}{start}\t{end}\tread\t{ratio}\t-1.00\t-4.00\t1\t{number}\t{sequence}\n"


def _text(text: str | bytes, threshold: float = 2.5, split: bool = False, chunk_size: int = 1 << 16) -> str:
    data = text if isinstance(text, bytes) else text.encode()
    out = io.BytesIO()
    methylation_frequency(io.BytesIO(data), threshold, split, "calls.tsv", chunk_size).write(out)
    return out.getvalue().decode()


def _rows(text: str, **options) -> list[str]:
    lines = _text(text, **options).split("\n")
    assert lines[-1] == ""
    return lines[1:-1]


def _output_header(count: str) -> str:
    return (
        f"chromosome\tstart\tend\t{count}_in_group\tcalled_sites\tcalled_sites_methylated\t"
        "methylated_frequency\tgroup_sequence\n"
    )


def _model(text: str, threshold: float, split: bool) -> str:
    """Count frequencies in plain Python."""
    head, *lines = text.removesuffix("\n").split("\n")
    titles = head.split("\t")
    sites: dict = {}
    for line in lines:
        row = dict(zip(titles, [token for token in line.split("\t") if token], strict=True))
        start, end, number, ratio = (
            int(row["start"]),
            int(row["end"]),
            int(row[titles[-2]]),
            float(row["log_lik_ratio"]),
        )
        if abs(ratio) < threshold:
            continue
        keys = [((row["chromosome"], start, end), number, number, row["sequence"])]
        if split and number > 1:
            found = [match.start() for match in re.finditer("(?=CG)", row["sequence"])]
            places = [start + place - found[0] for place in found]
            at = found[0] + end - start if found else -1
            if at >= 0 and len(found) == number - 1 and row["sequence"][at:] == "C":  # the last CG is cut off
                places.append(end)
            keys = [((row["chromosome"], place, place), 1, 1, "split-group") for place in places]
        for key, count, size, sequence in keys:
            site = sites.setdefault(key, [size, 0, 0, sequence])
            site[1] += count
            site[2] += count * (ratio > 0)
    out = _output_header(titles[-2])
    for (chromosome, start, end), (size, called, methylated, sequence) in sorted(sites.items()):
        if called:
            out += f"{chromosome}\t{start}\t{end}\t{size}\t{called}\t{methylated}\t{methylated / called:.3f}"
            out += f"\t{sequence}\n"
    return out


_RATIOS = ["2.50", "-2.50", "2.49", "0.00", "-0.00", "nan", "-nan", "inf", "-inf", "1e1", "-2.5E0", "3.", ".5", "+7"]
_RATIOS += ["123456789012345678.25", "-2.4999999999999999999", "2.49999999999999"]


@st.composite
def _tables(draw: st.DrawFn) -> str:
    header = draw(st.sampled_from(_HEADERS))
    rows = st.builds(
        _row,
        chromosome=st.sampled_from(["chr1", "chr10", "chr2", "M", "chr1.alt"]),
        start=st.integers(0, 4).map(str),
        end=st.integers(0, 6).map(str),
        ratio=st.one_of(st.sampled_from(_RATIOS), st.integers(-999, 999).map(lambda n: f"{n / 100:.2f}")),
        number=st.integers(0, 3).map(str),
        sequence=st.one_of(st.text("CG", min_size=1, max_size=9), st.text("ACGT\r", min_size=1, max_size=150)),
        header=st.just(header),
    )
    tabs = st.sampled_from(["\t", "\t", "\t\t", "\t\t\t"])
    lines = [line.replace("\t", draw(tabs), 3) for line in draw(st.lists(rows, max_size=30))]
    text = header + "".join(lines)
    return text.removesuffix("\n") if draw(st.booleans()) else text


@settings(deadline=None)
@given(_tables(), st.sampled_from([2.5, 0.0, -1.0, 3.0, 2.4999, float("inf")]), st.booleans(), st.integers(1, 700))
def test_any_table_in_any_chunks_equals_the_plain_model(text: str, threshold: float, split: bool, chunk: int) -> None:
    assert _text(text, threshold, split, chunk) == _model(text, threshold, split)


@settings(deadline=None)
@given(
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(1, 700),
    st.sampled_from(
        [
            ("", "empty"),
            (_row().replace("\t5", "", 1), "10 columns, fewer than the header's 11"),
            (_row().replace("\t5\t5\t", "\t\t5\t\t"), "10 columns, fewer"),
            (_row().replace("\n", "\tmore"), "12 columns, more than the header's 11"),
            (_row(start="-5"), "start is '-5', which is negative"),
            (_row(end="-1"), "end is '-1', which is negative"),
            (_row(number="-1"), "num_motifs is '-1', which is negative"),
            (_row(start="5x"), "start is '5x', not a whole number from 0 to 2147483647"),
            (_row(start="5.0"), "start is '5.0', not a whole number"),
            (_row(end="2147483648"), "end is '2147483648', not a whole number"),
            (_row(end="99999999999999999999999"), "end is '99999999999999999999999', not a whole number"),
            (_row(number="+"), "num_motifs is '+', not a whole number"),
            (_row(ratio="x"), "log_lik_ratio is 'x', which is not a number"),
            (_row(ratio="1.2.3"), "log_lik_ratio is '1.2.3', which"),
            (_row(ratio="-"), "log_lik_ratio is '-', which"),
            (_row(ratio="."), "log_lik_ratio is '.', which"),
            (_row(ratio="1_0"), "log_lik_ratio is '1_0', which"),
            (_row(ratio="2.5 "), "log_lik_ratio is '2.5 ', which"),
            (_row(ratio="0x3"), "log_lik_ratio is '0x3', which"),
            (_HEADERS[1], "start is 'start', not a whole number"),
            (_HEADERS[2], "10 columns, fewer"),
        ]
    ),
)
def test_a_wrong_row_is_named_with_its_line(before: int, after: int, chunk: int, fault: tuple[str, str]) -> None:
    wrong, message = fault
    good = _row() + _row(ratio="1e1") + _row(ratio="0.10")
    text = _HEADER + good * before + wrong.removesuffix("\n") + "\n" + good * after
    with pytest.raises(InputFileError) as caught:
        _text(text, chunk_size=chunk)
    assert str(caught.value).startswith(f"calls.tsv, line {2 + 3 * before}: {message}")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: no header"),
        ("\n" + _HEADER, "line 1: no header"),
        (_row(), "line 1: not the header"),
        (_HEADER.replace("\n", "\tmore\n"), "line 1: not the header"),
        (_HEADER.replace("\t", " "), "line 1: not the header"),
        (_HEADER.replace("num_motifs", "num_cps"), "line 1: has no column num_motifs"),
        ("chromosome", "line 1: not the header"),
        (_HEADER.replace("\n", "\r\n") + _row(), "line 1: the header ends with a carriage return"),
        ("x" * 1_000_000, "line 1: not the header"),
    ],
)
def test_a_wrong_header_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputFileError, match=re.escape(f"calls.tsv, {message}")):
        _text(text)


def test_split_groups() -> None:
    group = _row(start="100", end="108", ratio="-3.00", number="3", sequence="TTCGCGAAAACGTT")
    assert _rows(_HEADER + group, split=True) == [
        f"chr1\t{p}\t{p}\t1\t1\t0\t0.000\tsplit-group" for p in (100, 102, 108)
    ]
    single = _row(start="102", end="102")
    assert _rows(_HEADER + single + group, split=True)[1] == "chr1\t102\t102\t1\t2\t1\t0.500\tAACGTT"
    assert _rows(_HEADER + group + single, split=True)[1] == "chr1\t102\t102\t1\t2\t1\t0.500\tsplit-group"
    assert _rows(_HEADER + _row(number="2", sequence="GATC"), split=True) == []


def test_a_split_group_beyond_the_largest_position_is_refused() -> None:
    row = _row(start="2147483647", end="2147483647", number="2", sequence="CGCG")
    assert _rows(_HEADER + row) == ["chr1\t2147483647\t2147483647\t2\t2\t2\t1.000\tCGCG"]
    with pytest.raises(InputFileError, match="line 2: the group reaches beyond position 2147483647"):
        _text(_HEADER + row, split=True)


def test_joined_tables_may_repeat_the_header() -> None:
    text = _HEADER + _row() + _HEADER + _row(ratio="nan") + _HEADER + _row(ratio="-9.00") + _HEADER
    assert _rows(text) == ["chr1\t5\t5\t1\t3\t1\t0.333\tAACGTT"]
    with pytest.raises(InputFileError, match="line 8: empty"):
        _text(text + "\n")


def test_the_order_is_by_bytes_of_the_name_then_start_then_end() -> None:
    keys = [("chr2", 5, 5), ("chr10", 7, 9), ("chr10", 7, 8), ("chr10", 6, 99), ("Chr", 1, 1), ("chr1", 9, 9)]
    keys += [("chré", 1, 1), ("chrz", 1, 1)]
    rows = _rows(_HEADER + "".join(_row(name, str(start), str(end)) for name, start, end in keys))
    found = [tuple(row.split("\t")[:3]) for row in rows]
    assert found == [(n, str(s), str(e)) for n, s, e in sorted(keys, key=lambda key: (key[0].encode(), key[1:]))]


def test_many_sites_and_chromosomes_outgrow_the_first_tables() -> None:
    rng = np.random.default_rng(3)
    names = [f"contig_{i}" for i in range(3000)]
    rows = [
        _row(names[name], str(start), str(start + 3), ratio, number, sequence)
        for name, start, ratio, number, sequence in zip(
            rng.integers(0, 3000, 9000).tolist(),
            rng.integers(0, 4, 9000).tolist(),
            rng.choice(["3.00", "-3.00", "1.00"], 9000).tolist(),
            rng.choice(["1", "2"], 9000).tolist(),
            rng.choice(["ACGT", "CG" * 40, "TTCGAACGTT" * 13], 9000).tolist(),
            strict=True,
        )
    ]
    rows.append(_row("long", "7", "9", number="9", sequence="CG" * 60_000))
    text = _HEADER + "".join(rows)
    for split in (False, True):
        expected = _model(text, 2.5, split)
        for chunk_size in (1000, 1 << 20):
            assert _text(text, split=split, chunk_size=chunk_size) == expected


def test_counts_beyond_32_bits_add_up() -> None:
    rows = _row(number="2147483647", ratio="3") * 3 + _row(number="2147483647", ratio="-3") * 2
    assert _rows(_HEADER + rows) == ["chr1\t5\t5\t2147483647\t10737418235\t6442450941\t0.600\tAACGTT"]


def test_the_columns_are_available_as_arrays() -> None:
    text = _HEADER + _row("b", "7", "9", "3", "2") + _row("a", "4", "4", "-3") + _row("b", "7", "9", "-3", "2")
    table = methylation_frequency(io.BytesIO(text.encode()))
    columns = table.columns()
    assert [table.chromosomes[i] for i in columns.chromosome] == [b"a", b"b"]
    assert columns.start.tolist() == [4, 7]
    assert columns.end.tolist() == [4, 9]
    assert columns.group_size.tolist() == [1, 2]
    assert columns.called.tolist() == [1, 4]
    assert columns.methylated.tolist() == [0, 2]
    assert [column.tolist() for column in table.columns(1, 2)] == [column.tolist()[1:] for column in columns]
    assert table.count_column == "num_motifs"


_MOTIFS = ["CG:0", "T:0", "GATC:1", "CHG:0", "CNNNNG:5", "CCWGG:1", "NRCGVN:2", "GATCGATCGAT:2"]


@settings(deadline=None)
@given(
    st.sampled_from(_MOTIFS),
    st.lists(st.sampled_from([*"ACGTN", "CG", "GATC", "CCAGG", "GATCGATCGAT", "ATCGATCGATC"]), max_size=90),
    st.booleans(),
)
def test_groups_are_split_wherever_the_motif_is(name: str, pieces: list[str], reverse: bool) -> None:
    motif, sequence = parse_motif(name), "A" + "".join(pieces)
    pattern = reverse_complement(motif.pattern) if reverse else motif.pattern
    regex = "".join(f"[{IUPAC[letter]}]" for letter in pattern)
    found = [match.start() for match in re.finditer(f"(?={regex})", sequence)]
    first, last = (found[0], found[-1]) if found else (0, 0)
    row = _row(start=str(first), end=str(last), number=str(max(len(found), 2)), sequence=sequence)
    text = _HEADER + (row.replace("\t+\t", "\t-\t") if reverse else row)
    table = methylation_frequency(io.BytesIO(text.encode()), split_groups=True, motif=motif)
    assert table.columns().start.tolist() == found
    assert table.odd_groups == (len(found) < 2)
