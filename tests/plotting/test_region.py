"""Data of a plot of a locus, from records made by hand, and its files."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import zlib
from array import array
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pysam
import pytest

from f5py.errors import F5pyError, InputFileError, UsageError
from f5py.plotting.genes import pack_rows, read_genes
from f5py.plotting.pages import write_region_page
from f5py.plotting.picture import FORMATS, Picture
from f5py.plotting.region import CallMarks, RegionData, region_data
from f5py.plotting.region_figure import region_figure

SVG = "{http://www.w3.org/2000/svg}"
HEADER = pysam.AlignmentHeader.from_dict({"SQ": [{"SN": "c", "LN": 1000}]})
#: CpG sites begin at 102, 106 and 112.
REFERENCE = "AACGTTCGTTTTCGAA"


def record(
    name: str, start: int = 100, cigar: str = "16M", reverse: bool = False, haplotype: int | str | None = None,
    tags: tuple[str, list[int]] | None = None, bases: str = REFERENCE,
) -> pysam.AlignedSegment:  # fmt: skip
    """Make a read of that sequence; by default its three CpG calls are sure, sure not, and undecided."""
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
    return region_data({"": records}, ("c", 90, end), code, 2.5, max_reads)


def picture(data: RegionData, kind: str) -> bytes:
    out = io.BytesIO()
    Picture("", lambda file: write_region_page(data, file), lambda: region_figure(data)).write(out, kind)
    return out.getvalue()


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
    assert ElementTree.fromstring(picture(data, "svg")).tag == f"{SVG}svg"


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
    assert data.groups() == [(0, 1), (0, 2), (0, 0)]
    assert [data.group_words(group) for group in data.groups()] == [
        "haplotype 1: 1 read", "haplotype 2: 2 reads", "without haplotype: 2 reads",
    ]  # fmt: skip
    assert data.row.tolist() == [0, 0, 0, 0, 1]
    assert data.shares(data.in_group((0, 2))).called.sum() == 4
    assert data.shares(data.in_group((0, 1))).position.tolist() == [120, 124]


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
    content = picture(data, kind)
    assert content == picture(data, kind)
    assert content.startswith({"png": b"\x89PNG", "pdf": b"%PDF-", "svg": b"<?xml", "html": b"<!DOCTYPE html>"}[kind])
    if kind == "html":
        page = content.decode()
        shown = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
        assert shown["reads"]["name"] == ["a<b>", "b", "c"]
        assert "a<b>" not in page
        position, probability = unpacked(shown["position"], "<i4"), unpacked(shown["probability"], np.uint8)
        assert np.cumsum(position).tolist() == data.marks.position.tolist()
        assert probability[:3].tolist() == [255, 0, 128]
        assert not re.search(r'(src|href)="[^#]|@import', page)


def unpacked(text: str, kind: object) -> np.ndarray:
    return np.frombuffer(zlib.decompress(base64.b64decode(text)), kind)


# Frequencies, depth and genes


def test_depth_counts_reads_that_are_not_drawn():
    data = data_of(record("a"), record("b", start=104), max_reads=1)
    assert data.depth[0].tolist() == [0] * 10 + [1] * 4 + [2] * 12 + [1] * 4 + [0] * 80


def test_sites_with_few_calls_have_no_frequency():
    sure = ("C+m?,0,0,0;", [255, 0, 255])
    data = data_of(
        *(record(f"r{i}", tags=sure) for i in range(20)), record("alone", start=130, tags=sure), max_reads=30
    )
    assert data.shares().position.tolist() == [102, 106, 112, 132, 136, 142]
    assert data.shown_shares().called.tolist() == [20, 20, 20]  # the median site has 10.5 calls
    fixed = replace(data, min_coverage=1)
    assert fixed.shown_shares().called.tolist() == [20, 20, 20, 1, 1, 1]


def test_a_line_is_of_means_over_sites():
    """Calls of a window weigh the same; the caption tells its sites; wide gaps interrupt the line."""
    reads = [record(f"r{i}", tags=("C+m?,0,0,0;", [255, 0, 0])) for i in range(3)]
    data = replace(data_of(*reads, record("more", start=130)), min_coverage=1, smooth=2)
    (line,) = data.lines
    assert line.sites.position.tolist() == [102, 106, 112, 132, 136]
    np.testing.assert_allclose(line.share, [3 / 6, 0 / 6, 1 / 4, 1 / 2, 0 / 1])
    assert line.position.tolist() == [102, 106, 112, 132, 136]
    assert data.caption == ["5mC (C+m), threshold 2.5 (log-odds); lines: means of 2 sites, weighted by calls"]
    far = [record("far", start=at) for at in (100, 180)]
    apart = replace(region_data({"": far}, ("c", 90, 200), None, 2.5, 9), smooth=1)
    assert np.isnan(apart.lines[0].position).sum() == 1
    assert apart.caption[0].endswith("lines: single sites")


@pytest.mark.parametrize(
    ("sure", "limits", "words"),
    [([0, 0, 0], (0.0, 0.2), "0 to 20 %"), ([255] * 3, (0.8, 1.0), "80 to 100 %"), ([255, 0, 0], (0.0, 1.0), None)],
)
def test_the_axis_shows_the_fifth_that_the_lines_are_in(sure: list[int], limits: tuple[float, float], words: str):
    data = data_of(record("a", tags=("C+m?,0,0,0;", sure)))
    assert data.limits == limits
    assert data.caption[1:] == ([] if words is None else [f"the axis of frequencies shows {words} only"])


def test_sites_beyond_the_axis_are_told():
    low = [record(f"r{i}", tags=("C+m?,0,0,0;", [0, 0, 0])) for i in range(9)]
    data = replace(data_of(*low, record("high", start=130, tags=("C+m?,0;", [255]))), min_coverage=1, smooth=9)
    assert data.limits == (0.0, 0.2)
    assert data.caption[1].endswith("0 to 20 % only; 1 sites beyond it are drawn at its edge")


def test_samples_are_panels_with_a_line_each():
    samples = {"a": [record("r", haplotype=1), record("s")], "b$": [record("t", reverse=True)]}
    data = region_data(samples, ("c", 90, 200), None, 2.5, 1)
    assert data.sample_names == ("a", "b$")
    assert data.n_left_out == 1
    assert [data.group_words(group) for group in data.groups()] == [
        "a, haplotype 1: 1 read", "b$, without haplotype: 1 read",
    ]  # fmt: skip
    assert [line.words for line in data.lines] == ["a", "b$"]
    assert len({line.colour for line in data.lines}) == 2
    assert data.depth[:, 15].tolist() == [2, 1]
    shown = json.loads(re.search(r'id="data">(.*?)</script>', picture(data, "html").decode())[1])
    assert [line["reads"] for line in shown["lines"]] == [[0], [1]]
    assert ElementTree.fromstring(picture(data, "svg")).tag == f"{SVG}svg"
    with pytest.raises(F5pyError, match="no read there of b has calls"):
        region_data({"a": [record("r")], "b": [record("far", start=500)]}, ("c", 90, 200), None, 2.5, 9)


def test_reads_are_ordered_by_their_mean():
    tags = [("C+m?,0,0,0;", sure) for sure in ([0, 0, 0], [128] * 3, [255] * 3, [255, 0, 0])]
    reads = [record(f"r{i}", tags=one) for i, one in enumerate(tags)]
    data = region_data({"": reads}, ("c", 90, 200), None, 2.5, 9, by_mean=True)
    assert data.row.tolist() == [2, 3, 0, 1]  # the second one has no decided call


def test_calls_of_a_read_in_one_cell_are_counted():
    read, cell, counts = data_of(record("a"), record("b", start=104)).cells(10)
    assert read.tolist() == [0, 0, 1, 1]
    assert cell.tolist() == [1, 2, 1, 2]
    assert counts.tolist() == [[1, 0, 1, 0], [1, 0, 1, 0], [0, 1, 0, 1]]


GENES = {
    "a.bed": "#comment\nc\t95\t120\tone\t0\t+\nother\t95\t120\tno\nc\t150\t300\ttwo\nc\t300\t400\tfar\t0\t-\n",
    "a.gff3.gz": "##gff\nc\tx\tgene\t96\t120\t.\t+\t.\tID=g1;Name=one\nc\tx\tCDS\t96\t120\t.\t+\t.\tID=c1\n"
    "c\tx\tgene\t151\t300\t.\t.\t.\tID=two\n",
    "a.gtf": 'c\tx\tgene\t96\t120\t.\t+\t.\tgene_id "g1"; gene_name "one";\n'
    'c\tx\tgene\t151\t300\t.\t.\t.\tgene_id "two";\n',
}


@pytest.mark.parametrize("name", GENES)
def test_genes_of_any_format(name: str, tmp_path: Path):
    text = GENES[name].encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    genes = read_genes(str(tmp_path / name), "c", 90, 200)
    assert [part if isinstance(part, list) else part.tolist() for part in genes] == [
        [95, 150], [120, 200], ["+", "."], ["one", "two"], [0, 0],
    ]  # fmt: skip
    for kind in ("svg", "html"):
        content = picture(replace(data_of(record("a")), genes=genes), kind)
        assert kind == "svg" or b'"name":["one","two"]' in content


def test_genes_that_are_none(tmp_path: Path):
    (tmp_path / "a.bed").write_text("what is this\n")
    with pytest.raises(InputFileError, match="no line is one of a gene in BED format"):
        read_genes(str(tmp_path / "a.bed"), "c", 90, 200)
    with pytest.raises(UsageError, match=r"does not end in .bed, .gff"):
        read_genes(str(tmp_path / "a.txt"), "c", 90, 200)
    (tmp_path / "a.bed").write_text("other\t1\t9" + "9" * 40 + "\tx\nother\t1\t99\n")
    assert read_genes(str(tmp_path / "a.bed"), "c", 90, 200).name == []


# Colours


def _locus(length: int, n_reads: int) -> RegionData:
    """Make reads of half of a locus with 1.6 % modified calls, at a site in 80 bases."""
    rng = np.random.default_rng(length)
    sites = np.flatnonzero(rng.random(length) < 0.012)
    first = rng.integers(0, length // 2, n_reads)
    last = first + length // 2
    covered = [sites[(sites >= first[i]) & (sites < last[i])] for i in range(n_reads)]
    read = np.repeat(np.arange(n_reads), [len(one) for one in covered])
    ratio = np.array([4.0, -4.0, 0.1])[rng.choice(3, len(read), p=[0.016, 0.784, 0.2])]
    return replace(
        data_of(record("a")),
        start=0, end=length, names=[str(i) for i in range(n_reads)], read_start=first, read_end=last,
        reverse=first % 2 > 0, sample=np.zeros(n_reads, np.int64), haplotype=np.zeros(n_reads, np.int64),
        row=pack_rows(first, last, length // 100), marks=CallMarks(read, np.concatenate(covered), ratio),
        depth=np.ones((1, length), np.int64),
    )  # fmt: skip


def test_a_page_is_small():
    """Of as many reads as are drawn at most, over 260 kilobases: 312,000 calls."""
    data = _locus(260_000, 200)
    assert len(data.marks.read) > 300_000
    assert len(picture(data, "html")) < 1_000_000


@pytest.mark.parametrize("length", [3_000, 10_000, 50_000, 260_000])
def test_colours_have_the_areas_of_what_they_stand_for(length: int):
    """At every scale: once 1.6 % of modified calls were 29 % of the marks' pixels over 260 kilobases."""
    from matplotlib.image import imread

    data = _locus(length, 60)
    modified, n_calls = int((data.marks.ratio > 2).sum()), len(data.marks.read)
    pixels = 255 * imread(io.BytesIO(picture(data, "png")))[300:-100, :, :3]
    red, blue, grey = (
        int((np.abs(pixels - np.array(colour)).max(axis=-1) < nearness).sum())
        for colour, nearness in (((194, 69, 58), 45), ((47, 109, 179), 45), ((185, 194, 203), 12))
    )
    expected = modified / n_calls
    # few calls: chance, as marks that are cut to pixels differ
    assert abs(red / (red + blue + grey) / expected - 1) < 0.25 + 1 / modified**0.5
    assert length < 50_000 or abs(red / (red + blue + grey) / expected - 1) < 0.25
