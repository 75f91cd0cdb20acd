"""Calls of single reads as one table: ``f5py extract``."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.commands.counted_sites import BEDMETHYL, MODBAM, Inputs, warn_of_tags
from f5py.commands.meth_freq import chosen_motif
from f5py.core.motifs import Motif
from f5py.core.names import Names
from f5py.core.windows import Windows
from f5py.errors import InputFileError, UsageError
from f5py.evaluation.call_table import read_calls
from f5py.io.arrow.text_input import check_read_once, display_name, size_of
from f5py.io.bam._bam_numba import CONTIG, MAPQ
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.bam_records import fixed_numbers, record_names, tag_texts
from f5py.io.bam.modifications.listed_calls import listed_calls
from f5py.io.bam.modifications.modified_sites import TagCounts
from f5py.io.files.inputs_in_use import inputs_in_use
from f5py.io.files.output import display_output
from f5py.io.files.table_output import complete_table
from f5py.io.reads.read_list import ReadList
from f5py.messages import console
from f5py.messages.console import input_warning, obeys_strict
from f5py.messages.progress import progress
from f5py.options.cores import usable_cores
from f5py.options.frequency_commands import ExtractOptions
from f5py.options.output_names import kind_among
from f5py.outputs.calls.extracted_calls import (
    FIELDS,
    HEADER,
    NO_MAPQ,
    CallColumns,
    ExtractedReads,
    arrow_columns,
    rows_of_text,
)
from f5py.site_frequencies.frequency import NAME_MOTIF, split_groups
from f5py.site_frequencies.table_reader import PADDING
from f5py.threads.ordered import prefetch_ordered

#: A portion's rows take some 30 times its size, and one thread writes.
_MOST_THREADS = 8
_COMPRESSION_THREADS = 2
#: Stands for a haplotype that is not known.
_NONE = "."
#: Middles of the intervals that ML values stand for.
_OF_VALUES = (np.arange(256) + 0.5) / 256
_Portion = tuple[ExtractedReads, CallColumns]


@obeys_strict
def run(options: ExtractOptions, take: Callable[[Any], None] | None = None) -> None:
    """Write a row for each call of modified bases. Raises `F5pyError`, leaving no file.

    `take`, a function of a `pyarrow.Table`, gets the rows in pieces instead of the output.
    """
    kind = kind_among(options.output, "a table of calls is written", ("tsv", "csv", "parquet"))
    if take is not None and options.output != "-":
        raise UsageError("-o: the rows are returned instead of written; leave it out, or returns")
    if kind == "parquet" and options.output == "-":
        raise UsageError("-o: Parquet cannot go to a pipe; name a file")
    paths = list(options.inputs) or ["-"]
    check_read_once(paths)
    with inputs_in_use(paths):
        inputs = Inputs.of(paths, "extract")
        if inputs.kind == BEDMETHYL:
            raise UsageError(
                f"{display_name(paths[0])}: bedMethyl has counts of sites, not calls of reads; give modBAM"
            )
        is_arrow = take is not None or kind == "parquet"
        chosen = None if options.read_ids is None else ReadList.read(options.read_ids)
        n_rows = 0
        convert = arrow_columns if is_arrow else rows_of_text
        with _sink(options.output, take, is_arrow) as write:
            portions = _rows_of_alignments if inputs.kind == MODBAM else _rows_of_tables
            for count, rows in portions(inputs, options, chosen, convert):
                n_rows += count
                write(rows)
            if chosen is not None:
                chosen.warn_of_missing(", ".join(map(display_name, paths)))
    if not n_rows:
        input_warning("extract", f"no call {'of these reads or regions' if chosen or options.window else ''}".rstrip())
    where = "" if take is not None else f"; written: {display_output(options.output)}"
    console.result("extract", f"{n_rows:,} calls{where}", options.output)


@contextmanager
def _sink(output: str, take: Callable[[Any], None] | None, is_arrow: bool) -> Iterator[Callable[[Any], object]]:
    """Open the output; yield a function that writes converted rows."""
    from f5py.io.arrow.table import arrow_sink

    if take is not None:
        with arrow_sink(take, FIELDS) as sink:
            yield sink.write
        return
    with complete_table(output, _COMPRESSION_THREADS) as out:
        if is_arrow:
            with arrow_sink(out, FIELDS) as sink:  # type: ignore[arg-type]
                yield sink.write
        else:
            header = [HEADER]  # written with the first rows: before that the input may turn out to be no table

            def write(rows: Any) -> None:
                out.write(header.pop() if header else b"")
                out.write(rows)

            yield write
            write(b"")


def _rows_of_alignments(
    inputs: Inputs,
    options: ExtractOptions,
    chosen: ReadList | None,
    convert: Callable[[ExtractedReads, CallColumns], Any],
) -> Iterator[tuple[int, Any]]:
    """Yield the number of rows and the rows of alignments with tags, portion by portion."""
    for path in inputs.paths:
        tags = TagCounts()
        with (
            closing(
                AlignmentFile(
                    path, options.genome, 0, secondary=False, beginning=inputs.beginning_of(path), chosen=chosen
                )
            ) as alignments,
            progress("records", alignments.expected_records()) as bar,
        ):
            windows = Windows.parse(options.window, alignments.contigs) if options.window else None
            contigs = Names.of(alignments.contigs)

            def work(
                chunk: tuple[NDArray[np.uint8], NDArray[np.int64], int],
                windows: Windows | None = windows, contigs: Names = contigs,
            ) -> tuple[int, NDArray[np.int64], int, Any]:  # fmt: skip
                data, starts, n = chunk
                found, counts = listed_calls(data, starts, n)
                reads = _reads_of_records(data, starts, n, contigs)
                calls = CallColumns(*found)
                if windows is not None:
                    position = calls.position.astype(np.int64)
                    calls = calls.chosen(windows.contain(reads.contig[calls.read], position, position))
                return n, counts, len(calls.read), convert(reads, calls)

            n_threads = min(usable_cores(), _MOST_THREADS)
            with closing(prefetch_ordered(alignments.chunks(windows), work, n_threads, "f5py-extract")) as portions:
                for n_records, counts, n_rows, rows in portions:
                    tags.add(counts)
                    bar.advance(n_records)
                    yield n_rows, rows
        if not (options.window or chosen) or tags.without < tags.records:
            warn_of_tags("extract", display_name(path), tags)
        if tags.not_aligned:
            console.note(
                "extract",
                f"{display_name(path)}: of {tags.n:,} calls, left out: {tags.not_aligned:,} on bases that are not "
                "aligned",
            )


def _reads_of_records(data: NDArray[np.uint8], starts: NDArray[np.int64], n: int, contigs: Names) -> ExtractedReads:
    every = np.arange(n)
    haplotype, texts = tag_texts(data, starts, every, "HP")
    return ExtractedReads(
        record_names(data, starts, every), contigs, fixed_numbers(data, starts[:n], CONTIG, np.int32),
        data[starts[:n] + MAPQ], Names.of([*texts, _NONE]), np.where(haplotype < 0, len(texts), haplotype), _OF_VALUES,
    )  # fmt: skip


def _rows_of_tables(
    inputs: Inputs,
    options: ExtractOptions,
    chosen: ReadList | None,
    convert: Callable[[ExtractedReads, CallColumns], Any],
) -> Iterator[tuple[int, Any]]:
    """Yield the number of rows and the rows of tables of calls, portion by portion."""
    motif, n_undefined = chosen_motif(options), 0
    wanted = ("chromosome", "strand", "start", "end", "read_name", "log_lik_ratio", "num_motifs", "sequence")
    with progress("bytes", size_of(inputs.paths)) as bar:
        for batch in read_calls(inputs.paths, wanted, bar.advance, motif.name, inputs.beginning):
            if missing := [name for name in ("strand", "sequence") if name not in batch.schema.names]:
                raise InputFileError(
                    f"{display_name(inputs.paths[0])}: has no column {missing[0]}; call with --meth-out-version 2"
                )
            reads, calls = _calls_of_rows(batch, motif, display_name(inputs.paths[0]))
            is_defined = ~np.isnan(reads.probabilities[calls.value])
            n_undefined += int((~is_defined).sum())
            if chosen is not None:
                is_defined &= chosen.hold(reads.name)[calls.read]
            if options.window:
                windows = Windows.parse(options.window, list(reads.contigs), all_known=False)
                position = calls.position.astype(np.int64)
                is_defined &= windows.contain(reads.contig[calls.read], position, position)
            calls = calls.chosen(is_defined)
            yield len(calls.read), convert(reads, calls)
    if n_undefined:
        input_warning("extract", f"{n_undefined:,} calls without a log_lik_ratio (nan) were left out")


def _calls_of_rows(batch: Any, motif: Motif, shown: str) -> _Portion:
    """Split the groups of a batch of a table of calls."""
    import pyarrow.compute

    column = {name: batch[name].to_numpy() for name in ("start", "end", "num_motifs", "log_lik_ratio")}
    reverse = pyarrow.compute.equal(batch["strand"], "-").to_numpy(zero_copy_only=False)
    sequence = _names_of(batch["sequence"])
    room = int(sequence.offsets[-1]) + len(batch)
    rows, first = np.empty(room, np.int64), np.empty(room, np.int64)
    masks = motif.codes(False).masks, motif.codes(True).masks
    n = split_groups(
        np.append(sequence.text, np.zeros(PADDING, np.uint8)), sequence.offsets, column["start"], column["end"],
        column["num_motifs"].astype(np.int64), reverse, masks, rows, first,
    )  # fmt: skip
    if n < 0:
        row = -1 - int(n)
        raise InputFileError(
            f"{shown}: the sequence {sequence[row]} at {column['start'][row]} does not hold the sites of {motif.name} "
            f"that its row counts; {NAME_MOTIF}"
        )
    rows, first = rows[:n], first[:n]
    contig = batch["chromosome"].dictionary_encode()
    ratios, value = np.unique(column["log_lik_ratio"], return_inverse=True)
    with np.errstate(over="ignore"):
        probabilities = 1 / (1 + np.exp(-ratios))
    reads = ExtractedReads(
        _names_of(batch["read_name"]), Names.of(contig.dictionary.to_pylist()), contig.indices.to_numpy(),
        np.full(len(batch), NO_MAPQ, np.uint8), Names.of([_NONE]), np.zeros(len(batch), np.int32),
        probabilities,
    )  # fmt: skip
    offset = np.where(reverse, motif.offset_reverse, motif.offset_forward)
    calls = CallColumns(
        rows, first + offset[rows], reverse[rows], np.full(n, ord(motif.canonical), np.uint8),
        np.full(n, _code_number(motif.code)), value[rows],
    )  # fmt: skip
    return reads, calls


def _names_of(column: Any) -> Names:
    """Split an Arrow array of strings into text and offsets."""
    _, offsets, text = column.buffers()
    offsets = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
    return Names(np.frombuffer(text, np.uint8)[offsets[0] : offsets[-1]], offsets - offsets[0])


def _code_number(code: str) -> int:
    """Return a modification's number in `f5py.io.bam.modifications.listed_calls.ListedCalls`."""
    return int(code) if code.isdigit() else -ord(code)
