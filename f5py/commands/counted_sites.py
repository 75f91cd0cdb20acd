"""Counts of sites from whatever ``f5py meth-freq`` is given: tables of calls, modBAM or bedMethyl."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import fields
from typing import BinaryIO, NamedTuple, cast

from f5py.core.motifs import Motif
from f5py.errors import InputFileError, UsageError
from f5py.io.arrow.text_input import beginning_of_input, display_name, open_bytes, open_tables, size_of
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.modifications.modified_sites import SiteSelection, TagCounts
from f5py.messages import console
from f5py.messages.console import input_warning
from f5py.messages.progress import progress
from f5py.options.cores import usable_cores
from f5py.options.frequency_commands import FrequencyOptions
from f5py.options.output_names import FOR_R, is_alignments
from f5py.site_frequencies.bedmethyl_rows import count_bedmethyl, is_bedmethyl
from f5py.site_frequencies.frequency import check_combinable, site_counts
from f5py.site_frequencies.site_counts import SiteCounts, count_modbam

CALLS, MODBAM, BEDMETHYL = "tables of calls", "alignments with tags", "bedMethyl files"
_BEGINNING = 1 << 12
_MAGIC = 4  # bytes that tell alignments
_OF_ALIGNMENTS = (b"BAM\1", b"CRAM", b"@HD\t", b"@SQ\t", b"@RG\t", b"@PG\t", b"@CO\t")
#: Options that only some inputs have a use for, and what they are then called.
_USES = {
    "threshold": ("--call-threshold", (CALLS, MODBAM)),
    "threshold_per_site": ("--threshold-per-site", (CALLS,)),
    "mod_code": ("--mod-code", (MODBAM, BEDMETHYL)),
    "genome": ("--genome", (MODBAM,)),
}


class Inputs(NamedTuple):
    """Files that are counted as one."""

    # what they are, all of them: `CALLS`, `MODBAM` or `BEDMETHYL`. Text that comes through a pipe is taken for calls
    # until it is read.
    kind: str
    paths: list[str]  # ``-`` is standard input
    beginning: bytes  # what has been read of standard input

    @classmethod
    def of(cls, paths: Sequence[str], command: str = "meth-freq") -> Inputs:
        """Determine the common kind of some inputs."""
        if list(paths) == ["-"]:
            console.note(command, "Scanning the input from stdin ...")
        beginning, content = beginning_of_input(_MAGIC) if "-" in paths else (b"", b"")
        kinds = {_kind_of(path, content) for path in paths}
        if len(kinds) > 1:
            raise UsageError(f"{' and '.join(sorted(kinds))} cannot be counted together; give inputs of one kind")
        return cls(kinds.pop(), list(paths), beginning)

    def beginning_of(self, path: str) -> bytes:
        """Return the bytes already read of an input."""
        return self.beginning if path == "-" else b""


def _kind_of(path: str, of_standard_input: bytes) -> str:
    if is_alignments(path):
        return MODBAM
    if path == "-":
        return MODBAM if of_standard_input.startswith(_OF_ALIGNMENTS) else CALLS
    if not os.path.isfile(path):
        return CALLS
    with open_bytes(path, zeros=True) as source:
        return _kind_of_content(source)


def _kind_of_content(source: BinaryIO) -> str:
    beginning = cast(io.BufferedReader, source).peek(_BEGINNING)
    if beginning.startswith(_OF_ALIGNMENTS):
        return MODBAM
    return BEDMETHYL if is_bedmethyl(beginning) else CALLS


def check_source(kind: str, options: FrequencyOptions) -> None:
    """Raise `UsageError` for options that have no effect on inputs of this kind."""
    defaults = {one.name: one.default for one in fields(options)}
    for field, (name, kinds) in _USES.items():
        if kind not in kinds and getattr(options, field) != defaults[field]:
            why = "; their calls were counted with a threshold already" if field == "threshold" else ""
            raise UsageError(f"{name} belongs to {' and '.join(kinds)}, not to {kind}{why}; leave it out")


@contextmanager
def opened_tables(inputs: Inputs, options: FrequencyOptions) -> Iterator[tuple[BinaryIO, Callable[[int], str], bool]]:
    """Open tables as one; yield it, the locator of a line, and whether it is bedMethyl, as a pipe may be."""
    paths = inputs.paths
    with (
        progress("bytes", size_of(paths)) as bar,
        open_tables(paths, bar.advance, inputs.beginning) as (table, line_of),
    ):
        kind = _kind_of_content(table) if len(paths) == 1 else CALLS
        if kind == MODBAM:
            raise InputFileError(
                f"{display_name(paths[0])}: has alignments; give the name of a file, or - for standard input"
            )
        check_source(kind, options)
        yield table, line_of, kind == BEDMETHYL


def counts_of_sites(inputs: Inputs, motif: Motif, options: FrequencyOptions) -> tuple[SiteCounts, list[bytes]]:
    """Count the calls of single sites; return the counts, and the contigs' names."""
    if options.combine_strands:
        check_combinable(motif)
    paths = inputs.paths
    if inputs.kind == MODBAM:
        return _of_alignments(inputs, motif, options)
    if inputs.kind == BEDMETHYL:
        with progress("bytes", size_of(paths)) as bar:
            return counts_of_bedmethyl((open_bytes(path, bar.advance) for path in paths), paths, motif, options)
    with opened_tables(inputs, options) as (table, line_of, is_bed):
        if is_bed:
            return counts_of_bedmethyl([nullcontext(table)], paths, motif, options)
        return site_counts(
            table, motif, options.threshold, options.threshold_per_site, options.combine_strands, line_of
        )


def counts_of_bedmethyl(
    opened: Iterable[AbstractContextManager[BinaryIO]], paths: Sequence[str], motif: Motif, options: FrequencyOptions
) -> tuple[SiteCounts, list[bytes]]:
    """Count the calls of bedMethyl tables, as `counts_of_sites` does.

    Raises `UsageError` if combined strands must be separated.
    """
    counts, contigs, are_combined = SiteCounts(combine_strands=options.combine_strands), dict[str, int](), False
    for table, path in zip(opened, paths, strict=True):
        with table as source:
            found = count_bedmethyl(source, display_name(path), counts, contigs, motif, options.mod_code)
        are_combined = are_combined or found[1]
    has_strands = options.bedmethyl or options.output_format in FOR_R
    if are_combined and (options.stranded or (has_strands and not options.combine_strands)):
        advice = "leave out --stranded" if options.stranded else "add --combine-strands"
        raise UsageError(f"rows of bedMethyl have both strands as one (.), so these cannot be told apart; {advice}")
    return counts, [name.encode() for name in contigs]


def _of_alignments(inputs: Inputs, motif: Motif, options: FrequencyOptions) -> tuple[SiteCounts, list[bytes]]:
    counts, contigs = SiteCounts(combine_strands=options.combine_strands), dict[str, int]()
    wanted = SiteSelection(motif, options.threshold, options.mod_code, without_call=bool(options.bedmethyl))
    for path in inputs.paths:
        beginning = inputs.beginning_of(path)
        with (
            closing(AlignmentFile(path, options.genome, 0, secondary=False, beginning=beginning)) as alignments,
            progress("records", alignments.expected_records()) as bar,
        ):
            tags = count_modbam(alignments, counts, contigs, wanted, options.genome, usable_cores(), bar.advance)
        tell_of_tags("meth-freq", display_name(path), tags, wanted)
    return counts, [name.encode("utf-8", "surrogateescape") for name in contigs]


def warn_of_tags(
    command: str, shown: str, tags: TagCounts, wanted: str = "of modified bases", advice: str = ""
) -> None:
    """Warn of skipped records. Raises `InputFileError` if none has the `wanted` calls."""
    if tags.records and tags.without == tags.records:
        raise InputFileError(
            f"{shown}: none of {tags.records:,} alignments has calls {wanted} in MM and ML tags; call modified bases "
            f"first{advice}"
        )
    if not tags.records:
        input_warning(command, f"{shown}: no read is aligned, so there is nothing to count")
    if tags.damaged:
        input_warning(
            command,
            f"{shown}: the tags of {tags.damaged:,} of {tags.records:,} alignments are damaged, or of another sequence "
            "as of hard-clipped records without MN; these were left out",
        )


def tell_of_tags(command: str, shown: str, tags: TagCounts, wanted: SiteSelection) -> None:
    """Report skipped calls. Raises `InputFileError` if no alignment has such tags."""
    motif, code = wanted.motif, wanted.codes[0]
    advice = ", or name the modification with --mod-code"
    warn_of_tags(command, shown, tags, f"{motif.canonical}+{code}", advice)
    reasons = (
        (tags.not_at_motif, f"where {'the read does' if wanted.reference is None else 'the reference does'} not have "
         f"{motif.pattern}"),
        (tags.not_aligned, "on bases that are not aligned"),
    )  # fmt: skip
    left_out = [f"{count:,} {why}" for count, why in reasons if count]
    if left_out:
        console.note(command, f"{shown}: of {tags.n:,} calls {code}, left out: {', '.join(left_out)}")
