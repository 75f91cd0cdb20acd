"""The alignment of events to the reference, written down step by step without regard to speed."""

from __future__ import annotations

import math

import numpy as np

F = np.float32
INF = F(np.inf)
MATCH, BAD, SKIP = "MBK"
OPERATIONS = "MIDNSHP=X"
_OPPOSITE = str.maketrans("ACGT", "TGCA")


def opposite_strand(sequence: str) -> str:
    return sequence.translate(_OPPOSITE)[::-1]


def rank(kmer: str) -> int:
    value = 0
    for base in kmer:
        value = 4 * value + "ACGT".index(base)
    return value


def _ln(p) -> np.float32:
    return F(math.log(float(p)))


def _best(candidates: list[np.ndarray], later_wins: bool) -> tuple[np.ndarray, np.ndarray]:
    table = np.array(candidates, np.float32)
    best = table.max(axis=0)
    if later_wins:
        return best, len(table) - 1 - np.argmax(table[::-1] == best, axis=0)
    return best, np.argmax(table == best, axis=0)


def transition_logs(events_per_base) -> list[np.float32]:
    """In the order of `f5py.event_alignment.align.transitions`."""
    p_stay = max(F(1 - 1 / events_per_base), F(0.001))
    p_skip, p_bad, p_kk = F(0.0025), F(0.001), F(0.3)
    p_step = ((F(1) - p_stay) - p_skip) - p_bad
    return [_ln(p) for p in (p_stay, p_step, p_bad, p_skip, p_bad, (F(1) - p_bad) / F(3), p_kk, F(1) - p_kk)]


def viterbi(events, levels, stdvs, constants, transitions, later_wins=True) -> list[tuple[int, int, str]]:
    """Find the best path as (event counted from 0, k-mer, state)."""
    stay, step, to_bad, to_skip, bad_bad, from_bad, skip_skip, skip_match = transitions
    n, m = len(events), len(levels)
    score = {state: np.full((n + 1, m + 1), -INF, np.float32) for state in "MBK"}  # k-mer j in column j + 1
    pointer = {state: np.full((n + 1, m + 1), 5) for state in "MBK"}
    M, B, K = score[MATCH], score[BAD], score[SKIP]
    with np.errstate(over="ignore"):
        for i in range(1, n + 1):
            z = (events[i - 1] - levels) / stdvs
            emission = constants + ((F(-0.5) * z) * z)
            start = np.full(m, -INF, np.float32)
            if i == 1:
                start[0] = _ln(0.5)
            impossible = np.full(m, -INF, np.float32)
            best, pointer[MATCH][i, 1:] = _best(
                [
                    stay + M[i - 1, 1:], step + M[i - 1, :-1], from_bad + B[i - 1, 1:], from_bad + B[i - 1, :-1],
                    skip_match + K[i - 1, :-1], start,
                ],
                later_wins,
            )  # fmt: skip
            M[i, 1:] = best + emission
            B[i, 1:], pointer[BAD][i, 1:] = _best(
                [to_bad + M[i - 1, 1:], impossible, bad_bad + B[i - 1, 1:], *[impossible] * 3], later_wins
            )
            from_match, from_bad_state = to_skip + M[i, :-1], from_bad + B[i, :-1]
            is_later = from_bad_state >= from_match if later_wins else from_bad_state > from_match
            entered = np.where(is_later, from_bad_state, from_match)
            pointer[SKIP][i, 1:] = np.where(is_later, 3, 1)
            best = -INF
            for j, other in enumerate(entered.tolist(), 1):
                best = skip_skip + best
                if best > other or (later_wins and best == other):
                    pointer[SKIP][i, j] = 4
                else:
                    best = F(other)
                K[i, j] = best
            pointer[SKIP][i, K[i] == -INF] = 5
    path = []
    row, kmer, state = n, m - 1, MATCH
    while row > 0:
        path.append((row - 1, kmer, state))
        index = pointer[state][row, kmer + 1]
        if index == 5:
            break
        if state != SKIP:
            row -= 1
        if index in (1, 3, 4):
            kmer -= 1
        state = (MATCH, MATCH, BAD, BAD, SKIP)[index]
    return path[::-1]


def _closest(first_event, kmer: int) -> int:
    for j in range(kmer, max(0, kmer - 1000), -1):
        if first_event[j] != -1:
            return int(first_event[j])
    for j in range(kmer, min(kmer + 1000, len(first_event) - 1)):
        if first_event[j] != -1:
            return int(first_event[j])
    return -1


def _end_pair(pairs, position: int, i: int) -> int:
    for j in range(i, len(pairs)):
        if pairs[j][0] > position:
            return j - 1
    return len(pairs) - 1


def _segments(cigar, position: int) -> list[list[tuple[int, int]]]:
    segments: list[list[tuple[int, int]]] = [[]]
    q = 0
    for element in cigar.tolist():
        operation, length = OPERATIONS[element & 15], element >> 4
        if operation in "M=X":
            segments[-1] += [(position + i, q + i) for i in range(length)]
        if operation == "N":
            segments.append([])
        if operation in "M=XDN":
            position += length
        if operation in "M=XISH":
            q += length
    return segments


def plain_rows(batch, read: int, model, region=None, windows=None, later_wins=True) -> list[tuple[int, int, str, bool]]:
    """Rows of one read: position, event, state, and whether the row begins a further segment.

    `region` is (start, end), end included; `windows` is a list of half-open intervals.
    """
    first, end = batch.base_offsets[read], batch.base_offsets[read + 1]
    length = int(end - first)
    first_event = batch.base_map.first_event[first : end - model.k + 1]
    means = batch.events.mean[batch.events.offsets[read] : batch.events.offsets[read + 1]]
    origin = int(batch.reference_start[read])
    reference = bytes(batch.reference[batch.reference_offsets[read] : batch.reference_offsets[read + 1]]).decode()
    reverse = bool(batch.reverse[read])
    scale, shift, var = batch.scale[read], batch.shift[read], batch.var[read]
    stride = -1 if reverse else 1

    segments = _segments(batch.cigar[batch.cigar_offsets[read] : batch.cigar_offsets[read + 1]], origin)
    if region is not None:
        segments = [[pair for pair in pairs if region[0] <= pair[0] <= region[1]] for pairs in segments]
    if windows is not None:
        segments = [[pair for pair in pairs if a <= pair[0] < b] for pairs in segments for a, b in windows]
    rows: list[tuple[int, int, str, bool]] = []
    for pairs in segments:
        while pairs and pairs[-1][1] > length - model.k:
            pairs = pairs[:-1]
        if not pairs and windows is None:
            break
        if not pairs:
            continue

        def kmer_of(pair):
            return length - pair[1] - model.k if reverse else pair[1]

        event, last_event = _closest(first_event, kmer_of(pairs[0])), _closest(first_event, kmer_of(pairs[-1]))
        if -1 in (event, last_event):
            continue
        forward = event < last_event
        position = pairs[0][0]
        i = 0
        n_before = len(rows)
        while event < last_event if forward else event > last_event:
            p = _end_pair(pairs, position + 100, i)
            sub = reference[position - origin : pairs[p][0] - origin + 1]
            if len(sub) < 2 * model.k:
                break
            stop = _closest(first_event, kmer_of(pairs[p]))
            if abs(event - stop) < 2:
                break
            assert stride == (1 if event < stop else -1)
            kmers = [sub[j : j + model.k] for j in range(len(sub) - model.k + 1)]
            ranks = [rank(opposite_strand(kmer) if reverse else kmer) for kmer in kmers]
            numbers = np.arange(event, stop + stride, stride)
            path = viterbi(
                means[numbers],
                scale * model.level_mean[ranks] + shift,
                model.level_stdv[ranks] * var,
                F(-0.918938) - (model.ln_stdv[ranks] + F(math.log(var))),
                transition_logs(batch.events_per_base[read]),
                later_wins,
            )
            block = []
            for row, kmer, state in path:
                if len(block) == 50 and p != len(pairs) - 1:
                    break
                if state != SKIP and row != 0:
                    block.append((position + kmer, int(numbers[row]), state, False))
            if not block:
                break
            rows += block
            position, event = block[-1][:2]
            i = _end_pair(pairs, position, i)
        if 0 < n_before < len(rows):
            rows[n_before] = (*rows[n_before][:3], True)
    return rows
