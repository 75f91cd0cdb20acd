"""Tables of methylation frequencies from files to files: what ``f5py meth-freq`` and ``f5py freq-merge`` do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import BinaryIO, cast

from f5py import console
from f5py.core.motifs import Motif, motif_named, parse_motif
from f5py.core.options import CALL_THRESHOLD, METHYLATION
from f5py.errors import UsageError
from f5py.frequencies.frequency import methylation_frequency, site_counts
from f5py.frequencies.frequency_merge import FrequencyMerger
from f5py.io.byte_input import open_bytes
from f5py.io.complete_file import complete_text_output

#: Reading the calls is the other half of the work.
_COMPRESSION_THREADS = 2


@dataclass(frozen=True)
class FrequencyOptions:
    """Options of ``f5py meth-freq``; names, meanings and defaults are those of the command line."""

    threshold: float = CALL_THRESHOLD
    threshold_per_site: bool = False
    split_groups: bool = False
    methylation: str | None = None
    motif: str | None = None
    output_format: str = "tsv"  # or "parquet"
    bedmethyl: bool = False
    combine_strands: bool = False

    def chosen_motif(self) -> Motif:
        """The motif of that name, or the user's own."""
        return motif_named(self.methylation or METHYLATION) if self.motif is None else parse_motif(self.motif)

    def check(self, output: str) -> None:
        """Raise `UsageError` for options that do not go together."""
        if math.isnan(self.threshold):
            raise UsageError("--call-threshold: nan is not a number")
        if self.threshold_per_site and not 0 <= self.threshold < math.inf:
            raise UsageError(
                f"--threshold-per-site needs a finite --call-threshold of at least 0, not {self.threshold:g}"
            )
        if self.combine_strands and not self.bedmethyl:
            raise UsageError("--combine-strands belongs to --bedmethyl; the other tables never tell strands apart")
        if self.bedmethyl and self.split_groups:
            raise UsageError("--bedmethyl always splits groups; leave out --split-groups")
        if self.motif is not None and self.methylation is not None:
            raise UsageError("--methylation and --motif are both given; choose one")
        if self.output_format == "parquet":
            if self.bedmethyl:
                raise UsageError("--bedmethyl is a text format; leave out --output-format parquet")
            if output == "-":
                raise UsageError("--output-format parquet needs a file: name one with -o")
            if output.endswith((".gz", ".bgz")):
                raise UsageError(f"-o {output}: Parquet is compressed already; give a name without .gz")


def write_frequency_file(calls: str, output: str, options: FrequencyOptions) -> None:
    """Count the calls of one table and write what comes out; ``-`` is standard input or output.

    Raises
    ------
    F5pyError
        For anything wrong with the input or output. No output file is made then.
    """
    options.check(output)
    motif = options.chosen_motif()
    if calls == "-":
        console.note("meth-freq", "Scanning the input from stdin ...")
    with open_bytes(calls) as source:
        name = "standard input" if calls == "-" else calls
        if options.bedmethyl:
            _write_bedmethyl(source, name, output, motif, options)
            return
        with complete_text_output(output, _COMPRESSION_THREADS) as out:
            if options.output_format == "parquet":
                from f5py.outputs.arrow_table import import_arrow

                import_arrow()  # or fail before the work starts
            frequencies = methylation_frequency(
                source,
                options.threshold,
                options.split_groups,
                name,
                threshold_per_site=options.threshold_per_site,
                motif=motif,
            )
            if options.output_format == "parquet":
                from f5py.outputs.frequency_parquet import write_frequency_parquet

                write_frequency_parquet(cast(BinaryIO, out), frequencies)
            else:
                frequencies.write(out)
    if frequencies.odd_groups:
        console.warning(
            "meth-freq",
            f"{frequencies.odd_groups} groups hold another number of {motif.pattern} than their rows say; "
            "if these are calls of another motif, name it with -q or --motif",
        )


def _write_bedmethyl(source: BinaryIO, name: str, output: str, motif: Motif, options: FrequencyOptions) -> None:
    from f5py.outputs.bedmethyl import check_can_write, write_bedmethyl

    check_can_write(output)
    counts, names = site_counts(
        source, motif, options.threshold, options.threshold_per_site, options.combine_strands, name
    )
    write_bedmethyl(output, counts, names, motif, _COMPRESSION_THREADS)


def merge_frequency_files(paths: list[str], output: str) -> None:
    """Add up tables of frequencies; see `FrequencyMerger`. What they disagree on becomes a warning.

    Raises
    ------
    F5pyError
        For anything wrong with the input or output. No output file is made then.
    """
    if len(paths) < 2:
        raise UsageError("give at least two tables of frequencies")
    if paths.count("-") > 1:
        raise UsageError("standard input (-) can be read only once")
    merger = FrequencyMerger()
    with complete_text_output(output, _COMPRESSION_THREADS) as out:
        for path in paths:
            with open_bytes(path) as source:
                merger.add(source, "standard input" if path == "-" else path)
        merged = merger.result()
        merged.write(out)
    if merger.n_conflicts:
        console.warning(
            "freq-merge",
            f"{merger.n_conflicts} rows show another group_sequence than an earlier row of the same chromosome, start "
            "and end; the longest was kept",
        )
    if len(merger.count_columns) > 1:
        console.warning(
            "freq-merge",
            "some tables count num_motifs_in_group and some num_cpgs_in_group; the output's column is named as in "
            f"the last table, {merged.count_column}_in_group",
        )
