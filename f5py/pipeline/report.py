"""What is said at the end of a run."""

from __future__ import annotations

from f5py import console
from f5py.errors import AllReadsFailedError
from f5py.pipeline.caller import Caller, CallOptions
from f5py.pipeline.loader import Loader

_WHO = "meth_main"


def report(options: CallOptions, caller: Caller, loader: Loader, processing_seconds: float) -> None:
    """Print the counts and times of a run, and what they suggest.

    Raises
    ------
    AllReadsFailedError
        If not a single read has a result.
    """
    counts, skipped, times = caller.counts, loader.alignments.counts, loader.times
    console.note(
        _WHO,
        f"skipped unmapped: {skipped.unmapped}, skipped secondary: {skipped.secondary}, "
        f"skipped low_mapq: {skipped.low_mapq}",
    )
    console.note(
        _WHO,
        f"total entries: {counts.total}, qc fail: {counts.qc_fail}, could not calibrate: {counts.not_calibrated}, "
        f"no alignment: {counts.no_alignment}, bad reads: {counts.bad_reads}",
    )
    console.note(_WHO, f"total bases: {counts.bases / 1e6:.1f} Mbases")
    console.note(_WHO, f"Data loading time: {times.total:.3f} sec")
    console.note(_WHO, f"    - bam load time: {times.alignments:.3f} sec")
    console.note(_WHO, f"    - fasta load time: {times.reads:.3f} sec")
    console.note(_WHO, f"    - fast5 load time: {times.signals:.3f} sec")
    console.note(_WHO, f"Data processing time: {processing_seconds:.3f} sec")
    for stage, seconds in caller.times.seconds.items():
        console.note(_WHO, f"    - {stage} time: {seconds:.3f} sec")
    console.note(_WHO, f"Data output time: {caller.times.output:.3f} sec")

    if counts.ultra:
        console.warning(
            _WHO,
            f"{counts.ultra} reads longer than {options.ultra_thresh / 1e3:.1f} kbases were written to "
            f"{options.skip_ultra} and left out",
        )
        ultra = options.skip_ultra
        console.note(_WHO, f"To call them: samtools index {ultra}, then run again with -b {ultra}")
    if times.total - processing_seconds > 0.2 * processing_seconds and times.total > 5.0:
        console.info(_WHO, "the run was bounded by file input; more reader processes (--iop) may help")
    if skipped.low_mapq > counts.total:
        console.warning(_WHO, "more records were skipped for low mapping quality than were used (--min-mapq)")
    if counts.qc_fail + counts.not_calibrated + counts.no_alignment > counts.total // 2:
        console.warning(_WHO, "more than half of the reads failed to align; is this R9.4 DNA (or --kmer-model given)?")
    if counts.bad_reads > counts.total / 10:
        console.warning(_WHO, "the signals of more than a tenth of the reads are missing or unreadable")
    if counts.failed + counts.ultra >= counts.total and counts.failed > 0:
        raise AllReadsFailedError(f"all {counts.failed} reads failed; see the counts above for the reason")
    if counts.total == 0:
        raise AllReadsFailedError(
            f"{options.bam}: no record was used; check the file, -w, --min-mapq and --secondary"
        )
