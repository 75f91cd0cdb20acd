"""Methylation of regions by sample: ``f5py regions``."""

import os
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from f5py.commands.counted_sites import Inputs
from f5py.commands.meth_freq import chosen_motif, frequencies_of
from f5py.core.windows import read_bed
from f5py.errors import InputFileError, UsageError
from f5py.io.arrow.arrow import import_arrow
from f5py.io.arrow.table import dictionary_column, write_table
from f5py.io.arrow.text_input import check_read_once, display_name
from f5py.io.files.inputs_in_use import inputs_in_use
from f5py.io.files.output import display_output
from f5py.messages import console
from f5py.messages.console import input_warning, obeys_strict
from f5py.options.frequency_commands import FrequencyOptions, RegionsOptions
from f5py.options.output_names import kind_among, packed_ending
from f5py.site_frequencies.site_table import RegionSums, sums_of_regions

_MOST_POSITION = 2**31 - 1


@obeys_strict
def run(options: RegionsOptions) -> Any:
    """Write a row for each region and sample; return them as a `pyarrow.Table`. Raises `F5pyError`, leaving no file."""
    arrow, _ = import_arrow("regions")
    paths = list(options.tables)
    if not paths:
        raise UsageError("no tables are given; name tables of frequencies, bedMethyl or modBAM files after the regions")
    if options.samples and len(options.samples) != len(paths):
        raise UsageError(f"--sample: {len(options.samples)} names for {len(paths)} files; give one for each, in order")
    kind_among(options.output, "a table is written", ("tsv", "csv", "parquet"))
    check_read_once([options.bed, *paths])
    with inputs_in_use([options.bed, *paths]):
        regions = read_bed(options.bed)
        contigs = [region[0] for region in regions]
        starts, ends = np.minimum([region[1:3] for region in regions], _MOST_POSITION).astype(np.int64).T
        parts = []
        for path in paths:
            frequencies = _frequencies(path, options)
            known = {name.decode("utf-8", "surrogateescape") for name in frequencies.chromosomes}
            if len(frequencies) and not known & set(contigs):
                raise InputFileError(
                    f"{options.bed}: its regions are on {_some(contigs)}, and the sites of {display_name(path)} on "
                    f"{_some(known)}; give regions with the names of the same reference"
                )
            parts.append(sums_of_regions(frequencies, contigs, starts, ends))
            if not parts[-1].sites.any():
                input_warning("regions", f"{display_name(path)}: no site in any region")
        table = _table(arrow, regions, options.samples or _sample_names(paths), parts)
        write_table(table, options.output)
    console.result(
        "regions", f"{len(regions):,} regions of {len(paths)} samples; written: {display_output(options.output)}",
        options.output,
    )  # fmt: skip
    return table


def _frequencies(path: str, options: RegionsOptions) -> Any:
    """Count the sites of a file, as ``meth-freq -s`` does, or take them from a table of frequencies."""
    given = FrequencyOptions(
        tables=(path,), threshold=options.threshold, split_groups=True, methylation=options.methylation,
        motif=options.motif, mod_code=options.mod_code, genome=options.genome,
    )  # fmt: skip
    inputs = Inputs.of([path], "regions")
    return frequencies_of(inputs, chosen_motif(given), given, are_counted=True).covered(options.min_coverage)


def _table(arrow: Any, regions: list[Any], samples: Sequence[str], parts: list[RegionSums]) -> Any:
    """Order the sums by region, then by sample."""
    n, n_samples = len(regions), len(samples)
    region, sample = (
        np.repeat(np.arange(n, dtype=np.int32), n_samples),
        np.tile(np.arange(n_samples, dtype=np.int32), n),
    )
    columns = {
        "chromosome": dictionary_column(region, [one[0] for one in regions]),
        "start": arrow.array([one[1] for one in regions], arrow.int64()).take(arrow.array(region)),
        "end": arrow.array([one[2] for one in regions], arrow.int64()).take(arrow.array(region)),
        "name": arrow.array([one[4] or "." for one in regions], arrow.string()).take(arrow.array(region)),
        "sample": dictionary_column(sample, list(samples)),
    }
    for name in RegionSums._fields:
        columns[name] = arrow.array(np.stack([getattr(part, name) for part in parts], axis=1).ravel())
    return arrow.table(columns)


def _sample_names(paths: Sequence[str]) -> list[str]:
    """Name samples by their files, with the folders where names are the same."""
    names = [display_name(path) if path == "-" else _stem(os.path.basename(path)) for path in paths]
    repeated = {name for name, n in Counter(names).items() if n > 1}
    longer = [_stem(path) if name in repeated else name for name, path in zip(names, paths, strict=True)]
    if len(set(longer)) < len(longer):
        raise UsageError("a file is given twice; name the samples with --sample")
    return longer


def _stem(path: str) -> str:
    return os.path.splitext(path.removesuffix(packed_ending(path)))[0]


def _some(names: Any) -> str:
    listed = sorted(set(names))
    return ", ".join(listed[:3]) + (", ..." if len(listed) > 3 else "")
