"""Comparison of the events of two samples by position or k-mer: ``f5py compare``."""

from collections.abc import Callable
from typing import Any

from f5py.commands import eventalign
from f5py.comparison.event_rows import LevelCollector, ReadLevels, read_events
from f5py.comparison.samples import compare_samples
from f5py.errors import F5pyError, UsageError
from f5py.io.arrow.arrow import import_arrow
from f5py.io.arrow.table import write_table
from f5py.io.arrow.text_input import check_read_once, display_name, size_of
from f5py.io.files.atomic_write import named_together
from f5py.io.files.output import display_output
from f5py.io.output_checks import check_outputs
from f5py.messages import console
from f5py.messages.console import input_warning, obeys_strict
from f5py.messages.progress import progress
from f5py.options.declaration import declarations
from f5py.options.output_names import is_alignments, kind_among
from f5py.options.shared import LimitOptions
from f5py.options.signal_commands import CompareOptions, EventalignOptions
from f5py.reports.charts import check_can_draw, report_kind
from f5py.reports.comparison_report import write_comparison
from f5py.threads.pool import WorkerPool

_OF_READS = ("reads", "slow5", "pod5", "fast5")
_OF_EVENTALIGN = ("genome", "pore", "kmer_model", "rna", "window", *declarations(LimitOptions))


@obeys_strict
def run(options: CompareOptions) -> Any:
    """Compare two samples; return the `pyarrow.Table`. Raises `F5pyError`, leaving no file."""
    arrow, _ = import_arrow("tables of events")
    _check(options)
    contigs: dict[str, int] = {}
    kmers: dict[str, int] = {}
    samples = tuple(_levels(options, at, LevelCollector(contigs, kmers)) for at in range(2))
    pool = WorkerPool(options.threads)
    try:
        columns = compare_samples(
            (samples[0], samples[1]), list(contigs), list(kmers), by_kmer=options.by == "kmer",
            min_coverage=options.min_coverage, pool=pool,
        )  # fmt: skip
    finally:
        pool.close()
    table = arrow.table({name: arrow.array(values) for name, values in columns.items()})
    if not table.num_rows:
        raise F5pyError(
            f"no {options.by} has {options.min_coverage} or more reads in both samples; give more reads, or a smaller "
            "--min-coverage"
        )
    with named_together():
        write_table(table, options.output, options.threads)
        write_comparison(options.report, (display_name(options.a), display_name(options.b)), columns)
    least = columns["KS_intensity_qvalue"].min()
    console.result(
        "compare",
        f"{table.num_rows:,} {options.by}s, smallest q-value of the levels {least:.2g}; written: "
        f"{display_output(options.output)}",
        options.output,
    )
    return table


def _check(options: CompareOptions) -> None:
    """Raise `UsageError` for contradicting options."""
    of_reads = [is_alignments(path) for path in (options.a, options.b)]
    declared = declarations(CompareOptions)
    given = [name for name in (*_OF_READS, *_OF_EVENTALIGN) if getattr(options, name) != declared[name].default]
    if any(of_reads) and options.genome is None:
        raise UsageError("alignments need the reference that they were mapped to: give -g")
    if not any(of_reads) and given:
        raise UsageError(f"--{given[0].replace('_', '-')}: is for alignments; A and B are tables of events")
    for name in _OF_READS:
        if len(getattr(options, name)) > 2:
            raise UsageError(f"--{name}: give it once for both samples, or twice, for A and for B")
    check_read_once([options.a, options.b])
    check_outputs(options)
    check_can_draw([report_kind(path) for path in options.report])
    kind_among(options.output, "a table is written", ("tsv", "csv", "parquet"))


def _levels(options: CompareOptions, at: int, collector: LevelCollector) -> ReadLevels:
    """Collect the events of the first or the second sample."""
    path = (options.a, options.b)[at]
    if not is_alignments(path):
        with progress("bytes", size_of([path])) as bar:
            for rows in read_events(path, bar.advance):
                collector.add(rows)
        return _finish(collector, path)
    chosen: dict[str, Any] = {name: getattr(options, name) for name in _OF_EVENTALIGN}
    for name in _OF_READS:
        values = getattr(options, name)
        if values:
            value = values[min(at, len(values) - 1)]
            chosen[name] = value if name == "reads" else (value,)
    take: Callable[[Any], None] = collector.add
    eventalign.run(
        EventalignOptions(
            bam=path, threads=options.threads, min_mapq=options.min_mapq, strict=options.strict, scale_events=True,
            **chosen,
        ),
        take,
    )  # fmt: skip
    return _finish(collector, path)


def _finish(collector: LevelCollector, path: str) -> ReadLevels:
    """Collect the levels of a sample; warn of unusable rows."""
    levels = collector.finish()
    if collector.n_unusable:
        input_warning(
            "compare",
            f"{path}: {collector.n_unusable:,} of {collector.n_rows:,} rows are left out: their event_length, "
            "model_mean or model_stdv is not a number, is infinite, or is negative",
        )
    return levels
