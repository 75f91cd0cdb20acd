"""Base modification tags read as the SAM optional fields specification says, independent of any library's parser."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pysam

# The specification's expression, with the capital letters that it lists as codes for any modification of a base.
_MM = re.compile(r"(?:[ACGTUN][-+](?:[a-zACGTUN]+|[0-9]+)[.?]?(?:,[0-9]+)*;)*")
_PART = re.compile(r"([ACGTUN])([-+])([a-zACGTUN]+|[0-9]+)([.?]?)((?:,[0-9]+)*);")
_COMPLEMENT = str.maketrans("ACGTU", "TGCAA")


@dataclass(frozen=True, order=True)
class ModifiedBase:
    """One entry of the MM list."""

    position: int  # in SEQ as stored
    base: str  # as sequenced
    strand: str
    code: str
    unlisted: str  # what the bases not listed are: "?" unknown, "." or "" unmodified
    probability: int  # the byte


class BadTags(ValueError):
    """The tags break the specification."""


def modified_bases(record: pysam.AlignedSegment) -> list[ModifiedBase]:
    """Entries of a record's MM and ML tags, in their order; raises `BadTags`."""
    tags = {name: (value, kind) for name, value, kind in record.get_tags(with_value_type=True)}
    if not {"MM", "ML", "MN"} & set(tags):
        return []
    if "MM" not in tags:
        raise BadTags("ML or MN without MM")
    text, kind = tags["MM"]
    if kind != "Z" or not _MM.fullmatch(text):
        raise BadTags(f"MM:{kind}:{text}")
    sequence = record.query_sequence or ""
    if "MN" in tags and int(tags["MN"][0]) != len(sequence):
        raise BadTags(f"MN is {tags['MN'][0]}, the sequence has {len(sequence)} bases")
    as_sequenced = sequence[::-1].translate(_COMPLEMENT) if record.flag & 16 else sequence
    found: list[tuple[int, str, str, str, str]] = []
    for base, strand, codes, unlisted, numbers in _PART.findall(text):
        if base == "N":
            candidates = list(range(len(as_sequenced)))
        else:
            candidates = [i for i, letter in enumerate(as_sequenced) if letter == base]
        next_candidate = 0
        for skipped in map(int, numbers.split(",")[1:]):
            next_candidate += skipped
            if next_candidate >= len(candidates):
                raise BadTags(f"{text} goes on after the last {base}")
            position = candidates[next_candidate]
            if record.flag & 16:
                position = len(sequence) - 1 - position
            found += [(position, base, strand, code, unlisted) for code in ([codes] if codes.isdigit() else codes)]
            next_candidate += 1
    if "ML" not in tags:
        raise BadTags("MM without ML, which f5py always writes")
    values, kind = tags["ML"]
    if getattr(values, "typecode", None) != "B":
        raise BadTags(f"ML is {kind}:{values}, not an array of unsigned bytes")
    if len(values) != len(found):
        raise BadTags(f"{len(found)} modified bases, but {len(values)} probabilities")
    return [ModifiedBase(*entry, value) for entry, value in zip(found, values, strict=True)]
