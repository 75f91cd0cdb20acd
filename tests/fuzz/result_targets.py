"""Results as inputs of other commands: tables, tagged alignments and models."""

from __future__ import annotations

import io
import random
from pathlib import Path
from typing import Any

from .base import Base
from .mutations import BYTES, TEXT, mutated
from .result_base import PLANNED
from .targets import Damage, Target, Touched, of_bam_record, of_bytes, of_packed, write_changed

_WORDS = ("", "x", '"', "a\tb", "a\nb", "\x1b[31m", "é" * 300, "-1")


def of_column(name: str) -> Damage:
    """Give a column of a Parquet file another type, other values, another name, or none at all."""

    def damage(rng: random.Random, base: Base, folder: Path) -> Touched:
        import pyarrow
        import pyarrow.parquet

        table = pyarrow.parquet.read_table(base.folder / name)
        at = rng.randrange(table.num_columns)
        column = table.column(at)
        values = column.to_pylist()
        plain = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
        i = rng.randrange(len(values))
        changed: Any = rng.choice((
            lambda: pyarrow.array([[1.0, 2.0]] * len(values)),
            lambda: pyarrow.array([{"x": 1}] * len(values)),
            lambda: pyarrow.nulls(len(values)),
            lambda: pyarrow.nulls(len(values), plain),
            lambda: pyarrow.array([*values[:i], None, *values[i + 1 :]], plain),
            lambda: pyarrow.array([rng.choice((0, -1, 1 << 31, 1 << 62, -(1 << 63)))] * len(values), pyarrow.int64()),
            lambda: pyarrow.array([rng.choice((0.0, 1e300, -1e-300, float("nan"), float("inf")))] * len(values)),
            lambda: pyarrow.array([rng.choice(_WORDS)] * len(values)),
            lambda: pyarrow.array([bytes([255, 0])] * len(values)),
            lambda: pyarrow.array([True] * len(values)),
            lambda: pyarrow.array(values[::-1], plain),
            lambda: pyarrow.array(values, plain).dictionary_encode(),
        ))()  # fmt: skip
        kind = rng.randrange(10)
        if kind < 7:
            table = table.set_column(at, table.column_names[at], changed)
        elif kind == 7:
            table = table.remove_column(at)
        elif kind == 8:
            names = table.column_names
            names[at] = rng.choice((names[at - 1], "", "x\ty", "x\ny", "é"))
            table = table.rename_columns(names)
        else:
            table = table.slice(0, rng.choice((0, 1)))
        out = io.BytesIO()
        pyarrow.parquet.write_table(table, out, use_dictionary=rng.random() < 0.5)
        write_changed(folder / name, out.getvalue())
        return None

    return damage


def of_npz(rng: random.Random, base: Base, folder: Path) -> Touched:
    """Other bytes, or arrays of other types, sizes and names."""
    import numpy as np

    path = folder / "model.npz"
    if rng.random() < 0.5:
        write_changed(path, mutated(rng, base.bytes("model.npz"), BYTES))
        return None
    with np.load(base.folder / "model.npz") as file:
        arrays: dict[str, Any] = dict(file)
    name = rng.choice([*arrays, "_reverse", "other"])
    n = rng.choice((0, 1, 4**5, 4**6, 4**9, 5**6))
    arrays[name] = rng.choice((
        np.zeros(n), np.full(n, np.nan), np.full(n, np.inf), np.full(n, 1e300), np.array(["x"] * n), np.array(b"x"),
        np.zeros((n, 2)), np.array(True), np.array(-1.0), np.array(1 << 62), np.zeros(n, "c16"), np.zeros(n, "M8[s]"),
        np.full(n, -5, "i1"), np.array([], object), np.random.default_rng(1).normal(0, 1, n),
    ))  # fmt: skip
    if rng.random() < 0.2:
        del arrays[name]
    path.unlink()
    np.savez(path, **arrays)
    return None


_TO = ("-o", "out")
_EVENTS = ("--min-coverage", "1", "-t", "1")
_TRAIN = (
    "train", "--unmethylated", "tags.bam", "-g", "ref.fa", "--rounds", "1", "--prior-events", "1", "--held-out", "0",
    "--force", "-t", "1", *_TO,
)  # fmt: skip


def _table(name: str, command: tuple[str, ...], file: str, weight: int = 4, output: str = "out") -> tuple[Target, ...]:
    """Make the target of a table of text, or two of one of Parquet: of its bytes and of its columns."""
    if not file.endswith(".parquet"):
        return (Target(name, command, of_bytes(file, TEXT), by_read=None, weight=weight, output=output),)
    return (
        Target(f"{name} bytes", command, of_bytes(file), by_read=None, weight=weight, output=output),
        Target(f"{name} columns", command, of_column(file), by_read=None, weight=weight, output=output),
    )


TARGETS: tuple[Target, ...] = (
    *_table("summary calls", ("summary", "calls.tsv", *_TO), "calls.tsv"),
    *_table("summary calls parquet", ("summary", "calls.parquet", *_TO), "calls.parquet"),
    *_table("summary controls", ("summary", "sound_calls.tsv", "--methylated", "calls.tsv", "--unmethylated",
                                 "sound_calls.tsv", *_TO), "calls.tsv", 2),
    *_table("validate calls", ("validate", "calls.tsv", "truth.tsv", *_TO), "calls.tsv"),
    *_table("validate calls parquet", ("validate", "calls.parquet", "truth.tsv", *_TO), "calls.parquet"),
    *_table("validate truth", ("validate", "calls.tsv", "truth.tsv", *_TO), "truth.tsv"),
    *_table("validate truth of reads", ("validate", "calls.tsv", "truth_reads.tsv", *_TO), "truth_reads.tsv"),
    *_table("validate bedmethyl", ("validate", "calls.tsv", "sites.bed", *_TO), "sites.bed"),
    *_table("validate frequencies", ("validate", "freq.tsv", "truth.tsv", *_TO), "freq.tsv"),
    *_table("validate frequencies parquet", ("validate", "freq.parquet", "truth.tsv", *_TO), "freq.parquet"),
    *_table("compare events", ("compare", "events.tsv", "sound_events.tsv", *_EVENTS, *_TO), "events.tsv"),
    *_table("compare events parquet", ("compare", "events.parquet", "sound_events.parquet", *_EVENTS, *_TO),
            "events.parquet"),
    *_table("merge calls", ("merge", "calls.tsv", "sound_calls.tsv", "-o", "out.tsv"), "calls.tsv", output="out.tsv"),
    *_table("merge calls parquet", ("merge", "calls.parquet", "sound_calls.parquet", "-o", "out.parquet"),
            "calls.parquet", output="out.parquet"),
    *_table("merge events parquet", ("merge", "events.parquet", "sound_events.parquet", "-o", "out.parquet"),
            "events.parquet", 2, output="out.parquet"),
    *_table("merge bedmethyl", ("merge", "sites.bed", "sound_sites.bed", "-o", "out.bed"), "sites.bed",
            output="out.bed"),
    Target("merge modbam", ("merge", "mod.bam", "tags.bam", "-t", "1", "-o", "out.bam"), of_bam_record("mod.bam"),
           by_read=None, weight=6, output="out.bam"),
    Target("merge modbam text", ("merge", "mod.bam", "tags.bam", "-t", "1", "-o", "out.bam"), of_packed("mod.bam"),
           by_read=None, output="out.bam"),
    Target("validate modbam", ("validate", "mod.bam", "truth.tsv", *_TO), of_bam_record("mod.bam"), by_read=None,
           weight=6),
    Target("meth-freq modbam", ("meth-freq", "mod.bam", "-g", "ref.fa", *_TO), of_bam_record("mod.bam"), by_read=None,
           weight=6),
    *_table("meth-freq bedmethyl", ("meth-freq", "sites.bed", *_TO), "sites.bed"),
    Target("meth-freq modbam dss", ("meth-freq", "mod.bam", "--format", "dss", *_TO), of_bam_record("mod.bam"),
           by_read=None, weight=2),
    Target("extract modbam", ("extract", "mod.bam", *_TO), of_bam_record("mod.bam"), by_read=None, weight=6),
    Target("extract modbam parquet", ("extract", "mod.bam", "-o", "out.parquet"), of_bam_record("mod.bam"),
           by_read=None, weight=4, output="out.parquet"),
    *_table("extract calls", ("extract", "calls.tsv", *_TO), "calls.tsv"),
    *_table("extract calls parquet", ("extract", "calls.parquet", *_TO), "calls.parquet"),
    Target("regions modbam", ("regions", "regions.bed", "mod.bam", *_TO), of_bam_record("mod.bam"), by_read=None,
           weight=4),
    *_table("regions bed", ("regions", "regions.bed", "sound_sites.bed", *_TO), "regions.bed"),
    *_table("regions bedmethyl", ("regions", "regions.bed", "sites.bed", *_TO), "sites.bed"),
    *_table("compare report", ("compare", "events.tsv", "sound_events.tsv", *_EVENTS, "--report", "out.html", "-o",
                               "rows.tsv"), "events.tsv", 2, output="out.html"),
    Target("plot-region modbam", ("plot-region", "-b", "mod.bam", "-w", "simulated:1-3000", "-o", "out.html"),
           of_bam_record("mod.bam"), by_read=None, weight=2, output="out.html"),
    Target("train alignments", (*_TRAIN, "--slow5", "none.blow5"), of_bam_record("tags.bam"), by_read=None, weight=2),
    Target("train signals", (*_TRAIN, "--slow5", "none.blow5"), of_bytes("none.blow5"), by_read=None, weight=2),
    Target("train reference", (*_TRAIN, "--slow5", "none.blow5"), of_bytes("ref.fa", TEXT), by_read=None, weight=2),
    Target("npz model", ("eventalign", *PLANNED, "--kmer-model", "model.npz", "--print-read-names", *_TO), of_npz,
           by_read=None, weight=6),
)  # fmt: skip
