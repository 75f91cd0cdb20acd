"""How a run in small batches sees that its reads are of another chemistry."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import product
from pathlib import Path

import pytest

from f5py.core.batch import ReadStatus
from f5py.core.options import EventalignOptions
from f5py.errors import UnsupportedDataError
from f5py.pipeline.alignment_stage import AlignmentStage
from f5py.pipeline.inputs import open_inputs

from ..made_data import N_READS, ReadSet

BATCH = 4


def computed(reads: ReadSet, done: list[int], model: Path | None = None) -> AlignmentStage:
    """Compute all batches of four reads; `done` grows by the reads of each that comes to its end."""
    options = EventalignOptions(
        reads=str(reads.reads),
        bam=str(reads.bam),
        genome=str(reads.genome),
        batchsize=BATCH,
        threads=1,
        min_mapq=0,
        kmer_model=None if model is None else str(model),
    )
    with ExitStack() as files:
        loader, chemistry = open_inputs(options, files)
        stage = AlignmentStage(options, chemistry)
        files.callback(stage.close)
        for batch in loader.batches():
            stage.admit(batch)
            stage.compute(batch)
            stage.settle(batch)
            done.append(int((batch.status == ReadStatus.OK).sum()))
    return stage


@pytest.fixture
def wrong_model(tmp_path: Path) -> Path:
    path = tmp_path / "wrong.model"
    path.write_text("#k\t5\n" + "".join(f"{''.join(kmer)}\t90.0\t2.0\n" for kmer in product("ACGT", repeat=5)))
    return path


def with_parts(made: ReadSet, folder: Path, *parts: tuple[slice, int]) -> ReadSet:
    """With some of the records, each part so many times."""
    _, records = made.records()
    return made.with_records(folder, [record for part, times in parts for record in records[part] * times], index=False)


def test_a_wrong_model_stops_a_run_in_small_batches(made: ReadSet, tmp_path: Path, wrong_model: Path):
    done: list[int] = []
    with pytest.raises(UnsupportedDataError, match=r"20 of the first 20 reads do not fit the pore model .*wrong.model"):
        computed(with_parts(made, tmp_path, (slice(None), 3)), done, wrong_model)
    assert done == [0] * 4  # and not the fifth batch


def test_reads_without_signals_are_not_counted(made: ReadSet, tmp_path: Path, wrong_model: Path):
    reads = made.with_signals(tmp_path, dict.fromkeys(made.names[::2], ""))
    done: list[int] = []
    with pytest.raises(UnsupportedDataError, match="20 of the first 20 reads do not fit"):
        computed(with_parts(reads, tmp_path, (slice(None), 3)), done, wrong_model)
    assert done == [0] * 9


def test_too_few_reads_are_not_judged(made: ReadSet, tmp_path: Path, wrong_model: Path):
    done: list[int] = []
    stage = computed(with_parts(made, tmp_path, (slice(None), 1), (slice(3), 1)), done, wrong_model)
    assert stage.counts.total == stage.counts.failed == 19


def test_only_the_first_reads_are_judged(made: ReadSet, tmp_path: Path):
    """More than four fifths of all reads fail, but none of the first 20."""
    reads = made.with_reads(tmp_path, dict.fromkeys(made.names[10:], "ACGT" * 300))
    done: list[int] = []
    stage = computed(with_parts(reads, tmp_path, (slice(10), 2), (slice(10, None), 15)), done)
    assert sum(done[:5]) >= 16
    assert stage.counts.total == 110
    assert stage.counts.no_alignment >= 90


def test_failures_of_several_batches_are_added_up(made: ReadSet, tmp_path: Path):
    """17 of 20 reads fail; the first batches alone have too few reads to say so, and the last has none that fails."""
    reads = made.with_reads(tmp_path, dict.fromkeys(made.names[:15], "ACGT" * 300))
    done: list[int] = []
    with pytest.raises(UnsupportedDataError, match="17 of the first 20 reads do not fit"):
        computed(with_parts(reads, tmp_path, (slice(15), 1), (slice(2), 1), (slice(15, None), 3)), done)
    assert len(done) == 4
    done.clear()
    stage = computed(with_parts(reads, tmp_path, (slice(15), 1), (slice(1), 1), (slice(15, None), 4)), done)
    assert stage.counts.no_alignment == 16  # four fifths are still let through


def test_letters_of_rna_in_a_later_batch(made: ReadSet, tmp_path: Path):
    last = made.names[-1]
    reads = made.with_reads(tmp_path, {last: made.sequence(last).replace("T", "U")})
    done: list[int] = []
    with pytest.raises(UnsupportedDataError, match="the reads have the letter U"):
        computed(reads, done)
    assert len(done) == N_READS // BATCH - 1
