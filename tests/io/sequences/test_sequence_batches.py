"""Reading basecalls in batches."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.errors import InputFileError
from f5py.io.sequences.read_records import read_batches, sequence_batches

from ...examples import examples
from ...patience import PATIENCE

READS = [("a", "ACGT"), ("b", "GG"), ("c", ""), ("d", "acgun"), ("e", "TTTTTTT")]


def fasta(reads, width=3) -> bytes:
    lines = []
    for name, bases in reads:
        lines += [f">{name} comment", *(bases[i : i + width] for i in range(0, len(bases), width))]
    return "".join(line + "\n" for line in lines).encode()


def fastq(reads) -> bytes:
    return "".join(f"@{name} comment\n{bases}\n+\n{'I' * len(bases)}\n" for name, bases in reads).encode()


def test_comments_are_bytes(tmp_path):
    path = tmp_path / "reads.fa"
    path.write_bytes(b">a sample_id=\xb5g_1\nACGT\n>b\nAC\n")
    (batch,) = sequence_batches(str(path), 100, comments=True)
    assert list(batch.comments) == ["sample_id=\udcb5g_1", ""]
    assert flattened([batch]) == [("a", "ACGT"), ("b", "AC")]


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    for write in (fasta, fastq):
        path = tmp_path / "reads"
        path.write_bytes(gzip.compress(b"\xef\xbb\xbf" + write(READS)))
        assert flattened(sequence_batches(str(path), 1000)) == READS


def test_a_folder_called_like_a_scheme(tmp_path, monkeypatch):
    (tmp_path / "http:").mkdir()
    (tmp_path / "http:" / "reads.fa").write_bytes(fasta(READS[:1]))
    monkeypatch.chdir(tmp_path)
    assert flattened(sequence_batches("http:/reads.fa", 1)) == READS[:1]


def flattened(batches):
    found = []
    for names, bases, offsets, _ in batches:
        assert bases.dtype == np.uint8
        assert offsets.dtype == np.int64
        assert bases.flags.writeable
        assert offsets[0] == 0
        assert offsets[-1] == len(bases)
        assert len(offsets) == len(names) + 1
        found += [
            (name, bases[first:end].tobytes().decode())
            for name, first, end in zip(names, offsets[:-1], offsets[1:], strict=True)
        ]
    return found


@pytest.mark.parametrize("write", [fasta, fastq])
@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_every_format(tmp_path, write, compress, batch_size):
    path = tmp_path / "reads"
    path.write_bytes(compress(write(READS)))
    assert flattened(sequence_batches(str(path), 1000, batch_size)) == READS


@settings(deadline=None, max_examples=examples(50))
@given(
    lengths=st.lists(st.integers(0, 30), min_size=1, max_size=30),
    batch_size=st.integers(1, 10),
    max_bases=st.integers(1, 60),
)
def test_batches_close_when_full(tmp_path_factory, lengths, batch_size, max_bases):
    path = tmp_path_factory.mktemp("reads") / "reads.fasta"
    reads = [(f"r{i}", "A" * length) for i, length in enumerate(lengths)]
    path.write_bytes(fasta(reads))
    batches = list(sequence_batches(str(path), max_bases, batch_size))
    assert flattened(batches) == reads
    for number, (names, bases, offsets, _) in enumerate(batches):
        is_full = len(names) == batch_size or len(bases) >= max_bases
        assert is_full or number == len(batches) - 1
        assert len(names) <= batch_size
        assert offsets[-2] < max_bases  # it was not full before its last read


def test_real_reads(ecoli):
    with pysam.FastxFile(ecoli / "reads.fasta") as records:
        expected = [(record.name, record.sequence) for record in records]
    assert flattened(sequence_batches(str(ecoli / "reads.fasta"), 100_000, 50)) == expected


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_standard_input(compress):
    code = (
        "from f5py.io.sequences.read_records import sequence_batches\n"
        "print([(list(names), bases.tobytes()) for names, bases, *_ in sequence_batches('-', 100, 3)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=compress(fastq(READS)), capture_output=True, check=True, timeout=PATIENCE
    )
    assert done.stdout.decode() == "[(['a', 'b', 'c'], b'ACGTGG'), (['d', 'e'], b'acgunTTTTTTT')]\n"


def bam(path) -> None:
    header = pysam.AlignmentHeader.from_references(["one"], [100])
    with pysam.AlignmentFile(path, "wb", header=header):
        pass


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (fastq(READS)[:-4], "truncated; read 5, e, has not as many qualities as bases; give a complete"),
        (fastq(READS)[:-12], "truncated; read 5, e, has not as many qualities"),
        (fastq([*READS, ("f", "")])[:-3], "truncated; read 6, f, has not as many qualities"),
        (fastq(READS).replace(b"GG\n+\nII", b"GG\n+\nI"), "truncated; read 2, b, has not as many qualities"),
        (fasta(READS) + b">f\nAC\n+\nI\n", "truncated; read 6, f, has not as many qualities"),
        (gzip.compress(fastq(READS) * 500, mtime=0)[:-30], "damaged or truncated gzip data"),
        (b"name\tbases\na\tACGT\n", "neither FASTA nor FASTQ"),
        (b">\nACGT\n", "read 1 has no name"),
        (fasta(READS).replace(b"GG", b"G\0"), "read 2, b, has a byte that is no text"),
        (fasta(READS).replace(b">b", b">\0"), "read 2 has no name|read 2, .*, has a byte that is no text"),
        (fastq(READS).replace(b"II\n", b"I\0\n", 1), "has a byte that is no text"),
        (fasta(READS) + bytes(4096), "damaged behind read 4|read 5, e, has a byte that is no text"),
    ],
)
def test_other_files_are_refused(tmp_path, content, message):
    path = tmp_path / "reads.file"
    path.write_bytes(content)
    with pytest.raises(InputFileError, match=message) as caught:
        list(sequence_batches(str(path), 1000, 2))
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n", None])
def test_no_reads_are_told(tmp_path, content, capfd):
    """The file of a barcode may have none."""
    path = tmp_path / "reads.file"
    if content is None:
        bam(path)
    else:
        path.write_bytes(content)
    assert list(sequence_batches(str(path), 1000, 2)) == []
    assert f"{path}: holds no reads" in capfd.readouterr().err


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InputFileError, match="no such file"):
        next(sequence_batches(str(tmp_path / "none.fasta"), 1))
    with pytest.raises(InputFileError, match="is a folder"):
        next(sequence_batches(str(tmp_path), 1))


def _wrapped(text: bytes, width: int, newline: bytes) -> bytes:
    return b"".join(text[i : i + width] + newline for i in range(0, len(text), width)) or newline


def _drawn(rng: np.random.Generator, letters: bytes, n: int) -> bytes:
    return rng.choice(np.frombuffer(letters, np.uint8), n).tobytes()


@pytest.mark.parametrize("newline", [b"\n", b"\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("width", [1, 60, 63, 64, 65, 127, 128, 129, 1000])
@pytest.mark.parametrize("kind", ["fasta", "fastq"])
def test_reads_are_those_that_were_written(kind: str, width: int, newline: bytes, tmp_path: Path):
    """Lines shorter and longer than what is copied at a time; qualities may look like names and separators."""
    rng = np.random.default_rng(width)
    reads, text = [], b""
    for i, n in enumerate([1, 2, 63, 64, 65, 127, 128, 129, 1000, *rng.integers(1, 700, 20).tolist()]):
        name, bases = b"read%d" % i, _drawn(rng, b"ACGTNacgt", n)
        qualities = _drawn(rng, bytes(range(33, 127)), n) if kind == "fastq" else b""
        mark = b"@" if kind == "fastq" else b">"
        text += mark + name + b" more words" + newline + _wrapped(bases, width, newline)
        if qualities:
            text += b"+" + newline + _wrapped(qualities, width, newline)
        reads.append((name, bases, qualities))
    path = tmp_path / f"reads.{kind}"
    path.write_bytes(text)
    found = []
    for batch in read_batches([str(path)], 2000, ()):
        for i in range(len(batch)):
            first, end = batch.offsets[i : i + 2]
            name = batch.names.text[batch.names.offsets[i] : batch.names.offsets[i + 1]].tobytes()
            found.append((name, batch.letters[first:end].tobytes(), batch.qualities[first:end].tobytes()))
    assert found == reads


def test_blanks_inside_of_lines_are_no_bases(tmp_path: Path):
    path = tmp_path / "reads.fasta"
    line = b"ACGT" * 40
    path.write_bytes(b">one\n" + line[:100] + b" \t " + line[100:] + b"\n" + b" " * 70 + b"TT\n>two\n" + b"G" * 64)
    (batch,) = read_batches([str(path)], 1 << 20, ())
    assert batch.letters.tobytes() == line + b"TT" + b"G" * 64
    assert batch.offsets.tolist() == [0, 162, 226]
