"""The functions of ``import f5py``: commands with options as keywords and tables as results.

Type checkers know them from the stub beside, with the results by the keywords.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from f5py.api.call import Call, function
from f5py.mapping import MapOptions
from f5py.options.frequency_commands import ExtractOptions, FrequencyOptions, MergeOptions, RegionsOptions
from f5py.options.plot_commands import PlotOptions, PlotRegionOptions
from f5py.options.signal_commands import (
    CallOptions,
    CheckOptions,
    CompareOptions,
    EventalignOptions,
    FinishOptions,
    JoinOptions,
    PlanOptions,
    ResquiggleOptions,
    RunPartOptions,
    TrainOptions,
)
from f5py.options.table_commands import IndexOptions, SimulateOptions, SummaryOptions, ValidateOptions

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from f5py.api import keywords as k
    from f5py.commands.index import IndexSummary
    from f5py.commands.simulate import SimulationSummary
    from f5py.commands.summary import SummaryReport
    from f5py.commands.train import TrainingSummary
    from f5py.commands.validate import ValidationReport
    from f5py.compute.diagnosis import RunCounts
    from f5py.mapping import MapCounts


@function(IndexOptions)
def index(reads: k.Files = (), **options: Unpack[k.IndexOptions]) -> IndexSummary:
    """Index basecalled reads and their signal files, as ``f5py index`` does.

    Returns
    -------
    IndexSummary
        How many reads are known, and how many of them have a signal.

    Examples
    --------
    >>> f5py.index("made/reads.fastq", directories="made/fast5")
    IndexSummary(reads=30, with_signal=30)
    """
    from f5py.commands.index import run

    return Call(IndexOptions, run, options, reads=reads).value()


@function(MapOptions)
def map_reads(reference: k.File, reads: k.Files = (), **options: Unpack[k.MapOptions]) -> MapCounts:
    """Map reads to a reference and sort the alignments, as ``f5py map`` does.

    Returns
    -------
    MapCounts
        Reads, bases, mapped reads and records.

    Examples
    --------
    >>> counts = f5py.map_reads("made/ref.fa", "made/reads.fastq", output="mapped.bam")
    >>> counts.reads
    30
    """
    from f5py.mapping import map_command as run

    call = Call(MapOptions, run, options, reference=reference, reads=reads)
    return call.written("the alignments") if reads else call.value()


@function(CheckOptions)
def fast5_check(*, returns: str | None = None, **options: Any) -> Any:
    """Read the signal of every read in an index, of any format, as ``f5py fast5-check`` does.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or (int, int)
        A row for every read; or, if they are written, how many reads there are, and how many of them have a usable
        signal.

    Examples
    --------
    >>> f5py.fast5_check(reads="made/reads.fastq").num_rows
    30
    """
    from f5py.commands.fast5_check import run

    call = Call(CheckOptions, run, options)
    columns = {"read_name": "string", "signal_file": "string", "samples": "int64", "problem": "string"}
    return call.parsed(returns, columns)


@function(CallOptions)
def call_methylation(*, returns: str | None = None, **options: Any) -> Any:
    """Call methylation in every read, as ``f5py call-methylation`` does.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or RunCounts
        The calls, or, if they are written only, the read counts by outcome. See `iter_calls` for more calls than fit
        in memory.

    Examples
    --------
    >>> calls = f5py.call_methylation(reads="made/reads.fastq", bam="made/reads.bam", genome="made/ref.fa")
    >>> calls.column_names[:4]
    ['chromosome', 'strand', 'start', 'end']
    >>> counts = f5py.call_methylation(
    ...     reads="made/reads.fastq", bam="made/reads.bam", genome="made/ref.fa", output="calls.tsv", modbam="calls.bam"
    ... )
    >>> counts.total
    30
    """
    from f5py.commands.call_methylation import run

    call = Call(CallOptions, run, options)
    if returns is None and (options.get("modbam_output_name") or options.get("output_format") == "none"):
        return call.value()
    return call.rows(returns)


@function(CallOptions)
def iter_calls(*, returns: str | None = None, **options: Any) -> Iterator[Any]:
    """Call methylation and yield the calls of one batch of reads after the other.

    The command works while the caller does; memory follows the size of a batch (`batchsize`, `max_bases`). Closing the
    iterator ends the command.

    Yields
    ------
    pyarrow.Table, pandas.DataFrame or polars.DataFrame
        Calls, in the order of the alignments, with the columns of the Parquet output.

    Examples
    --------
    >>> inputs = {"reads": "made/reads.fastq", "bam": "made/reads.bam", "genome": "made/ref.fa"}
    >>> sum(table.num_rows for table in f5py.iter_calls(**inputs, batchsize=10)) == calls.num_rows
    True
    """
    from f5py.commands.call_methylation import run

    return Call(CallOptions, run, options).batches(returns)


@function(FrequencyOptions)
def frequencies(tables: k.Tables = (), *, returns: str | None = None, **options: Any) -> Any:
    """Methylation frequency at every site, from calls, tags or bedMethyl, as ``f5py meth-freq`` does.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or None
        The frequencies, unless they are written.

    Examples
    --------
    >>> sites = f5py.frequencies("calls.tsv", split_groups=True)
    >>> sites.column_names[:3]
    ['chromosome', 'start', 'end']
    >>> f5py.frequencies("calls.tsv", output="sites.tsv")
    """
    from f5py.commands.meth_freq import write_frequency_file as run

    return Call(FrequencyOptions, run, options, tables=tables).rows(returns)


@function(MergeOptions)
def merge_frequencies(tables: k.Tables = (), *, returns: str | None = None, **options: Any) -> Any:
    """Add up tables of frequencies, as ``f5py freq-merge`` does.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or None
        The frequencies, unless they are written.

    Examples
    --------
    >>> f5py.merge_frequencies(["sites.tsv", "sites.tsv"]).num_rows == f5py.frequencies("calls.tsv").num_rows
    True
    """
    from f5py.commands.meth_freq import merge_frequency_files as run

    return Call(MergeOptions, run, options, tables=tables).rows(returns)


@function(ExtractOptions)
def extract(inputs: k.Tables = (), *, returns: str | None = None, **options: Any) -> Any:
    """List the calls of single reads, base by base, as ``f5py extract`` does.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or None
        The calls, unless they are written.

    Examples
    --------
    >>> f5py.extract("calls.tsv").column_names[:4]
    ['read', 'contig', 'position', 'strand']
    """
    from f5py.commands.extract import run

    return Call(ExtractOptions, run, options, inputs=inputs).rows(returns)


@function(RegionsOptions, has_progress=False)
def regions(bed: k.File, tables: k.Tables = (), *, returns: str | None = None, **options: Any) -> Any:
    """Sum the methylation of regions in one or more samples, as ``f5py regions`` does.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame or polars.DataFrame
        The table, which is also written if `output` is given.

    Examples
    --------
    >>> with open("regions.bed", "w") as file:
    ...     written = file.write("simulated\\t5000\\t7000\\tpromoter\\n")
    >>> f5py.regions("regions.bed", "sites.tsv").column_names[-3:]
    ['mean', 'weighted_mean', 'standard_deviation']
    """
    from f5py.commands.regions import run

    return Call(RegionsOptions, run, options, bed=bed, tables=tables).table(returns)


@function(SummaryOptions)
def summary(tables: k.Tables = (), **options: Unpack[k.SummaryOptions]) -> SummaryReport:
    """Summarize tables of calls and advise a threshold, as ``f5py summary`` does.

    Returns
    -------
    dict
        The content of the JSON report. The text is written only if `output` is given.

    Examples
    --------
    >>> found = f5py.summary("calls.tsv", report="calls.html")
    >>> "advice" in found
    True
    """
    from f5py.commands.summary import run

    return Call(SummaryOptions, run, options, tables=tables).unwritten()


@function(ValidateOptions)
def validate(
    calls: k.Table | None = None, truth: k.Table | None = None, **options: Unpack[k.ValidateOptions]
) -> ValidationReport:
    """Compare calls or frequencies with the truth, as ``f5py validate`` does.

    Returns
    -------
    dict
        The content of the JSON report. The text is written only if `output` is given.

    Examples
    --------
    >>> f5py.validate("sites.tsv", "made/truth.tsv", min_coverage=5)["frequencies"]["correlation"] > 0.9
    True
    """
    from f5py.commands.validate import run

    return Call(ValidateOptions, run, options, calls=calls, truth=truth).unwritten()


@function(PlotRegionOptions, has_progress=False)
def plot_region(**options: Any) -> Any:
    """Draw the reads over a locus with their methylation calls, as ``f5py plot-region`` does.

    Returns
    -------
    Picture or None
        Without `output`, the picture, which a notebook shows.

    Examples
    --------
    >>> f5py.plot_region(bam="calls.bam", window="simulated:5,000-7,000", output="locus.html")
    """
    from f5py.commands.plot_region import picture, run

    if options.get("output") is None:
        return Call(PlotRegionOptions, picture, options, output="").value()
    return Call(PlotRegionOptions, run, options).value()


@function(EventalignOptions)
def eventalign(*, returns: str | None = None, **options: Any) -> Any:
    """Align the events of every read to the reference, as ``f5py eventalign`` does.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or RunCounts
        The rows, or, if they are written, the read counts by outcome. See `iter_events` for more rows than fit in
        memory.

    Examples
    --------
    >>> events = f5py.eventalign(reads="made/reads.fastq", bam="made/reads.bam", genome="made/ref.fa")
    >>> events.column_names[:3]
    ['contig', 'position', 'reference_kmer']
    """
    from f5py.commands.eventalign import run

    call = Call(EventalignOptions, run, options)
    if returns is None and options.get("m6anet_json"):
        return call.value()
    return call.rows(returns)


@function(EventalignOptions)
def iter_events(*, returns: str | None = None, **options: Any) -> Iterator[Any]:
    """Align events to the reference and yield the rows of some reads after the other.

    The command works while the caller does; memory follows the size of a batch (`batchsize`, `max_bases`). Closing the
    iterator ends the command.

    Yields
    ------
    pyarrow.Table, pandas.DataFrame or polars.DataFrame
        Rows, in the order of the alignments, with the columns of the Parquet output.

    Examples
    --------
    >>> first = next(f5py.iter_events(reads="made/reads.fastq", bam="made/reads.bam", genome="made/ref.fa"))
    >>> first.column_names == events.column_names
    True
    """
    from f5py.commands.eventalign import run

    return Call(EventalignOptions, run, options).batches(returns)


@function(ResquiggleOptions)
def resquiggle(reads: k.File, signals: k.Files, *, returns: str | None = None, **options: Any) -> Any:
    """Align every signal to the bases of its own read, as ``f5py resquiggle`` does.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame, polars.DataFrame or RunCounts
        The rows, or, if they are written, the read counts by outcome. The samples of a k-mer without events are
        missing.

    Examples
    --------
    >>> f5py.resquiggle("made/reads.fastq", "made/fast5").column_names
    ['read_id', 'kmer_idx', 'start_raw_idx', 'end_raw_idx']
    """
    from f5py.commands.resquiggle import run

    call = Call(ResquiggleOptions, run, options, reads=reads, signals=signals)
    if options.get("paf"):
        return call.written("PAF")
    columns = {"read_id": "string", "kmer_idx": "int64", "start_raw_idx": "int64", "end_raw_idx": "int64"}
    return call.parsed(returns, columns)


@function(CompareOptions)
def compare(a: k.Table, b: k.Table, *, returns: str | None = None, **options: Any) -> Any:
    """Compare the events of two samples, as ``f5py compare`` does.

    Returns
    -------
    pyarrow.Table, pandas.DataFrame or polars.DataFrame
        The table, which is also written if `output` is given.

    Examples
    --------
    >>> f5py.compare(events, events, min_coverage=5).num_rows > 0
    True
    """
    from f5py.commands.compare import run

    return Call(CompareOptions, run, options, a=a, b=b).table(returns)


@function(PlotOptions, has_progress=False)
def plot(read: k.File = "", **options: Any) -> Any:
    """Draw the signal, the events and the bases of one read, as ``f5py plot`` does.

    Returns
    -------
    Picture or None
        Without `output`, the picture, which a notebook shows.

    Examples
    --------
    >>> f5py.plot(calls["read_name"][0].as_py(), reads="made/reads.fastq", output="read.html")
    """
    from f5py.commands.plot import picture, run

    if options.get("output") is None:
        return Call(PlotOptions, picture, options, read=read, output="").value()
    return Call(PlotOptions, run, options, read=read).value()


@function(PlanOptions, has_progress=False)
def plan(plan: k.File, **options: Unpack[k.PlanOptions]) -> str:
    """Show the progress of a plan, the time left, or a script for its jobs, as ``f5py plan`` does.

    Returns
    -------
    str
        The text. It is written only if `output` is given.

    Examples
    --------
    >>> f5py.plan("plan")
    'command\\tcall-methylation\\nparts\\t2\\ndone\\t2\\n'
    """
    from f5py.commands.plan import run

    return Call(PlanOptions, run, options, plan=plan).unwritten()


@function(RunPartOptions)
def run_part(plan: k.File, parts: k.Files = (), **options: Unpack[k.RunPartOptions]) -> None:
    """Do parts of a plan, as ``f5py run-part`` does; the working folder is that of the plan meanwhile.

    Examples
    --------
    >>> inputs = {"reads": "made/reads.fastq", "bam": "made/reads.bam", "genome": "made/ref.fa"}
    >>> counts = f5py.call_methylation(**inputs, output="planned.tsv", plan="plan", partitions=2)
    >>> f5py.run_part("plan", "0-1")
    """
    from f5py.commands.plan import run_part as run

    return Call(RunPartOptions, run, options, plan=plan, parts=parts).value()


@function(FinishOptions)
def finish(plan: k.File, **options: Unpack[k.FinishOptions]) -> RunCounts:
    """Write the outputs of a plan after all of its parts, as ``f5py finish`` does.

    Returns
    -------
    RunCounts
        The read counts by outcome.

    Examples
    --------
    >>> f5py.finish("plan").total
    30
    >>> from pathlib import Path
    >>> Path("planned.tsv").read_bytes() == Path("calls.tsv").read_bytes()
    True
    """
    from f5py.commands.plan import finish as run

    return Call(FinishOptions, run, options, plan=plan).value()


@function(JoinOptions, has_progress=False)
def merge(inputs: k.Files = (), **options: Unpack[k.JoinOptions]) -> None:
    """Merge outputs of one kind, such as those of windows, as ``f5py merge`` does.

    Examples
    --------
    >>> f5py.merge(["calls.tsv", "planned.tsv"], output="both.tsv")
    """
    from f5py.commands.merge import run

    return Call(JoinOptions, run, options, inputs=inputs).written("the merged files")


@function(TrainOptions)
def train(**options: Unpack[k.TrainOptions]) -> TrainingSummary:
    """Estimate a pore model from control reads or, of R10.4.1, from any reads, as ``f5py train`` does.

    Returns
    -------
    TrainingSummary
        The model, and how it came about. It is written only if `output` is given.
    """
    from f5py.commands.train import run

    return Call(TrainOptions, run, options).unwritten()


@function(SimulateOptions)
def simulate(**options: Unpack[k.SimulateOptions]) -> SimulationSummary:
    """Simulate reads of known methylation, as ``f5py simulate`` does.

    Returns
    -------
    SimulationSummary
        Counts of the written reads, samples and sites.

    Examples
    --------
    >>> made = f5py.simulate(output="made", genome_length=20_000, n_reads=30, median_length=2_000, seed=1)
    >>> made.n_reads
    30
    """
    from f5py.commands.simulate import run

    return Call(SimulateOptions, run, options).value()
