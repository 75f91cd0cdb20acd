"""The figure's files: of every format, valid, and the same from run to run."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from dataclasses import replace
from html import escape, unescape
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from f5py.errors import F5pyError
from f5py.plotting.data import PlotData, ReadSource, SiteCalls
from f5py.plotting.figure import read_figure
from f5py.plotting.pages import write_read_page
from f5py.plotting.picture import FORMATS, Picture

from ..patience import PATIENCE

SVG = "{http://www.w3.org/2000/svg}"
STARTS = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-", "svg": b"<?xml", "html": b"<!DOCTYPE html>"}


def made_data(n_kmers: int = 30, contig: str | None = "contig", rna: bool = False) -> PlotData:
    """Two events for each k-mer; some k-mers without events, an event that fits nothing and one unaligned."""
    random = np.random.default_rng(1)
    lengths = random.integers(3, 9, 2 * n_kmers)
    starts = 50 + np.cumsum(lengths) - lengths
    kmers = random.choice(np.frombuffer(b"ACGT", np.uint8), (n_kmers, 6))
    kmer = np.repeat(np.arange(n_kmers), 2)
    kmer_start, kmer_end = starts[::2].copy(), (starts + lengths)[1::2]
    for skipped in (4, 5, 9):
        kmer[2 * skipped : 2 * skipped + 2] = -1
        kmer_start[skipped] = kmer_end[skipped] = kmer_end[skipped - 1]
    means = random.normal(90, 12, 2 * n_kmers).astype(np.float32)
    current = np.repeat(means, lengths) + random.normal(0, 1.5, int(lengths.sum())).astype(np.float32)
    return PlotData(
        name="read<1>&$x$",
        strand=None if contig is None else "+",
        source=ReadSource("R9.4 DNA", rna, contig),
        model="made.6mer",
        shift=1.0,
        scale=1.0,
        var=1.0,
        sampling_rate=4000.0,
        first_sample=50,
        current=current.astype(np.float32),
        event_index=np.arange(2 * n_kmers),
        event_start=starts,
        event_length=lengths,
        event_mean=means,
        event_stdv=np.ones(2 * n_kmers, np.float32),
        event_kmer=kmer,
        event_bad=np.arange(2 * n_kmers) == 3,
        position=np.arange(1000, 1000 + n_kmers),
        kmers=kmers,
        letter=kmers[:, 0],
        kmer_start=kmer_start,
        kmer_end=kmer_end,
        new_segment=np.arange(n_kmers) == 12,
        level=means[::2],
        level_stdv=np.full(n_kmers, 2, np.float32),
    )


def drawn(data: PlotData, kind: str, seconds: bool = False) -> bytes:
    out = io.BytesIO()
    picture = Picture("", lambda file: write_read_page(data, file, seconds), lambda: read_figure(data, seconds))
    picture.write(out, kind)
    return out.getvalue()


@pytest.mark.parametrize(("contig", "rna"), [(None, False), (None, True), ("contig", True)])
def test_other_kinds_of_reads(contig: str | None, rna: bool):
    assert drawn(made_data(contig=contig, rna=rna), "png").startswith(STARTS["png"])


def comments(svg: bytes) -> list[str]:
    """Extract the texts of the figure, which matplotlib puts into comments before their outlines."""
    parser = ElementTree.XMLParser(target=ElementTree.TreeBuilder(insert_comments=True))
    root = ElementTree.fromstring(svg, parser)
    return [unescape((node.text or "").strip()) for node in root.iter() if node.tag is ElementTree.Comment]


def test_texts():
    data = made_data()
    texts = comments(drawn(data, "svg"))
    assert data.title in texts
    assert data.subtitle in texts
    assert "sample: the signal's order, 5' to 3' of the read" in texts
    assert "position on contig of each k-mer's first base, and that base; small letters: k-mers without events" in texts
    assert {"signal", "event", "event that fits no k-mer", "event that is not aligned"} <= set(texts)
    letters = data.letter.tobytes().decode()
    shown = [text for text in texts if len(text) <= 2 and text.isalpha()]
    # all bases with events are wide enough for their letters; of those without, two are at one place
    assert "".join(shown[:-2]) == "".join(letters[i] for i in range(30) if i not in (4, 5, 9))
    assert shown[-2:] == [letters[4] + letters[5], letters[9]]


def test_directions_are_said():
    reverse = replace(made_data(), strand="-")
    assert any("leftmost base, descending, and its complement" in text for text in comments(drawn(reverse, "svg")))
    assert "time (s): the signal's order, 3' to 5' of the read" in comments(drawn(made_data(rna=True), "svg", True))


def shown_by(content: bytes) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', content.decode(), re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_html_has_every_event_base_and_call_and_loads_nothing():
    data = replace(made_data(), calls=SiteCalls("CG", 2.5, *map(np.atleast_1d, (1003, 1007, 2, -3.25, 60, 90))))
    content = drawn(data, "html")
    page = content.decode()
    assert f"<title>{escape(data.title)}</title>" in page
    shown = shown_by(content)
    assert shown["first"] == 50
    np.testing.assert_allclose(shown["current"], data.current, atol=0.005 + 1e-6)
    assert shown["events"]["start"] == data.event_start.tolist()
    assert shown["events"]["bad"][3] == 1
    assert sum(shown["events"]["bad"]) == 1
    assert shown["events"]["kmer"] == data.event_kmer.tolist()
    assert shown["kmers"]["kmer"] == ["".join(map(chr, kmer)) for kmer in data.kmers]
    assert "".join(shown["kmers"]["kmer"][i][0] for i in range(30)) == shown["kmers"]["letter"]
    assert shown["kmers"]["position"] == data.position.tolist()
    assert shown["calls"] == {
        "start": [60], "end": [90], "ratio": [-3.25],
        "words": ["2 CG at 1,004 to 1,008\nlog-likelihood ratio -3.25\nnot methylated"],
    }  # fmt: skip
    low, high = shown["limits"]
    assert low < data.event_mean.min() < data.event_mean.max() < high
    assert not re.search(r"(src|href)=|@import|https?:|fetch\(|XMLHttp", page)


def test_html_names_cannot_end_the_data():
    data = replace(made_data(), name="</script><script>alert(1)</script>", source=ReadSource("<b>", False, "</script>"))
    page = drawn(data, "html").decode()
    assert page.count("</script>") == 2
    assert "<b>" not in page


def test_long_regions_have_a_bounded_width():
    content = drawn(made_data(n_kmers=900), "png")
    assert int.from_bytes(content[16:20], "big") <= 121.05 * 150 + 1


def test_more_kmers_than_a_figure_can_show_fit_into_the_viewer():
    data = made_data(n_kmers=5001)
    with pytest.raises(F5pyError, match=r"5001 k-mers .* at most 5000, or write .html"):
        drawn(data, "svg")
    assert len(shown_by(drawn(data, "html"))["kmers"]["position"]) == 5001


def test_bytes_are_those_of_another_process_and_pyplot_stays_out(tmp_path: Path):
    """Also in a process whose user has set matplotlib up otherwise."""
    (tmp_path / "matplotlibrc").write_text("font.size: 20\naxes.grid: True\nsvg.fonttype: none\n")
    program = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from tests.plotting.test_plot_figure import drawn, made_data\n"
        "for kind in ('png', 'svg', 'pdf', 'html'):\n"
        "    open(f'out.{kind}', 'wb').write(drawn(made_data(), kind))\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    command = [sys.executable, "-c", program, str(Path(__file__).resolve().parents[2])]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=PATIENCE)
    for kind in FORMATS:
        assert (tmp_path / f"out.{kind}").read_bytes() == drawn(made_data(), kind), kind
