"""Make a larger read set by repeating a small one under new read identifiers.

A read set is a folder with ``reads.fasta``, ``reads.bam``, ``ref.fa`` and signals: one multi-read fast5
(``formats/multi_gzip.fast5``) or a folder ``fast5/`` of single- or multi-read files. Every replicate of a
read has the same signal, bases and alignment; only the identifier differs. It is computed from the old one,
so two runs make the same set.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "f5py:benchmarks:replicate")


class SetCounts(NamedTuple):
    """Contents of a replicated set."""

    reads: int
    bases: int
    alignments: int
    signal_files: int


def replicate_id(read_id: str, replicate: int) -> str:
    """Return the identifier of a replicate of a read: a version 5 UUID of both."""
    return str(uuid.uuid5(_NAMESPACE, f"{replicate}/{read_id}"))


def replicate_set(source: Path, target: Path, times: int, reads_per_file: int = 4000) -> SetCounts:
    """Write a read set repeated `times` times.

    Parameters
    ----------
    source
        Folder of the read set, see the module's text.
    target
        Folder to make. It must not exist or be empty. It gets ``reads.fasta``, ``fast5/``, ``reads.bam`` with
        its index, and ``ref.fa`` with its index.
    times
        Number of replicates, at least 1. No read keeps its identifier, not even in the first replicate.
    reads_per_file
        Reads in one multi-read fast5; the sequencing software writes 4000.

    Returns
    -------
    SetCounts

    Raises
    ------
    FileNotFoundError
        A part of the source set is missing.
    ValueError
        `times` or `reads_per_file` is below 1, the target is not empty, or reads lack signals or bases.
    """
    if times < 1 or reads_per_file < 1:
        raise ValueError("replicates and reads per file must be at least 1")
    parts = [source / name for name in ("reads.fasta", "reads.bam", "ref.fa")]
    for part in parts:
        if not part.is_file():
            raise FileNotFoundError(f"{part} is missing; {source} is not a read set")
    signals = signal_files(source)
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise ValueError(f"{target} is not empty; name a new folder")

    lengths = _replicate_bases(parts[0], target / "reads.fasta", times)
    with_signal, files = _replicate_signals(signals, target / "fast5", times, reads_per_file)
    lacking = len(lengths.keys() - with_signal)
    if lacking:
        raise ValueError(f"{lacking} reads of {parts[0]} have no signal in {signals[0].parent}")
    alignments = _replicate_alignments(parts[1], target / "reads.bam", times, lengths.keys())
    _copy_reference(parts[2], target / "ref.fa")
    return SetCounts(len(lengths) * times, sum(lengths.values()) * times, alignments, files)


def signal_files(source: Path) -> list[Path]:
    """Return the fast5 files of a set: the multi-read gzip file if there is one, else those in ``fast5/``."""
    multi = source / "formats" / "multi_gzip.fast5"
    files = [multi] if multi.is_file() else sorted((source / "fast5").glob("**/*.fast5"))
    if not files:
        raise FileNotFoundError(f"{source} has neither formats/multi_gzip.fast5 nor fast5 files in fast5/")
    return files


def _replicate_bases(source: Path, target: Path, times: int) -> dict[str, int]:
    import pysam

    with pysam.FastxFile(str(source)) as reads:
        bases = {read.name: read.sequence for read in reads}
    with target.open("w") as out:
        for replicate in range(times):
            # The comment is dropped: it may name the signal file of the original.
            out.writelines(f">{replicate_id(name, replicate)}\n{bases[name]}\n" for name in bases)
    return {name: len(sequence) for name, sequence in bases.items()}


def _replicate_signals(sources: list[Path], folder: Path, times: int, reads_per_file: int) -> tuple[set[str], int]:
    """Copy the signals; return the original identifiers and the number of files written.

    Replicate by replicate, so that neighbors in the sorted BAM, replicates of one read, are far apart in the files,
    as in a real run."""
    import h5py
    import numpy as np

    folder.mkdir()
    seen: set[str] = set()
    written = files = 0
    out = None
    try:
        for replicate in range(times):
            for source in sources:
                with h5py.File(source, "r") as signals:
                    for old, parts in _reads_of(signals):
                        if out is None or written % reads_per_file == 0:
                            if out is not None:
                                out.close()
                            out = _new_multi_read_file(folder / f"reads_{files}.fast5")
                            files += 1
                        seen.add(old)
                        new = replicate_id(old, replicate)
                        group = out.create_group(f"read_{new}")
                        for name, path in parts.items():
                            # The library's own copy takes the compressed chunks as they are.
                            h5py.h5o.copy(signals.id, path.encode(), group.id, name.encode())
                        group["Raw"].attrs["read_id"] = np.bytes_(new)
                        if "tracking_id" in group and "run_id" in group["tracking_id"].attrs:
                            group.attrs["run_id"] = group["tracking_id"].attrs["run_id"]
                        written += 1
    finally:
        if out is not None:
            out.close()
    return seen, files


def _new_multi_read_file(path: Path):
    import h5py

    out = h5py.File(path, "w")
    out.attrs["file_type"] = "multi-read"
    out.attrs["file_version"] = "2.0"
    return out


def _reads_of(signals) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each read's identifier and where each group of the multi-read layout lies in this file."""
    if "Raw/Reads" in signals:
        places = [(f"Raw/Reads/{name}", "UniqueGlobalKey") for name in signals["Raw/Reads"]]
    else:
        places = [(f"{name}/Raw", name) for name in signals if name.startswith("read_")]
    for raw, common in places:
        read_id = signals[raw].attrs["read_id"]
        parts = {"Raw": raw}
        for name in ("channel_id", "context_tags", "tracking_id"):
            if f"{common}/{name}" in signals:
                parts[name] = f"{common}/{name}"
        yield read_id.decode() if isinstance(read_id, bytes) else str(read_id), parts


def _replicate_alignments(source: Path, target: Path, times: int, known) -> int:
    import pysam

    unsorted = target.with_suffix(".unsorted.bam")
    count = 0
    with (
        pysam.AlignmentFile(str(source), "rb") as records,
        pysam.AlignmentFile(str(unsorted), "wb", template=records) as out,
    ):
        for record in records.fetch(until_eof=True):
            name = record.query_name
            if name not in known:
                raise ValueError(f"{source}: read {name} is not among the base-called reads")
            for replicate in range(times):
                record.query_name = replicate_id(name, replicate)
                out.write(record)
                count += 1
    pysam.sort("--no-PG", "-o", str(target), str(unsorted))
    unsorted.unlink()
    pysam.index(str(target))
    return count


def _copy_reference(source: Path, target: Path) -> None:
    import pysam

    shutil.copyfile(source, target)
    pysam.faidx(str(target))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="folder of the read set")
    parser.add_argument("target", type=Path, help="new folder")
    parser.add_argument("-n", "--replicates", type=int, default=8, metavar="N", help="default: 8")
    parser.add_argument("--reads-per-file", type=int, default=4000, metavar="N", help="default: 4000")
    options = parser.parse_args()
    try:
        counts = replicate_set(options.source, options.target, options.replicates, options.reads_per_file)
    except (OSError, ValueError) as problem:
        sys.exit(f"replicate.py: {problem}")
    print(
        f"{options.target}: {counts.reads} reads, {counts.bases / 1e6:.2f} Mbases, "
        f"{counts.alignments} alignments, {counts.signal_files} fast5 files"
    )


if __name__ == "__main__":
    main()
