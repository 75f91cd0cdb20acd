"""Called against true frequencies."""

from __future__ import annotations

import numpy as np
import pytest

from f5py.errors import F5pyError, InputFileError
from f5py.simulation.compare import Comparison, compare_frequencies

CALLED = (
    "chromosome\tstart\tend\tnum_motifs_in_group\tcalled_sites\tcalled_sites_methylated\tmethylated_frequency\t"
    "group_sequence\n"
)
TRUE = "chromosome\tstart\tend\tn_reads\tn_methylated\tfrequency\trate\n"


@pytest.fixture
def tables(tmp_path):
    (tmp_path / "freq.tsv").write_text(
        CALLED
        + "b\t5\t5\t1\t10\t9\t0.900\tAACGAA#x\n"
        + "a\t5\t5\t1\t5\t1\t0.200\tsplit-group\n"
        + "a\t9\t9\t1\t4\t4\t1.000\tsplit-group\n"  # too few calls
        + "a\t11\t17\t2\t8\t4\t0.500\tACG\n"  # a group of sites
        + "a\t20\t20\t1\t6\t3\t0.500\tACG\n"  # not simulated
    )
    (tmp_path / "truth.tsv").write_text(
        TRUE
        + "a\t5\t5\t6\t1\t0.1667\t0.3\n"
        + "a\t9\t9\t6\t6\t1.0\t0.9\n"
        + "a\t11\t11\t6\t6\t1.0\t0.9\n"
        + "b\t5\t5\t10\t10\t1.0\t0.9\n"
        + "b\t7\t7\t10\t10\t1.0\t0.9\n"
    )
    return tmp_path


def test_joins_single_sites_by_contig_and_position(tables):
    comparison = compare_frequencies(tables / "freq.tsv", tables / "truth.tsv", 5)
    assert sorted(zip(comparison.true, comparison.called, strict=True)) == [(0.1667, 0.2), (1.0, 0.9)]
    assert comparison.correlation == pytest.approx(1.0)


def test_table_has_means_per_bin():
    comparison = Comparison(called=np.array([0.1, 0.2, 0.9]), true=np.array([0.0, 0.1, 1.0]))
    lines = comparison.table().splitlines()
    assert lines[1].split() == ["0.0", "to", "0.2", "2", "0.050", "0.150", "0.100"]
    assert lines[2].split() == ["0.2", "to", "0.4", "0", "-", "-", "-"]
    assert lines[5].split() == ["0.8", "to", "1.0", "1", "1.000", "0.900", "0.100"]
    assert lines[6].split() == ["all", "3", "0.367", "0.400", "0.100"]
    correlation = np.corrcoef([0.1, 0.2, 0.9], [0.0, 0.1, 1.0])[0, 1]
    assert lines[7].endswith(f"3 sites: {correlation:.4f}")


def test_no_correlation_without_variation():
    assert np.isnan(Comparison(np.array([0.5, 0.5]), np.array([0.0, 1.0])).correlation)
    assert np.isnan(Comparison(np.array([0.5]), np.array([0.0])).correlation)


def test_no_common_site_is_an_error(tables):
    with pytest.raises(F5pyError, match="no site"):
        compare_frequencies(tables / "freq.tsv", tables / "truth.tsv", 11)
    (tables / "freq.tsv").write_text(CALLED)
    with pytest.raises(F5pyError, match="no site"):
        compare_frequencies(tables / "freq.tsv", tables / "truth.tsv", 1)


def test_unreadable_table_is_an_error(tables):
    (tables / "freq.tsv").write_text(CALLED + "a\tx\n")
    with pytest.raises(InputFileError, match=r"freq\.tsv: cannot be read"):
        compare_frequencies(tables / "freq.tsv", tables / "truth.tsv", 1)
    (tables / "freq.tsv").write_text(CALLED)
    with pytest.raises(InputFileError, match=r"absent\.tsv"):
        compare_frequencies(tables / "freq.tsv", tables / "absent.tsv", 1)
