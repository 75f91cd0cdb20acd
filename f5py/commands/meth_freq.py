"""Tables of methylation frequencies: ``f5py meth-freq`` and ``f5py freq-merge``."""

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from io import BufferedReader
from typing import Any, cast

from f5py.commands.counted_sites import CALLS, Inputs, check_source, counts_of_bedmethyl, counts_of_sites, opened_tables
from f5py.core.motifs import Motif, motif_named, parse_motif
from f5py.errors import InputFileError, UsageError
from f5py.io.arrow.text_input import check_read_once, display_name, open_bytes, size_of
from f5py.io.bytes.bgzip_output import is_bgzip_name
from f5py.io.files.inputs_in_use import inputs_in_use
from f5py.io.files.output import display_output
from f5py.io.files.table_output import complete_table
from f5py.messages import console
from f5py.messages.console import input_warning, obeys_strict
from f5py.messages.progress import progress
from f5py.options.frequency_commands import ExtractOptions, FrequencyOptions, MergeOptions
from f5py.options.output_names import FOR_R, OF_SITES, TABLE, check_name, kind_among, kind_of_output
from f5py.options.shared import METHYLATION
from f5py.options.table_commands import EvaluationOptions
from f5py.site_frequencies.frequency import methylation_frequency
from f5py.site_frequencies.frequency_merge import FrequencyMerger, is_frequency_header
from f5py.site_frequencies.site_counts import frequencies_of_sites
from f5py.site_frequencies.site_table import Frequencies

#: Reading the calls is the other half of the work.
_COMPRESSION_THREADS = 2
#: More than the header of a table of frequencies.
_BEGINNING = 1 << 12


def chosen_motif(options: FrequencyOptions | EvaluationOptions | ExtractOptions) -> Motif:
    """Return the motif of the options."""
    return motif_named(options.methylation or METHYLATION) if options.motif is None else parse_motif(options.motif)


def with_format(options: FrequencyOptions) -> FrequencyOptions:
    """Resolve the output format from the name, unless it is given."""
    if options.output_format in FOR_R:
        kind_among(options.output, "a table for R is written", ("tsv",))
        return replace(options, split_groups=False)
    if options.output_format is not None:
        return options
    kind = kind_among(options.output, "counts of sites are written", ("tsv", "csv", "parquet", *OF_SITES))
    if options.bedmethyl:
        if kind == "csv":
            raise UsageError(f"-o {options.output}: bedMethyl has tabs between its columns; name the file .bed")
        kind = "tsv"
    if kind in OF_SITES:
        return replace(options, bedmethyl=True, split_groups=False, output_format="tsv")
    return replace(options, output_format=kind if kind in ("parquet", "csv") else "tsv")


def check_options(options: FrequencyOptions, to_callback: bool = False) -> None:
    """Raise `UsageError` for contradicting options; with `to_callback` the rows go to a function."""
    if to_callback and (options.output != "-" or options.bedmethyl or options.output_format != "tsv"):
        raise UsageError(
            "-o, --bedmethyl and --output-format say how a file is written, and the rows are returned; name the file "
            "and leave out returns, or leave these options out"
        )
    if options.threshold_per_site and not 0 <= options.threshold < math.inf:
        raise UsageError(
            f"--threshold-per-site needs a finite --call-threshold of at least 0, not {options.threshold:g}"
        )
    if kind_of_output(options.output) == "bigwig" and options.bedmethyl and options.chrom_sizes is None:
        raise UsageError(
            f"-o {options.output}: bigWig needs the lengths of the chromosomes; give --chrom-sizes, such as the "
            "reference's .fai"
        )
    if options.output_format == "parquet" and is_bgzip_name(options.output):
        raise UsageError(f"-o {options.output}: Parquet is compressed already; give a name without .gz")


@obeys_strict
def write_frequency_file(options: FrequencyOptions, take: Callable[[Any], None] | None = None) -> None:
    """Count the calls of all tables and write the frequencies. Raises `F5pyError`, leaving no file.

    `take`, a function of a `pyarrow.Table`, gets the rows in pieces instead of the output.
    """
    options = with_format(options)
    check_options(options, take is not None)
    paths = [*options.calls, *options.tables] or ["-"]
    check_read_once(paths)
    with inputs_in_use(paths):
        _write(Inputs.of(paths), options, take)


def _write(inputs: Inputs, options: FrequencyOptions, take: Callable[[Any], None] | None) -> None:
    motif = chosen_motif(options)
    check_source(inputs.kind, options)
    if options.bedmethyl or options.output_format in FOR_R:
        _write_bedmethyl(inputs, motif, options)
        return
    is_arrow = take is not None or options.output_format == "parquet"
    if is_arrow:
        from f5py.io.arrow.arrow import import_arrow

        import_arrow()  # or fail before the work starts
    out: Any
    table = complete_table(options.output, _COMPRESSION_THREADS, options.output_format == "csv")
    with table if take is None else nullcontext(take) as out:
        frequencies = frequencies_of(inputs, motif, options).covered(options.min_coverage)
        if is_arrow:
            from f5py.outputs.sites.bedmethyl import write_frequency_rows

            write_frequency_rows(out, frequencies)
        else:
            frequencies.write(out)
    n_odd = frequencies.odd_groups
    if inputs.kind == CALLS and (options.methylation or options.motif):
        n_odd += frequencies.count_without(motif)
    if n_odd:
        input_warning(
            "meth-freq",
            f"{n_odd} groups hold another number of {motif.pattern} than their rows say; "
            "if these are calls of another motif, name it with -q or --motif",
        )
    n_calls, n_methylated = frequencies.calls()
    share = f", {100 * n_methylated / n_calls:.1f} % of {n_calls:,} calls methylated" if n_calls else ""
    where = "" if take is not None else f"; written: {display_output(options.output)}"
    console.result("meth-freq", f"{len(frequencies):,} sites{share}{where}", options.output)


def frequencies_of(inputs: Inputs, motif: Motif, options: FrequencyOptions, are_counted: bool = False) -> Frequencies:
    """Count the calls of every site; with `are_counted`, the input may also be one table of frequencies."""
    if inputs.kind == CALLS:
        with opened_tables(inputs, options) as (table, line_of, is_bedmethyl):
            if are_counted and is_frequency_header(cast(BufferedReader, table).peek(_BEGINNING)):
                merger = FrequencyMerger()
                merger.add(table, display_name(inputs.paths[0]))
                return merger.result()
            if is_bedmethyl:
                counts, names = counts_of_bedmethyl([nullcontext(table)], inputs.paths, motif, options)
            else:
                return methylation_frequency(
                    table,
                    options.threshold,
                    options.split_groups,
                    line_of,
                    threshold_per_site=options.threshold_per_site,
                    motif=motif,
                    stranded=options.stranded,
                )
    else:
        counts, names = counts_of_sites(inputs, motif, options)
    return frequencies_of_sites(counts, names, options.stranded)


def _write_bedmethyl(inputs: Inputs, motif: Motif, options: FrequencyOptions) -> None:
    from f5py.outputs.sites.bedmethyl import check_can_write, write_bedmethyl

    check_can_write(options.output)
    lengths = None if options.chrom_sizes is None else _chromosome_lengths(options.chrom_sizes)
    counts, names = counts_of_sites(inputs, motif, options)
    write_bedmethyl(
        options.output, counts, names, motif, _COMPRESSION_THREADS, lengths, options.min_coverage, options.mod_code,
        options.output_format if options.output_format in FOR_R else None,
    )  # fmt: skip
    console.result("meth-freq", f"written: {display_output(options.output)}", options.output)


def _chromosome_lengths(path: str) -> dict[bytes, int]:
    """Read names and lengths from the first two columns of a table, such as ``.fai``. Raises `InputFileError`."""
    lengths: dict[bytes, int] = {}
    with open_bytes(path) as file:
        for number, line in enumerate(file, 1):
            fields = line.split()
            if not fields:
                continue
            if len(fields) < 2 or not fields[1].isdigit():
                raise InputFileError(f"{path}, line {number}: has no name and length, separated by a tab")
            lengths[fields[0]] = int(fields[1])
    return lengths


@obeys_strict
def merge_frequency_files(options: MergeOptions, take: Callable[[Any], None] | None = None) -> None:
    """Add up tables of frequencies, with warnings of contradictions. `take` is as for `write_frequency_file`."""
    paths, output = list(options.tables), options.output
    if not paths:
        raise UsageError("no files are given; name the tables of frequencies to add up")
    if take is not None and output != "-":
        raise UsageError("-o: the rows are returned instead of written; leave it out, or returns")
    check_name("-o", output, TABLE)
    check_read_once(paths)
    merger = FrequencyMerger()
    out: Any
    table = complete_table(output, _COMPRESSION_THREADS)
    target: Any = table if take is None else nullcontext()
    with progress("bytes", size_of(paths)) as bar, target as out:
        for path in paths:
            with open_bytes(path, bar.advance) as source:
                merger.add(source, display_name(path))
        merged = merger.result()
        if take is None:
            merged.write(out)
        else:
            from f5py.outputs.sites.bedmethyl import write_frequency_rows

            write_frequency_rows(take, merged)
    if merger.n_conflicts:
        input_warning(
            "freq-merge",
            f"{merger.n_conflicts} rows show another group_sequence than an earlier row of the same chromosome, start "
            "and end; the longest was kept",
        )
    if len(merger.count_columns) > 1:
        input_warning(
            "freq-merge",
            "some tables count num_motifs_in_group and some num_cpgs_in_group; the output's column is named as in "
            f"the last table, {merged.count_column}_in_group",
        )
    where = "" if take is not None else f"; written: {display_output(output)}"
    console.result("freq-merge", f"{len(merged):,} sites{where}", output)
