"""Opening and checking the inputs of a run."""

import os
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

from f5py.compute.chemistry import Chemistry, chemistry_of
from f5py.compute.gpu.device import is_present
from f5py.core.windows import Windows
from f5py.errors import F5pyError, InputFileError, UsageError
from f5py.io.arrow.text_input import check_read_once
from f5py.io.bam.alignments import AlignmentFile
from f5py.io.bam.record_reads import RecordReads
from f5py.io.reads.indexed_fasta import SequenceSource
from f5py.io.reads.read_index import ReadIndex
from f5py.io.reads.read_list import ReadList
from f5py.io.reads.reference import Reference
from f5py.io.remote import is_url
from f5py.io.sequences.read_records import load_reads
from f5py.io.signals import SignalSource, open_signals
from f5py.messages import console
from f5py.options import Option, Options, declarations
from f5py.options.input_names import BESIDE_READS, SEQUENCE_SUFFIX
from f5py.options.plot_commands import PlotOptions
from f5py.options.shared import AlignmentOptions, MappedReadsOptions
from f5py.pipeline.loader import Loader
from f5py.pipeline.record_filter import SeenRecords
from f5py.threads.pool import FEW_THREADS, WorkerPool

MappedOptions = TypeVar("MappedOptions", bound=MappedReadsOptions)
#: Reads that are tried for the metadata of the sequencing run.
READS_FOR_RUN_INFO = 16


def open_signals_of(options: MappedReadsOptions, inputs: ExitStack) -> SignalSource:
    """Open the signals, to be closed by `inputs`."""
    n_threads = options.threads * (2 if _may_use_gpu(options) else 1)  # a GPU leaves half of them to reading
    signals = open_signals(
        options.reads, **options.signal_paths, n_processes=options.iop, n_threads=n_threads,
        n_at_once=batches_ahead(options),
    )  # fmt: skip
    inputs.callback(signals.close)
    return signals


def open_inputs(
    options: MappedReadsOptions,
    inputs: ExitStack,
    signals_of: Callable[[MappedReadsOptions, ExitStack], SignalSource] = open_signals_of,
    sequences_of: Callable[[str, int], SequenceSource | None] = lambda path, n_threads: None,
    chosen: ReadList | None = None,
    **settings: Any,
) -> tuple[Loader, Chemistry]:
    """Open all input files, to be closed by `inputs`, and check that they belong together.

    `signals_of` returns the signals, perhaps those of an earlier run over the same files. `sequences_of` returns the
    sequences of a reference that is not FASTA, by its path and a number of threads, or None. Reads are limited to those
    `chosen`, unless the options list some. `settings` are fields of `Loader` that are not options. Raises `F5pyError`
    for missing, damaged or mismatched files, or an unknown chemistry.
    """
    given, options = options, with_local_inputs(options, inputs)
    alignments = open_alignments(options, chosen)
    inputs.callback(alignments.close)
    clips_groups = getattr(options, "window_mode", None) == "clip"
    windows = Windows.parse(options.window, alignments.contigs, clips_groups=clips_groups) if options.window else None
    if windows is not None:
        region = " ".join(options.window)
        alignments.check_index()
        _check_reach(windows, alignments, region)
        console.note("init_core", f"Iterating over region: {region}")
    reads = open_reads(options, alignments, loading_threads(options))
    inputs.callback(reads.close)
    opened = sequences_of(options.genome, loading_threads(options))
    reference = Reference(options.genome, alignments.contigs, alignments.contig_lengths, opened)
    inputs.callback(reference.close)
    if windows is not None:
        for contig, *_ in windows.with_previous_end():
            if reference.lacks[contig]:
                raise InputFileError(
                    f"{options.genome}: the reference lacks contig {alignments.contigs[contig]}, which -w names"
                )
    pool = WorkerPool(loading_threads(options))
    inputs.callback(pool.close)
    signals = signals_of(options, inputs)
    # samples are expanded where they are copied for a GPU or events are looked for
    signals.use_pool(pool, leaves_packed=True)
    # of the signals' own reads, if the basecaller has split all of these
    run_info = signals.run_info(reads.first_names(READS_FOR_RUN_INFO)) or signals.run_info(
        signals.first_names(READS_FOR_RUN_INFO)
    )
    if models := alignments.basecall_models():
        run_info = {"basecall_model": models[0], **run_info}
    chemistry = chemistry_of(options.pore, options.is_rna, run_info, options.kmer_model is not None)
    of_options: dict[str, Any] = {
        "ultra_threshold": -1 if options.skip_ultra is None else options.ultra_thresh,
        "skip_unreadable": options.skip_unreadable,
        "hard_clips": options.hard_clips,
        "n_ahead": batches_ahead(options),
        "one_at_a_time": options is not given,
        # copies of a read that are mapped here have equal records
        "seen": SeenRecords() if options.skip_duplicates or options.mapped_by else None,
    }
    loader = Loader(
        alignments, options.reads or alignments.name, reads, reference, signals, windows, batch_size(options),
        options.max_bases, pool=pool, **of_options | settings,
    )  # fmt: skip
    return loader, chemistry


def open_alignments(options: MappedReadsOptions, chosen: ReadList | None = None) -> AlignmentFile:
    """Open the alignments of all reads, or of the chosen or listed ones."""
    path = getattr(options, "read_ids", None)
    check_read_once([options.bam, str(options.reads), str(path)])
    return AlignmentFile(
        options.bam, options.genome, options.min_mapq, options.secondary, options.supplementary,
        chosen=chosen if path is None else ReadList.read(path),
    )  # fmt: skip


def loading_threads(options: AlignmentOptions) -> int:
    """Return the number of loading threads: more would wait for the interpreter."""
    return (options.threads + 1) // 2


def batch_size(options: AlignmentOptions) -> int:
    """Return the largest number of reads of a batch, by the speed of CPU or GPU."""
    return options.batchsize or (1024 if _may_use_gpu(options) else 512)


def batches_ahead(options: AlignmentOptions) -> int:
    """Return the number of batches that are loading or queued; each takes some 70 to 100 MB."""
    return 3 if options.threads > FEW_THREADS or _may_use_gpu(options) else 1


def _may_use_gpu(options: AlignmentOptions) -> bool:
    return options.gpu_use != "off" and is_present()


def with_local_inputs(options: MappedOptions, inputs: ExitStack) -> MappedOptions:
    """Replace URLs by local copies, which are removed with `inputs`."""
    if not urls(options):
        return options
    from f5py.pipeline.remote_inputs import RemoteInputs

    remote = inputs.enter_context(RemoteInputs())

    def local(declared: Option, path: Any) -> Any:
        if isinstance(path, tuple):
            return tuple(local(declared, one) for one in path)
        if not is_url(path):
            return path
        return (
            remote.file(path, declared.beside) if declared.url == "file" else getattr(remote, str(declared.url))(path)
        )

    named = {name: one for name, one in declarations(type(options)).items() if one.url}
    return replace(options, **{name: local(one, getattr(options, name)) for name, one in named.items()})


def urls(options: Options) -> list[str]:
    """List the inputs that are URLs."""
    given = [getattr(options, name) for name, one in declarations(type(options)).items() if one.url]
    return [path for value in given for path in (value if isinstance(value, tuple) else (value,)) if is_url(path)]


def open_reads(
    options: MappedReadsOptions | PlotOptions, alignments: AlignmentFile, n_threads: int = 1
) -> ReadIndex | RecordReads:
    """Open the source of the reads' bases: an index, a file held in memory, or the alignments."""
    names_signals = any(options.signal_paths.values())
    if not options.reads:
        if not names_signals:
            raise UsageError(
                "without -r the signals must be named: give --pod5, --slow5 or --fast5, or give -r with reads that "
                "f5py index has indexed"
            )
        return RecordReads(alignments, n_threads)
    if names_signals and not os.path.exists(options.reads + SEQUENCE_SUFFIX):
        return load_reads(options.reads)
    return ReadIndex.open(options.reads)


def _check_reach(windows: Windows, alignments: AlignmentFile, text: str) -> None:
    """Raise if every window begins beyond its contig."""
    lengths, at = alignments.contig_lengths, 0
    for contig, start, _, _ in windows.with_previous_end():
        if start < lengths[contig]:
            return
        at = contig
    where = f"contig {alignments.contigs[at]}, which has {lengths[at]} bases"
    raise F5pyError(f"-w {text}: lies after the end of {where}; choose a region in it")


def paths_of_inputs(options: MappedReadsOptions, *others: str | None) -> list[str | None]:
    """Return the paths of all input files and their indices."""
    indices = [] if options.reads is None else [f"{options.reads}{suffix}" for suffix in BESIDE_READS]
    return [
        options.reads, options.bam, options.genome, *chain(*options.signal_paths.values()), options.kmer_model,
        *options.window, getattr(options, "read_ids", None), *indices, f"{options.genome}.fai", *others,
    ]  # fmt: skip
