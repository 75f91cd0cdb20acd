"""Motifs: the built-in ones, those that users write, and where they occur."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.core.motifs import ALPHABET, IUPAC, MOTIFS, Motif, motif_named, parse_motif, reverse_complement
from f5py.errors import F5pyError
from f5py.pore_model import BUILTIN_MODELS

from ..compiled import compiled


def _spellings(pattern: str) -> tuple[str, ...]:
    return tuple("".join(bases) for bases in product(*(IUPAC[letter] for letter in pattern)))


def _methylated_spellings(motif: Motif) -> tuple[str, ...]:
    return tuple(site[: motif.offset] + "M" + site[motif.offset + 1 :] for site in _spellings(motif.pattern))


def _spellings_of(masks: np.ndarray) -> tuple[str, ...]:
    return tuple(
        "".join(bases)
        for bases in product(*("".join(base for i, base in enumerate("ACGT") if mask >> i & 1) for mask in masks))
    )


@pytest.mark.parametrize(
    ("name", "sites", "methylated", "canonical", "code", "offsets"),
    [
        ("cpg", ("CG",), ("MG",), "C", "m", (0, 1)),
        ("gpc", ("GC",), ("GM",), "C", "m", (1, 0)),
        ("dam", ("GATC",), ("GMTC",), "A", "a", (1, 2)),
        ("dcm", ("CCAGG", "CCTGG"), ("CMAGG", "CMTGG"), "C", "m", (1, 3)),
    ],
)
def test_the_builtin_motifs(name, sites, methylated, canonical, code, offsets) -> None:
    motif = motif_named(name)
    assert motif is MOTIFS[name]
    assert (_spellings(motif.pattern), _methylated_spellings(motif)) == (sites, methylated)
    assert (motif.canonical, motif.code) == (canonical, code)
    assert (motif.offset_forward, motif.offset_reverse) == offsets
    assert motif.is_palindromic
    assert motif.model is not None
    assert BUILTIN_MODELS[motif.model] == (6, ALPHABET)
    for reverse in (False, True):
        assert _spellings_of(motif.codes(reverse).masks) == sites


@pytest.mark.parametrize(("name", "opposite_of_m"), [("cpg", "G"), ("gpc", "G"), ("dam", "T"), ("dcm", "G")])
def test_the_base_opposite_to_m(name: str, opposite_of_m: str) -> None:
    codes = motif_named(name).codes(False)
    assert "".join(ALPHABET[code] for code in codes.complement) == f"TGC{opposite_of_m}A"
    np.testing.assert_array_equal(codes.complement, motif_named(name).codes(True).complement)


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(F5pyError, match="'cph'; choose one of: cpg, gpc, dam, dcm"):
        motif_named("cph")


@pytest.mark.parametrize(
    ("text", "pattern", "offset", "canonical", "code", "reverse_offset", "n_sites"),
    [
        ("CG", "CG", 0, "C", "m", 1, 1),
        ("cg:0", "CG", 0, "C", "m", 1, 1),
        ("CHG:0", "CHG", 0, "C", "m", 2, 3),
        ("chh:00", "CHH", 0, "C", "m", 2, 9),
        ("GATC:1", "GATC", 1, "A", "a", 2, 1),
        ("CCWGG:1", "CCWGG", 1, "C", "m", 3, 2),
        ("GANTC:1", "GANTC", 1, "A", "a", 3, 4),
        ("CNNNNG:5", "CNNNNG", 5, "G", "G", 0, 256),
        ("T:0", "T", 0, "T", "T", 0, 1),
        ("GATCGATCGAT:10", "GATCGATCGAT", 10, "T", "T", 0, 1),
    ],
)
def test_a_users_motif(text, pattern, offset, canonical, code, reverse_offset, n_sites) -> None:
    motif = parse_motif(text)
    assert (motif.name, motif.pattern, motif.offset, motif.model) == (f"{pattern}:{offset}", pattern, offset, None)
    assert (motif.canonical, motif.code, motif.offset_reverse) == (canonical, code, reverse_offset)
    found = _spellings_of(motif.codes(False).masks)
    assert found == _spellings(pattern)
    assert len(found) == n_sites
    assert sorted(map(reverse_complement, found)) == sorted(_spellings_of(motif.codes(True).masks))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "motif '': no recognition site"),
        (":1", "motif ':1': no recognition site"),
        ("CXG:0", "'X' is no IUPAC letter of a DNA base"),
        ("CUG", "'U' is no IUPAC letter"),
        ("C G", "' ' is no IUPAC letter"),
        ("CG,GC:0", "',' is no IUPAC letter"),
        ("C" * 12 + ":0", "12 bases are too many; at most 11"),
        ("CG:", "the offset '' is not a whole number"),
        ("CG:-1", "the offset '-1' is not a whole number"),
        ("CG:1.0", "the offset '1.0' is not a whole number"),
        ("CG:1:2", "the offset '1:2' is not a whole number"),
        ("CG:²", "the offset '²' is not a whole number"),
        ("CG:" + "0" * 5000, "is not a whole number"),
        ("CG:2", "the offset is outside of the site; its bases are 0 to 1"),
        ("CHG:1", "the methylated base, 'H' at offset 1, is not one of ACGT"),
        ("NCG", "the methylated base, 'N' at offset 0, is not one of ACGT"),
        ("CNNNNNG:0", "stands for 1024 sequences; at most 256"),
    ],
)
def test_a_wrong_motif_is_explained(text: str, message: str) -> None:
    with pytest.raises(F5pyError) as caught:
        parse_motif(text)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def _regex(pattern: str) -> str:
    return "".join(f"[{IUPAC[letter]}]" for letter in pattern)


@st.composite
def _motifs(draw: st.DrawFn) -> Motif:
    before, after = draw(st.tuples(*[st.text("".join(IUPAC), max_size=2)] * 2))
    return parse_motif(f"{before}{draw(st.sampled_from('ACGT'))}{after}:{len(before)}")


@settings(deadline=None)
@given(_motifs(), st.text("ACGT", max_size=60))
def test_sites_are_found_on_the_records_own_strand(motif: Motif, segment: str) -> None:
    from f5py.methylation.groups import count_groups, is_site, site_scratch

    count_groups = compiled(count_groups)
    is_site = compiled(is_site)
    site_scratch = compiled(site_scratch)

    letters = np.frombuffer(segment.encode(), np.uint8)
    n = len(segment)
    width = len(motif.pattern)
    forward = [match.start() for match in re.finditer(f"(?={_regex(motif.pattern)})", segment)]
    opposite = [
        n - width - match.start() for match in re.finditer(f"(?={_regex(motif.pattern)})", reverse_complement(segment))
    ]
    for reverse, expected in ((False, forward), (True, sorted(opposite))):
        codes = motif.codes(reverse)
        assert [position for position in range(n) if is_site(letters, position, codes)] == expected
        n_groups = sum(i == 0 or b - a > 10 for i, (a, b) in enumerate(zip([0, *expected], expected, strict=False)))
        assert count_groups(letters, codes, site_scratch(n, 0)) == (n_groups, len(expected))
        # the modified base is at the same place of the read's strand
        target = segment if not reverse else segment.translate(str.maketrans("ACGT", "TGCA"))
        assert all(target[position + codes.offset] == motif.canonical for position in expected)


def _methylated(sequence: str, motif: Motif, jump: bool) -> str:
    """Methylate complete sites from left to right, as text."""
    result, i = list(sequence), 0
    while i < len(sequence):
        for site in _spellings(motif.pattern):
            if sequence.startswith(site, i):
                result[i + motif.offset] = "M"
                i += len(site) - 1 if jump else 0
                break
        i += 1
    return "".join(result)


def _filled(motif: Motif, bases: str, reverse: bool, jump: bool) -> tuple[str, str]:
    """Return a strand's bases plain and methylated, in the order of the reference."""
    from f5py.methylation.group_scores import fill_methylated, fill_plain

    letters, codes = np.frombuffer(bases.encode(), np.uint8), motif.codes(reverse)
    plain, changed = np.empty((2, len(bases)), np.uint8)
    compiled(fill_plain)(letters, 0, len(bases), codes, reverse, plain)
    compiled(fill_methylated)(letters, 0, len(bases), codes, not jump, plain, changed)
    return "".join(ALPHABET[code] for code in plain), "".join(ALPHABET[code] for code in changed)


@settings(deadline=None)
@given(st.one_of(st.sampled_from(list(MOTIFS.values())), _motifs()), st.text("ACGT", max_size=40), st.booleans())
def test_methylating_goes_from_left_to_right_and_jumps_over_each_site(motif: Motif, bases: str, jump: bool) -> None:
    assert _filled(motif, bases, False, jump) == (bases, _methylated(bases, motif, jump))


@pytest.mark.parametrize("name", MOTIFS)
@settings(deadline=None)
@given(bases=st.text("ACGT", max_size=40))
def test_the_other_strand_of_a_methylated_site_is_methylated_as_a_unit(name: str, bases: str) -> None:
    motif = motif_named(name)
    sites, spellings = _spellings(motif.pattern), _methylated_spellings(motif)
    partner = {
        spelled: spellings[sites.index(reverse_complement(site))]
        for site, spelled in zip(sites, spellings, strict=True)
    }
    pieces = re.findall("|".join([*partner, "."]), _methylated(bases, motif, jump=True))
    expected = "".join(partner.get(piece) or reverse_complement(piece) for piece in reversed(pieces))
    plain, changed = _filled(motif, bases, True, True)
    assert (plain[::-1], changed[::-1]) == (reverse_complement(bases), expected)
