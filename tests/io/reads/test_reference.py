"""The reference: its contigs against the BAM file's, its segments and letters."""

from __future__ import annotations

import gzip
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
import pysam
import pytest

from f5py.errors import InputFileError
from f5py.io.reads.reference import Reference
from f5py.threads.pool import WorkerPool

TEXT = ">one comment\nACGTAC\nGTNNAC\n>two\nacgtu\n"
CONTIGS, LENGTHS = ["one", "two"], [12, 5]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "ref.fa"
    file.write_text(TEXT)
    return str(file)


def segments(reference: Reference, *places: tuple[int, int, int], pool: WorkerPool | None = None) -> list[bytes]:
    """Fetch the bases of (contig, start, end) together."""
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


def test_bgzip_file(tmp_path):
    file = tmp_path / "ref.fa.gz"
    with pysam.BGZFile(str(file), "w") as out:
        out.write(TEXT.encode())
    reference = Reference(str(file), CONTIGS, LENGTHS)
    assert segments(reference, (0, 4, 9), (1, 1, 3)) == [b"ACGTA", b"CG"]
    reference.close()


def test_letters(tmp_path):
    letters = "ACGTNMRWSYKVHDB"
    file = tmp_path / "ref.fa"
    file.write_text(f">upper\n{letters}\n>lower\n{letters.lower()}\n")
    reference = Reference(str(file), ["upper", "lower"], [15, 15])
    assert segments(reference, (0, 0, 15), (1, 0, 15)) == [b"ACGTAAAACCGAAAC"] * 2
    reference.close()


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


@pytest.mark.parametrize("content", [b"", b"no FASTA\n", b">a\nAC\nACGT\nA\nCCC\n", b"\x1f\x8b garbage"])
def test_not_a_fasta_file(tmp_path, content):
    file = tmp_path / "bad.fa"
    file.write_bytes(content)
    with pytest.raises(InputFileError, match=r"bad\.fa: cannot read the reference") as problem:
        Reference(str(file), ["a"], [10])
    assert "\n" not in str(problem.value)


def test_index_that_is_not_the_file_s(path):
    Reference(path, CONTIGS, LENGTHS).close()
    with open(path, "w") as file:
        file.write(TEXT[:20])
    with pytest.raises(InputFileError, match=r"ref\.fa\.fai: is not the index of .*ref\.fa as it is now; delete it"):
        Reference(path, CONTIGS, LENGTHS)


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
