"""``f5py call-methylation`` against f5c and nanopolish on real reads."""

import csv
import gzip
import io
import shutil
import subprocess

import numpy as np
import pytest

pytestmark = pytest.mark.shared

_KEY_COLUMNS = [
    "chromosome", "strand", "start", "end", "read_name", "num_calling_strands", "num_motifs", "sequence",
]  # fmt: skip
_SCORES = ["log_lik_ratio", "log_lik_methylated", "log_lik_unmethylated"]


def _rows(text: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.decode()), delimiter="\t"))


def _keys(rows):
    return [tuple(row[column] for column in _KEY_COLUMNS) for row in rows]


def _scores(rows):
    return np.array([[float(row[column]) for column in _SCORES] for row in rows])


@pytest.fixture(scope="module")
def expected(ecoli):
    return _rows(gzip.decompress((ecoli / "expected" / "meth.tsv.gz").read_bytes()))


def test_all_rows_equal_f5c_with_its_hard_clip_rule(expected, call_ecoli):
    """19,537 rows: keys, order and counts exactly; the three log-likelihoods to the last printed digit or its next."""
    rows = _rows(call_ecoli("reads.bam", "--hard-clips=no"))
    assert len(rows) == 19_537
    assert _keys(rows) == _keys(expected)
    difference = np.abs(_scores(rows) - _scores(expected))
    assert difference.max() < 0.025
    assert (difference[:, 0] < 0.015).mean() > 0.9999


def test_by_default_only_hard_clipped_records_differ_from_f5c(expected, call_ecoli):
    rows = _rows(call_ecoli("reads.bam"))
    assert _keys(rows) == _keys(expected)
    far = np.abs(_scores(rows) - _scores(expected))[:, 0] > 0.05
    reads = {row["read_name"] for row, differs in zip(rows, far, strict=True) if differs}
    # These two have supplementary alignments with hard clips at the start of the read.
    assert reads <= {
        "b1594985-30ce-4f59-9230-dff6ec966710",
        "2a021335-d1c5-4881-93fc-a673d8960075",
        "67ee25a0-86c1-44be-9b64-5a0db853eaf2",
    }
    # E. coli has no CpG methylation: with right positions these reads are called unmethylated like all others.
    ratios = _scores(rows)[far, 0]
    assert np.median(ratios) < np.median(_scores(expected)[far, 0]) - 2


def test_rows_equal_nanopolish(ecoli, call_ecoli):
    expected = _rows((ecoli / "expected" / "nanopolish" / "cpg.tsv").read_bytes())
    rows = _rows(call_ecoli("reads8.bam", "--hard-clips=no", "--min-mapq=0", "--secondary=yes"))
    assert _keys(rows) == _keys(expected)
    difference = np.abs(_scores(rows) - _scores(expected))[:, 0]
    assert (difference <= 0.0501).mean() >= 0.999


def test_scaling_equals_f5c(ecoli, call_ecoli):
    expected = (ecoli / "expected" / "scaling.tsv").read_text().splitlines()
    printed = call_ecoli("reads.bam", "--print-scaling=yes").decode().splitlines()
    start = printed.index("read\tshift\tscale\tvar")
    assert printed[start : start + len(expected)] == expected


def test_counts_equal_f5c(ecoli, call_ecoli, capfd):
    call_ecoli("reads.bam")
    lines = capfd.readouterr().err.splitlines()
    for line in (ecoli / "expected" / "meth.log").read_text().splitlines()[:3]:
        assert line in lines


@pytest.mark.skipif(not shutil.which("nanopolish"), reason="nanopolish is not on PATH")
@pytest.mark.parametrize("separation", [3, 30])
def test_groups_of_another_separation_equal_nanopolish(ecoli, call_ecoli, tmp_path, separation):
    (tmp_path / "reads.fasta").symlink_to(ecoli / "reads.fasta")
    quiet = {"check": True, "stderr": subprocess.DEVNULL}
    subprocess.run(["nanopolish", "index", "-d", ecoli / "fast5", tmp_path / "reads.fasta"], **quiet)
    files = ["-r", tmp_path / "reads.fasta", "-b", ecoli / "reads8.bam", "-g", ecoli / "ref.fa"]
    command = ["nanopolish", "call-methylation", "--min-separation", str(separation), *files]
    done = subprocess.run(command, stdout=subprocess.PIPE, **quiet)
    expected = _rows(done.stdout)
    rows = _rows(call_ecoli("reads8.bam", "--hard-clips=no", f"--min-separation={separation}"))
    assert len(rows) > 100
    assert _keys(rows) == _keys(expected)
    np.testing.assert_allclose(_scores(rows), _scores(expected), atol=0.0501)


def test_losses_by_mapping_quality_are_told(call_ecoli, capfd):
    call_ecoli("reads.bam", "--min-mapq=60")
    assert "(--min-mapq)" not in capfd.readouterr().err
    call_ecoli("reads.bam", "--min-mapq=61")
    told = capfd.readouterr().err
    assert "was used; the results are empty; check --min-mapq and --secondary" in told
    assert "115 of 115 mapped records were left out for a mapping quality below 61 (--min-mapq)" in told
