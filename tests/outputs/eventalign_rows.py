"""Made-up event alignments, and the event table in plain Python, number by number."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from f5py.core.batch import Events, ReadBatch, ReadStatus, Rows, RowState
from f5py.core.offsets import offsets_of
from f5py.pore_model import PoreModel

from ..made_batches import read_batch

F32 = np.float32
_COMPLEMENT = dict(zip("ACGT", "TGCA", strict=True))


def made_model(k: int = 6) -> PoreModel:
    rng = np.random.default_rng(k)
    n = 4**k
    return PoreModel("made", k, "ACGT", rng.normal(90, 15, n).astype(F32), rng.uniform(1, 4, n).astype(F32))


def made_batch(seed: int = 0, k: int = 6, n_reads: int = 7) -> ReadBatch:
    """Make reads of both strands with bad events, stays, skips, and current levels of unusual size."""
    rng = np.random.default_rng(seed)
    n_rows = np.array([0, 1, 300, 129, 0, 128, 1500][:n_reads])
    lengths = n_rows + 2 * k + 40
    n_events = n_rows + rng.integers(1, 30, n_reads)
    n_events[0] = n_events[4] = 0
    event_offsets = offsets_of(n_events)
    total = int(event_offsets[-1])
    reverse = np.arange(n_reads) % 2 == 0
    event_length = rng.integers(1, 40, total).astype(np.int32)
    event_start = np.zeros(total, np.int32)
    n_samples = np.zeros(n_reads, np.int64)
    row_event, row_position = np.zeros(total, np.int32), np.zeros(total, np.int32)
    reference_start = rng.integers(0, 10**6, n_reads)
    for read in range(n_reads):
        mine = slice(event_offsets[read], event_offsets[read + 1])
        event_start[mine] = offsets_of(event_length[mine])[:-1]
        n_samples[read] = event_length[mine].sum()
        n = n_rows[read]
        rows = slice(event_offsets[read], event_offsets[read] + n)
        events = np.arange(n) + (n_events[read] - n) // 2
        row_event[rows] = events[::-1] if reverse[read] else events
        steps = rng.choice([0, 1, 2], n, p=[0.4, 0.5, 0.1])
        row_position[rows] = reference_start[read] + np.minimum(np.cumsum(steps), lengths[read] - k)
    event_mean = rng.normal(90, 20, total).astype(F32)
    event_stdv = rng.gamma(2, 1, total).astype(F32)
    row_state = np.where(rng.random(total) < 0.1, RowState.BAD, 0).astype(np.uint8)
    some = event_offsets[6] + np.arange(50, 60)  # rows of the longest read, which is a reverse record
    for row, value in zip(some, [0.0, -0.0, -5.0, 1e8, 3e38, 0.125, -1e10, 99999.996, 1e5, 5.0], strict=True):
        event_mean[event_offsets[6] + row_event[row]] = value
    row_state[some[:3]] = RowState.BAD
    letters = np.frombuffer(b"ACGT", np.uint8)
    return read_batch(
        n_reads,
        names=[f"read-{i}" + "-x" * (i * 5) for i in range(n_reads)],
        read_index=np.arange(n_reads) * 37,
        status=np.where(n_rows > 0, ReadStatus.OK, ReadStatus.NO_ALIGNMENT).astype(np.uint8),
        contig=(np.arange(n_reads) % 2).astype(np.int32),
        reference_start=reference_start,
        reference_end=reference_start + lengths,
        reverse=reverse,
        reference=letters[rng.integers(0, 4, int(lengths.sum()))],
        reference_offsets=offsets_of(lengths),
        samples=np.where(
            rng.random(n_samples.sum()) < 0.9,
            rng.integers(300, 700, n_samples.sum()),
            rng.integers(-(2**15), 2**15, n_samples.sum()),
        ).astype(np.int16),
        sample_offsets=offsets_of(n_samples),
        offset=rng.integers(-10, 10, n_reads).astype(F32),
        unit=rng.uniform(0.1, 0.2, n_reads).astype(F32),
        sampling_rate=np.array([4000, 3012, 5000, 4000, 4000, 4000, 4000][:n_reads], F32),
        events=Events(event_offsets, event_start, event_length, event_mean, event_stdv),
        shift=rng.normal(0, 10, n_reads).astype(F32) * (np.arange(n_reads) != 6),
        scale=rng.normal(1, 0.05, n_reads).astype(F32),
        var=rng.uniform(0.8, 2, n_reads).astype(F32),
        rows=Rows(event_offsets, n_rows, row_event, row_position, row_state),
    )


def _printf(template: str, value) -> str:
    text = template % float(value)
    return "-nan" if text == "nan" else text


def _rank(kmer: str) -> int:
    rank = 0
    for letter in kmer:
        rank = rank * 4 + "ACGT".index(letter)
    return rank


def plain_table(
    batch: ReadBatch,
    contigs: list[str],
    model: PoreModel,
    first: int,
    end: int,
    print_read_names: bool = False,
    scale_events: bool = False,
    samples: bool = False,
    signal_index: bool = False,
    collapse_events: bool = False,
    m6anet: bool = False,
) -> bytes:
    """Format the table of reads `first` to `end` - 1, each operation rounded to single precision."""
    header = ["contig", "position", "reference_kmer", "read_name" if print_read_names else "read_index"]
    if m6anet:
        header += ["event_level_mean", "event_stdv", "event_length", ""]
    else:
        header += ["strand", "event_index", "event_level_mean", "event_stdv", "event_length"]
        header += ["model_kmer", "model_mean", "model_stdv", "standardized_level"]
    header += ["start_idx", "end_idx"] if signal_index else []
    header += ["samples"] if samples and not m6anet else []
    lines = ["\t".join(header)]
    with np.errstate(all="ignore"):
        for read in range(first, end):
            rows = range(batch.events.offsets[read], batch.events.offsets[read] + batch.rows.n[read])
            groups = [list(group) for _, group in groupby(rows, lambda row: batch.rows.position[row])]
            if not (collapse_events or m6anet):
                groups = [[row] for row in rows]
            for group in groups:
                fields = _fields(batch, model, read, group, scale_events, samples, m6anet, signal_index)
                if fields:
                    name = batch.names[read] if print_read_names else str(batch.read_index[read])
                    position = str(batch.rows.position[group[0]])
                    lines.append("\t".join([contigs[batch.contig[read]], position, fields[0], name, *fields[1:]]))
    return "\n".join([*lines, ""]).encode()


def _fields(batch, model, read, group, scale_events, with_samples, m6anet, signal_index) -> list[str]:
    events = [batch.events.offsets[read] + batch.rows.event[row] for row in group]
    start = min(batch.events.start[events[0]], batch.events.start[events[-1]])
    end = max(int(batch.events.start[e]) + int(batch.events.length[e]) for e in (events[0], events[-1]))
    shift, scale, var, rate = batch.shift[read], batch.scale[read], batch.var[read], batch.sampling_rate[read]
    at = batch.rows.position[group[0]] - batch.reference_start[read] + batch.reference_offsets[read]
    kmer = batch.reference[at : at + model.k].tobytes().decode()
    strand_kmer = "".join(_COMPLEMENT[base] for base in reversed(kmer)) if batch.reverse[read] else kmer
    index = [str(start), str(end)] if signal_index else []
    bad = [bool(batch.rows.state[row] & RowState.BAD) for row in group]
    if m6anet:
        means = _m6anet_means(batch, [e for e, b in zip(events, bad, strict=True) if not b], shift, scale, rate)
        return [kmer, *means, "", *index] if means and kmer == strand_kmer else []
    raw = batch.samples[batch.sample_offsets[read] : batch.sample_offsets[read + 1]]
    current = (raw.astype(F32) + batch.offset[read]) * batch.unit[read]
    level, stdv = batch.events.mean[events[0]], batch.events.stdv[events[0]]
    if len(group) > 1:
        level = np.cumsum(current[start:end], dtype=F32)[-1] / F32(end - start)
        square = (current[start:end] - level) ** 2
        stdv = np.sqrt(np.cumsum(square, dtype=F32)[-1] / F32(end - start))
    if scale_events:
        level = (level - shift) / scale
    model_level, model_stdv = model.level_mean[_rank(strand_kmer)], model.level_stdv[_rank(strand_kmer)]
    if bad[0]:
        model_level = model_stdv = F32(0)
    elif not scale_events:
        model_level, model_stdv = scale * model_level + shift, model_stdv * var
    fields = [
        kmer,
        "t",
        str(batch.rows.event[group[0]]),
        _printf("%.2f", level),
        _printf("%.3f", stdv),
        _printf("%.5f", F32(end - start) / rate),
        "N" * model.k if bad[0] else strand_kmer,
        _printf("%.2f", model_level),
        _printf("%.2f", model_stdv),
        _printf("%.2f", (level - model_level) / (np.sqrt(var) * model_stdv)),
        *index,
    ]
    if with_samples:
        scaled = ((current[start:end].astype(float) - float(shift)) / float(scale)).astype(F32)
        fields.append(",".join(_printf("%g", sample) for sample in scaled))
    return fields


def _m6anet_means(batch, events, shift, scale, rate) -> list[str]:
    weight = 0
    level = stdv = seconds = F32(0)
    for e in events:
        length = F32(batch.events.length[e])
        weight += int(length)
        level += (batch.events.mean[e] - shift) / scale * length
        stdv += batch.events.stdv[e] * length
        seconds += length / rate * length
    if weight == 0:
        return []
    total = F32(weight)
    return [_printf("%.2f", level / total), _printf("%.3f", stdv / total), _printf("%.5f", seconds / total)]
