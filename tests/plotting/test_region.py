"""What a plot of a locus shows, from records made by hand, and its files."""

from __future__ import annotations

import io
import re
from array import array
from xml.etree import ElementTree

import numpy as np
import pysam
import pytest

from f5py.errors import F5pyError
from f5py.plotting import FORMATS
from f5py.plotting.region import RegionData, region_data
from f5py.plotting.region_figure import write_region_figure

SVG = "{http://www.w3.org/2000/svg}"
HEADER = pysam.AlignmentHeader.from_dict({"SQ": [{"SN": "c", "LN": 1000}]})
#: CpG sites begin at 102, 106 and 112.
REFERENCE = "AACGTTCGTTTTCGAA"


def record(
    name: str, start: int = 100, cigar: str = "16M", reverse: bool = False, haplotype: int | str | None = None,
    tags: tuple[str, list[int]] | None = None, bases: str = REFERENCE,
) -> pysam.AlignedSegment:  # fmt: skip
    """A read of that sequence; by default its three CpG calls are sure, sure not, and undecided."""
    made = pysam.AlignedSegment(HEADER)
    made.query_name = name
    made.reference_id, made.reference_start = 0, start
    made.query_sequence, made.cigarstring, made.flag = bases, cigar, 16 if reverse else 0
    mm, ml = tags or ("C+m?,0,0,0;", [255, 0, 128])
    made.set_tag("MM", mm)
    made.set_tag("ML", array("B", ml))
    if haplotype is not None:
        made.set_tag("HP", haplotype)
    return made


def data_of(*records: pysam.AlignedSegment, code: str | None = None, max_reads: int = 10, end: int = 200) -> RegionData:
    return region_data(records, ("c", 90, end), code, 2.5, max_reads)


def positions(data: RegionData, read: int = 0) -> list[int]:
    return data.marks.position[data.marks.read == read].tolist()


def test_haplotypes_of_any_kind():
    """Of programs that write text, too: HP:Z:H1 ended in a traceback."""
    for tags, expected, names in (
        ((1, None, 2), [1, 0, 2], {1: "1", 0: "0", 2: "2"}),
        (("1", "2", None), [1, 2, 0], {1: "1", 2: "2", 0: "0"}),
        (("H2", "H1", None), [2, 1, 0], {0: "0", 1: "H1", 2: "H2"}),
        (("H1", 1, "$x^$"), [3, 2, 1], {0: "0", 1: "$x^$", 2: "1", 3: "H1"}),
    ):
        data = data_of(*(record(f"r{i}", haplotype=tag) for i, tag in enumerate(tags)))
        assert data.haplotype.tolist() == expected
        assert data.haplotype_names == names
    svg = io.BytesIO()
    write_region_figure(data, svg, "svg")  # the names are no formulas
    assert ElementTree.fromstring(svg.getvalue()).tag == f"{SVG}svg"


def test_calls_of_both_strands_are_at_the_sites():
    data = data_of(record("forward"), record("reverse", reverse=True))
    assert positions(data, 0) == positions(data, 1) == [102, 106, 112]
    ratio = data.marks.ratio.reshape(2, 3)
    # the tags of a reverse read go down the reference
    np.testing.assert_allclose(ratio[1], ratio[0][::-1])
    np.testing.assert_allclose(ratio[0], np.log(np.array([255.5, 0.5, 128.5]) / np.array([0.5, 255.5, 127.5])))
    assert data.modification == "5mC (C+m)"
    assert data.reverse.tolist() == [False, True]
    sites = data.shares()
    assert sites.position.tolist() == [102, 106, 112]
    assert (sites.modified.tolist(), sites.called.tolist()) == ([1, 0, 1], [1, 2, 1])


def test_insertions_clips_and_deletions_shift_calls():
    data = data_of(record("a", cigar="2S4M2I2D8M", start=102))
    assert positions(data) == [102, 112]  # the second C is inserted
    data = data_of(record("b"), end=105)
    assert positions(data) == [102]


def test_haplotypes_are_apart_and_reads_are_packed():
    data = data_of(
        record("a", haplotype=2), record("b", start=120, haplotype=2), record("c", start=118, haplotype=1), record("d"),
        record("e", start=110),
    )  # fmt: skip
    assert data.haplotypes() == [1, 2, 0]
    assert data.row.tolist() == [0, 0, 0, 0, 1]
    assert data.shares(2).called.sum() == 4
    assert data.shares(1).position.tolist() == [120, 124]


def test_the_longest_overlaps_are_drawn():
    short = record("short", cigar="4M", bases="ACGT", tags=("C+m?,0;", [255]))
    data = data_of(short, record("long"), max_reads=1)
    assert (data.names, data.n_left_out) == (["long"], 1)


def test_the_modification_is_chosen():
    tags = ("C+h?,0;C+m?,0,0;", [10, 250, 250])
    assert data_of(record("a", tags=tags)).modification == "5mC (C+m)"
    hydroxy = data_of(record("a", tags=tags), code="h")
    assert (hydroxy.modification, positions(hydroxy)) == ("5hmC (C+h)", [102])
    with pytest.raises(F5pyError, match="--code a: the reads there have calls of h, m only"):
        data_of(record("a", tags=tags), code="a")


def test_reads_without_calls():
    plain = record("a")
    plain.set_tag("MM", None)
    with pytest.raises(F5pyError, match=r"-w c:91-200: no read there has calls .* --modbam writes them"):
        data_of(plain)
    with pytest.raises(F5pyError, match="no read there has calls"):
        data_of(record("a", start=500))


@pytest.mark.parametrize("kind", FORMATS)
def test_files(kind: str):
    data = data_of(record("a<b>", haplotype=1), record("b", haplotype=2, reverse=True), record("c"))

    def drawn() -> bytes:
        out = io.BytesIO()
        write_region_figure(data, out, kind)
        return out.getvalue()

    content = drawn()
    assert content == drawn()
    assert content.startswith({"png": b"\x89PNG", "pdf": b"%PDF-", "svg": b"<?xml", "html": b"<!DOCTYPE html>"}[kind])
    if kind == "html":
        page = ElementTree.fromstring(content)
        tips = [node.findtext(f"{SVG}title") or "" for node in page.iter(f"{SVG}rect") if node.get("class") == "hover"]
        assert len(tips) == len(data.marks.read) == 9
        assert tips[0] == "a<b> (+)\nposition 103\nprobability 0.998, log-odds 6.24"
        assert not re.search(rb'(src|href)="[^#]|@import|<script', content)
