"""Benchmark of ``f5py meth-freq``: against pyarrow and polars, on a table of any size, from a file and from a pipe.

The table is made up: sorted reads of a genome at thirtyfold depth, each with sixty groups of sites. pyarrow streams
the columns that it needs through `pyarrow.csv.open_csv`, sums the calls of each block by group, and sums these; polars
does the whole in one query, collected by its streaming engine. All run in turn on the same input, each in a process of
its own. Counts of all groups are compared, so that speed is never reported for different answers.
"""

from __future__ import annotations

import argparse
import platform
import shlex
import sys
import tempfile
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from measure import CommandFailed, Usage, measure
from report import ROOT, cpu, first_line, least, machine, median, megabytes, one_line, table, wall

RESULTS = Path(__file__).resolve().parent / "results"
BYTES_PER_ROW = 101
GROUPS_PER_READ, DEPTH = 60, 30
THRESHOLD = 2.5
_CHROMOSOMES = [f"chr{i}" for i in (*range(1, 23), "X", "Y")]
_READS_PER_BLOCK = 1 << 14
_KEYS = ["chromosome", "start", "end"]
_COLUMNS = [
    "chromosome", "strand", "start", "end", "read_name", "log_lik_ratio", "log_lik_methylated",
    "log_lik_unmethylated", "num_calling_strands", "num_motifs", "sequence",
]  # fmt: skip


def make_calls(path: Path, n_rows: int) -> None:
    """Write a table of about that many calls."""
    import pyarrow
    from pyarrow import csv

    rng = np.random.default_rng(1)
    n_groups = max(n_rows // DEPTH, 10 * GROUPS_PER_READ)
    chromosome = np.sort(rng.integers(0, len(_CHROMOSOMES), n_groups)).astype(np.int32)
    size = np.minimum(rng.geometric(0.7, n_groups), 8).astype(np.int32)
    width = 11 + 4 * (size - 1)
    start = 10_000 + np.cumsum(rng.integers(45, 200, n_groups))
    letters = np.frombuffer(b"ACGT", np.uint8)[rng.integers(0, 4, n_groups + width.max())].tobytes()
    sequences = pyarrow.array([letters[i : i + n] for i, n in enumerate(width.tolist())], pyarrow.string())
    numbers = pyarrow.array([f"{value / 100:.2f}" for value in range(-50_000, 2_000)])
    names = pyarrow.array(_CHROMOSOMES)
    strands = pyarrow.array(["+", "-"])
    first = np.sort(rng.integers(0, n_groups - GROUPS_PER_READ, n_rows // GROUPS_PER_READ))
    with path.open("wb") as out:
        out.write("\t".join(_COLUMNS).encode() + b"\n")
        for at in range(0, len(first), _READS_PER_BLOCK):
            begins = first[at : at + _READS_PER_BLOCK]
            group = (begins[:, np.newaxis] + np.arange(GROUPS_PER_READ)).ravel()
            read = np.repeat(np.arange(len(begins)), GROUPS_PER_READ)
            ratio = np.clip(np.rint(rng.normal(-100, 500, len(group))), -1900, 1900).astype(np.int64)
            unmethylated = rng.integers(-40_000, -5_000, len(group))
            ids = pyarrow.array([bytes.hex(rng.bytes(18)) for _ in begins])
            columns: list[Any] = [
                names.take(pyarrow.array(chromosome[group])),
                strands.take(pyarrow.array(read % 2)),
                start[group],
                start[group] + 9 * (size[group] - 1),
                ids.take(pyarrow.array(read)),
                *(numbers.take(pyarrow.array(one + 50_000)) for one in (ratio, unmethylated + ratio, unmethylated)),
                np.ones(len(group), np.int8),
                size[group],
                sequences.take(pyarrow.array(group)),
            ]
            how = csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none")
            csv.write_csv(pyarrow.table(columns, _COLUMNS), out, how)


def by_pyarrow(calls: str, output: str) -> None:
    """Do meth-freq's work with pyarrow; the table is not laid out as text with three decimals."""
    import pyarrow
    import pyarrow.compute as pc
    from pyarrow import csv

    wanted = [*_KEYS, "log_lik_ratio", "num_motifs", "sequence"]
    reader = csv.open_csv(
        sys.stdin.buffer if calls == "-" else calls,
        csv.ReadOptions(block_size=16 << 20),
        csv.ParseOptions(delimiter="\t", quote_char=False),
        csv.ConvertOptions(include_columns=wanted),
    )
    sums = [("called_sites", "sum"), ("called_sites_methylated", "sum"), ("group_sequence", "one")]
    names = [*_KEYS, *(name for name, _ in sums)]
    parts = []
    for block in reader:
        block = block.filter(pc.greater_equal(pc.abs(block["log_lik_ratio"]), THRESHOLD))
        methylated = pc.if_else(pc.greater(block["log_lik_ratio"], 0.0), block["num_motifs"], 0)
        columns = [*(block[key] for key in _KEYS), block["num_motifs"], methylated, block["sequence"]]
        rows = pyarrow.table(columns, names)
        parts.append(rows.group_by(_KEYS).aggregate(sums).rename_columns(names))
        if len(parts) == 32:
            parts = [pyarrow.concat_tables(parts).group_by(_KEYS).aggregate(sums).rename_columns(names)]
    whole = pyarrow.concat_tables(parts).group_by(_KEYS).aggregate(sums).rename_columns(names)
    whole = whole.sort_by([(key, "ascending") for key in _KEYS])
    share = pc.round(pc.divide(pc.cast(whole["called_sites_methylated"], "float64"), whole["called_sites"]), 3)
    whole = whole.add_column(5, "methylated_frequency", share)
    with open(output, "wb") as out:
        out.write("\t".join(whole.column_names).encode() + b"\n")  # whose names the library would quote
        csv.write_csv(whole, out, csv.WriteOptions(include_header=False, delimiter="\t", quoting_style="none"))


def by_polars(calls: str, output: str) -> None:
    """Do meth-freq's work with polars; the table is not laid out as text with three decimals."""
    import polars as pl

    types = dict.fromkeys(_KEYS, pl.Int64) | {"chromosome": pl.String, "sequence": pl.String}
    types |= {"log_lik_ratio": pl.Float64, "num_motifs": pl.Int64}
    source = sys.stdin.buffer if calls == "-" else calls
    rows = pl.scan_csv(source, separator="\t", quote_char=None, schema_overrides=types).select(list(types))
    ratio, sites = pl.col("log_lik_ratio"), pl.col("num_motifs")
    sums = [
        sites.sum().alias("called_sites"),
        sites.filter(ratio > 0.0).sum().alias("called_sites_methylated"),
        pl.col("sequence").first().alias("group_sequence"),
    ]
    groups = rows.filter(ratio.abs() >= THRESHOLD).group_by(_KEYS).agg(sums).sort(_KEYS).collect(engine="streaming")
    share = (pl.col("called_sites_methylated") / pl.col("called_sites")).round(3).alias("methylated_frequency")
    groups.with_columns(share).write_csv(output, separator="\t", quote_style="never")


def counts_of(path: Path) -> Any:
    """Read the counts of all groups of a table of frequencies."""
    from pyarrow import csv

    wanted = [*_KEYS, "called_sites", "called_sites_methylated", "group_sequence"]
    parsing = csv.ParseOptions(delimiter="\t", quote_char=False)
    return csv.read_csv(path, parse_options=parsing, convert_options=csv.ConvertOptions(include_columns=wanted))


def compare(options: argparse.Namespace, scratch: Path) -> tuple[list[str], bool]:
    """Write the section of the report; also return whether all counts are the same."""
    calls = scratch / "calls.tsv"
    n_rows = int(options.gigabytes * 1e9 / BYTES_PER_ROW)
    say(f"making a table of {n_rows:,} rows")
    make_calls(calls, n_rows)
    n_rows = n_rows // GROUPS_PER_READ * GROUPS_PER_READ
    size = calls.stat().st_size
    peers = {"pyarrow": sys.executable, "polars": options.polars}
    places = {"a file": str(calls), "a pipe": "-"}
    commands: dict[tuple[str, str], list[str]] = {}
    outputs: dict[tuple[str, str], Path] = {}
    for place, source in places.items():
        for name in ("f5py meth-freq", *peers):
            outputs[name, place] = out = scratch / f"{len(outputs)}.tsv"
            ours = [sys.executable, "-m", "f5py", "meth-freq", "-i", source, "-o", str(out)]
            theirs = [peers.get(name, ""), __file__, f"--by-{name}", source, str(out)]
            command = theirs if name in peers else ours
            piped = ["sh", "-c", f"cat {shlex.quote(str(calls))} | {shlex.join(command)}"]
            commands[name, place] = piped if source == "-" else command
    runs: dict[tuple[str, str], list[Usage]] = {which: [] for which in commands}
    for round_number in range(options.rounds + 1):
        for which, command in commands.items():
            usage = measure(command, log=scratch / "log.txt", cwd=ROOT)
            say(f"round {round_number}: {' from '.join(which)}: {one_line(usage)}")
            if round_number:  # the first one compiles, and reads the table into the page cache
                runs[which].append(usage)
    found, *others = map(counts_of, outputs.values())
    is_same = all(found.equals(other) for other in others)
    rows = [
        [
            name,
            place,
            *(f"{median(usages, of):.2f} ({least(usages, of):.2f})" for of in (wall, cpu)),
            f"{n_rows / 1e6 / median(usages, cpu):.2f}",
            f"{size / 1e6 / median(usages, cpu):.0f}",
            megabytes(max(usage.peak_rss for usage in usages)),
        ]
        for (name, place), usages in runs.items()
    ]
    heads = ["", "from", "wall, s", "user + system, s", "million rows/CPU s", "MB/CPU s", "peak memory, MB"]
    lines = [
        "## Table of calls to frequencies",
        "",
        f"{n_rows:,} calls, {size / 1e9:.2f} GB of text, {len(found):,} groups with calls; rounds: {options.rounds}, "
        "all in turn, the file in the page cache as far as it fits. Median (minimum). f5py and pyarrow's grouping work "
        "on one thread, polars on all cores. A pipe is `cat FILE |`, which is counted.",
        "",
        *table(heads, rows),
        "",
        f"Counts and sequences of all groups are {'the same' if is_same else '**not** the same'}.",
    ]
    return lines, is_same


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gigabytes", type=float, default=10, help="of the table of calls (default: 10)")
    parser.add_argument("--rounds", type=int, default=3, help="timed runs of each (default: 3)")
    parser.add_argument("--scratch", type=Path, metavar="DIR", help="where to put temporary files")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", default=RESULTS / "meth_freq.md")
    parser.add_argument(
        "--polars",
        metavar="PYTHON",
        default=sys.executable,
        help="Python that has polars (default: this one)",
    )
    parser.add_argument("--by-pyarrow", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--by-polars", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.by_pyarrow:
        by_pyarrow(*options.by_pyarrow)
        return
    if options.by_polars:
        by_polars(*options.by_polars)
        return
    versions = [first_line([sys.executable, "-m", "f5py", "--version"], ROOT), f"Python {platform.python_version()}"]
    versions += [f"{name} {metadata.version(name)}" for name in ("numpy", "numba", "pyarrow")]
    versions.append(first_line([options.polars, "-c", "import polars; print('polars', polars.__version__)"], ROOT))
    lines = ["# meth-freq", "", *machine(), f"* versions: {', '.join(versions)}"]
    lines += [f"* made by: `python benchmarks/meth_freq.py --gigabytes {options.gigabytes:g}`", ""]
    try:
        with tempfile.TemporaryDirectory(prefix="f5py_benchmark_", dir=options.scratch) as scratch:
            section, is_same = compare(options, Path(scratch).resolve())
    except (CommandFailed, OSError, ValueError) as problem:
        sys.exit(f"meth_freq.py: {problem}")
    options.output.write_text("\n".join([*lines, *section]) + "\n")
    say(f"written to {options.output}")
    if not is_same:
        sys.exit("meth_freq.py: the counts are not the same")


if __name__ == "__main__":
    main()
