"""Make sets of many gigabytes by repeating a small one, in seconds on a machine with many cores.

As `replicate.py`, with which it shares the new identifiers, but the signals are copied as they are compressed, by
processes of their own, into each format: BLOW5 (zstd, svb-zd), POD5 and multi-read fast5 (gzip and VBZ).
"""

from __future__ import annotations

import os
import struct
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

from replicate import _reads_of, _replicate_alignments, _replicate_bases, replicate_id

_FAST5_READS = 4000
_BLOW5_END = b"5WOLB"


def make_sets(source: Path, target: Path, times: int, formats: tuple[str, ...]) -> None:
    """Make `target` with ``reads.fasta``, ``reads.bam``, ``ref.fa`` and the signals in `formats`.

    Parameters
    ----------
    source : Path
        As for `replicate.py`, with ``formats/`` in it.
    target : Path
    times : int
    formats : tuple of str
        Of ``blow5``, ``pod5``, ``gzip`` and ``vbz``; files and folders of these names.
    """
    target.mkdir(parents=True)
    work = {"blow5": 1, "pod5": 16, "gzip": None, "vbz": None}
    with ProcessPoolExecutor(max(os.cpu_count() or 1, 2)) as processes:
        waiting: list[Future] = [processes.submit(_texts, source, target, times)]
        for name in formats:
            if name == "blow5":
                waiting.append(processes.submit(_blow5, source, target / "reads.blow5", times))
                continue
            (target / name).mkdir()
            n_files = work[name] or max(times * 112 // _FAST5_READS, 1)
            for i in range(n_files):
                share = range(i * times // n_files, (i + 1) * times // n_files)
                make = _pod5 if name == "pod5" else _fast5
                waiting.append(processes.submit(make, source, name, target / name / f"{i}", share))
        for one in waiting:
            one.result()


def _texts(source: Path, target: Path, times: int) -> None:
    import pysam

    lengths = _replicate_bases(source / "reads.fasta", target / "reads.fasta", times)
    _replicate_alignments(source / "reads.bam", target / "reads.bam", times, lengths.keys())
    (target / "ref.fa").write_bytes((source / "ref.fa").read_bytes())
    pysam.faidx(str(target / "ref.fa"))


def _blow5(source: Path, target: Path, times: int) -> None:
    import zstandard

    data = (source / "formats" / "reads.blow5").read_bytes()
    first = 68 + struct.unpack_from("<I", data, 64)[0]
    records, at = [], first
    while data[at : at + len(_BLOW5_END)] != _BLOW5_END or at + len(_BLOW5_END) != len(data):
        size = struct.unpack_from("<Q", data, at)[0]
        records.append(zstandard.ZstdDecompressor().decompress(data[at + 8 : at + 8 + size]))
        at += 8 + size

    def renamed(replicate: int) -> bytes:
        compressor, parts = zstandard.ZstdCompressor(level=1), []
        for record in records:
            n = struct.unpack_from("<H", record)[0]
            name = replicate_id(record[2 : 2 + n].decode(), replicate).encode()
            packed = compressor.compress(struct.pack("<H", len(name)) + name + record[2 + n :])
            parts += [struct.pack("<Q", len(packed)), packed]
        return b"".join(parts)

    with target.open("wb") as out, ThreadPoolExecutor(8) as threads:
        out.write(data[:first])
        for begin in range(0, times, 32):
            for part in threads.map(renamed, range(begin, min(begin + 32, times))):
                out.write(part)
        out.write(_BLOW5_END)


def _fast5(source: Path, name: str, target: Path, replicates: range) -> None:
    import h5py
    import numpy as np

    with (
        h5py.File(source / "formats" / f"multi_{name}.fast5", "r") as signals,
        h5py.File(target.with_suffix(".fast5"), "w") as out,
    ):
        out.attrs["file_type"], out.attrs["file_version"] = "multi-read", "2.0"
        for replicate in replicates:
            for old, parts in _reads_of(signals):
                new = replicate_id(old, replicate)
                group = out.create_group(f"read_{new}")
                for part, path in parts.items():
                    h5py.h5o.copy(signals.id, path.encode(), group.id, part.encode())
                group["Raw"].attrs["read_id"] = np.bytes_(new)


def _pod5(source: Path, name: str, target: Path, replicates: range) -> None:
    from signal_formats import signals_of, write_pod5

    reads = list(signals_of(source / "formats" / "multi_gzip.fast5"))
    new = (read._replace(name=replicate_id(read.name, replicate)) for replicate in replicates for read in reads)
    write_pod5(new, target.with_suffix(".pod5"))
