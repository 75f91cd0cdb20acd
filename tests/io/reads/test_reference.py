"""The reference: its contigs against the BAM file's, its segments and letters."""

from __future__ import annotations

import gzip
import os
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import numpy as np
import pysam
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from f5py.errors import InputFileError
from f5py.io.files.mapped_file import MappedFile
from f5py.io.reads.indexed_fasta import scan_fasta
from f5py.io.reads.reference import Reference
from f5py.threads.pool import CallingThread, WorkerPool

TEXT = ">one comment\nACGTAC\nGTNNAC\n>two\nacgtu\n"
CONTIGS, LENGTHS = ["one", "two"], [12, 5]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "ref.fa"
    file.write_text(TEXT)
    return str(file)


def segments(reference: Reference, *places: tuple[int, int, int], pool: WorkerPool | None = None) -> list[bytes]:
    contig, start, end = np.array(places, np.int64).T.copy()
    bases, offsets = reference.segments(contig.astype(np.int32), start, end, pool)
    return [bases[a:b].tobytes() for a, b in pairwise(offsets.tolist())]


@pytest.mark.parametrize("n_threads", [None, 2])
def test_segments_are_cut_at_the_end(path, n_threads):
    reference = Reference(path, CONTIGS, LENGTHS)
    pool = None if n_threads is None else WorkerPool(n_threads)
    places = [(0, 0, 12), (0, 4, 8), (0, 10, 99), (1, 0, 5), (0, 12, 13), (0, 5, 7)]
    found = segments(reference, *places, pool=pool)
    assert found == [b"ACGTACGTAAAC", b"ACGT", b"AC", b"ACGTU", b"", b"CG"]
    reference.close()
    if pool is not None:
        pool.close()


@pytest.mark.parametrize(
    ("contigs", "lengths", "message"),
    [
        (["x", "y", "z"], [1, 1, 1], r"lacks 3 of the BAM file's 3 contigs \(x, y, z\)"),
        (["x", "y", "z", "w"], [1, 1, 1, 1], r"lacks 4 .* \(x, y, z, \.\.\.\)"),
        (["one"], [13], "contig one has 12 bases, but 13 in the BAM file"),
    ],
)
def test_other_contigs(path, contigs, lengths, message):
    with pytest.raises(InputFileError, match=message):
        Reference(path, contigs, lengths)


def test_a_contig_that_is_not_there_matters_when_it_is_asked_for(path, capfd):
    reference = Reference(path, ["x", "one"], [3, 12])
    assert "lacks 1 of the BAM file's 2 contigs (x); a read that is used" in capfd.readouterr().err
    assert reference.lacks.tolist() == [True, False]
    start, end = np.zeros(1, np.int64), np.array([3])
    assert reference.segments(np.array([1], np.int32), start, end)[1].tolist() == [0, 3]
    with pytest.raises(InputFileError, match="lacks contig x, on which reads lie"):
        reference.segments(np.array([0], np.int32), start, end)
    reference.close()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (">one ", ">one and more "),  # a description has grown
        (">one ", ">uno "),
        ("\n", "\r\n"),
        ("ACGT", "AC\nGT"),
        (">one ", ">zero\nACGT\n>one "),
    ],
)
def test_a_file_that_has_changed_since_it_was_indexed(path, old, new):
    """The old index would give other bases, or line ends among them."""
    Reference(path, CONTIGS, LENGTHS).close()
    text = Path(path).read_text()
    assert old in text
    Path(path).write_text(text.replace(old, new, 1), newline="")
    with pytest.raises(InputFileError, match=r"is not the index of .* as it is now"):
        Reference(path, CONTIGS, LENGTHS)


def test_an_index_may_have_fewer_contigs_in_another_order(path):
    Reference(path, CONTIGS, LENGTHS).close()
    index = Path(f"{path}.fai")
    lines = index.read_text().splitlines(keepends=True)
    before = Reference(path, CONTIGS, LENGTHS)
    expected = segments(before, (0, 0, 4))
    before.close()
    index.write_text("".join(reversed(lines)))
    reference = Reference(path, CONTIGS, LENGTHS)
    assert segments(reference, (0, 0, 4)) == expected
    reference.close()


def test_an_index_by_which_lines_are_longer_than_they_are(path):
    """The bytes are there, but a line end is among them: seen at the end of the sequence, or when they are fetched."""
    Reference(path, CONTIGS, LENGTHS).close()
    index = Path(f"{path}.fai")
    index.write_text(index.read_text().replace("one\t12\t13\t6\t7", "one\t12\t13\t12\t13"))
    with pytest.raises(InputFileError, match=r"is not the index of .* as it is now"):
        Reference(path, CONTIGS, LENGTHS)
    index.write_text(index.read_text().replace("one\t12\t13\t12\t13", "one\t12\t13\t11\t12"))
    reference = Reference(path, CONTIGS, LENGTHS)
    with pytest.raises(InputFileError, match="bases 5 to 9 of contig one cannot be read"):
        segments(reference, (0, 0, 4), (0, 4, 9))
    reference.close()


@pytest.mark.parametrize("ending", ["fa", "fa.gz"])
def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch, capfd, ending):
    """The index goes to the cache folder, and is found there the next time, until the reference changes."""
    file, cache = tmp_path / "there" / f"ref.{ending}", tmp_path / "cache"
    file.parent.mkdir()

    def write(text):
        if ending == "fa":
            file.write_text(text)
        else:
            with pysam.BGZFile(str(file), "w") as out:
                out.write(text.encode())

    write(TEXT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    may = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(file.parent) and may(path, mode))
    for _ in range(2):
        reference = Reference(str(file), CONTIGS, LENGTHS)
        assert segments(reference, (0, 4, 9), (1, 1, 3)) == [b"ACGTA", b"CG"]
        reference.close()
    assert capfd.readouterr().err.count("its folder cannot be written; the index is kept as") == 1
    kept = sorted(path.suffix for path in cache.rglob("*.*i"))
    assert kept == ([".fai"] if ending == "fa" else [".fai", ".gzi"])
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    write(TEXT.replace("two", "six"))
    reference = Reference(str(file), ["one", "six"], LENGTHS)
    assert segments(reference, (1, 1, 3)) == [b"CG"]
    reference.close()


def _refusal(path) -> str:
    with pytest.raises(InputFileError) as problem:
        Reference(str(path), ["c"], [8])
    return str(problem.value)


def test_each_cause_of_a_refusal_has_its_own_words(tmp_path):
    """htslib tells none of them apart."""
    zipped = tmp_path / "zipped.fa.gz"
    with gzip.open(zipped, "wb") as file:
        file.write(b">c\nACGTACGT\n")
    assert "compressed with gzip, not bgzip; run: gunzip -c" in _refusal(zipped)
    uneven = tmp_path / "uneven.fa"
    uneven.write_text(">c\nACG\nACGT\nA\n")
    assert "line 3 has another length than those before it" in _refusal(uneven)
    uneven.write_text(">c\nACG\nAC\nAGT\n")
    assert "line 4 has another length than those before it" in _refusal(uneven)
    words = tmp_path / "words.fa"
    words.write_text("words\n")
    assert "its first line does not begin with >" in _refusal(words)
    empty = tmp_path / "empty.fa"
    empty.touch()
    assert "it is empty" in _refusal(empty)
    blocks = tmp_path / "blocks.fa.gz"
    good = tmp_path / "good.fa"
    good.write_text(">c\nACGTACGT\n")
    pysam.tabix_compress(str(good), str(blocks))
    pysam.faidx(str(blocks))
    (tmp_path / "blocks.fa.gz.gzi").unlink()
    assert "blocks.fa.gz.gzi is missing beside" in _refusal(blocks)


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
