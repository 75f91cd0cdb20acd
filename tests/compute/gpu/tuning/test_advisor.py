"""When the advisor speaks, and what it says."""

from dataclasses import replace

import pytest

from f5py.compute.gpu.tuning.advisor import Advisor, TunedOptions

from ....abea.batch_reports import FINE, GPU_BOUND, cpu_bound, cut_by_reads, spoken, used


def test_messages_in_full(capsys):
    advisor = Advisor(cores=8)
    report = used(10, 20, n_reads=512, n_bases=4_000_000, cpu_seconds=1, gpu_seconds=4)
    for _ in range(4):
        assert advisor.observe(report) == report.options
    assert capsys.readouterr().err.splitlines() == [
        "[memory_balance_advisor::INFO] GPU memory for bases is used to 10 %, for events to 20 %, batches end at -K: "
        "raise -K from 512 to 2000",
        "[load_balance_advisor::INFO] the CPU waits for the GPU (CPU 1.00 s, GPU 4.00 s), which is fine if the CPU "
        "is weak: lower --cuda-max-lf from 3 to 1.8 and lower --cuda-max-epk from 5 to 3.1; "
        "or raise --ultra-thresh from 100000 to 200000 (works with --skip-ultra)",
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
    advisor = Advisor(cores=9)
    for _ in range(4):
        advisor.observe(report)
    (line,) = capsys.readouterr().err.splitlines()
    for phrase in phrases:
        assert phrase in line


def test_said_after_more_than_three_batches_and_not_again(capsys):
    assert spoken([cut_by_reads()] * 40, Advisor(), capsys) == [4]


def test_the_end_says_what_held_for_most_batches(capsys):
    advisor = Advisor()
    spoken([cut_by_reads()] * 9 + [used(80, 40)] * 5, advisor, capsys)
    advisor.summarise()
    (line,) = capsys.readouterr().err.splitlines()
    assert "9 of 14 batches were so; raise -K from 512 to" in line


def test_the_end_of_a_balanced_run_says_nothing(capsys):
    advisor = Advisor()
    spoken([FINE] * 9 + [cut_by_reads()] * 4, advisor, capsys)
    advisor.summarise()
    assert capsys.readouterr().err == ""


def test_nothing_is_said_about_balanced_batches(capsys):
    assert spoken([FINE] * 40, Advisor(), capsys) == []


@pytest.mark.parametrize("other", [FINE, used(80, 40)], ids=["no state", "another state"])
def test_the_row_must_not_be_interrupted(other, capsys):
    some = [cut_by_reads()] * 3
    assert spoken([*some, other, *some, other, *some, other, *some, *some], Advisor(), capsys) == [16]


def test_what_was_said_is_not_said_again_after_an_interruption(capsys):
    row = [cut_by_reads()] * 9
    assert spoken([*row, FINE, *row], Advisor(), capsys) == [4]


def test_both_trees_count_on_their_own(capsys):
    advisor = Advisor()
    both = replace(cut_by_reads(), cpu_seconds=1, gpu_seconds=4)
    for report in [cut_by_reads()] * 2 + [both] * 2:
        advisor.observe(report)
    assert "load_balance" not in capsys.readouterr().err
    for report in [both] * 2:
        advisor.observe(report)
    assert "memory_balance" not in capsys.readouterr().err  # said in the fourth, and not again in the sixth


def test_nothing_is_said_if_nothing_can_be_done(capsys):
    most = cut_by_reads(TunedOptions(batchsize=65_536))
    assert spoken([most] * 10, Advisor(), capsys) == []
