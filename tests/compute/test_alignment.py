"""Detection of reads of another chemistry in a run in small batches."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pytest

from f5py.compute.alignment import AlignmentStage
from f5py.core.batch import ReadStatus
from f5py.errors import UnsupportedDataError
from f5py.options.signal_commands import EventalignOptions
from f5py.pipeline.inputs import open_inputs

from ..made_data import N_READS, ReadSet

BATCH = 4


def computed(reads: ReadSet, done: list[int], model: Path | None = None, batch_size: int = BATCH) -> AlignmentStage:
    """Compute all batches; `done` grows by the reads of each that comes to its end."""
    options = EventalignOptions(
        reads=str(reads.reads),
        bam=str(reads.bam),
        genome=str(reads.genome),
        batchsize=batch_size,
        threads=1,
        min_mapq=0,
        kmer_model=None if model is None else str(model),
    )
    with ExitStack() as files:
        loader, chemistry = open_inputs(options, files)
        stage = AlignmentStage(options, chemistry)
        files.callback(stage.close)
        for batch in loader.batches():
            stage.check_batch(batch)
            stage.compute(batch)
            stage.count_batch(batch)
            done.append(int((batch.status == ReadStatus.OK).sum()))
    return stage


@pytest.fixture
def wrong_model(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.model"
    path.write_text("#k\t5\n" + "".join(f"{''.join(kmer)}\t90.0\t2.0\n" for kmer in product("ACGT", repeat=5)))
    return path


def with_parts(made: ReadSet, folder: Path, *parts: tuple[slice, int]) -> ReadSet:
    _, records = made.records()
    return made.with_records(folder, [record for part, times in parts for record in records[part] * times], index=False)


def test_a_wrong_model_stops_a_run_in_small_batches(made: ReadSet, tmp_path: Path, wrong_model: Path):
    done: list[int] = []
    with pytest.raises(UnsupportedDataError, match=r"50 of the first 50 reads of 300 .*wrong.model"):
        computed(with_parts(made, tmp_path, (slice(None), 4)), done, wrong_model)
    assert done == [0] * 12  # and not the thirteenth batch


def test_reads_without_signals_are_not_counted(made: ReadSet, tmp_path: Path, wrong_model: Path):
    reads = made.with_signals(tmp_path, dict.fromkeys(made.names[::2], ""))
    done: list[int] = []
    with pytest.raises(UnsupportedDataError, match="50 of the first 50 reads of 300 bases or more do not fit"):
        computed(with_parts(reads, tmp_path, (slice(None), 7)), done, wrong_model)
    assert done == [0] * 24


def test_too_few_reads_are_not_judged(made: ReadSet, tmp_path: Path, wrong_model: Path):
    done: list[int] = []
    stage = computed(with_parts(made, tmp_path, (slice(None), 3), (slice(1), 1)), done, wrong_model)
    assert stage.counts.total == stage.counts.failed == 49


def test_short_reads_are_not_judged(made: ReadSet, tmp_path: Path, wrong_model: Path):
    """They do not fit for another reason; the run goes on."""
    reads = made.with_mapped_reads(tmp_path, {name: made.sequence(name)[:299] for name in made.names})
    stage = computed(with_parts(reads, tmp_path, (slice(None), 5)), [], wrong_model)
    assert stage.counts.total == stage.counts.failed == 5 * N_READS


def test_only_the_first_reads_are_judged(made: ReadSet, tmp_path: Path):
    """More than four fifths of all reads fail, but few of the first 50."""
    reads = made.with_mapped_reads(tmp_path, dict.fromkeys(made.names[10:], "ACGT" * 300))
    done: list[int] = []
    stage = computed(with_parts(reads, tmp_path, (slice(10), 5), (slice(10, None), 45)), done)
    assert sum(done[:12]) >= 44
    assert stage.counts.total == 320
    assert stage.counts.no_alignment >= 270


@pytest.mark.parametrize("batch_size", [1, 4, 7, 512])
def test_the_verdict_does_not_depend_on_the_batches(made: ReadSet, tmp_path: Path, batch_size: int):
    """41 of the first 50 reads fail, and then 40, whatever is in a batch with them."""
    reads = made.with_mapped_reads(tmp_path, dict.fromkeys(made.names[:15], "ACGT" * 300))
    bad, good = slice(15), slice(15, None)
    for first, message in ((11, "41 of the first 50 reads"), (10, None)):
        parts = ((bad, 2), (slice(first), 1), (good, 50 - 30 - first), (good, 20))
        changed = with_parts(reads, tmp_path, *parts)
        if message is None:
            assert computed(changed, [], batch_size=batch_size).counts.no_alignment == 40
            continue
        with pytest.raises(UnsupportedDataError, match=message):
            computed(changed, [], batch_size=batch_size)


def test_letters_of_rna_in_a_later_batch(made: ReadSet, tmp_path: Path):
    last = made.names[-1]
    reads = made.with_reads(tmp_path, {last: made.sequence(last).replace("T", "U")})
    done: list[int] = []
    with pytest.raises(UnsupportedDataError, match="the reads have the letter U"):
        computed(reads, done)
    assert len(done) == N_READS // BATCH - 1
