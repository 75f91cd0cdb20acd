"""Base modification tags joined with each other and with those of records, against a plain reading of the tags."""

from __future__ import annotations

import re
from array import array
from typing import Any

import numpy as np
import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.offsets import offsets_of
from f5py.io.bam.bam_records import RawRecords
from f5py.io.bam.modifications._tags_numba import n_values
from f5py.outputs.calls.tag_merging import ModificationTags, tags_of_motifs, tags_of_records, tags_with_those_of_records

from ..compiled import compiled

n_values = compiled(n_values)

HEADER = pysam.AlignmentHeader.from_dict({"SQ": [{"SN": "chr", "LN": 1000}]})
Entries = dict[str, dict[int, tuple[int, ...]]]
OURS: Entries = {"C+m?": {3: (200,), 7: (10,)}}


def read_tags(text: str, probabilities: list[int]) -> Entries:
    """Of each entry's head: number of the base among those of its kind -> probabilities of the codes."""
    found: Entries = {}
    at = 0
    for entry in filter(None, text.split(";")):
        head, *steps = entry.split(",")
        codes = re.fullmatch(r".[+-]([a-z]+|\d+)[?.]?", head)
        assert codes
        width = 1 if codes[1].isdigit() else len(codes[1])
        base = -1
        calls = {}
        for step in steps:
            base += int(step) + 1
            calls[base] = tuple(probabilities[at : at + width])
            at += width
        assert head not in found
        found[head] = calls
    assert at == len(probabilities)
    return found


def write_tags(entries: Entries) -> tuple[str, list[int]]:
    text, probabilities = "", []
    for head, calls in entries.items():
        last = -1
        text += head
        for base in sorted(calls):
            text += f",{base - last - 1}"
            last = base
            probabilities += calls[base]
        text += ";"
    return text, probabilities


def tags_of(reads: list[Entries]) -> ModificationTags:
    pairs = [write_tags(entries) for entries in reads]
    text = [np.frombuffer(one.encode(), np.uint8) for one, _ in pairs]
    probability = [np.array(one, np.uint8) for _, one in pairs]
    return ModificationTags(
        np.concatenate(text), offsets_of(np.array([len(one) for one in text])), np.concatenate(probability),
        offsets_of(np.array([len(one) for one in probability])), np.full(len(reads), 50),
    )  # fmt: skip


def entries_of(tags: ModificationTags) -> list[Entries]:
    text, probability = tags.text.tobytes().decode(), tags.probability.tolist()
    return [
        read_tags(
            text[tags.text_offsets[i] : tags.text_offsets[i + 1]],
            probability[tags.probability_offsets[i] : tags.probability_offsets[i + 1]],
        )
        for i in range(len(tags.length))
    ]


def one_code(*heads: str) -> st.SearchStrategy[Entries]:
    calls = st.dictionaries(st.integers(0, 300), st.tuples(st.integers(0, 255)), min_size=1, max_size=6)
    return st.one_of(st.just({}), st.fixed_dictionaries(dict.fromkeys(heads, calls)))


@settings(deadline=None)
@given(st.lists(st.tuples(one_code("C+m?"), one_code("C+m?"), one_code("A+a?")), min_size=1, max_size=4))
def test_motifs_of_one_modification_become_one_entry(reads):
    first, second, third = (tags_of(list(column)) for column in zip(*reads, strict=True))
    joined = entries_of(tags_of_motifs(tags_of_motifs(first, second), third))
    for (a, b, c), found in zip(reads, joined, strict=True):
        both = {**b.get("C+m?", {}), **a.get("C+m?", {})}
        assert found == ({"C+m?": both} if both else {}) | c


def made_record(cigar: str = "50M", name: str = "r") -> pysam.AlignedSegment:
    record = pysam.AlignedSegment(HEADER)
    record.query_name, record.reference_id, record.reference_start = name, 0, 5
    record.query_sequence, record.cigarstring = "AC" * 25, cigar
    return record


def records_of(entries: list[Any], cigar: str = "50M", **tags: Any) -> RawRecords:
    """Make a record of each, with the tags (a text as it is, or entries)."""
    records = []
    for i, one in enumerate(entries):
        record = made_record(cigar, f"r{i}")
        if one is not None:
            text, probabilities = one if isinstance(one, tuple) else write_tags(one)
            record.set_tag("MM", text)
            record.set_tag("ML", array("B", probabilities))
        for name, value in tags.items():
            record.set_tag(name, value)
        records.append(record)
    return RawRecords.of(records, HEADER)


def plain_n_values(text: str) -> int:
    """`n_values` by a regular expression."""
    total, heads = 0, set()
    for entry in text.removesuffix(";").split(";") if text else []:
        parts = re.fullmatch(r"([A-Za-z][+-]([A-Za-z]+|\d+))[?.]*((?:,\d{1,10})*)", entry)
        if parts is None or len(parts[0]) - len(parts[1]) - len(parts[3]) > 1 or parts[1] in heads:
            return -1
        heads.add(parts[1])
        steps = [int(step) + 1 for step in parts[3].split(",")[1:]]
        if sum(steps) > 1 << 31:
            return -1
        total += len(steps) * (1 if parts[2].isdigit() else len(parts[2]))
    return total


_ENTRY = st.tuples(
    st.sampled_from(["C+m", "C+mh", "A-a", "N+17802", "C+", "C", "C+m1", "+m", "1+m", "C*m", ""]),
    st.sampled_from(["", "", "?", ".", "?.", "x"]),
    st.lists(st.sampled_from(["0", "1", "25", "", "007", "x", "2147483647", "9999999999", "12345678901"]), max_size=4),
    st.sampled_from([";", ";", ";", "", ";;"]),
)


@settings(deadline=None)
@given(st.lists(_ENTRY, max_size=3), st.text("CAm+-?.,;09", max_size=6))
def test_texts_that_cannot_be_merged(entries, more):
    """What is no text of MM has no number of values; all that is written later is sized by the number."""
    text = "".join(head + flag + "".join(f",{step}" for step in steps) + end for head, flag, steps, end in entries)
    for one in (text, more, text + more):
        assert n_values(np.frombuffer(one.encode(), np.uint8)) == plain_n_values(one)


@pytest.mark.parametrize("n_more", [1, 3, 50, 5000])
def test_calls_without_a_probability(n_more: int):
    """MM lists more calls than ML has values: such tags are none, and nothing is written beyond what is there."""
    text, probabilities = write_tags(OURS)
    records = records_of([(text[:-1] + ",0" * n_more + ";", probabilities), OURS, None])
    tags, is_damaged = tags_of_records(records.data, records.starts, np.arange(3))
    assert is_damaged.tolist() == [True, False, False]
    assert entries_of(tags) == [{}, OURS, {}]
    assert entries_of(tags_of_motifs(tags, tags)) == [{}, OURS, {}]


def test_entries_of_several_codes_are_joined_with_all_their_probabilities():
    first: Entries = {"C+mh?": {1: (1, 2), 5: (3, 4)}, "A+a?": {0: (9,)}}
    second: Entries = {"C+mh?": {0: (5, 6), 5: (7, 8)}, "N+17802": {2: (10,)}}
    joined = entries_of(tags_of_motifs(tags_of([first]), tags_of([second])))
    assert joined == [{"C+mh?": {0: (5, 6), 1: (1, 2), 5: (3, 4)}, "A+a?": {0: (9,)}, "N+17802": {2: (10,)}}]


@pytest.mark.parametrize(
    ("name", "value", "kind"), [("MM", 5, "i"), ("ML", "C+m", "Z"), ("ML", 7, "i"), ("ML", "x", "A")]
)
def test_tags_of_other_types(name: str, value: Any, kind: str):
    record = made_record()
    record.set_tags([("MM", write_tags(OURS)[0], "Z")] if name == "ML" else [])
    record.set_tag(name, value, kind)
    raw = RawRecords.of([record], HEADER)
    tags, is_damaged = tags_of_records(raw.data, raw.starts, np.arange(1))
    assert is_damaged.all()
    assert entries_of(tags) == [{}]


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (None, OURS),
        ({"A+a.": {1: (5,), 9: (6,)}}, OURS | {"A+a.": {1: (5,), 9: (6,)}}),
        ({"C+m?": {1: (99,)}}, OURS),
        (
            {"C+hm?": {1: (99, 5), 2: (7, 8)}, "T+17802.": {0: (1,)}},
            OURS | {"C+h?": {1: (99,), 2: (7,)}, "T+17802.": {0: (1,)}},
        ),
        ({"C-m?": {1: (99,)}, "G-m": {4: (3,)}}, OURS | {"C-m?": {1: (99,)}, "G-m": {4: (3,)}}),
        ({"C+h?": {}}, OURS | {"C+h?": {}}),
        (("A+a,1,1;", [4]), {}),  # a probability is missing
        (("A+a,1;", [4, 5]), {}),
        (("nonsense", []), {}),
        (("A+a,1,,2;", [4, 5, 6]), {}),  # a number is missing
        (("A+a,99999999999;", [4]), {}),
        (("A+a,1;A+a,1;", [4, 5]), {}),
        (("A+,1;", [4]), {}),
    ],
)  # fmt: skip
def test_other_modifications_of_records_stay(theirs: Any, expected: Entries):
    tags = tags_of([OURS, OURS, {}])
    found = entries_of(tags_with_those_of_records(tags, records_of([None, theirs, theirs])))
    assert found == [OURS, expected, {}]


@pytest.mark.parametrize("cigar", ["7H50M", "50M7H"])
def test_tags_of_hard_clipped_records_need_the_length(cigar: str):
    """Without it they are those of the whole read, as aligners copy them."""
    theirs: Entries = {"A+a.": {1: (5,)}}
    tags = tags_of([OURS])
    assert entries_of(tags_with_those_of_records(tags, records_of([theirs], cigar))) == [{}]
    assert entries_of(tags_with_those_of_records(tags, records_of([theirs], cigar, MN=50))) == [OURS | theirs]


def test_tags_of_a_sequence_of_another_length_are_not_merged():
    theirs: Entries = {"A+a.": {1: (5,)}}
    tags = tags_of([OURS])
    assert entries_of(tags_with_those_of_records(tags, records_of([theirs], MN=50))) == [OURS | theirs]
    assert entries_of(tags_with_those_of_records(tags, records_of([theirs], MN=49))) == [{}]
