"""modBAM: base modification tags of made-up alignments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.motifs import motif_named, parse_motif
from f5py.core.windows import Windows
from f5py.evaluation.ratios import probability
from f5py.outputs.calls.modbam import modification_tags

from ..examples import examples
from .made_modbam import GENOME, REVERSE, SECONDARY, has_tags, listed_tags, made_batch, made_record, modified_bases

CPG, GPC, DAM, DCM = map(motif_named, ("cpg", "gpc", "dam", "dcm"))


def tags_of(genome, record, calls, motif=CPG, style="read"):
    """(MM, ML, MN) of one record, None without tags."""
    tags = modification_tags(made_batch(genome, [record], [calls]), motif, style)
    if not has_tags(tags, 0):
        return None
    (_, text), (_, values), (_, length) = listed_tags(tags, 0)
    return text, list(values), length


def test_a_record_without_a_sequence_gets_no_tags():
    secondary = made_record(None, "28M", flag=SECONDARY)
    assert tags_of(GENOME, secondary, [(2, 7, 2, 0.0)]) is None
    assert tags_of(GENOME, secondary, [(2, 7, 2, 0.0)], style="reference") == ("C+m?,0,1;", [128, 128], 28)


def test_a_site_that_the_alignments_end_cuts_is_left_out_of_reference_style():
    record = made_record(GENOME[:23], "23M", flag=REVERSE)  # ends between C and G of the site at 22
    assert tags_of(GENOME, record, [(16, 22, 2, 0.0)], style="reference") == ("C+m?,1;", [128], 23)
    record.flag = 0
    assert tags_of(GENOME, record, [(16, 22, 2, 0.0)], style="reference") == ("C+m?,5,0;", [128, 128], 23)


def test_only_groups_inside_of_a_window_are_listed():
    batch = made_batch(GENOME, [made_record(GENOME, "28M")], [[(2, 7, 2, 0.0), (11, 11, 1, 0.0), (16, 22, 2, 0.0)]])
    windows = Windows.parse(["chr1:4-22"], ["chr1"])
    # the group at 2 and 7 starts before the window, that at 16 and 22 ends after it
    assert listed_tags(modification_tags(batch, CPG, "read", windows), 0)[0][1] == "C+m?,3,1,0;"
    windows = Windows.parse(["chr1:4-22"], ["chr1"], clips_groups=True)
    assert listed_tags(modification_tags(batch, CPG, "read", windows), 0)[0][1] == "C+m?,3;"


@pytest.mark.parametrize(
    ("motif", "reverse", "text"),
    [
        (CPG, False, "C+m?,0,1,0,1,0;"),
        (CPG, True, "C+m?,0,1,0,0,0;"),
        (GPC, False, "C+m?,7;"),
        (GPC, True, "C+m?,0;"),
        (DAM, False, "A+a?,2;"),
        (DAM, True, "A+a?,3;"),
    ],
)
def test_every_motif_marks_its_own_base(motif, reverse, text):
    """CG C of both strands, GC its C, GATC its A."""
    sites = {
        CPG: [(2, 7, 2, 0.0), (11, 11, 1, 0.0), (16, 16, 1, 0.0), (22, 22, 1, 0.0)],
        GPC: [(23, 23, 1, 0.0)],
        DAM: [(8, 8, 1, 0.0)],
    }[motif]
    record = made_record(GENOME, "28M", flag=REVERSE if reverse else 0)
    n_sites = sum(site[2] for site in sites)
    assert tags_of(GENOME, record, sites, motif) == (text, [128] * n_sites, 28)


def test_dcm_marks_the_second_c_of_both_spellings():
    genome = "AACCAGGTTTCCTGGAA"
    forward = made_record(genome, "17M")
    assert tags_of(genome, forward, [(2, 10, 2, 0.0)], DCM) == ("C+m?,1,1;", [128, 128], 17)
    reverse = made_record(genome, "17M", flag=REVERSE)
    assert tags_of(genome, reverse, [(2, 10, 2, 0.0)], DCM) == ("C+m?,1,1;", [128, 128], 17)


def test_a_record_marks_the_sites_of_its_own_strand_only():
    genome = "AACAGTTCTGGACCGAA"  # CHG: CAG and CTG on both strands, CCG on the forward one
    motif = parse_motif("CHG:0")
    forward = made_record(genome, "17M")
    assert tags_of(genome, forward, [(2, 12, 3, 0.0)], motif) == ("C+m?,0,0,0;", [128] * 3, 17)
    reverse = made_record(genome, "17M", flag=REVERSE)
    assert tags_of(genome, reverse, [(2, 7, 2, 0.0)], motif) == ("C+m?,2,0;", [128] * 2, 17)


def test_probability_bytes_are_equal_parts_of_the_range():
    """N stands for N/256 to (N+1)/256; extreme ratios neither overflow nor become NaN."""
    genome = "CGA" * 40
    ratios = [0.0, -0.001, 1.0, -1.0, 5.0, 5.6, -5.6, 88.0, -88.0, 3000.0, -3000.0]
    calls = [(3 * i, 3 * i, 1, ratio) for i, ratio in enumerate(ratios)]
    _, values, _ = tags_of(genome, made_record(genome, "120M"), calls)
    exact = np.float32(np.array(ratios) - 900).astype(float) + 900
    expected = [min(255, math.floor(256 * (1 / (1 + math.exp(-x)) if x > -700 else 0.0))) for x in exact]
    assert values == expected
    assert values[0] == 128
    assert values[-2:] == [255, 0]


@pytest.mark.parametrize("prior", [0.5, 0.1])
def test_probabilities_are_of_calibrated_ratios(prior: float):
    """The factor is one of the ratio, and not of the prior's log-odds."""
    ratios = np.array([0.0, 1.0, -1.0, 3.0, -2.5])
    batch = made_batch(
        "CGA" * 20, [made_record("CGA" * 20, "60M")], [[(3 * i, 3 * i, 1, float(x)) for i, x in enumerate(ratios)]]
    )
    tags = modification_tags(batch, CPG, "read", prior=prior, calibration=1.5)
    stored = np.float32(ratios - 900).astype(float) + 900
    expected = 256 * probability(stored, prior, 1.5)
    assert tags.probability.tolist() == np.floor(expected).astype(int).tolist()


def test_a_ratio_that_is_no_number_is_no_call():
    batch = made_batch(GENOME, [made_record(GENOME, "28M")], [[(2, 2, 1, 0.0), (7, 7, 1, 0.0)]])
    batch.calls.methylated[0] = batch.calls.unmethylated[0] = -np.inf
    tags = modification_tags(batch, CPG, "read")
    assert listed_tags(tags, 0)[0][1] == "C+m?,2;"


@st.composite
def alignments(draw):
    """Draw a genome, records on it with every kind of operation, and calls of their sites."""
    genome = draw(st.text("ACG", min_size=40, max_size=120))
    reads = []
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, 10))
        at = start
        sequence, cigar = "", ""
        for clip in draw(st.sampled_from(["", "H", "S", "HS"])):
            cigar += f"2{clip}"
            sequence += "CG" if clip == "S" else ""
        operations = draw(st.lists(st.tuples(st.sampled_from("MIDX="), st.integers(1, 12)), min_size=1, max_size=12))
        for kind, length in [*operations, ("M", 1)]:
            length = length if kind == "I" else min(length, len(genome) - at)
            if length == 0:
                continue
            cigar += f"{length}{kind}"
            if kind in "M=":
                sequence += genome[at : at + length]
            elif kind != "D":
                sequence += draw(st.text("ACGT", min_size=length, max_size=length))
            at += length if kind != "I" else 0
        cigar += draw(st.sampled_from(["", "3H", "1S"]))
        sequence += "C" if cigar.endswith("1S") else ""
        record = made_record(sequence, cigar, start, REVERSE if draw(st.booleans()) else 0)
        sites = [i for i in range(start, record.reference_end) if genome[i : i + 2] == "CG"]
        calls = []
        while sites:
            size = draw(st.integers(1, len(sites)))
            group, sites = sites[:size], sites[size:]
            if draw(st.booleans()):
                calls.append((group[0], group[-1], size, draw(st.integers(-6, 6))))
        reads.append((record, calls))
    return genome, reads


@settings(max_examples=examples(60), deadline=None)
@given(alignments())
def test_any_alignment_gives_its_called_bases(made):
    """The specification's reading of the tags is what pysam's aligned pairs say."""
    genome, reads = made
    batch = made_batch(genome, [record for record, _ in reads], [calls for _, calls in reads])
    tags = modification_tags(batch, CPG, "read")
    for i, (record, calls) in enumerate(reads):
        read_of = {reference: read for read, reference in record.get_aligned_pairs(matches_only=True)}
        letter, offset = ("G", 1) if record.is_reverse else ("C", 0)
        expected = {}
        for first, last, _, ratio in calls:
            for site in range(first, last + 1):
                at = read_of.get(site + offset)
                if genome[site : site + 2] == "CG" and at is not None and record.query_sequence[at] == letter:
                    expected[at] = math.floor(256 / (1 + math.exp(-ratio)))
        assert has_tags(tags, i) == bool(expected)
        if expected:
            for name, value in listed_tags(tags, i):
                record.set_tag(name, value)
            found = modified_bases(record)
            assert {base.position: base.probability for base in found} == expected
            assert {(base.base, base.code) for base in found} == {("C", "m")}
            assert record.get_tag("MM").startswith("C+m?")
            assert len(found) == len(expected)
