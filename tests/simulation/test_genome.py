"""Random and given references."""

from __future__ import annotations

import gzip

import numpy as np
import pysam
import pytest

from f5py.errors import InputFileError
from f5py.simulation.genome import Genome, random_genome, read_genome, write_genome


def make(*contigs: str) -> Genome:
    codes = np.array(["ACGTN".index(base) for base in "".join(contigs)], dtype=np.uint8)
    offsets = np.cumsum([0, *map(len, contigs)]).astype(np.int64)
    return Genome([f"c{i}" for i in range(len(contigs))], offsets, codes)


def test_random_genome_has_the_gc_content_and_varies_locally():
    genome = random_genome(200_000, 0.4, np.random.default_rng(1))
    is_gc = (genome.codes == 1) | (genome.codes == 2)
    assert is_gc.mean() == pytest.approx(0.4, abs=0.02)
    counts = np.bincount(genome.codes, minlength=5)
    assert counts[0] == pytest.approx(counts[3], rel=0.03)
    assert counts[1] == pytest.approx(counts[2], rel=0.03)
    assert counts[4] == 0
    # 100 windows of 2 kb: a constant GC content would scatter by 0.011
    assert is_gc.reshape(100, -1).mean(axis=1).std() > 0.02


def test_written_genome_is_read_back_and_indexed(tmp_path):
    genome = random_genome(245, 0.5, np.random.default_rng(1))
    genome = Genome(["a", "b"], np.array([0, 160, 245]), genome.codes)
    path = tmp_path / "ref.fa"
    write_genome(genome, path)
    assert max(map(len, path.read_text().splitlines())) == 80
    again = read_genome(path)
    assert again.names == genome.names
    np.testing.assert_array_equal(again.offsets, genome.offsets)
    np.testing.assert_array_equal(again.codes, genome.codes)
    with pysam.FastaFile(str(path)) as reference:
        assert reference.get_reference_length("b") == 85
        assert reference.fetch("b", 80, 85) == "".join("ACGT"[code] for code in genome.codes[240:245])


def test_reads_lower_case_iupac_and_gzip(tmp_path):
    path = tmp_path / "ref.fa.gz"
    path.write_bytes(gzip.compress(b">x some text\nacgtn\nRA\n>y\nC\n"))
    genome = read_genome(path)
    assert genome.names == ["x", "y"]
    assert genome.codes.tolist() == [0, 1, 2, 3, 4, 4, 0, 1]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (None, "no such file; give the reference"),
        (b"", "no sequence"),
        (b">x\nA\n>y\n", "an empty one"),
        (b">x\nA\n>x\nC\n", "same"),
    ],
)
def test_bad_reference_is_one_clear_error(tmp_path, content, complaint):
    path = tmp_path / "ref.fa"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputFileError, match=complaint) as caught:
        read_genome(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_stretches_end_at_other_letters_and_contigs():
    starts, lengths = make("NACGNT", "AA", "", "N", "GNC").stretches()
    assert list(zip(starts.tolist(), lengths.tolist(), strict=True)) == [(1, 3), (5, 1), (6, 2), (9, 1), (11, 1)]


def test_sites_do_not_span_contigs():
    assert make("CGAC", "GCG", "CNG").occurrences("CG").tolist() == [0, 5]
