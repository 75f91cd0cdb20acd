"""Training of a pore model with control reads: ``f5py train``."""

import json
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from f5py import __version__
from f5py.compute.chemistry import R10_DNA, Chemistry
from f5py.compute.diagnosis import mismatch
from f5py.compute.methylation import builtin_methylation, motif_of
from f5py.compute.training import BaseUses, NoiseStage, TestingStage, TrainingStage
from f5py.core.motifs import Motif
from f5py.errors import F5pyError, FailedRunError, PoreModelError, UsageError
from f5py.evaluation.ratios import area_under_curve, roc_points
from f5py.io.bam.bam_records import RecordColumns
from f5py.io.files.atomic_write import named_together
from f5py.io.files.complete_file import complete_output, complete_text_output
from f5py.io.output_checks import check_outputs
from f5py.io.signals import SignalSource
from f5py.messages import console
from f5py.messages.console import obeys_strict
from f5py.options.output_names import MODEL, check_name
from f5py.options.shared import MappedReadsOptions
from f5py.options.signal_commands import CallOptions, TrainOptions
from f5py.pipeline.flow import process
from f5py.pipeline.inputs import open_inputs, open_signals_of, with_local_inputs
from f5py.pore_model import PoreModel, named_model
from f5py.pore_model.model import Shifts, with_methylation
from f5py.pore_model.text_file import model_text, read_start
from f5py.reports.training_report import training_data, training_page
from f5py.runs import fit_shifts
from f5py.runs.fit_shifts import ShiftsSummary
from f5py.training.held_out import HeldOut
from f5py.training.judgement import ModelQuality, as_report, of_few, quality_of, too_many_wrong, words_of
from f5py.training.noise import CANDIDATES, NoiseEstimate, estimate
from f5py.training.sums import FIRST_SHARE, KmerSums, SiteTruth, plain_ranks, read_truth
from f5py.training.update import WELL_SEEN, updated

_WHO = "train"
#: Levels that change by less, in pA, are settled.
_SETTLED = 0.05
#: As many say enough of the noise; of more reads a share is used.
_NOISE_EVENTS = 1_000_000
#: The models of a comparison.
_BOTH = ("start", "trained")

Stage = TypeVar("Stage", TrainingStage, TestingStage, NoiseStage)


@dataclass(frozen=True, eq=False)
class TrainingSummary:
    """Results of a training."""

    model: PoreModel
    n_events: NDArray[np.float64]  # shape (n_kmers,): events of each k-mer in the last round
    # rounds: of each round: ``events``, ``kmers_well_seen``, ``change`` (pA) and ``held_out_deviation`` (root mean
    # square, in units of the standard deviation; None without reads held out)
    rounds: list[dict[str, Any]]
    auc: float | None  # area under the ROC curve of the calls that were held out
    n_calls: int  # their number
    report: dict[str, Any]  # all of it, as the report has it


@dataclass(frozen=True)
class _Source:
    """Alignments, and the truth of their sites: all methylated, none, or in a file."""

    path: str
    is_methylated: bool
    truth: str | None = None


@obeys_strict
def run(options: TrainOptions) -> TrainingSummary | ShiftsSummary:
    """Train a pore model, and write it. Raises `F5pyError`, leaving no file."""
    if options.unlabeled:
        return fit_shifts.run(options)
    sources = _sources(options)
    trains_methylated = any(source.is_methylated for source in sources) and options.train_kmers != "unmethylated"
    motif = _motif(options) if any(source.is_methylated for source in sources) else None
    with named_together(), complete_text_output(options.output, min(options.threads, 4)) as out, ExitStack() as files:
        reports = [(path, files.enter_context(complete_output(path))) for path in options.report]
        passes = _Passes(options, sources, motif, files.enter_context(ExitStack()))
        chemistry = passes.chemistry()
        start = _start_model(options, chemistry, motif)
        summary = _train(options, passes, chemistry, start, trains_methylated)
        _check(summary.report, options, trains_methylated)
        comment = f"f5py {__version__} train, {chemistry.name}, {len(summary.rounds)} rounds, start {start.name}"
        for piece in model_text(summary.model, summary.n_events, _kind(options, motif), comment):
            out.write(piece)
        for path, file in reports:
            is_page = path.endswith(".html")
            text = training_page(summary.report) if is_page else json.dumps(summary.report, indent=2) + "\n"
            file.write(text.encode())
    return summary


def _sources(options: TrainOptions) -> list[_Source]:
    """List the files of alignments. Raises `UsageError` for contradicting options."""
    if (options.bam is None) != (options.truth is None):
        raise UsageError("-b and --truth belong together; controls are given with --methylated and --unmethylated")
    sources = [_Source(path, True) for path in options.methylated]
    sources += [_Source(path, False) for path in options.unmethylated]
    if options.bam is not None:
        sources.append(_Source(options.bam, True, options.truth))
    if not sources:
        raise UsageError(
            "give control reads: --methylated BAM, --unmethylated BAM, or -b BAM with --truth BEDMETHYL; or, of "
            "R10.4.1, any reads with --unlabeled BAM"
        )
    if "-" in [source.path for source in sources]:
        raise UsageError("alignments are read in every round, so they cannot come from standard input")
    check_outputs(options)
    check_name("-o", options.output, MODEL)
    return sources


def _motif(options: TrainOptions) -> Motif:
    # a motif of the user's own needs a model elsewhere, which is made here
    model = None if options.motif is None else options.output
    chosen = CallOptions(bam="", genome="", methylation=options.methylation, motif=options.motif, meth_model=model)
    return motif_of(chosen)


def _kind(options: TrainOptions, motif: Motif | None) -> str:
    return "nucleotide" if motif is None else motif.name if options.motif is None else motif.pattern.lower()


def _start_model(options: TrainOptions, chemistry: Chemistry, motif: Motif | None) -> PoreModel:
    """Choose the model to start from, with methylated k-mers if there are methylated reads."""
    if options.start is not None:
        named = named_model(options.start, "ACGT") or named_model(options.start, "ACGMT")
        model = named or read_start(options.start, lambda: chemistry.nucleotide_model(None))
    elif motif is not None and (found := builtin_methylation(chemistry, motif)) is not None:
        return found
    else:
        model = chemistry.nucleotide_model(options.kmer_model)
    if motif is None:
        if "M" in model.alphabet:
            raise PoreModelError(f"{model.name}: has methylated k-mers, but there are no methylated reads")
        return model
    if "M" in model.alphabet:
        return model
    return with_methylation(model, Shifts.of_places([0.0] * model.k), model.name, motif.canonical)


class _Passes:
    """Runs over all alignments, with signals opened once and URLs fetched once.

    `opened` closes the signals, and is empty while a thread reads them.
    """

    def __init__(self, options: TrainOptions, sources: list[_Source], motif: Motif | None, opened: ExitStack) -> None:
        self.motif = motif
        self._opened = opened
        self._signals: SignalSource | None = None
        self._sources: list[tuple[_Source, TrainOptions]] = []
        for source in sources:
            options = with_local_inputs(replace(options, bam=source.path), opened)
            self._sources.append((source, options))
        self._truths: dict[str, SiteTruth] = {}
        self.held_out = HeldOut(0.0, [], [])

    def chemistry(self) -> Chemistry:
        """Determine the chemistry of the signals, and choose the held-out regions by the alignments."""
        chemistry = None
        for _, options in self._sources:
            with ExitStack() as inputs:
                loader, found = open_inputs(options, inputs, self._signals_of)
                alignments = loader.alignments
                if chemistry is None:
                    chemistry = found
                    self.held_out = HeldOut(options.held_out, alignments.contigs, alignments.contig_lengths)
                numbers = self.held_out.numbers_of(alignments.contigs)
                with closing(alignments.chunks(loader.windows)) as chunks:
                    for data, starts, n in chunks:
                        records = RecordColumns.of(data, starts, np.arange(n))
                        contig = np.where(records.contig >= 0, numbers[records.contig], -1)
                        self.held_out.count(contig, records.start, records.end)
        assert chemistry is not None
        self.held_out.choose()
        return chemistry

    def _signals_of(self, options: MappedReadsOptions, inputs: ExitStack) -> SignalSource:
        """Open the signals. Closing `inputs` gives them back after a whole pass, and closes them after another one."""
        if self._signals is None:
            self._signals = open_signals_of(options, self._opened)
        lent = self._opened.pop_all()

        def give_back(problem: type[BaseException] | None, *_: object) -> None:
            if problem is None:
                self._opened.push(lent)
            else:
                lent.close()

        inputs.push(give_back)
        return self._signals

    def over(self, make: Callable[[TrainOptions, Chemistry, SiteTruth | None, BaseUses], Stage]) -> list[Stage]:
        """Read all alignments with a new stage for each file; return the closed stages."""
        stages = []
        for source, options in self._sources:
            with ExitStack() as workers, ExitStack() as inputs:
                loader, chemistry = open_inputs(options, inputs, self._signals_of, spliced=True)
                truth = self._truth(source, loader.alignments.contigs)
                numbers = self.held_out.numbers_of(loader.alignments.contigs)
                uses = partial(self.held_out.uses, numbers=numbers, windows=loader.windows)
                stage = make(options, chemistry, truth, uses)
                workers.callback(stage.close)
                estimates_total = stage.use_gpu(loader)
                batches = loader.batches(estimates_total=estimates_total)
                process(options, stage, batches, loader.stop, inputs, lambda batch: None, _WHO, "no model was made")
                if (why := mismatch(stage.counts, options)) is not None:
                    raise FailedRunError(f"{why}; no model was made")
            stages.append(stage)
        return stages

    def _truth(self, source: _Source, contigs: list[str]) -> SiteTruth | None:
        if not source.is_methylated:
            return None
        if source.truth is None:
            return SiteTruth.all_methylated()
        assert self.motif is not None
        if source.truth not in self._truths:
            self._truths[source.truth] = read_truth(source.truth, contigs, self.motif)
        return self._truths[source.truth]


def _train(
    options: TrainOptions, passes: _Passes, chemistry: Chemistry, start: PoreModel, trains_methylated: bool
) -> TrainingSummary:
    """Do the rounds, and the test."""
    motif = passes.motif
    canonical = motif.canonical if motif else "C"
    model = start
    share = np.where(plain_ranks(start.k, start.alphabet, canonical) >= 0, FIRST_SHARE, 0.0)
    rounds: list[dict[str, Any]] = []
    for number in range(1, options.rounds + 1):
        sums = KmerSums(model, canonical, share)
        passes.over(lambda one, kind, truth, uses: TrainingStage(one, kind, sums, motif, truth, uses))  # noqa: B023
        n_events = sums.sums[:, 0] + sums.sums[:, 5]
        if not n_events.sum():
            raise F5pyError("not a single event was aligned to the reference; nothing can be learnt from these reads")
        trains_plain = options.train_kmers != "methylated"
        model, share, change = updated(
            model, start, sums.sums, share, canonical, options.prior_events, trains_plain, trains_methylated
        )
        deviation = float(np.sqrt(sums.fit[1] / sums.fit[0])) if sums.fit[0] else None
        rounds.append(
            {
                "events": int(n_events.sum()),
                "kmers_well_seen": int((sums.sums[:, 0] >= WELL_SEEN).sum()),
                "change": change,
                "held_out_deviation": deviation,
            }
        )
        told = "" if deviation is None else f"; held-out events deviate by {deviation:.3f} standard deviations"
        console.note(
            _WHO,
            f"round {number}: {rounds[-1]['events']:,} events, {rounds[-1]['kmers_well_seen']:,} k-mers with at least "
            f"{WELL_SEEN}, levels changed by {change:.3f} pA on average{told}",
        )
        if change < _SETTLED:
            break
    noise = None if chemistry.rna else _noise(passes, model, n_events)  # what is called is DNA
    if noise is not None:
        model = replace(model, noise=noise.noise)
    plain = plain_ranks(model.k, model.alphabet, canonical)
    report = training_data(plain, chemistry.name, start, model, n_events, rounds)
    if noise is not None:
        numbers = noise._asdict()
        report["noise"] = {**numbers.pop("noise")._asdict(), **numbers}
    labels, ratios = _test(options, passes, model)
    trained = quality_of(model, labels, ratios, sums.held)
    before = quality_of(start, *_test(options, passes, start), sums.held)
    report["comparison"] = as_report(start.name, before, trained)
    if words := words_of(before, trained):
        console.note(_WHO, f"held out: {len(labels):,} calls; {words}: {report['comparison']['verdict']}")
    if trained.auc is not None:
        report["held_out"] = {"calls": len(labels), "auc": trained.auc, "roc": roc_points(labels, ratios)}
        report["held_out"]["known_model"] = _known_model(options, passes, chemistry, start, before, trained)
    report["warnings"] = [f"{few}{_of_shifts(options, report)}" for few in of_few(report)]
    for text in report["warnings"]:
        console.warning(_WHO, text)
    return TrainingSummary(model, n_events, rounds, trained.auc, len(labels), report)


def _check(report: dict[str, Any], options: TrainOptions, trains_methylated: bool) -> None:
    """Refuse a model without methylation, with many errors, or worse than the start model."""
    problem = None
    methylated = report["kmers"].get("methylated")
    comparison = report["comparison"]
    if trains_methylated and methylated is not None and not methylated["well_seen"]:
        problem = (
            f"not one of the {methylated['seen']:,} methylated k-mers that occur has {WELL_SEEN} events; give more "
            f"methylated reads{_of_shifts(options, report)}"
        )
    else:
        before, trained = (
            ModelQuality(**{name: comparison[one][name] for name in ModelQuality._fields}) for one in _BOTH
        )
        known = report.get("held_out", {}).get("known_model") or {}
        problem = too_many_wrong(before, trained, known.get("auc"))
        if problem is None and comparison["verdict"] == "worse":
            start = comparison["start"]["name"]
            problem = f"worse than the start model {start} on held-out reads: {words_of(before, trained)}"
    if problem is None:
        return
    if not options.force:
        raise F5pyError(f"{problem}; no model was made (--force writes it all the same)")
    report["warnings"].append(problem)
    console.warning(_WHO, problem)


def _of_shifts(options: TrainOptions, report: dict[str, Any]) -> str:
    """Suggest to fit few shifts instead of many levels, if possible; else ""."""
    if report["chemistry"] != R10_DNA.name or options.motif is not None or options.methylation not in (None, "cpg"):
        return ""
    files = " ".join(f"--unlabeled {path}" for path in (*options.methylated, *options.unmethylated) or (options.bam,))
    return f"; or fit nine shifts to the same reads: {files}"


def _noise(passes: _Passes, model: PoreModel, n_events: NDArray[np.float64]) -> NoiseEstimate | None:
    """Estimate the noise around the levels of the plain k-mers; None if too few windows have only such."""
    hidden = [] if passes.motif is None else [passes.motif]
    share = min(1.0, _NOISE_EVENTS / float(n_events.sum()))
    sums, n_windows = np.zeros(len(CANDIDATES)), 0
    for stage in passes.over(lambda one, kind, _, uses: NoiseStage(one, kind, model, hidden, share, uses)):
        likelihoods, n = stage.sums
        sums, n_windows = sums + likelihoods, n_windows + n
    found = estimate(sums, n_windows)
    if found is None:
        console.note(_WHO, f"too few windows of plain sequence ({n_windows:,}) to estimate the noise of the events")
    else:
        console.note(_WHO, f"noise of the events, by {n_windows:,} windows of plain sequence: {found.noise.words}")
    return found


def _known_model(
    options: TrainOptions,
    passes: _Passes,
    chemistry: Chemistry,
    start: PoreModel,
    before: ModelQuality,
    trained: ModelQuality,
) -> dict[str, Any] | None:
    """Measure the built-in model, if any, by the same calls."""
    known = None if passes.motif is None else builtin_methylation(chemistry, passes.motif)
    if known is None or known.k != start.k:
        return None
    found = before.auc if known.name == start.name else area_under_curve(*_test(options, passes, known))
    if found is None or trained.auc is None:
        return None
    is_better = trained.auc > found
    if known.name != start.name:
        words = "the trained one is better" if is_better else "the trained one is not better"
        console.note(_WHO, f"the built-in model {known.name} has an area of {found:.4f}; {words}")
    return {"name": known.name, "auc": found, "trained_is_better": is_better}


def _test(options: TrainOptions, passes: _Passes, model: PoreModel) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """States and log-likelihood ratios of the held-out calls."""
    motif = passes.motif
    labels: list[NDArray[np.bool_]] = [np.zeros(0, np.bool_)]
    ratios: list[NDArray[np.float64]] = [np.zeros(0)]
    if motif is None or "M" not in model.alphabet or not options.held_out:
        return labels[0], ratios[0]
    truths: list[SiteTruth | None] = []

    def make(one: TrainOptions, chemistry: Chemistry, truth: SiteTruth | None, uses: BaseUses) -> TestingStage:
        truths.append(truth)
        return TestingStage(one, chemistry, model, motif, uses)

    for stage, truth in zip(passes.over(make), truths, strict=True):
        contig, first, last, ratio = stage.calls()
        if truth is None or not truth.is_given:
            labels.append(np.full(len(ratio), truth is not None))
            ratios.append(ratio)
            continue
        state, other = truth.states_of(contig, first), truth.states_of(contig, last)
        known = (state == other) & (state < 2)
        labels.append(state[known] == 1)
        ratios.append(ratio[known])
    return np.concatenate(labels), np.concatenate(ratios)
