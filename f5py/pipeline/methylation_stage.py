"""The compute stage of methylation calling: from loaded to writable batches."""

from __future__ import annotations

from dataclasses import replace

from f5py import console
from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif, motif_named, parse_motif
from f5py.core.options import METHYLATION, CallOptions
from f5py.core.windows import Windows
from f5py.errors import UnsupportedDataError, UsageError
from f5py.methylation.calls import call_methylation
from f5py.pipeline.alignment_stage import AlignmentStage
from f5py.pipeline.chemistry import R10_DNA, Chemistry
from f5py.pore_model import BUILTIN_MODELS, PoreModel, builtin, check_same_k, read_model
from f5py.site_frequencies.site_counts import calls_inside


class Caller(AlignmentStage):
    """The alignment of events and the scoring of sites.

    Parameters
    ----------
    options : CallOptions
    chemistry : Chemistry
    windows : Windows or None
        Only calls in these count.

    Raises
    ------
    PoreModelError
        If a model file is unusable or the two models differ in k.
    UnsupportedDataError
        If the data are RNA, or there is no built-in model.
    """

    command = "call-methylation"
    n_parts = 3

    def __init__(self, options: CallOptions, chemistry: Chemistry, windows: Windows | None = None) -> None:
        if chemistry.rna:
            raise UnsupportedDataError(
                f"methylation is called in DNA only, not in {chemistry.name}; for RNA use eventalign and the tools "
                "that read its table"
            )
        self.motif, self.methylation = methylation_models(options, chemistry)
        super().__init__(options, chemistry)
        self.times.seconds["HMM"] = 0.0
        try:
            check_same_k(self.model, self.methylation)
        except BaseException:
            self.close()
            raise
        self._windows = windows
        self._threshold = options.threshold
        self._per_site = options.per_site
        self._means_only = not options.print_events
        self._keep_cigar = options.modbam is not None

    def admit(self, batch: ReadBatch) -> None:
        """See `AlignmentStage.admit`. A batch may have no reads, only records that were passed over."""
        if len(batch):
            super().admit(batch)

    def compute(self, batch: ReadBatch) -> None:
        """Fill the batch's arrays, its calls too."""
        if not len(batch):
            return
        super().compute(batch)
        self.before_stage("site calls" if self._per_site else "calls")
        self.times.add("HMM", call_methylation(batch, self.motif, self.methylation, self.pool, self._per_site))
        self.after_part(batch)
        batch.release("bases", "kmer_rank", "first_event", "last_event")
        if not self._keep_cigar:
            batch.release("cigar")
        if self._means_only:
            batch.release("event_mean")

    def settle(self, batch: ReadBatch) -> None:
        """See `AlignmentStage.settle`."""
        if len(batch):
            super().settle(batch)
            self._count(batch)

    def _count(self, batch: ReadBatch) -> None:
        calls = calls_inside(batch, self._windows)
        ratio = batch.call_methylated[calls] - batch.call_unmethylated[calls]
        self.counts.results += int(calls.sum())
        self.counts.methylated += int((ratio >= self._threshold).sum())
        self.counts.unmethylated += int((ratio <= -self._threshold).sum())


def motif_of(options: CallOptions) -> Motif:
    """Return the motif that `options` name."""
    if options.motif is None:
        return replace(motif_named(options.methylation or METHYLATION), separation=options.min_separation)
    if options.methylation is not None:
        raise UsageError("--methylation and --motif are both given; choose one")
    if options.meth_model is None:
        raise UsageError(f"--motif {options.motif}: needs a pore model with methylated bases of its own (--meth-model)")
    return replace(parse_motif(options.motif), separation=options.min_separation)


def methylation_models(options: CallOptions, chemistry: Chemistry) -> tuple[Motif, PoreModel]:
    """Return the motif that `options` name, and the model of its methylated bases.

    Raises
    ------
    PoreModelError
        The model file is unusable.
    UnsupportedDataError
        There is no built-in model for the chemistry.
    """
    motif = motif_of(options)
    if options.meth_model:
        return motif, read_model(options.meth_model, "ACGMT")
    found = builtin_methylation(chemistry, motif)
    if found is None:
        raise UnsupportedDataError(
            f"there is no built-in model of methylated bases for {chemistry.name}; give one with --meth-model"
        )
    if chemistry is R10_DNA:
        console.info(
            "methylation",
            "CpG calls of R10.4.1 are experimental: the pore model is made of the nucleotide model and mean shifts of "
            "a few methylated k-mers; it is not f5c's (f5py train makes better ones of control reads)",
        )
    return motif, found


def builtin_methylation(chemistry: Chemistry, motif: Motif) -> PoreModel | None:
    """The built-in model of a motif's methylated k-mers, or None."""
    name = "" if chemistry.model is None else chemistry.model.replace("nucleotide", motif.name)
    return builtin(name) if name in BUILTIN_MODELS else None
