"""FASTA and FASTQ files as columns, against the text that they were made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from f5py.io.sequences.read_records import read_batches


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
