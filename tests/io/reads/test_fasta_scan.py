"""The index of a FASTA file is htslib's, or there is none."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pysam
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from f5py.io.files.mapped_file import MappedFile
from f5py.io.reads.indexed_fasta import scan_fasta
from f5py.threads.pool import CallingThread


def lines(bases: str, width: int, end: str) -> str:
    return "".join(bases[at : at + width] + end for at in range(0, len(bases), width))


@st.composite
def regular(draw: st.DrawFn) -> str:
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = ""
    for i in range(draw(st.integers(1, 4))):
        bases = draw(st.text("ACGTNacgt", min_size=1, max_size=400))
        about = draw(st.sampled_from(["", " and more", "\tx > y"]))
        text += f">c{i}{about}{end}" + lines(bases, draw(st.integers(1, 150)), end)
    return text[: -len(end)] if draw(st.booleans()) else text


def scanned(path: Path) -> bytes | None:
    with closing(MappedFile(str(path))) as file:
        index = scan_fasta(file, CallingThread())
        return None if index is None else index.as_text()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=regular())
def test_regular_files(text: str, tmp_path: Path):
    path = tmp_path / "ref.fa"
    path.write_bytes(text.encode())
    (tmp_path / "ref.fa.fai").unlink(missing_ok=True)
    pysam.faidx(str(path))
    assert scanned(path) == (tmp_path / "ref.fa.fai").read_bytes()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=regular(), data=st.data())
def test_changed_files_have_htslibs_index_or_none(text: str, data: st.DataObject, tmp_path: Path):
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + data.draw(st.sampled_from(["\n", "A", " ", "\r", ">", "\n\n", "\n>", "\0"])) + text[at:]
    path = tmp_path / "ref.fa"
    path.write_bytes(text.encode())
    if (found := scanned(path)) is not None:
        (tmp_path / "ref.fa.fai").unlink(missing_ok=True)
        pysam.faidx(str(path))
        assert found == (tmp_path / "ref.fa.fai").read_bytes()
