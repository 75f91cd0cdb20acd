"""Calls in base modification tags against a plain recount with pysam, for records of any caller."""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.motifs import Motif, motif_named, parse_motif
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.modifications.modified_sites import SiteSelection, TagCounts
from f5py.site_frequencies.site_counts import SiteCounts, count_modbam

_OPPOSITE = {"A": "T", "C": "G", "G": "C", "T": "A"}
_LENGTH = 500
_IUPAC = {"C": "C", "G": "G", "A": "A", "T": "T", "H": "ACT", "D": "AGT"}
HEADER = pysam.AlignmentHeader.from_dict(
    {"HD": {"VN": "1.6"}, "SQ": [{"SN": "one", "LN": _LENGTH}, {"SN": "two", "LN": _LENGTH}]}
)


def _record(bases: str, tags: dict, cigar: str | None = None, flag: int = 0, start: int = 10, contig: int = 0):
    record = pysam.AlignedSegment(HEADER)
    record.query_name, record.flag, record.reference_id, record.reference_start = "read", flag, contig, start
    record.mapping_quality, record.query_sequence = 60, bases
    record.cigarstring = cigar or f"{len(bases)}M"
    for name, value in tags.items():
        record.set_tag(name, value)
    return record


def _counted(
    path: Path, records: list, motif: Motif, threshold: float = 0.0, code: str | None = None, threads: int = 1
):
    with pysam.AlignmentFile(str(path), "wb", header=HEADER) as out:
        for record in records:
            out.write(record)
    counts, contigs = SiteCounts(), dict[str, int]()
    with closing(AlignmentFile(str(path), None, 0, False)) as alignments:
        tags = count_modbam(alignments, counts, contigs, SiteSelection(motif, threshold, code), None, threads)
    totals = counts.totals([name.encode() for name in contigs])
    found = Counter()
    for contig, position, reverse, *kinds in zip(*(column.tolist() for column in totals), strict=True):
        for kind, count in zip(("modified", "canonical", "failed", "other"), kinds[:4], strict=True):
            found[contig, position, reverse, kind] += count
    return +found, tags


@st.composite
def tagged_record(draw: st.DrawFn):
    """Draw a record whose tags are sound, as text of MM and values of ML."""
    bases = draw(st.text("ACGGCT", min_size=1, max_size=40))
    is_reverse = draw(st.booleans())
    sequenced = "".join(_OPPOSITE[base] for base in reversed(bases)) if is_reverse else bases
    text, values, seen = "", [], set()
    for _ in range(draw(st.integers(0, 4))):
        base = draw(st.sampled_from("CCGAN"))
        strand = draw(st.sampled_from("++-"))
        codes = draw(st.sampled_from(["m", "h", "mh", "hm", "a", "27551", "76792", "f", "m", "m"]))
        names = {(base, strand, code) for code in ([codes] if codes[0].isdigit() else codes)}
        if names & seen or (base, strand, codes) in seen:
            continue
        seen |= names
        n_bases = len(sequenced) if base == "N" else sequenced.count(base)
        chosen = sorted(draw(st.sets(st.integers(0, n_bases - 1), max_size=8))) if n_bases else []
        steps = [b - a - 1 for a, b in zip([-1, *chosen], chosen, strict=False)]
        mode = draw(st.sampled_from(["?", ".", ""]))
        text += f"{base}{strand}{codes}{mode}" + "".join(f",{step}" for step in steps) + ";"
        n_codes = 1 if codes[0].isdigit() else len(codes)
        values += draw(st.lists(st.integers(0, 255), min_size=len(chosen) * n_codes, max_size=len(chosen) * n_codes))
    cigar, left = "", len(bases)
    while left:
        kind = draw(st.sampled_from("MMMM=XIDNS"))
        size = draw(st.integers(1, left))
        if kind in "DN":
            cigar += f"{size}{kind}" if cigar else ""
            continue
        is_end = not cigar or size == left
        cigar += f"{size}{'I' if kind == 'S' and not is_end else kind}"
        left -= size
    clipped = draw(st.booleans())
    flag = draw(st.sampled_from([0, 0, 0, 2048, 256, 4])) | (16 if is_reverse else 0)
    tags = {"MM": text, "ML": array("B", values)}
    if clipped or draw(st.booleans()):
        tags["MN"] = len(bases)
    cigar = f"3H{cigar}2H" if clipped else cigar
    return _record(bases, tags, cigar, flag, draw(st.integers(0, 100)), draw(st.integers(0, 1)))


def _matches(bases: str, first: int, pattern: str) -> bool:
    piece = bases[first : first + len(pattern)] if first >= 0 else ""
    return len(piece) == len(pattern) and all(one in _IUPAC[letter] for one, letter in zip(piece, pattern, strict=True))


def _recount(records: list, motif: Motif, threshold: float, names: tuple[str, ...]):
    """Count in plain Python, from what pysam makes of the tags."""
    found, least = Counter(), 1 / (1 + math.exp(-threshold)) if threshold > 0 else 0.0
    flipped = "".join({"H": "D"}.get(one, one) for one in motif.pattern)
    opposite = "".join({"D": "D"}.get(one) or _OPPOSITE.get(one, one) for one in reversed(flipped))
    for record in records:
        if record.is_unmapped or record.is_secondary:
            continue
        bases = record.query_sequence
        calls = {key: dict(value) for key, value in (record.modified_bases or {}).items()}
        entries = re.findall(r"([A-Z])([+-])([a-z]+|[0-9]+)([?.]?)", record.get_tag("MM"))
        for minus in (False, True):
            reverse = record.is_reverse != minus
            letter = _OPPOSITE[motif.canonical] if reverse else motif.canonical
            # as the read was sequenced, the tags name the opposite base for the other strand
            named = _OPPOSITE[motif.canonical] if minus else motif.canonical
            wanted, others = {}, {}
            for base, strand, codes, mode in entries:
                if base not in (named, "N") or (strand == "-") != minus:
                    continue
                for code in [codes] if codes[0].isdigit() else codes:
                    key = base, int(reverse), int(code) if code.isdigit() else code
                    for place, value in calls.get(key, {}).items():
                        if code in names:
                            wanted[place] = value
                        else:
                            others.setdefault(place, []).append(value)
                    if code in names and mode != "?":
                        for place, one in enumerate(bases):
                            if one == letter:
                                wanted.setdefault(place, -1)
            for place, position in record.get_aligned_pairs(matches_only=True):
                if place not in wanted or bases[place] != letter:
                    continue
                offset = motif.offset_reverse if reverse else motif.offset_forward
                if position < offset or not _matches(bases, place - offset, opposite if reverse else motif.pattern):
                    continue
                modified = (wanted[place] + 0.5) / 256 if wanted[place] >= 0 else 0.0
                more = [(value + 0.5) / 256 for value in others.get(place, [])]
                states = {"canonical": max(0.0, 1 - modified - sum(more)), "modified": modified}
                states["other"] = max(more, default=0.0)
                best = max(states, key=lambda state: states[state])
                kind = best if states[best] >= least else "failed"
                found[record.reference_id, position - offset, reverse, kind] += 1
    return found


@settings(deadline=None, max_examples=150)
@given(
    st.lists(tagged_record(), max_size=4),
    st.sampled_from(["cpg", "gpc", "CHG:0", "GAT:1"]),
    st.sampled_from([0.0, 0.7, 2.0]),
)
def test_any_tags_equal_a_recount(tmp_path_factory: pytest.TempPathFactory, records: list, name: str, threshold: float):
    motif = parse_motif(name) if ":" in name else motif_named(name)
    path = tmp_path_factory.mktemp("made") / "made.bam"
    found, tags = _counted(path, records, motif, threshold, threads=2)
    assert tags.damaged == 0
    names = {"m": ("m", "27551"), "a": ("a", "28871")}[motif.code]
    assert found == _recount(records, motif, threshold, names), [one.to_string() for one in records]


def _tags(text: str, *values: int, **more: int) -> dict:
    return {"MM": text, "ML": array("B", values), **more}


def test_states_and_modes(tmp_path: Path):
    """ACGACGACG: sites at 11, 14 and 17."""
    cpg = motif_named("cpg")

    def sites(text: str, *values: int, **more: Any) -> Counter:
        return _counted(tmp_path / "x.bam", [_record("ACGACGACG", _tags(text, *values))], cpg, **more)[0]

    assert sites("C+m?,1;", 250) == {(0, 14, False, "modified"): 1}
    assert sites("C+m,1;", 250) == sites("C+m.,1;", 250) == {
        (0, 11, False, "canonical"): 1, (0, 14, False, "modified"): 1, (0, 17, False, "canonical"): 1
    }  # fmt: skip
    # the log-odds of (224.5 / 256) are 1.96, those of (225.5 / 256) 2.0005
    assert sites("C+m?,0,0,0;", 224, 225, 30, threshold=2.0) == {
        (0, 11, False, "failed"): 1, (0, 14, False, "modified"): 1, (0, 17, False, "canonical"): 1
    }  # fmt: skip
    assert sites("C+mh?,0;", 20, 230) == {(0, 11, False, "other"): 1}
    assert sites("C+mh?,0;", 20, 230, code="h") == {(0, 11, False, "modified"): 1}
    assert sites("C+h?,0;C+27551?,0;", 200, 20) == {(0, 11, False, "other"): 1}
    assert sites("C+h?,0;", 200) == {}
    assert sites("G-m?,0;", 240) == {(0, 11, True, "modified"): 1}


@pytest.mark.parametrize(
    ("tags", "cigar"),
    [
        (_tags("C+m?,3;", 250), None),  # there are three
        (_tags("C+m?,0;", 250, 250), None),
        (_tags("C+m?,0", 250) | {"ML": "text"}, None),
        (_tags("C+m?,0;", 250, MN=8), None),
        (_tags("C+m?,0;", 250), "4H9M"),
        ({"MM": "C+m?,0;"}, None),
        ({"MM": 7}, None),
    ],
)  # fmt: skip
def test_damaged_tags_are_counted_and_left_out(tmp_path: Path, tags: dict, cigar: str | None):
    whole = _record("ACGACGACG", _tags("C+m?,0;", 250))
    found, counts = _counted(tmp_path / "x.bam", [_record("ACGACGACG", tags, cigar), whole], motif_named("cpg"))
    assert found == {(0, 11, False, "modified"): 1}
    assert counts == TagCounts(records=2, damaged=1, n=1)


def test_what_is_left_out_is_counted(tmp_path: Path):
    bases, cigar = "CGACGTCCACG", "2S6M1I2M"
    record = _record(bases, _tags("C+m?,0,0,0,0,0;", *[250] * 5), cigar)
    found, counts = _counted(tmp_path / "x.bam", [record], motif_named("cpg"))
    assert found == {(0, 11, False, "modified"): 1, (0, 16, False, "modified"): 1}
    # the first one is clipped; two are in CC and CA
    assert counts == TagCounts(records=1, n=5, not_aligned=1, not_at_motif=2)
