"""The options of the commands that work on signals; names, meanings and defaults are those of the command line."""

from __future__ import annotations

from dataclasses import dataclass

#: Calls with a smaller absolute log-likelihood ratio count for neither state, unless the user says otherwise.
CALL_THRESHOLD = 2.5
#: What is called, unless the user says otherwise.
METHYLATION = "cpg"


@dataclass(frozen=True, kw_only=True)
class AlignmentOptions:
    """How reads are batched and their events aligned to their bases."""

    threads: int = 8
    batchsize: int = 512
    max_bases: int = 5_000_000
    output: str = "-"
    iop: int | None = None
    pore: str | None = None
    rna: bool = False
    kmer_model: str | None = None
    min_recalib_events: int = 200
    ultra_thresh: int = 100_000
    verbose: int = 0
    print_events: bool = False
    print_banded_aln: bool = False
    print_scaling: bool = False
    debug_break: int = -1
    profile_cpu: bool = False
    disable_cuda: bool = False
    cuda_dev_id: int = 0
    cuda_max_lf: float = 3.0
    cuda_avg_epk: float = 2.0
    cuda_max_epk: float = 5.0
    cuda_mem_frac: float | None = None
    auto_tune: bool = False
    cuda_at_once: bool = False


@dataclass(frozen=True, kw_only=True)
class MappedReadsOptions(AlignmentOptions):
    """Options of a command that takes its reads from an alignment file."""

    reads: str
    bam: str
    genome: str
    slow5: str | None = None
    pod5: str | None = None
    window: str | None = None
    min_mapq: int = 20
    secondary: bool = False
    skip_unreadable: bool = True
    hard_clips: bool = True
    skip_ultra: str | None = None
    report: str | None = None


@dataclass(frozen=True, kw_only=True)
class CallOptions(MappedReadsOptions):
    """Options of ``f5py call-methylation``; `command_line` is what an @PG line says.

    Without `methylation` and `motif`, `METHYLATION` is called; `call_threshold` is `CALL_THRESHOLD`.
    """

    meth_model: str | None = None
    meth_out_version: int = 2
    methylation: str | None = None
    motif: str | None = None
    per_site: bool = False
    output_format: str = "tsv"
    modbam: str | None = None
    modbam_style: str = "read"
    replace_tags: bool = False
    bedmethyl: str | None = None
    call_threshold: float | None = None
    threshold_per_site: bool = False
    combine_strands: bool = False
    partition_tag: str | None = None
    command_line: str = "f5py call-methylation"


@dataclass(frozen=True, kw_only=True)
class EventalignOptions(MappedReadsOptions):
    """Options of ``f5py eventalign``."""

    summary: str | None = None
    paf: bool = False
    sam: bool = False
    sam_out_version: int | None = None
    m6anet: bool = False
    output_format: str = "tsv"
    print_read_names: bool = False
    scale_events: bool = False
    samples: bool = False
    signal_index: bool = False
    collapse_events: bool = False


@dataclass(frozen=True, kw_only=True)
class ResquiggleOptions(AlignmentOptions):
    """Options of ``f5py resquiggle``."""

    reads: str
    signals: str
    paf: bool = False
