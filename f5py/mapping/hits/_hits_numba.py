"""Jitted loops that turn chains into hits and find secondary ones; see `f5py.mapping.hits.hits`."""

import math

import numpy as np

import f5py.mapping.hit_table as column
from f5py.jit.kernel import exact_inner
from f5py.mapping._sorting_numba import sort_pairs
from f5py.mapping.hit_table import copy_hit, set_coordinates
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
        for field in range(column.N_FIELDS):
            hits[c, field] = 0
        hit = hits[c]
        hit[column.ID] = c
        hit[column.PARENT] = column.NO_PARENT
        hit[column.SCORE] = hit[column.SCORE0] = np.int64(key[at] >> np.uint64(32))
        hit[column.HASH] = np.int64(key[at] & _LOW)
        hit[column.FIRST] = place[at] >> 32
        hit[column.COUNT] = place[at] & 0xFFFFFFFF
        hit[column.DIVERGENCE] = -1
        set_coordinates(hit, x, y, read_length)


@exact_inner
def _uncovered(hits, i, primaries, n_primaries, covers):
    """Bases of hit `i` that no earlier primary covers; -1 if none overlaps it."""
    begin = hits[i, column.QS]
    end = hits[i, column.QE]
    n = 0
    for m in range(n_primaries):
        j = primaries[m]
        if hits[j, column.QE] <= begin or hits[j, column.QS] >= end:
            continue
        cover = (max(begin, hits[j, column.QS]) << 32) | min(end, hits[j, column.QE])
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
        hits[i, column.ID] = i
    primaries = np.empty(n, np.int64)
    covers = np.empty(n, np.int64)
    primaries[0] = 0
    n_primaries = 1
    hits[0, column.PARENT] = 0
    for i in range(1, n):
        hit = hits[i]
        uncovered = _uncovered(hits, i, primaries, n_primaries, covers)
        parent = -1
        if uncovered >= 0:
            length = hit[column.QE] - hit[column.QS]
            for m in range(n_primaries):
                other = hits[primaries[m]]
                if other[column.QE] <= hit[column.QS] or other[column.QS] >= hit[column.QE]:
                    continue
                overlap = min(hit[column.QE], other[column.QE]) - max(hit[column.QS], other[column.QS])
                shorter = min(length, other[column.QE] - other[column.QS])
                longer = max(length, other[column.QE] - other[column.QS])
                share = np.float32(overlap) / np.float32(shorter) - np.float32(uncovered) / np.float32(longer)
                if share <= floats[MASK]:
                    continue
                parent = primaries[m]
                hit[column.PARENT] = parent
                other[column.SUBSC] = max(other[column.SUBSC], hit[column.SCORE])
                rivals = hit[column.COUNT] >= other[column.COUNT]
                if (
                    other[column.ALIGNED]
                    and hit[column.ALIGNED]
                    and not (
                        other[column.CONTIG] == hit[column.CONTIG]
                        and other[column.RS] == hit[column.RS]
                        and other[column.RE] == hit[column.RE]
                        and overlap == shorter
                    )
                ):
                    other[column.DP_MAX2] = max(other[column.DP_MAX2], hit[column.DP_MAX])
                    if other[column.DP_MAX] - hit[column.DP_MAX] <= 2 * integers[MATCH] + integers[MISMATCH]:
                        rivals = True
                if rivals:
                    other[column.N_SUB] += 1
                break
        if parent < 0:
            primaries[n_primaries] = i
            n_primaries += 1
            hit[column.PARENT] = i
            hit[column.N_SUB] = 0


@exact_inner
def renumber(hits, n):
    """Give hits that have been moved together new numbers, and their parents' new numbers."""
    largest = -1
    for i in range(n):
        largest = max(largest, hits[i, column.ID])
    new = np.full(largest + 1, -1, np.int64)
    for i in range(n):
        if hits[i, column.ID] >= 0:
            new[hits[i, column.ID]] = i
    for i in range(n):
        hits[i, column.ID] = i
        parent = hits[i, column.PARENT]
        if parent == column.OWN_PARENT:
            hits[i, column.PARENT] = i
        elif 0 <= parent <= largest and new[parent] >= 0:
            hits[i, column.PARENT] = new[parent]
        else:
            hits[i, column.PARENT] = column.NO_PARENT


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
        parent = hit[column.PARENT]
        keep = parent == i or hit[column.INVERSION] != 0
        if not keep:
            other = hits[parent]
            if n_secondary >= integers[BEST_N]:
                continue
            if (
                np.float32(hit[column.SCORE]) >= np.float32(other[column.SCORE]) * floats[PRI_RATIO]
                or hit[column.SCORE] + 2 * integers[K] >= other[column.SCORE]
            ):
                keep = not (
                    hit[column.QS] == other[column.QS]
                    and hit[column.QE] == other[column.QE]
                    and hit[column.CONTIG] == other[column.CONTIG]
                    and hit[column.RS] == other[column.RS]
                    and hit[column.RE] == other[column.RE]
                )
            elif (
                check_strand
                and hit[column.SCORE] > np.int64(integers[MAX_GAP] * 0.8)
                and hit[column.REVERSE] != other[column.REVERSE]
            ):
                hit[column.RETAINED] = 1
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
        hits[i, column.DIVERGENCE] = -1
    if n_seeds == 0:
        return
    total = 0
    for s in range(n_seeds):
        total += seeds[s] >> 32
    average = np.float32(total) / np.float32(n_seeds)
    for i in range(n):
        hit = hits[i]
        if hit[column.COUNT] == 0:
            continue
        reverse = hit[column.REVERSE]
        at = hit[column.FIRST] + hit[column.COUNT] - 1 if reverse else hit[column.FIRST]
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
        while s < n_seeds and matched < hit[column.COUNT]:
            if (seeds[s] & 0xFFFFFFFF) == _place_on_read(y[at], reverse, read_length):
                matched += 1
                last = s
                at += step
            s += 1
        n_all = last - first + 1
        if np.float32(hit[column.QS]) > average and np.float32(hit[column.RS]) > average:
            n_all += 1
        if (
            np.float32(read_length - hit[column.QS]) > average
            and np.float32(contig_lengths[hit[column.CONTIG]] - hit[column.RE]) > average
        ):
            n_all += 1
        value = np.float32(0)
        if matched < n_all:
            value = np.float32(1.0 - math.pow(matched / n_all, 1.0 / np.float64(average)))
        hit[column.DIVERGENCE] = np.int64(np.float64(value) * np.float64(1 << column.DIVERGENCE_BITS))


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
    scale = 1.0 / np.float64(1 << column.DIVERGENCE_BITS)
    for i in range(n):
        value = np.float32(hits[i, column.DIVERGENCE] * scale) if hits[i, column.DIVERGENCE] >= 0 else np.float32(-1)
        parent = hits[i, column.PARENT]
        of_parent = (
            np.float32(hits[parent, column.DIVERGENCE] * scale)
            if hits[parent, column.DIVERGENCE] >= 0
            else np.float32(-1)
        )
        if not hits[i, column.RETAINED] or value < of_parent * np.float32(5) or value < np.float32(0.01):
            copy_hit(hits, kept, i)
            kept += 1
    return kept
