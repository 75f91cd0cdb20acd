"""Marks, posterior weights and sums against plain recomputations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from f5py.core.batch import Alignments, BaseMap, BatchView, Events, Rows, RowState, Scaling
from f5py.core.hmm import P_BAD, P_FROM_SKIP, P_SKIP, P_SKIP_SELF
from f5py.core.kmers import strand_codes
from f5py.core.motifs import motif_named, parse_motif
from f5py.pore_model import PoreModel, builtin
from f5py.pore_model.model import nucleotides_of
from f5py.training.held_out import held_out
from f5py.training.sums import REACH, SiteTruth, add_rows, mark_all, plain_ranks, weights_all

WIDTH = 2 * REACH + 1


def alignment(reference: bytes, reverse: bool, start: int = 0) -> Alignments:
    letters = np.frombuffer(bytearray(reference), np.uint8)
    return Alignments(
        np.zeros(1, np.int32), np.array([start], np.int64), np.array([reverse]), np.zeros(0, np.uint32),
        np.zeros(2, np.int64), letters, np.array([0, len(letters)], np.int64),
    )  # fmt: skip


def marked(reference: bytes, reverse: bool, motif, truth: SiteTruth | None = None, start: int = 0) -> bytes:
    one = alignment(reference, reverse, start)
    motifs = motif.codes(False), motif.codes(True)
    mark_all(np.zeros(1, np.int64), np.arange(1), one, motifs, tuple(truth or SiteTruth.all_methylated()))
    return one.reference.tobytes()


def test_sites_are_marked_on_the_strand_of_the_read():
    cpg = motif_named("cpg")
    assert marked(b"ACGTCGCG", False, cpg) == b"AMGTMGMG"
    assert marked(b"ACGTCGCG", True, cpg) == b"ACmTCmCm"
    assert marked(b"AGATCC", False, motif_named("dam")) == b"AGMTCC"
    assert marked(b"AGATCC", True, motif_named("dam")) == b"AGAmCC"
    chg = parse_motif("CHG:0")
    assert marked(b"CAGCTG", False, chg) == b"MAGMTG"
    assert marked(b"CAGCTG", True, chg) == b"CAmCTm"  # CTG and CAG are each other's opposites


def test_truth_tells_sites_apart():
    truth = SiteTruth(np.array([0, 2]), np.array([101, 104]), np.array([1, 0], np.uint8), True)
    assert marked(b"ACGTCGCG", False, motif_named("cpg"), truth, 100) == b"AMGTCGcG"
    assert marked(b"ACGTCGCG", True, motif_named("cpg"), truth, 100) == b"ACmTCGCg"
    states = truth.states_of(np.zeros(3, np.int32), np.array([101, 104, 106]))
    assert states.tolist() == [1, 0, 2]


@pytest.mark.parametrize("reverse", [False, True])
def test_codes_of_marked_letters(reverse: bool):
    codes = strand_codes("ACGMT")
    table = codes.reverse if reverse else codes.forward
    letters = b"ACGTacgt" + (b"m" if reverse else b"M")
    expected = "TGCATGCAM" if reverse else "ACGTACGTM"
    assert ["ACGMT"[table[letter]] for letter in letters] == list(expected)


def test_plain_ranks_and_nucleotides():
    plain = plain_ranks(3, "ACGMT", "C")
    names = ["".join(kmer) for kmer in itertools.product("ACGMT", repeat=3)]
    for rank, name in enumerate(names):
        assert plain[rank] == (names.index(name.replace("M", "C")) if "M" in name else -1)
    assert (plain_ranks(3, "ACGT", "C") == -1).all()
    model = PoreModel("m", 3, "ACGMT", np.arange(125, dtype=np.float32), np.arange(1, 126, dtype=np.float32))
    found = nucleotides_of(model)
    expected = [rank for rank, name in enumerate(names) if "M" not in name]
    assert found.level_mean.tolist() == expected
    assert found.alphabet == "ACGT"


def test_held_out_reads_are_a_fixed_share():
    names = [f"read-{i}".encode() for i in range(20_000)]
    text = np.frombuffer(b"".join(names), np.uint8)
    offsets = np.concatenate([[0], np.cumsum([len(name) for name in names])])
    chosen, more = np.zeros(len(names), np.bool_), np.zeros(len(names), np.bool_)
    held_out(text, offsets, 0.1, chosen)
    held_out(text, offsets, 0.2, more)
    assert abs(chosen.mean() - 0.1) < 0.01
    assert not (chosen & ~more).any()
    held_out(text, offsets, 0.0, chosen)
    assert not chosen.any()


class Made:
    """A read over a random reference: events, their rows, and what the kernels take."""

    def __init__(self, reverse: bool) -> None:
        random = np.random.default_rng(3)
        self.model = builtin("r9.4_450bps.nucleotide.6mer")
        reference = random.choice(np.frombuffer(b"ACGT", np.uint8), 120).tobytes()
        self.alignments = alignment(reference, reverse, 1000)
        positions = np.sort(random.integers(3, 110, 150)).astype(np.int32)
        n = len(positions)
        event = (np.arange(n)[::-1] if reverse else np.arange(n)).astype(np.int32)
        complement = bytes.maketrans(b"ACGT", b"TGCA")
        ranks = []
        for at in range(115):
            kmer = reference[at : at + 6]
            kmer = kmer.translate(complement)[::-1] if reverse else kmer
            ranks.append(sum("ACGT".index(chr(base)) * 4 ** (5 - i) for i, base in enumerate(kmer)))
        self.ranks = ranks
        self.shift, self.scale, self.var = 3.0, 1.1, 1.2
        level = self.model.level_mean[[ranks[p] for p in positions]] * self.scale + self.shift
        mean = np.empty(n, np.float32)
        mean[event] = level + random.normal(0, 2, n)
        state = np.zeros(n, np.uint8)
        state[20] = RowState.BAD
        state[40] = RowState.NEW_SEGMENT
        self.events = Events(
            np.array([0, n]), np.zeros(n, np.int32), np.full(n, 8, np.int32), mean, np.ones(n, np.float32)
        )
        self.rows = Rows(np.array([0, n]), np.array([n]), event, positions + np.int32(1000), state)
        self.scaling = Scaling(*(np.array([value], np.float32) for value in (self.shift, self.scale, self.var)))
        self.x = (mean[event].astype(float) - np.float32(self.shift)) / np.float32(self.scale)
        self.v = float(np.float32(self.var)) / float(np.float32(self.scale))
        self.places = positions
        self.codes = strand_codes("ACGT")
        self.levels = self.model.level_mean, self.model.level_stdv
        self.present = (self.codes, 6, *self.levels)
        nothing = np.empty(0, np.int32)
        base_map = BaseMap(np.zeros(2, np.int64), nothing, nothing)
        self.view = BatchView(self.alignments, self.events, base_map, self.scaling, np.array([1.6]))

    def weights(self) -> np.ndarray:
        found = np.empty((len(self.x), WIDTH), np.float32)
        self.own_shift = np.zeros(1)
        weights_all(
            np.zeros(1, np.int64), np.arange(1), self.view, self.rows, self.present, np.full(4**6, -1, np.int32), found,
            self.own_shift,
        )  # fmt: skip
        return found


def plain_weights(made: Made) -> np.ndarray:
    """Posterior weights by matrices over all k-mers of the reference, without a lattice around the path."""
    stay = 1 - 1 / 1.6
    steps = [stay, 1 - stay - P_SKIP - P_BAD, P_SKIP * P_FROM_SKIP, P_SKIP * P_SKIP_SELF * P_FROM_SKIP]
    n_rows, n = len(made.x), len(made.ranks)
    mean, stdv = (values[made.ranks].astype(float) for values in made.levels)
    good = made.rows.state & RowState.BAD == 0
    z = (made.x - mean[made.places]) / (stdv[made.places] * made.v)
    v = made.v * math.sqrt((z[good] ** 2).mean())
    own = (made.x - mean[made.places])[good].mean() if good.sum() >= 100 else 0.0
    z = (made.x[:, None] - own - mean) / (stdv * v)
    density = np.exp(-0.5 * z**2) / (stdv * v) + P_BAD
    near = np.abs(np.arange(n)[None, :] - made.places[:, None]) <= REACH
    density = np.where(near, density, 0)
    move = sum(p * np.eye(n, k=step) for step, p in enumerate(steps))
    first = [
        r for r in range(n_rows)
        if r == 0 or made.rows.state[r] & RowState.NEW_SEGMENT or made.places[r] - made.places[r - 1] > 3
    ]  # fmt: skip
    posterior = np.zeros((n_rows, n))
    for begin, end in itertools.pairwise([*first, n_rows]):
        forward = np.zeros((end - begin, n))
        forward[0, made.places[begin]] = density[begin, made.places[begin]]
        for r in range(begin + 1, end):
            forward[r - begin] = forward[r - begin - 1] @ move * density[r]
            forward[r - begin] /= forward[r - begin].sum()
        backward = np.ones(n)
        for r in range(end - 1, begin - 1, -1):
            both = forward[r - begin] * backward
            posterior[r] = both / both.sum()
            backward = move @ (density[r] * backward)
            backward /= backward.sum()
    posterior[posterior < 0.05] = 0
    posterior[~good] = 0
    posterior *= 1 - P_BAD / np.where(density > 0, density, 1)
    return np.stack([posterior[np.arange(n_rows), made.places + s - REACH] for s in range(WIDTH)], axis=1)


@pytest.mark.parametrize("reverse", [False, True])
def test_posterior_weights(reverse: bool):
    made = Made(reverse)
    found = made.weights()
    np.testing.assert_allclose(found, plain_weights(made), atol=1e-5)
    assert (found.sum(axis=1)[made.rows.state & RowState.BAD == 0] > 0).all()
    assert not found[20].any()


@pytest.mark.parametrize("reverse", [False, True])
def test_sums(reverse: bool):
    made = Made(reverse)
    weights = made.weights()
    sums, fit, held = np.zeros((4**6, 6)), np.zeros(2), np.zeros((4**6, 2))
    plain, share = np.full(4**6, -1, np.int32), np.zeros(4**6)

    def add(used: bool) -> None:
        add_rows(
            np.arange(1), not used, made.view, made.rows, made.present, (plain, share),
            (weights, made.own_shift), (sums, fit, held),
        )  # fmt: skip

    add(True)
    expected = np.zeros_like(sums)
    rows = [r for r in range(5, len(made.x) - 5) if not made.rows.state[r] & RowState.BAD]
    for r in rows:
        for s in range(WIDTH):
            g, x = float(weights[r, s]), made.x[r] - made.own_shift[0]
            if g:
                w = g / made.v**2
                expected[made.ranks[made.places[r] + s - REACH]] += [g, g * x, w, w * x, w * x * x, 0]
    np.testing.assert_allclose(sums, expected, rtol=1e-6)
    assert not fit.any()
    add(False)
    np.testing.assert_allclose(sums, expected, rtol=1e-6)
    ranks = [made.ranks[made.places[r]] for r in rows]
    mean, stdv = (values[ranks].astype(float) for values in made.levels)
    z = (made.x[rows] - made.own_shift[0] - mean) / (stdv * made.v)
    np.testing.assert_allclose(fit, [len(z), np.sum(np.square(z))], rtol=1e-6)


def test_events_of_incomplete_controls_are_shared():
    made = Made(False)
    weights = made.weights()
    # as if every k-mer were methylated, with the plain one at the next rank
    plain = ((np.arange(4**6) + 1) % 4**6).astype(np.int32)
    sums, fit, held = np.zeros((4**6, 6)), np.zeros(2), np.zeros((4**6, 2))
    add_rows(
        np.arange(1), False, made.view, made.rows, made.present, (plain, np.full(4**6, 0.1)),
        (weights, made.own_shift), (sums, fit, held),
    )  # fmt: skip
    total = weights[5:-5].sum()
    np.testing.assert_allclose(sums[:, 0].sum() + sums[:, 5].sum(), total, rtol=1e-6)
    assert 0 < sums[:, 5].sum() < 0.5 * total
