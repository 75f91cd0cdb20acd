# Made by docs/make_reference.py.

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import IO, Literal, Protocol, TypedDict, overload

import pandas
import polars
import pyarrow
from typing_extensions import Required, Unpack

from f5py.commands.index import IndexSummary
from f5py.commands.simulate import SimulationSummary
from f5py.commands.summary import SummaryReport
from f5py.commands.train import TrainingSummary
from f5py.commands.validate import ValidationReport
from f5py.compute.counts import RunCounts
from f5py.errors import F5pyError as F5pyError
from f5py.errors import UsageError as UsageError
from f5py.mapping import MapCounts
from f5py.plotting.picture import Picture

class _ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = ..., /) -> object: ...

# Without stubs of pyarrow, pandas or Polars their classes are unknown to type checkers; these are not.
class _Arrow(pyarrow.Table):
    num_rows: int
    num_columns: int
    column_names: list[str]

class _Pandas(pandas.DataFrame): ...
class _Polars(polars.DataFrame): ...

_Path = str | PathLike[str]
_File = _Path | IO[bytes]
_Model = _File | TrainingSummary
_Table = _File | _ArrowStream | Iterator[_ArrowStream]
_Region = str | tuple[str, int, int]
_Progress = Callable[[str, int, int | None], object] | None

__version__: str

# Keywords of the functions, each declared once; commands share most of them.

class _WatchOptions(TypedDict, total=False):
    watch: _Path | None
    watch_until_idle: float | None
    watch_interval: float
    watch_process_total: int | None
    watch_process_index: int | None

class _MappingOptions(TypedDict, total=False):
    map_preset: Literal["map-ont", "map-hifi", "lr:hq", "rna"] | None
    keep_bam: _File | None

class _PartOptions(TypedDict, total=False):
    plan: _Path | None
    partitions: int | None
    resume: bool
    engine: Literal["local", "dask", "slurm"] | None
    scheduler: str | None
    workers: int | None

class _ReadListOptions(TypedDict, total=False):
    read_ids: _File | Iterable[str] | None

class _SignalOptions(TypedDict, total=False):
    slow5: _File | Iterable[_File] | None
    pod5: _Path | Iterable[_Path] | None
    fast5: _Path | Iterable[_Path] | None

class _GpuOptions(TypedDict, total=False):
    gpu: Literal["auto", "on", "off"] | None
    disable_cuda: bool | None
    cuda_dev_id: str | float | Sequence[str | float]
    cuda_mem_frac: float | None

class _CudaOptions(_GpuOptions, total=False):
    cuda_max_lf: float
    cuda_avg_epk: float
    cuda_max_epk: float

class _LimitOptions(TypedDict, total=False):
    min_recalib_events: int
    max_events_per_base: float
    min_mean_emission: float
    max_gap: int
    qc_max_var: float
    qc_max_events_per_base: float

class _ModelOptions(TypedDict, total=False):
    pore: Literal["r9", "r10", "rna004"] | None
    kmer_model: _Model | None

class _RunOptions(TypedDict, total=False):
    failed_reads: _File | None
    threads: int
    batchsize: int | None
    max_bases: int | str
    iop: int | None
    profile: str | None
    verbose: int

class _StrictOptions(TypedDict, total=False):
    strict: bool

class _AlignmentOptions(_CudaOptions, _LimitOptions, _ModelOptions, _RunOptions, _StrictOptions, total=False): ...

class _CallOptions(
    _WatchOptions, _MappingOptions, _PartOptions, _ReadListOptions, _SignalOptions, _AlignmentOptions, total=False
):
    reads: _File | None
    bam: _File
    genome: Required[_File]
    report: _File | Iterable[_File] | None
    sample: str | None
    meth_out_version: Literal[1, 2]
    modbam: _File | None
    modbam_style: Literal["read", "reference"]
    replace_tags: bool
    merge_tags: bool
    prior: float | None
    bedmethyl: _File | None
    call_threshold: float | None
    threshold_per_site: bool
    combine_strands: bool
    partition_tag: str | None
    ultra_thresh: int
    window: _Region | Iterable[_Region] | None
    min_mapq: int
    secondary: bool
    supplementary: bool
    skip_duplicates: bool
    skip_unreadable: bool
    hard_clips: bool
    skip_ultra: _File | None
    window_mode: Literal["start", "clip"] | None
    skip_overlaps: bool
    meth_model: _Model | None
    methylation: str | float | Sequence[str | float] | None
    motif: str | tuple[str, int] | None
    min_separation: int
    per_site: bool
    noise: Literal["independent", "correlated"] | None
    accurate: bool
    rescale: bool | None

class _RnaOptions(TypedDict, total=False):
    rna: bool

class _CompareOptions(_RnaOptions, _LimitOptions, _ModelOptions, _StrictOptions, total=False):
    genome: _File | None
    reads: _File | Iterable[_File] | None
    slow5: _File | Iterable[_File] | None
    pod5: _Path | Iterable[_Path] | None
    fast5: _Path | Iterable[_Path] | None
    by: Literal["position", "kmer"]
    min_coverage: int
    window: _Region | Iterable[_Region] | None
    min_mapq: int
    threads: int

class _EventalignOptions(
    _RnaOptions, _MappingOptions, _PartOptions, _ReadListOptions, _SignalOptions, _AlignmentOptions, total=False
):
    reads: _File | None
    bam: _File
    genome: Required[_File]
    report: _File | Iterable[_File] | None
    sample: str | None
    paf: bool
    sam: bool
    sam_out_version: Literal[1, 2] | None
    m6anet: bool
    m6anet_min_reads: int
    m6anet_max_reads: int
    kmer_view: int | None
    output_format: Literal["tsv", "csv", "parquet"] | None
    summary: _File | None
    print_read_names: bool
    cut_names: bool
    scale_events: bool
    samples: bool
    signal_index: bool
    collapse_events: bool
    mark_deletions: bool
    mark_kmers: bool
    ultra_thresh: int
    window: _Region | Iterable[_Region] | None
    min_mapq: int
    secondary: bool
    supplementary: bool
    skip_duplicates: bool
    skip_unreadable: bool
    hard_clips: bool
    skip_ultra: _File | None

class _CheckOptions(_SignalOptions, total=False):
    reads: Required[_File]
    threads: int
    iop: int | None

class _FinishOptions(TypedDict, total=False):
    remove: bool
    threads: int | None

class _FrequencyOptions(_StrictOptions, total=False):
    calls: _Table | Iterable[_Table] | None
    genome: _File | None
    chrom_sizes: _File | None
    split_groups: bool
    stranded: bool
    output_format: Literal["tsv", "csv", "parquet"] | None
    bedmethyl: bool
    combine_strands: bool
    threshold: float
    min_coverage: int
    threshold_per_site: bool
    methylation: Literal["cpg", "gpc", "dam", "dcm"] | None
    motif: str | tuple[str, int] | None
    mod_code: str | None

class _IndexOptions(_StrictOptions, total=False):
    directories: _Path | Iterable[_Path] | None
    summaries: _File | Iterable[_File] | None
    summary_lists: _File | Iterable[_File] | None
    slow5: _File | Iterable[_File] | None
    skip_slow5_idx: bool
    pod5: _Path | Iterable[_Path] | None
    output: _Path | None
    threads: int
    iop: int
    resume: bool
    verbose: int

class _MapOptions(_GpuOptions, total=False):
    paf: bool
    write_index: _Path | None
    no_md: bool
    md: bool
    cs: Literal["short", "long", "none"] | None
    eqx: bool
    soft_clips: bool
    comments: bool
    read_group: str | None
    secondary: bool
    as_sam: bool
    with_cigar: bool
    hits_only: bool
    paf_no_hit: bool
    no_qualities: bool
    strand_of_splicing: Literal["f"] | None
    report: _File | Iterable[_File] | None
    sample: str | None
    preset: str
    k: int | None
    w: int | None
    hpc: bool
    seeds: Literal["minimizer", "mem"]
    index_bases: int | str | None
    split_prefix: str | None
    long_cigars: bool
    two_threads: bool
    kalloc: int | str | None
    bucket_bits: int | None
    min_mem: int | None
    frequent: float | None
    frequent_bounds: str | float | Sequence[str | float] | None
    rescue_distance: int | None
    frequent_in_read: float | None
    max_gap: int | None
    bandwidths: str | float | Sequence[str | float] | None
    min_count: int | None
    min_chain_score: int | None
    secondary_ratio: float | None
    max_secondary: int | None
    mask: float | None
    max_chain_skip: int | None
    max_chain_iter: int | None
    match: int | None
    mismatch: int | None
    gap_open: str | float | Sequence[str | float] | None
    gap_extend: str | float | Sequence[str | float] | None
    zdrop: str | float | Sequence[str | float] | None
    min_score: int | None
    threads: int
    batch_bases: int | str | None

class _JoinOptions(TypedDict, total=False):
    threads: int

class _MergeOptions(_StrictOptions, total=False): ...

class _PlanOptions(TypedDict, total=False):
    estimate: bool
    speed: float | None
    jobs: int
    price: float | None
    print_slurm: bool

class _PlotOptions(_RnaOptions, _LimitOptions, _ModelOptions, _SignalOptions, total=False):
    reads: _File
    bam: _File | None
    genome: _File | None
    call_threshold: float
    x_axis: Literal["samples", "time"]
    read_ids: _File | Iterable[str] | None
    window: _Region | Sequence[_Region] | None
    alignment: int | None
    methylation: Literal["cpg", "gpc", "dam", "dcm"] | None
    meth_model: _Model | None

class _PlotRegionOptions(TypedDict, total=False):
    bam: Required[_File]
    genome: _File | None
    genes: _File | None
    window: Required[_Region | Sequence[_Region]]
    code: str | None
    threshold: float
    min_coverage: int | None
    min_mapq: int
    max_reads: int
    max_bases: int | str

class _ResquiggleOptions(_RnaOptions, _ReadListOptions, _AlignmentOptions, total=False):
    resume: bool

class _RunPartOptions(TypedDict, total=False):
    threads: int | None
    gpu: Literal["auto", "on", "off"] | None
    disable_cuda: bool | None
    cuda_dev_id: str | float | Sequence[str | float] | None

class _SimulateOptions(TypedDict, total=False):
    output: Required[_Path]
    force: bool
    fasta: bool
    no_read_truth: bool
    reads_per_file: int
    haplotypes: bool
    signal_format: Literal["fast5", "blow5", "pod5"] | None
    motif: str | None
    pore: Literal["r9", "r10", "rna002", "rna004"]
    meth_model: _Model | None
    shifts: str | float | Sequence[str | float] | None
    shift_spread: str | float | Sequence[str | float] | None
    level_bias: float | None
    realistic: bool
    seed: int
    genome: _File | None
    genome_length: int | str | None
    gc: float | None
    n_reads: int | None
    coverage: float | None
    median_length: int | str | None
    length_sigma: float | None
    min_length: int | None
    fixed_length: int | str | None
    ultra_long: int | str | Iterable[int | str] | None
    strand: Literal["both", "+", "-"]
    error_rate: float
    methylation: Literal["per-site", "per-read"]
    site_rates: str | float | Sequence[str | float] | None
    linked_within: int | None
    methylated_reads: float | None
    complete: float | None
    haplotype_sites: float | None
    speed: float | None
    slow_fraction: float
    slow_factor: float
    sample_noise: float | None
    sample_correlation: float | None
    level_noise: float | None
    level_correlation: float | None
    level_tails: Literal["gaussian", "t7"] | None

class _EvaluationOptions(_StrictOptions, total=False):
    methylated: _Table | Iterable[_Table] | None
    unmethylated: _Table | Iterable[_Table] | None
    report: _File | Iterable[_File] | None
    threshold: float
    methylation: Literal["cpg", "gpc", "dam", "dcm"] | None
    motif: str | tuple[str, int] | None
    calibration: float

class _SummaryOptions(_EvaluationOptions, total=False):
    error_rate: float

class _TrainOptions(
    _RnaOptions, _SignalOptions, _CudaOptions, _LimitOptions, _ModelOptions, _StrictOptions, total=False
):
    reads: _File | None
    bam: _File | None
    genome: Required[_File]
    truth: _File | None
    methylated: _File | Iterable[_File] | None
    unmethylated: _File | Iterable[_File] | None
    unlabeled: _File | Iterable[_File] | None
    report: _File | Iterable[_File] | None
    full: bool
    force: bool
    window: _Region | Iterable[_Region] | None
    min_mapq: int
    secondary: bool
    supplementary: bool
    skip_duplicates: bool
    skip_unreadable: bool
    hard_clips: bool
    start: _Model | None
    methylation: Literal["cpg", "gpc", "dam", "dcm"] | None
    motif: str | tuple[str, int] | None
    train_kmers: Literal["all", "methylated", "unmethylated"]
    groups: int
    rounds: int
    prior_events: float
    held_out: float
    threads: int
    batchsize: int | None
    max_bases: int | str
    iop: int | None
    profile: str | None
    verbose: int

class _ValidateOptions(_EvaluationOptions, total=False):
    genome: _File | None
    min_coverage: int
    prior: float

@overload
def call_methylation(
    *,
    returns: Literal["arrow"] | None = ...,
    output: None = ...,
    modbam_output_name: None = ...,
    output_format: Literal["tsv", "csv", "parquet"] | None = ...,
    progress: _Progress = ...,
    **options: Unpack[_CallOptions],
) -> _Arrow: ...
@overload
def call_methylation(
    *,
    returns: Literal["pandas"],
    output: None = ...,
    modbam_output_name: None = ...,
    output_format: Literal["tsv", "csv", "parquet"] | None = ...,
    progress: _Progress = ...,
    **options: Unpack[_CallOptions],
) -> _Pandas: ...
@overload
def call_methylation(
    *,
    returns: Literal["polars"],
    output: None = ...,
    modbam_output_name: None = ...,
    output_format: Literal["tsv", "csv", "parquet"] | None = ...,
    progress: _Progress = ...,
    **options: Unpack[_CallOptions],
) -> _Polars: ...
@overload
def call_methylation(
    *,
    returns: None = ...,
    output: _File,
    modbam_output_name: None = ...,
    output_format: Literal["tsv", "csv", "parquet"] | None = ...,
    progress: _Progress = ...,
    **options: Unpack[_CallOptions],
) -> RunCounts: ...
@overload
def call_methylation(
    *,
    returns: None = ...,
    output: _File | None = ...,
    output_format: Literal["tsv", "csv", "parquet"] | None = ...,
    modbam_output_name: _File,
    progress: _Progress = ...,
    **options: Unpack[_CallOptions],
) -> RunCounts: ...
@overload
def call_methylation(
    *,
    returns: None = ...,
    output: _File | None = ...,
    modbam_output_name: None = ...,
    output_format: Literal["none"],
    progress: _Progress = ...,
    **options: Unpack[_CallOptions],
) -> RunCounts: ...
@overload
def compare(
    a: _Table,
    b: _Table,
    *,
    returns: Literal["arrow"] | None = ...,
    output: _File | None = ...,
    progress: _Progress = ...,
    **options: Unpack[_CompareOptions],
) -> _Arrow: ...
@overload
def compare(
    a: _Table,
    b: _Table,
    *,
    returns: Literal["pandas"],
    output: _File | None = ...,
    progress: _Progress = ...,
    **options: Unpack[_CompareOptions],
) -> _Pandas: ...
@overload
def compare(
    a: _Table,
    b: _Table,
    *,
    returns: Literal["polars"],
    output: _File | None = ...,
    progress: _Progress = ...,
    **options: Unpack[_CompareOptions],
) -> _Polars: ...
@overload
def eventalign(
    *,
    returns: Literal["arrow"] | None = ...,
    output: None = ...,
    m6anet_json: None = ...,
    progress: _Progress = ...,
    **options: Unpack[_EventalignOptions],
) -> _Arrow: ...
@overload
def eventalign(
    *,
    returns: Literal["pandas"],
    output: None = ...,
    m6anet_json: None = ...,
    progress: _Progress = ...,
    **options: Unpack[_EventalignOptions],
) -> _Pandas: ...
@overload
def eventalign(
    *,
    returns: Literal["polars"],
    output: None = ...,
    m6anet_json: None = ...,
    progress: _Progress = ...,
    **options: Unpack[_EventalignOptions],
) -> _Polars: ...
@overload
def eventalign(
    *,
    returns: None = ...,
    output: _File,
    m6anet_json: None = ...,
    progress: _Progress = ...,
    **options: Unpack[_EventalignOptions],
) -> RunCounts: ...
@overload
def eventalign(
    *,
    returns: None = ...,
    output: _File | None = ...,
    m6anet_json: _Path,
    progress: _Progress = ...,
    **options: Unpack[_EventalignOptions],
) -> RunCounts: ...
@overload
def fast5_check(
    *,
    returns: Literal["arrow"] | None = ...,
    output: None = ...,
    progress: _Progress = ...,
    **options: Unpack[_CheckOptions],
) -> _Arrow: ...
@overload
def fast5_check(
    *, returns: Literal["pandas"], output: None = ..., progress: _Progress = ..., **options: Unpack[_CheckOptions]
) -> _Pandas: ...
@overload
def fast5_check(
    *, returns: Literal["polars"], output: None = ..., progress: _Progress = ..., **options: Unpack[_CheckOptions]
) -> _Polars: ...
@overload
def fast5_check(
    *, returns: None = ..., output: _File, progress: _Progress = ..., **options: Unpack[_CheckOptions]
) -> tuple[int, int]: ...
def finish(plan: _File, *, progress: _Progress = ..., **options: Unpack[_FinishOptions]) -> RunCounts: ...
@overload
def frequencies(
    tables: _Table | Iterable[_Table] = ...,
    *,
    returns: Literal["arrow"] | None = ...,
    output: None = ...,
    progress: _Progress = ...,
    **options: Unpack[_FrequencyOptions],
) -> _Arrow: ...
@overload
def frequencies(
    tables: _Table | Iterable[_Table] = ...,
    *,
    returns: Literal["pandas"],
    output: None = ...,
    progress: _Progress = ...,
    **options: Unpack[_FrequencyOptions],
) -> _Pandas: ...
@overload
def frequencies(
    tables: _Table | Iterable[_Table] = ...,
    *,
    returns: Literal["polars"],
    output: None = ...,
    progress: _Progress = ...,
    **options: Unpack[_FrequencyOptions],
) -> _Polars: ...
@overload
def frequencies(
    tables: _Table | Iterable[_Table] = ...,
    *,
    returns: None = ...,
    output: _File,
    progress: _Progress = ...,
    **options: Unpack[_FrequencyOptions],
) -> None: ...
def index(
    reads: _File | Iterable[_File] = ..., *, progress: _Progress = ..., **options: Unpack[_IndexOptions]
) -> IndexSummary: ...
@overload
def iter_calls(
    *, returns: Literal["arrow"] | None = ..., progress: _Progress = ..., **options: Unpack[_CallOptions]
) -> Iterator[_Arrow]: ...
@overload
def iter_calls(
    *, returns: Literal["pandas"], progress: _Progress = ..., **options: Unpack[_CallOptions]
) -> Iterator[_Pandas]: ...
@overload
def iter_calls(
    *, returns: Literal["polars"], progress: _Progress = ..., **options: Unpack[_CallOptions]
) -> Iterator[_Polars]: ...
@overload
def iter_events(
    *, returns: Literal["arrow"] | None = ..., progress: _Progress = ..., **options: Unpack[_EventalignOptions]
) -> Iterator[_Arrow]: ...
@overload
def iter_events(
    *, returns: Literal["pandas"], progress: _Progress = ..., **options: Unpack[_EventalignOptions]
) -> Iterator[_Pandas]: ...
@overload
def iter_events(
    *, returns: Literal["polars"], progress: _Progress = ..., **options: Unpack[_EventalignOptions]
) -> Iterator[_Polars]: ...
def map_reads(
    reference: _File,
    reads: _File | Iterable[_File] = ...,
    *,
    output: _File | None = ...,
    progress: _Progress = ...,
    **options: Unpack[_MapOptions],
) -> MapCounts: ...
def merge(inputs: _File | Iterable[_File] = ..., *, output: _File, **options: Unpack[_JoinOptions]) -> None: ...
@overload
def merge_frequencies(
    tables: _Table | Iterable[_Table] = ...,
    *,
    returns: Literal["arrow"] | None = ...,
    output: None = ...,
    progress: _Progress = ...,
    **options: Unpack[_MergeOptions],
) -> _Arrow: ...
@overload
def merge_frequencies(
    tables: _Table | Iterable[_Table] = ...,
    *,
    returns: Literal["pandas"],
    output: None = ...,
    progress: _Progress = ...,
    **options: Unpack[_MergeOptions],
) -> _Pandas: ...
@overload
def merge_frequencies(
    tables: _Table | Iterable[_Table] = ...,
    *,
    returns: Literal["polars"],
    output: None = ...,
    progress: _Progress = ...,
    **options: Unpack[_MergeOptions],
) -> _Polars: ...
@overload
def merge_frequencies(
    tables: _Table | Iterable[_Table] = ...,
    *,
    returns: None = ...,
    output: _File,
    progress: _Progress = ...,
    **options: Unpack[_MergeOptions],
) -> None: ...
def plan(plan: _File, *, output: _File | None = ..., **options: Unpack[_PlanOptions]) -> str: ...
@overload
def plot(read: _File = ..., *, output: None = ..., **options: Unpack[_PlotOptions]) -> Picture: ...
@overload
def plot(read: _File = ..., *, output: _File, **options: Unpack[_PlotOptions]) -> None: ...
@overload
def plot_region(*, output: None = ..., **options: Unpack[_PlotRegionOptions]) -> Picture: ...
@overload
def plot_region(*, output: _File, **options: Unpack[_PlotRegionOptions]) -> None: ...
@overload
def resquiggle(
    reads: _File,
    signals: _File | Iterable[_File],
    *,
    returns: Literal["arrow"] | None = ...,
    output: None = ...,
    paf: Literal[False] = ...,
    progress: _Progress = ...,
    **options: Unpack[_ResquiggleOptions],
) -> _Arrow: ...
@overload
def resquiggle(
    reads: _File,
    signals: _File | Iterable[_File],
    *,
    returns: Literal["pandas"],
    output: None = ...,
    paf: Literal[False] = ...,
    progress: _Progress = ...,
    **options: Unpack[_ResquiggleOptions],
) -> _Pandas: ...
@overload
def resquiggle(
    reads: _File,
    signals: _File | Iterable[_File],
    *,
    returns: Literal["polars"],
    output: None = ...,
    paf: Literal[False] = ...,
    progress: _Progress = ...,
    **options: Unpack[_ResquiggleOptions],
) -> _Polars: ...
@overload
def resquiggle(
    reads: _File,
    signals: _File | Iterable[_File],
    *,
    returns: None = ...,
    output: _File,
    paf: Literal[False] = ...,
    progress: _Progress = ...,
    **options: Unpack[_ResquiggleOptions],
) -> RunCounts: ...
@overload
def resquiggle(
    reads: _File,
    signals: _File | Iterable[_File],
    *,
    returns: None = ...,
    output: _File,
    paf: Literal[True],
    progress: _Progress = ...,
    **options: Unpack[_ResquiggleOptions],
) -> RunCounts: ...
def run_part(
    plan: _File, parts: _File | Iterable[_File] = ..., *, progress: _Progress = ..., **options: Unpack[_RunPartOptions]
) -> None: ...
def simulate(*, progress: _Progress = ..., **options: Unpack[_SimulateOptions]) -> SimulationSummary: ...
def summary(
    tables: _Table | Iterable[_Table] = ...,
    *,
    output: _File | None = ...,
    progress: _Progress = ...,
    **options: Unpack[_SummaryOptions],
) -> SummaryReport: ...
def train(
    *, output: _File | None = ..., progress: _Progress = ..., **options: Unpack[_TrainOptions]
) -> TrainingSummary: ...
def validate(
    calls: _Table | None = ...,
    truth: _Table | None = ...,
    *,
    output: _File | None = ...,
    progress: _Progress = ...,
    **options: Unpack[_ValidateOptions],
) -> ValidationReport: ...
