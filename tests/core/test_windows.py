"""Regions and BED files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.core.windows import Windows
from f5py.errors import F5pyError, InputFileError

CONTIGS = ["chr1", "chr2", "chr3", "HLA:A:1-2", "HLA:A"]
END = 2**31 - 1


def intervals(windows: Windows) -> list[tuple[int, int, int]]:
    return [(contig, start, end) for contig, start, end, _ in windows.with_previous_end()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("chr2", (1, 0, END)),
        ("chr2:100", (1, 99, END)),
        ("chr2:100-200", (1, 99, 200)),
        ("chr2:1,001-2,000", (1, 1000, 2000)),
        ("chr2:-200", (1, 0, 200)),
        ("chr2:7-7", (1, 6, 7)),
        ("HLA:A", (4, 0, END)),
        ("HLA:A:1-2", (3, 0, END)),  # the contig of that name
        ("HLA:A:3-4", (4, 2, 4)),
        ("HLA:A:1-2:3-4", (3, 2, 4)),
    ],
)
def test_region(text, expected):
    windows = Windows.parse([text], CONTIGS)
    assert intervals(windows) == [expected]
    assert windows.is_region


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chr9", "-w chr9: there is no contig 'chr9' in the BAM file; it has chr1, chr2, chr3, ..."),
        ("chr9:1-2", "there is no contig 'chr9'"),
        ("chr2:", "write a region as contig:start-end"),
        ("chr2:0-5", "1-based"),
        ("chr2:9-8", "start <= end, e.g. chr2:1-1000"),
        ("chr2:one-two", "write a region"),
        ("chr2:1-2-3", "write a region"),
        ("", "there is no contig ''"),
    ],
)
def test_wrong_region(text, message):
    with pytest.raises(F5pyError) as problem:
        Windows.parse([text], CONTIGS)
    assert message in str(problem.value)
    assert "\n" not in str(problem.value)


def test_bed_file(tmp_path):
    """0-based and half-open; any order; comments, titles, blank lines and more columns are allowed."""
    bed = tmp_path / "w.bed"
    bed.write_text(
        "#comment\nbrowser position chr1\ntrack name=x\n\nchr2\t50\t60\tname\t0\t+\nchr1 10 20\nchr1\t15\t30\n"
        "chr1\t30\t31\nchr1\t40\t41\nchr1\t45\t45\n\n"
    )
    windows = Windows.parse([str(bed)], CONTIGS)
    assert list(windows.with_previous_end()) == [(0, 10, 31, 0), (0, 40, 41, 31), (1, 50, 60, 0)]
    assert [bound.tolist() for bound in windows.bounds()] == [[0, 0, 1], [10, 40, 50], [31, 41, 60]]
    assert not windows.is_region


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("chr1\t1\t2\nchr1\t5\n", "w.bed, line 2: expected contig, start and end, found 'chr1\\t5'"),
        ("chr1\tx\t2\n", "w.bed, line 1: expected contig, start and end"),
        ("chr1\t5\t2\n", "w.bed, line 1: start 5 and end 2 are no interval"),
        ("chr1\t-5\t2\n", "line 1: start -5"),
        ("\nchr9\t1\t2\n", "w.bed, line 2: there is no contig 'chr9' in the BAM file"),
        ("", "w.bed: the BED file has no windows"),
        ("# only\nchr1\t5\t5\n", "w.bed: the BED file has no windows"),
    ],
)
def test_wrong_bed_file(tmp_path, text, message):
    bed = tmp_path / "w.bed"
    bed.write_text(text)
    with pytest.raises(InputFileError) as problem:
        Windows.parse([str(bed)], CONTIGS)
    assert message in str(problem.value)


def test_unreadable_bed_file(tmp_path):
    with pytest.raises(InputFileError, match=r"absent\.bed: cannot read the BED file: No such file"):
        Windows.parse([str(tmp_path / "absent.bed")], CONTIGS)
    (tmp_path / "binary.bed").write_bytes(bytes(range(256)))
    with pytest.raises(InputFileError, match=r"binary\.bed: cannot read the BED file"):
        Windows.parse([str(tmp_path / "binary.bed")], CONTIGS)
    (tmp_path / "folder.bed").mkdir()
    with pytest.raises(InputFileError, match="Is a directory"):
        Windows.parse([str(tmp_path / "folder.bed")], CONTIGS)


@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 60), st.integers(1, 20)).map(lambda w: (w[0], w[1], w[1] + w[2])),
        max_size=12,
    )
)
def test_windows_are_the_union_of_the_intervals(given_intervals):
    windows = Windows(given_intervals)
    wanted = np.zeros((3, 90), bool)
    for contig, start, end in given_intervals:
        wanted[contig, start:end] = True
    covered = np.zeros((3, 90), int)
    before: tuple[int, int] = (-1, -1)
    for contig, start, end, previous_end in windows.with_previous_end():
        covered[contig, start:end] += 1
        assert previous_end == (before[1] if before[0] == contig else 0)
        assert (contig, start) > before  # sorted, and neither overlapping nor touching
        before = contig, end
        assert (contig, start, end) in list(zip(*windows.bounds(), strict=True))
    np.testing.assert_array_equal(covered, wanted.astype(int))
    contig, first, last = (axis.ravel() for axis in np.meshgrid(range(3), range(0, 90, 3), range(90), indexing="ij"))
    kept = first <= last
    contig, first, last = contig[kept], first[kept], last[kept]
    inside = [wanted[c, a : b + 1].all() for c, a, b in zip(contig, first, last, strict=True)]
    np.testing.assert_array_equal(windows.contain(contig, first, last), inside)


def test_windows_behind_the_largest_position():
    windows = Windows([(0, 5, 2**40), (0, 2**35, 2**36), (1, 2**35, 2**40), (2, 7, 9)])
    assert [window[:3] for window in windows.with_previous_end()] == [(0, 5, END), (1, END, END), (2, 7, 9)]
    contig, first = np.array([0, 0, 1, 1, 2]), np.array([4, 5, 0, END - 1, 7])
    last = np.array([9, END - 1, 0, END - 1, 8])
    assert windows.contain(contig, first, last).tolist() == [False, True, False, False, True]


def test_share_that_has_been_passed():
    windows = Windows([(0, 100, 200), (2, 0, END)])
    lengths = [1000, 1000, 300]
    assert windows.share_passed(0, 50, lengths) == 0
    assert windows.share_passed(0, 150, lengths) == pytest.approx(50 / 400)
    assert windows.share_passed(1, 0, lengths) == pytest.approx(100 / 400)
    assert windows.share_passed(2, 200, lengths) == pytest.approx(300 / 400)
    assert windows.share_passed(2, 5000, lengths) == 1
