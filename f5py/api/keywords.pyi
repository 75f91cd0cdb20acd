# Made by docs/make_reference.py: types of keywords and results of the functions of ``import f5py``.

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from typing import IO, Literal, Protocol, TypedDict

import pandas
import polars
import pyarrow
from typing_extensions import Required

from f5py.commands.train import TrainingSummary

class ArrowStream(Protocol):
    def __arrow_c_stream__(self, requested_schema: object = ..., /) -> object: ...

# Without stubs of pyarrow, pandas or Polars their classes are unknown to type checkers; these are not.
class Arrow(pyarrow.Table):
    num_rows: int
    num_columns: int
    column_names: list[str]

class Pandas(pandas.DataFrame): ...
class Polars(polars.DataFrame): ...

AsArrow = Literal["arrow"] | None
AsPandas = Literal["pandas"]
AsPolars = Literal["polars"]
Path = str | PathLike[str]
Paths = Path | Iterable[Path]
File = Path | IO[bytes]
Files = File | Iterable[File]
Output = File | None
Format = Literal["tsv", "csv", "parquet"] | None
Model = File | TrainingSummary
Table = File | ArrowStream | Iterator[ArrowStream]
Tables = Table | Iterable[Table]
Region = str | tuple[str, int, int]
Progress = Callable[[str, int, int | None], object] | None

# Keywords of the functions, each declared once; commands share most of them.

class WatchOptions(TypedDict, total=False):
    watch: Path | None
    watch_until_idle: float | None
    watch_interval: float
    watch_process_total: int | None
    watch_process_index: int | None

class MappingOptions(TypedDict, total=False):
    map_preset: Literal["map-ont", "map-hifi", "lr:hq", "rna"] | None
    keep_bam: File | None

class PartOptions(TypedDict, total=False):
    plan: Path | None
    partitions: int | None
    resume: bool
    engine: Literal["local", "dask", "slurm"] | None
    scheduler: str | None
    workers: int | None

class ReadListOptions(TypedDict, total=False):
    read_ids: File | Iterable[str] | None

class SignalOptions(TypedDict, total=False):
    slow5: Files | None
    pod5: Paths | None
    fast5: Paths | None

class GpuOptions(TypedDict, total=False):
    gpu: Literal["auto", "on", "off"] | None
    disable_cuda: bool | None
    cuda_dev_id: str | float | Sequence[str | float]
    cuda_mem_frac: float | None

class CudaOptions(GpuOptions, total=False):
    cuda_max_lf: float
    cuda_avg_epk: float
    cuda_max_epk: float

class LimitOptions(TypedDict, total=False):
    min_recalib_events: int
    max_events_per_base: float
    min_mean_emission: float
    max_gap: int
    qc_max_var: float
    qc_max_events_per_base: float

class ModelOptions(TypedDict, total=False):
    pore: Literal["r9", "r10", "rna004"] | None
    kmer_model: Model | None

class RunOptions(TypedDict, total=False):
    failed_reads: File | None
    threads: int
    batchsize: int | None
    max_bases: int | str
    iop: int | None
    profile: str | None
    verbose: int

class StrictOptions(TypedDict, total=False):
    strict: bool

class AlignmentOptions(CudaOptions, LimitOptions, ModelOptions, RunOptions, StrictOptions, total=False): ...

class CallOptions(
    WatchOptions, MappingOptions, PartOptions, ReadListOptions, SignalOptions, AlignmentOptions, total=False
):
    reads: File | None
    bam: File
    genome: Required[File]
    report: Files | None
    sample: str | None
    meth_out_version: Literal[1, 2]
    modbam: File | None
    modbam_style: Literal["read", "reference"]
    replace_tags: bool
    merge_tags: bool
    prior: float | None
    bedmethyl: File | None
    call_threshold: float | None
    threshold_per_site: bool
    combine_strands: bool
    partition_tag: str | None
    ultra_thresh: int
    window: Region | Iterable[Region] | None
    min_mapq: int
    secondary: bool
    supplementary: bool
    skip_duplicates: bool
    skip_unreadable: bool
    hard_clips: bool
    skip_ultra: File | None
    window_mode: Literal["start", "clip"] | None
    skip_overlaps: bool
    meth_model: Model | None
    methylation: str | float | Sequence[str | float] | None
    motif: str | tuple[str, int] | None
    min_separation: int
    per_site: bool
    noise: Literal["independent", "correlated"] | None
    accurate: bool
    rescale: bool | None
    progress: Progress

class RnaOptions(TypedDict, total=False):
    rna: bool

class CompareOptions(RnaOptions, LimitOptions, ModelOptions, StrictOptions, total=False):
    genome: File | None
    reads: Files | None
    slow5: Files | None
    pod5: Paths | None
    fast5: Paths | None
    output: File | None
    report: Files | None
    by: Literal["position", "kmer"]
    min_coverage: int
    window: Region | Iterable[Region] | None
    min_mapq: int
    threads: int
    progress: Progress

class EventalignOptions(
    RnaOptions, MappingOptions, PartOptions, ReadListOptions, SignalOptions, AlignmentOptions, total=False
):
    reads: File | None
    bam: File
    genome: Required[File]
    report: Files | None
    sample: str | None
    paf: bool
    sam: bool
    sam_out_version: Literal[1, 2] | None
    m6anet: bool
    m6anet_min_reads: int
    m6anet_max_reads: int
    kmer_view: int | None
    output_format: Literal["tsv", "csv", "parquet"] | None
    summary: File | None
    print_read_names: bool
    cut_names: bool
    scale_events: bool
    samples: bool
    signal_index: bool
    collapse_events: bool
    mark_deletions: bool
    mark_kmers: bool
    ultra_thresh: int
    window: Region | Iterable[Region] | None
    min_mapq: int
    secondary: bool
    supplementary: bool
    skip_duplicates: bool
    skip_unreadable: bool
    hard_clips: bool
    skip_ultra: File | None
    progress: Progress

class ExtractOptions(ReadListOptions, StrictOptions, total=False):
    genome: File | None
    window: Region | Iterable[Region] | None
    methylation: Literal["cpg", "gpc", "dam", "dcm"] | None
    motif: str | tuple[str, int] | None
    progress: Progress

class CheckOptions(SignalOptions, total=False):
    reads: Required[File]
    threads: int
    iop: int | None
    progress: Progress

class FinishOptions(TypedDict, total=False):
    remove: bool
    threads: int | None
    progress: Progress

class FrequencyOptions(StrictOptions, total=False):
    calls: Tables | None
    genome: File | None
    chrom_sizes: File | None
    split_groups: bool
    stranded: bool
    output_format: Literal["tsv", "csv", "parquet", "dss", "methylkit", "bismark"] | None
    bedmethyl: bool
    combine_strands: bool
    threshold: float
    min_coverage: int
    threshold_per_site: bool
    methylation: Literal["cpg", "gpc", "dam", "dcm"] | None
    motif: str | tuple[str, int] | None
    mod_code: str | None
    progress: Progress

class IndexOptions(StrictOptions, total=False):
    directories: Paths | None
    summaries: Files | None
    summary_lists: Files | None
    slow5: Files | None
    skip_slow5_idx: bool
    pod5: Paths | None
    output: Path | None
    threads: int
    iop: int
    resume: bool
    verbose: int
    progress: Progress

class MapOptions(GpuOptions, total=False):
    output: File | None
    paf: bool
    write_index: Path | None
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
    report: Files | None
    sample: str | None
    preset: str
    k: int | None
    w: int | None
    hpc: bool
    seeds: Literal["minimizer", "mem"]
    splice: bool
    transcript_strand: Literal["f", "b", "r", "n"] | None
    junctions: File | None
    for_only: bool
    rev_only: bool
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
    max_intron: int | str | None
    non_canonical: int | None
    junction_bonus: int | None
    splice_flank: bool | None
    end_seed_penalty: int | None
    no_end_filter: bool
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
    progress: Progress

class JoinOptions(TypedDict, total=False):
    output: File | None
    threads: int

class MergeOptions(StrictOptions, total=False):
    progress: Progress

class PlanOptions(TypedDict, total=False):
    estimate: bool
    speed: float | None
    jobs: int
    price: float | None
    print_slurm: bool
    output: File | None

class PlotOptions(RnaOptions, LimitOptions, ModelOptions, SignalOptions, total=False):
    reads: File
    bam: File | None
    genome: File | None
    call_threshold: float
    x_axis: Literal["samples", "time"]
    read_ids: File | Iterable[str] | None
    window: Region | Sequence[Region] | None
    alignment: int | None
    methylation: Literal["cpg", "gpc", "dam", "dcm"] | None
    meth_model: Model | None

class PlotRegionOptions(RnaOptions, ModelOptions, SignalOptions, total=False):
    bam: Files
    sample: str | Iterable[str] | None
    genome: File | None
    reads: File | None
    genes: File | None
    signals: Literal["samples", "events"] | None
    smooth: int | None
    read_order: Literal["packed", "mean"]
    window: Required[Region | Sequence[Region]]
    code: str | None
    threshold: float
    min_coverage: int | None
    min_mapq: int
    max_reads: int
    max_bases: int | str

class RegionsOptions(StrictOptions, total=False):
    genome: File | None
    output: File | None
    samples: str | Iterable[str] | None
    threshold: float
    min_coverage: int
    methylation: Literal["cpg", "gpc", "dam", "dcm"] | None
    motif: str | tuple[str, int] | None
    mod_code: str | None

class ResquiggleOptions(RnaOptions, ReadListOptions, AlignmentOptions, total=False):
    resume: bool
    progress: Progress

class RunPartOptions(TypedDict, total=False):
    threads: int | None
    gpu: Literal["auto", "on", "off"] | None
    disable_cuda: bool | None
    cuda_dev_id: str | float | Sequence[str | float] | None
    progress: Progress

class SimulateOptions(TypedDict, total=False):
    output: Required[Path]
    force: bool
    fasta: bool
    no_read_truth: bool
    reads_per_file: int
    haplotypes: bool
    signal_format: Literal["fast5", "blow5", "pod5"] | None
    motif: str | None
    pore: Literal["r9", "r10", "rna002", "rna004"]
    meth_model: Model | None
    shifts: str | float | Sequence[str | float] | None
    shift_spread: str | float | Sequence[str | float] | None
    level_bias: float | None
    realistic: bool
    seed: int
    genome: File | None
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
    progress: Progress

class EvaluationOptions(StrictOptions, total=False):
    methylated: Tables | None
    unmethylated: Tables | None
    report: Files | None
    threshold: float
    methylation: Literal["cpg", "gpc", "dam", "dcm"] | None
    motif: str | tuple[str, int] | None
    calibration: float

class SummaryOptions(EvaluationOptions, total=False):
    genome: File | None
    output: File | None
    mod_code: str | None
    error_rate: float
    progress: Progress

class TrainOptions(RnaOptions, SignalOptions, CudaOptions, LimitOptions, ModelOptions, StrictOptions, total=False):
    reads: File | None
    bam: File | None
    genome: Required[File]
    truth: File | None
    methylated: Files | None
    unmethylated: Files | None
    unlabeled: Files | None
    output: File | None
    report: Files | None
    full: bool
    force: bool
    window: Region | Iterable[Region] | None
    min_mapq: int
    secondary: bool
    supplementary: bool
    skip_duplicates: bool
    skip_unreadable: bool
    hard_clips: bool
    start: Model | None
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
    progress: Progress

class ValidateOptions(EvaluationOptions, total=False):
    genome: File | None
    output: File | None
    min_coverage: int
    prior: float
    progress: Progress
