"""Jitted loops that turn chains into hits and find secondary ones; see `f5py.mapping.hits.hits`."""

import math

import numpy as np

from f5py.jit.kernel import exact_inner
from f5py.mapping._sorting_numba import sort_pairs
from f5py.mapping.hit_table import (
    ALIGNED,
    CONTIG,
    COUNT,
    DIVERGENCE,
    DIVERGENCE_BITS,
    DP_MAX,
    DP_MAX2,
    FIRST,
    HASH,
    ID,
    INVERSION,
    N_FIELDS,
    N_SUB,
    NO_PARENT,
    OWN_PARENT,
    PARENT,
    QE,
    QS,
    RE,
    RETAINED,
    REVERSE,
    RS,
    SCORE,
    SCORE0,
    SUBSC,
    copy_hit,
    set_coordinates,
)  # fmt: skip
from f5py.mapping.index._sketch_numba import hash_bits
from f5py.mapping.settings import BEST_N, MASK, MATCH, MAX_GAP, MISMATCH, NAME_SEED, PRI_RATIO, K

_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW = np.uint64(0xFFFFFFFF)


@exact_inner
def _wang(key):
    """Thomas Wang's hash of 32 bits."""
    key = (key + ~(key << np.uint64(15))) & _LOW
    key ^= key >> np.uint64(10)
    key = (key + (key << np.uint64(3))) & _LOW
    key ^= key >> np.uint64(6)
    key = (key + ~(key << np.uint64(11))) & _LOW
    return key ^ (key >> np.uint64(16))


@exact_inner
def name_hash(names, begin, end, read_length):
    """Hash a read's name and length to decide between equal chains.

    Bytes are signed, as minimap2 has them on x86.
    """
    h = np.uint64(0)
    if end > begin:
        h = np.uint64(np.int64(np.int8(names[begin]))) & _LOW
        for i in range(begin + 1, end):
            h = (np.uint64(31) * h + np.uint64(np.int64(np.int8(names[i])))) & _LOW
    h ^= (_wang(np.uint64(read_length)) + _wang(np.uint64(NAME_SEED))) & _LOW
    return _wang(h)


@exact_inner
def chains_to_hits(x, y, chains, n_chains, read_length, hash_of_name, hits, scratch):
    """Fill rows of hits, best first."""
    key = np.empty(n_chains, np.uint64)
    place = np.empty(n_chains, np.int64)
    first = 0
    for c in range(n_chains):
        h = hash_bits((hash_bits(x[first], _ALL) + hash_bits(np.uint64(y[first]), _ALL)) ^ hash_of_name, _ALL) & _LOW
        key[c] = np.uint64(chains[c]) ^ h
        place[c] = (first << 32) | (chains[c] & 0xFFFFFFFF)
        first += chains[c] & 0xFFFFFFFF
    sort_pairs(key, place, 0, n_chains, scratch)
    for c in range(n_chains):
        at = n_chains - 1 - c
        for field in range(N_FIELDS):
            hits[c, field] = 0
        hit = hits[c]
        hit[ID] = c
        hit[PARENT] = NO_PARENT
        hit[SCORE] = hit[SCORE0] = np.int64(key[at] >> np.uint64(32))
        hit[HASH] = np.int64(key[at] & _LOW)
        hit[FIRST] = place[at] >> 32
        hit[COUNT] = place[at] & 0xFFFFFFFF
        hit[DIVERGENCE] = -1
        set_coordinates(hit, x, y, read_length)


@exact_inner
def _uncovered(hits, i, primaries, n_primaries, covers):
    """Bases of hit `i` that no earlier primary covers; -1 if none overlaps it."""
    begin = hits[i, QS]
    end = hits[i, QE]
    n = 0
    for m in range(n_primaries):
        j = primaries[m]
        if hits[j, QE] <= begin or hits[j, QS] >= end:
            continue
        cover = (max(begin, hits[j, QS]) << 32) | min(end, hits[j, QE])
        at = n
        while at > 0 and covers[at - 1] > cover:
            covers[at] = covers[at - 1]
            at -= 1
        covers[at] = cover
        n += 1
    if n == 0:
        return -1
    total = 0
    reached = begin
    for m in range(n):
        total += max(0, (covers[m] >> 32) - reached)
        reached = max(reached, covers[m] & 0xFFFFFFFF)
    return total + max(0, end - reached)


@exact_inner
def set_parents(hits, n, integers, floats):
    """Set the numbers of hits, and the parent of each: itself if it is primary, else its primary hit."""
    if n == 0:
        return
    for i in range(n):
        hits[i, ID] = i
    primaries = np.empty(n, np.int64)
    covers = np.empty(n, np.int64)
    primaries[0] = 0
    n_primaries = 1
    hits[0, PARENT] = 0
    for i in range(1, n):
        hit = hits[i]
        uncovered = _uncovered(hits, i, primaries, n_primaries, covers)
        parent = -1
        if uncovered >= 0:
            length = hit[QE] - hit[QS]
            for m in range(n_primaries):
                other = hits[primaries[m]]
                if other[QE] <= hit[QS] or other[QS] >= hit[QE]:
                    continue
                overlap = min(hit[QE], other[QE]) - max(hit[QS], other[QS])
                shorter = min(length, other[QE] - other[QS])
                longer = max(length, other[QE] - other[QS])
                share = np.float32(overlap) / np.float32(shorter) - np.float32(uncovered) / np.float32(longer)
                if share <= floats[MASK]:
                    continue
                parent = primaries[m]
                hit[PARENT] = parent
                other[SUBSC] = max(other[SUBSC], hit[SCORE])
                rivals = hit[COUNT] >= other[COUNT]
                if (
                    other[ALIGNED]
                    and hit[ALIGNED]
                    and not (
                        other[CONTIG] == hit[CONTIG]
                        and other[RS] == hit[RS]
                        and other[RE] == hit[RE]
                        and overlap == shorter
                    )
                ):
                    other[DP_MAX2] = max(other[DP_MAX2], hit[DP_MAX])
                    if other[DP_MAX] - hit[DP_MAX] <= 2 * integers[MATCH] + integers[MISMATCH]:
                        rivals = True
                if rivals:
                    other[N_SUB] += 1
                break
        if parent < 0:
            primaries[n_primaries] = i
            n_primaries += 1
            hit[PARENT] = i
            hit[N_SUB] = 0


@exact_inner
def renumber(hits, n):
    """Give hits that have been moved together new numbers, and their parents' new numbers."""
    largest = -1
    for i in range(n):
        largest = max(largest, hits[i, ID])
    new = np.full(largest + 1, -1, np.int64)
    for i in range(n):
        if hits[i, ID] >= 0:
            new[hits[i, ID]] = i
    for i in range(n):
        hits[i, ID] = i
        parent = hits[i, PARENT]
        if parent == OWN_PARENT:
            hits[i, PARENT] = i
        elif 0 <= parent <= largest and new[parent] >= 0:
            hits[i, PARENT] = new[parent]
        else:
            hits[i, PARENT] = NO_PARENT


@exact_inner
def select_secondaries(hits, n, integers, floats, check_strand):
    """Keep primary hits and the best secondary ones at the front; return how many are kept.

    A hit's parent is looked for at its number while hits move to the front: so does minimap2 2.24.
    """
    if n == 0 or floats[PRI_RATIO] <= 0:
        return n
    kept = 0
    n_secondary = 0
    for i in range(n):
        hit = hits[i]
        parent = hit[PARENT]
        keep = parent == i or hit[INVERSION] != 0
        if not keep:
            other = hits[parent]
            if n_secondary >= integers[BEST_N]:
                continue
            if (
                np.float32(hit[SCORE]) >= np.float32(other[SCORE]) * floats[PRI_RATIO]
                or hit[SCORE] + 2 * integers[K] >= other[SCORE]
            ):
                keep = not (
                    hit[QS] == other[QS]
                    and hit[QE] == other[QE]
                    and hit[CONTIG] == other[CONTIG]
                    and hit[RS] == other[RS]
                    and hit[RE] == other[RE]
                )
            elif check_strand and hit[SCORE] > np.int64(integers[MAX_GAP] * 0.8) and hit[REVERSE] != other[REVERSE]:
                hit[RETAINED] = 1
                keep = True
            if keep:
                n_secondary += 1
        if keep:
            copy_hit(hits, kept, i)
            kept += 1
    if kept != n:
        renumber(hits, kept)
    return kept


@exact_inner
def set_divergence(hits, n, x, y, seeds, read_length, contig_lengths):
    """Estimate the divergence of each hit from the share of seeds on it that have matched."""
    n_seeds = seeds.shape[0]
    for i in range(n):
        hits[i, DIVERGENCE] = -1
    if n_seeds == 0:
        return
    total = 0
    for s in range(n_seeds):
        total += seeds[s] >> 32
    average = np.float32(total) / np.float32(n_seeds)
    for i in range(n):
        hit = hits[i]
        if hit[COUNT] == 0:
            continue
        reverse = hit[REVERSE]
        at = hit[FIRST] + hit[COUNT] - 1 if reverse else hit[FIRST]
        step = -1 if reverse else 1
        place = _place_on_read(y[at], reverse, read_length)
        low = 0
        high = n_seeds
        while low < high:
            middle = (low + high) >> 1
            if (seeds[middle] & 0xFFFFFFFF) < place:
                low = middle + 1
            else:
                high = middle
        if low == n_seeds or (seeds[low] & 0xFFFFFFFF) != place:
            continue
        first = low
        last = low
        matched = 1
        at += step
        s = low + 1
        while s < n_seeds and matched < hit[COUNT]:
            if (seeds[s] & 0xFFFFFFFF) == _place_on_read(y[at], reverse, read_length):
                matched += 1
                last = s
                at += step
            s += 1
        n_all = last - first + 1
        if np.float32(hit[QS]) > average and np.float32(hit[RS]) > average:
            n_all += 1
        if np.float32(read_length - hit[QS]) > average and np.float32(contig_lengths[hit[CONTIG]] - hit[RE]) > average:
            n_all += 1
        value = np.float32(0)
        if matched < n_all:
            value = np.float32(1.0 - math.pow(matched / n_all, 1.0 / np.float64(average)))
        hit[DIVERGENCE] = np.int64(np.float64(value) * np.float64(1 << DIVERGENCE_BITS))


@exact_inner
def _place_on_read(y, reverse, read_length):
    """Last base of an anchor on the read as it was sequenced."""
    if reverse:
        return read_length - 1 - ((y & 0xFFFFFFFF) + 1 - ((y >> 32) & 0xFF))
    return y & 0xFFFFFFFF


@exact_inner
def drop_retained(hits, n):
    """Drop hits on the other strand that diverge much more than their parents; return how many stay."""
    kept = 0
    scale = 1.0 / np.float64(1 << DIVERGENCE_BITS)
    for i in range(n):
        value = np.float32(hits[i, DIVERGENCE] * scale) if hits[i, DIVERGENCE] >= 0 else np.float32(-1)
        parent = hits[i, PARENT]
        of_parent = np.float32(hits[parent, DIVERGENCE] * scale) if hits[parent, DIVERGENCE] >= 0 else np.float32(-1)
        if not hits[i, RETAINED] or value < of_parent * np.float32(5) or value < np.float32(0.01):
            copy_hit(hits, kept, i)
            kept += 1
    return kept
