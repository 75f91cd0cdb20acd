"""Occasions and words of the advisor."""

from dataclasses import replace

import pytest

from f5py.compute.gpu.tuning.advisor import Advisor, TunedOptions

from ....abea.batch_reports import FINE, GPU_BOUND, cpu_bound, cut_by_reads, used


def _said(reports, capsys, is_bound=True, **more):
    """Return the lines at the end of a run; before that there must be none."""
    advisor = Advisor(**more)
    for report in reports:
        assert advisor.observe(report) == report.options
    assert capsys.readouterr().err == ""
    advisor.summarise(is_bound)
    return capsys.readouterr().err.splitlines()


def test_message_in_full(capsys):
    report = used(10, 20, n_reads=512, n_bases=4_000_000, cpu_seconds=1, gpu_seconds=4)
    assert _said([report] * 4, capsys, cores=8) == [
        "[load_balance_advisor::INFO] the CPU waits for the GPU (CPU 1.00 s, GPU 4.00 s), which is fine if the CPU "
        "is weak: lower --cuda-max-lf from 3 to 1.8 and lower --cuda-max-epk from 5 to 3.1; "
        "or raise --ultra-thresh from 100000 to 200000 (works with --skip-ultra) (4 of 4 batches were so)",
    ]


@pytest.mark.parametrize(
    ("report", "phrases"),
    [
        (used(80, 40), ["memory_balance_advisor", "lower --cuda-avg-epk", "raise --cuda-max-epk"]),
        (used(45, 90), ["memory_balance_advisor", "raise --cuda-avg-epk", "lower --cuda-max-epk"]),
        (used(10, 20, n_reads=9, n_bases=5_000_000), ["memory_balance_advisor", "raise -B from 5M to 20M"]),
        (cut_by_reads(), ["memory_balance_advisor", "raise -K"]),
        (cpu_bound(n_cpu_no_memory=100), ["load_balance_advisor", "lower -K", "lower -B", "100 of 512 reads"]),
        (cpu_bound(n_cpu_long=100), ["load_balance_advisor", "raise --cuda-max-lf", "100 of 512 reads"]),
        (cpu_bound(n_cpu_many_events=100), ["load_balance_advisor", "raise --cuda-max-epk", "100 of 512 reads"]),
        (cpu_bound(), ["load_balance_advisor", "lower --ultra-thresh", "--skip-ultra", "raise -t from 8 to 9"]),
        (GPU_BOUND, ["load_balance_advisor", "lower --cuda-max-lf", "lower --cuda-max-epk", "raise --ultra-thresh"]),
    ],
)
def test_every_leaf_names_its_options(report, phrases, capsys):
    (line,) = _said([report] * 4, capsys, cores=9)
    for phrase in phrases:
        assert phrase in line


def test_the_end_says_what_held_for_most_batches(capsys):
    (line,) = _said([cut_by_reads()] * 9 + [used(80, 40)] * 5, capsys)
    assert "raise -K from 512 to" in line
    assert line.endswith("(9 of 14 batches were so)")


@pytest.mark.parametrize(
    "reports",
    [
        [FINE] * 40,
        [FINE] * 9 + [cut_by_reads()] * 4,
        [cut_by_reads()] * 3,
        ([cut_by_reads()] * 3 + [FINE]) * 4,
        [cut_by_reads(TunedOptions(batchsize=65_536))] * 10,
    ],
    ids=["balanced", "not most", "too few", "never many in a row", "nothing can be done"],
)
def test_nothing_is_said(reports, capsys):
    assert _said(reports, capsys) == []


def test_nothing_is_said_of_a_run_that_waited_for_something_else(capsys):
    assert _said([GPU_BOUND] * 40, capsys, is_bound=False) == []


def test_the_load_comes_first(capsys):
    both = replace(cut_by_reads(), cpu_seconds=1, gpu_seconds=4)
    (line,) = _said([cut_by_reads()] * 2 + [both] * 40, capsys)
    assert "load_balance" in line
