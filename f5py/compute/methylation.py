"""Compute stage of methylation calling."""

from dataclasses import replace

import numpy as np

from f5py.compute.alignment import AlignmentStage
from f5py.compute.chemistry import R10_DNA, Chemistry
from f5py.compute.diagnosis import RunCounts
from f5py.compute.provenance import Provenance
from f5py.compute.statistics import RunStatistics
from f5py.core.batch import ReadBatch
from f5py.core.motifs import Motif, motif_named, parse_motif
from f5py.core.noise import CALIBRATION, OF_PORES, Noise
from f5py.core.windows import Windows
from f5py.errors import PoreModelError, UnsupportedDataError, UsageError
from f5py.messages import console
from f5py.methylation.calls import ScoreOffload, call_methylation, join_motifs
from f5py.methylation.overlapping_calls import OverlappingCalls
from f5py.methylation.rescale import rescale_reads, use_scaling
from f5py.options.shared import METHYLATION, METHYLATIONS
from f5py.options.signal_commands import CallOptions
from f5py.pore_model import BUILTIN_MODELS, PoreModel, builtin, check_same_k, read_model
from f5py.site_frequencies.site_counts import calls_inside


class MethylationStage(AlignmentStage):
    """Align events and score sites.

    Raises `PoreModelError` if a model file is unusable or the two models differ in k, `UnsupportedDataError` for RNA or
    without a built-in model. Only calls in `windows` are counted.
    """

    command = "call-methylation"
    n_parts = 3

    def __init__(self, options: CallOptions, chemistry: Chemistry, windows: Windows | None = None) -> None:
        if chemistry.rna:
            raise UnsupportedDataError(
                f"methylation is called in DNA only, not in {chemistry.name}; for RNA use eventalign and the tools "
                "that read its table"
            )
        if options.rescale is None and options.is_correlated:
            options = replace(options, rescale=chemistry == R10_DNA)
        self.models = methylation_models(options, chemistry)
        # The second scores after --rescale are of fits that a GPU does not have: the CPU threads compute them of the
        # events that it has aligned.
        results = "" if options.rescale else "sites" if options.per_site else "calls"
        super().__init__(options, chemistry, means_only=not options.print_events, results=results, finish=self._call)
        self.times.seconds["HMM"] = 0.0
        try:
            for _, model in self.models:
                check_same_k(self.model, model)
            self._noises = [noise_of(options, chemistry, model) for _, model in self.models]
        except BaseException:
            self.close()
            raise
        #: Factor of the ratios where probabilities are made of them.
        self.calibration = _calibration(chemistry, self.models) if options.is_correlated else 1.0
        self._windows = windows
        self._threshold = options.threshold
        self._per_site = options.per_site
        self._rescales = bool(options.rescale)
        self._keep_cigar = options.modbam is not None
        self._covered = OverlappingCalls() if options.skip_overlaps else None

    @property
    def motifs(self) -> list[Motif]:
        return [motif for motif, _ in self.models]

    @property
    def motif_names(self) -> list[str]:
        """Motif names of the table's column; empty for a single motif."""
        return [motif.name for motif in self.motifs] if len(self.models) > 1 else []

    @property
    def facts(self) -> Provenance:
        """Provenance with the models of the methylated bases."""
        return super().facts.with_models({f"{motif.name} model": model.name for motif, model in self.models})

    def compute(self, batch: ReadBatch) -> None:
        if not len(batch):
            return
        super().compute(batch)
        batch.release("bases", "base_map")
        if not self._keep_cigar:
            batch.release("cigar")
        if self.stages.means_only:
            batch.release("events")

    def _call(self, batch: ReadBatch, elsewhere: ScoreOffload | None) -> float:
        """Fill the calls; see `SignalStages.finish`."""
        batch.by_motif = []
        seconds = 0.0
        for (motif, model), noise in zip(self.models, self._noises, strict=True):
            if self._rescales:
                seconds += call_methylation(batch, motif, model, self.pool, noise=noise)
                scaling, more = rescale_reads(batch, motif, model, self.pool, self.stages.quality.min_events)
                with use_scaling(batch, scaling):
                    seconds += more + call_methylation(batch, motif, model, self.pool, self._per_site, noise=noise)
            else:
                seconds += call_methylation(
                    batch, motif, model, self.pool, self._per_site, elsewhere=elsewhere, noise=noise
                )
            if len(self.models) > 1:
                batch.by_motif.append(batch.calls)
        if batch.by_motif:
            join_motifs(batch)
        return seconds

    def count_batch(self, batch: ReadBatch) -> None:
        if self._covered is not None and len(batch):
            if batch.is_earlier:
                self._covered.add(batch)
                return
            batch.covered_sites = self._covered.drop(batch)
        super().count_batch(batch)

    def count(self, batch: ReadBatch, counts: RunCounts, statistics: RunStatistics | None) -> None:
        if len(batch) == 0:
            return
        super().count(batch, counts, statistics)
        calls = calls_inside(batch, self._windows)
        threshold = np.float32(self._threshold)
        with np.errstate(invalid="ignore"):  # if neither hypothesis is possible
            ratio = batch.calls.methylated[calls] - batch.calls.unmethylated[calls]
        counts.results += len(ratio)
        counts.covered_sites += batch.covered_sites
        counts.methylated += int(np.count_nonzero(ratio >= threshold))
        counts.unmethylated += int(np.count_nonzero(ratio <= -threshold))


def noise_of(options: CallOptions, chemistry: Chemistry, model: PoreModel) -> Noise | None:
    """Return the noise model of the pore model's file, else of the chemistry; None if independent.

    Raises `UnsupportedDataError` for a chemistry without one.
    """
    if not options.is_correlated:
        return None
    noise = OF_PORES.get(chemistry.pore) if model.noise is None else model.noise
    if noise is None:
        raise UnsupportedDataError(
            f"--noise correlated: the noise of {chemistry.name} is not known; leave the option out, or give a model of "
            "f5py train with --meth-model"
        )
    if chemistry == R10_DNA and model.noise is None:
        console.info("methylation", "the correlations of R10.4.1's noise are exploratory: few reads were measured")
    return None if noise.is_independent else noise


def motif_of(options: CallOptions) -> Motif:
    """Return the single motif of the options."""
    if len(motifs := motifs_of(options)) > 1:
        raise UsageError(f"--methylation {options.methylation}: one motif is possible here")
    return motifs[0]


def motifs_of(options: CallOptions) -> list[Motif]:
    """Return the motifs of the options."""
    if options.motif is None:
        names = (options.methylation or METHYLATION).split(",")
        if wrong := [name for name in names if name not in METHYLATIONS]:
            raise UsageError(
                f"--methylation {options.methylation}: {wrong[0]!r} is not one of {', '.join(METHYLATIONS)}"
            )
        if len(set(names)) < len(names):
            raise UsageError(f"--methylation {options.methylation}: names a motif twice")
        if len(names) > 1 and options.meth_model is not None:
            raise UsageError("--meth-model: is for one motif; of several the built-in models are used")
        return [replace(motif_named(name), separation=options.min_separation) for name in names]
    return [replace(parse_motif(options.motif), separation=options.min_separation)]


def methylation_models(options: CallOptions, chemistry: Chemistry) -> list[tuple[Motif, PoreModel]]:
    """Return the motifs of the options, each with the model of its methylated bases.

    Raises `PoreModelError` for an unusable file, `UnsupportedDataError` without a built-in model.
    """
    motifs = motifs_of(options)
    if options.meth_model:
        given = read_model(options.meth_model, "ACGMT")
        if given.kind not in (None, motifs[0].name):
            raise PoreModelError(
                f"{options.meth_model}: is a model of {given.kind}, not of {motifs[0].name}; give the model of the "
                "motif that is called"
            )
        return [(motifs[0], given)]
    found = []
    for motif in motifs:
        model = builtin_methylation(chemistry, motif)
        if model is None:
            others = [name for name in METHYLATIONS if builtin_methylation(chemistry, motif_named(name)) is not None]
            instead = f"; there is one of {' and '.join(others)} (-q)" if others else ""
            raise UnsupportedDataError(
                f"there is no built-in model of {motif.name} methylation for {chemistry.name}{instead}; give a model "
                "with --meth-model"
            )
        found.append((motif, model))
    if chemistry == R10_DNA:
        console.warning(  # which --quiet leaves
            "methylation",
            "methylation calls of R10.4.1 are experimental: the shifts of the methylated k-mers are round means of "
            "public 4 kHz reads; f5py train --unlabeled fits them to your reads",
        )
    return found


def _calibration(chemistry: Chemistry, models: list[tuple[Motif, PoreModel]]) -> float:
    """Return the factor of correlated-noise ratios, from a model's file or the chemistry."""
    stated = [model.calibration for _, model in models if model.calibration is not None]
    return stated[0] if stated else CALIBRATION.get(chemistry.pore, 1.0)


def builtin_methylation(chemistry: Chemistry, motif: Motif) -> PoreModel | None:
    """Return the built-in model of a motif's methylated k-mers, or None."""
    name = "" if chemistry.model is None else chemistry.model.replace("nucleotide", motif.name)
    return builtin(name) if name in BUILTIN_MODELS else None
