"""The index of a reference does not depend on the pieces that it is built of."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.jit.kernel import exact_kernel
from f5py.mapping.index._sketch_numba import Minimizers, Scheme, sketch
from f5py.mapping.index.contigs import Contigs
from f5py.mapping.index.packed_bases import BasePacker
from f5py.mapping.index.reference_index import ReferenceIndex, build_index, codes_of
from f5py.mapping.settings import PRESETS
from f5py.threads.pool import CallingThread, WorkerPool


@exact_kernel
def _sketch(bases, begin, end, scheme, number, ring, out):
    return sketch(bases, begin, end, scheme, number, ring, out, 0)


@st.composite
def references(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Draw codes with repeats, homopolymers, palindromes and unknown bases, and the offsets of contigs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 1500))
    codes = rng.integers(0, 4, n)
    kind = draw(st.sampled_from(["random", "repeat", "homopolymers", "palindromes"]))
    if kind == "repeat":
        codes = np.resize(codes[: draw(st.integers(1, 9))], n)
    elif kind == "homopolymers":
        codes = np.repeat(codes, rng.integers(1, 6, n))[:n]
    elif kind == "palindromes":
        begin = draw(st.integers(0, n - 1))
        codes[begin : begin + 400] = np.resize([0, 3], len(codes[begin : begin + 400]))
    for _ in range(draw(st.integers(0, 3))):
        begin = draw(st.integers(0, n - 1))
        codes[begin : begin + draw(st.sampled_from([1, 2, 20, 300]))] = 4
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=2)))
    return codes.astype(np.uint8), np.array([0, *cuts, n])


def places_plainly(codes: np.ndarray, offsets: np.ndarray, k: int, w: int, hpc: bool) -> dict[int, list[int]]:
    found = defaultdict(list)
    for contig, (begin, end) in enumerate(pairwise(offsets.tolist())):
        out = Minimizers(np.empty(end - begin + 1, np.uint64), np.empty(end - begin + 1, np.int64))
        n = _sketch(codes, begin, end, Scheme(k, w, int(hpc)), contig, np.empty(2 * w + k, np.uint64), out)
        for key, place in zip(out.key[:n].tolist(), out.place[:n].tolist(), strict=True):
            found[key >> 8].append(place)
    return {key: sorted(places) for key, places in found.items()}


def places_of(index: ReferenceIndex) -> dict[int, list[int]]:
    """Take an index apart."""
    first = min(12, index.bits)
    spread = index.bits - first
    found = {}
    for slot, (begin, end) in enumerate(pairwise(index.directory.tolist())):
        low = slot >> spread | (slot & ((1 << spread) - 1)) << first
        for e in range(begin, end):
            start, stop = (int(entry) & 0xFFFFFFFF for entry in index.entries[e : e + 2])
            found[int(index.entries[e]) >> 32 << index.bits | low] = index.places[start:stop].tolist()
    return found


@settings(max_examples=60, deadline=None)
@given(
    references(), st.sampled_from([4, 5, 8, 14, 15, 19, 22, 28]), st.sampled_from([1, 2, 5, 10, 19, 40]),
    st.booleans(), st.sampled_from([64, 192, 1 << 20]),
)  # fmt: skip
def test_minimizers_are_those_of_whole_contigs(pool: WorkerPool, reference, k: int, w: int, hpc: bool, piece: int):
    codes, offsets = reference
    scheme = PRESETS["map-ont"]._replace(k=k, w=w, hpc=hpc)
    index = build_index(Contigs.of_codes(["c"] * (len(offsets) - 1), codes, offsets), scheme, pool, piece)
    expected = places_plainly(codes, offsets, k, w, hpc)
    assert places_of(index) == expected
    assert index.n_keys == len(expected)
    numbers, how_many = np.unique([len(places) for places in expected.values()], return_counts=True)
    assert np.array_equal(index.counts, np.stack([numbers, how_many], axis=1))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_bases_come_back(data: st.DataObject):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    n = data.draw(st.integers(0, 9000))
    text = rng.choice(np.frombuffer(b"ACGTUacgtuNnRYSKBWVHDMX*-", np.uint8), n)
    known = rng.choice(np.frombuffer(b"ACGT", np.uint8), n)
    for _ in range(3):  # stretches without unknown bases
        begin = data.draw(st.integers(0, n))
        text[begin : begin + 3000] = known[begin : begin + 3000]
    packer = BasePacker(CallingThread())
    cut = data.draw(st.integers(0, n))
    packer.add(text[:cut])
    packer.add(text[cut:])
    bases, ambiguous = packer.packed()
    begin = data.draw(st.integers(0, n))
    end = data.draw(st.integers(begin, n))
    upper = bytes(text).upper().replace(b"U", b"T")
    expected = [b"ACGT".find(letter) % 5 for letter in upper[begin:end]]
    assert bases.codes(begin, end).tolist() == expected
    first = {"S": 1, "Y": 1, "B": 1, "K": 2}
    wanted = [i << 2 | first[chr(letter)] for i, letter in enumerate(upper) if chr(letter) in first]
    assert ambiguous.tolist() == wanted


@pytest.mark.parametrize("writeable", [True, False])
def test_all_bytes(writeable: bool):
    letters = np.arange(256, dtype=np.uint8)
    letters.flags.writeable = writeable
    codes = dict(zip(b"ACGTUacgtu", [0, 1, 2, 3, 3] * 2, strict=True))
    assert codes_of(letters).tolist() == [codes.get(letter, 4) for letter in range(256)]
    assert letters.tolist() == list(range(256))


def test_every_second_letter_and_none():
    assert codes_of(np.frombuffer(b"AxCxGxTx", np.uint8)[::2]).tolist() == [0, 1, 2, 3]
    assert codes_of(np.empty(0, np.uint8)).tolist() == []
