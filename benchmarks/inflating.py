"""Benchmark of inflating: zlib, which f5py calls, against ISA-L and libdeflate.

Blocks of a BAM file and records of a BLOW5 file are inflated one after the other in one thread, each library through
its package for Python. A block is one call. It needs the package ``deflate``, which f5py does not. That all give the
same bytes is checked first.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import struct
import sys
import time
import zlib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from report import machine, table

RESULTS = Path(__file__).resolve().parent / "results"
_ZLIB, _RAW = 15, -15
_SLOW5_HEADER = 64
#: Block or record, and its size when it is inflated.
Packed = list[tuple[bytes, int]]


def blocks_of_bam(path: Path) -> Packed:
    """Read the blocks of a BGZF file, without headers and footers."""
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        n_extra, size = struct.unpack_from("<H4xH", data, at + 10)
        end = at + size + 1
        if length := struct.unpack_from("<I", data, end - 4)[0]:
            found.append((data[at + 12 + n_extra : end - 8], length))
        at = end
    return found


def records_of_blow5(path: Path) -> Packed:
    """Read the records of a BLOW5 file compressed with zlib."""
    data, found = path.read_bytes(), []
    at = _SLOW5_HEADER + 4 + struct.unpack_from("<I", data, _SLOW5_HEADER)[0]
    while not data.startswith(b"5WOLB", at):
        size = struct.unpack_from("<Q", data, at)[0]
        record = data[at + 8 : at + 8 + size]
        found.append((record, len(zlib.decompress(record))))
        at += 8 + size
    return found


def ways(bits: int) -> dict[str, Callable[[bytes, int], bytes]]:
    """Return the libraries' functions for raw deflate or for zlib's format."""
    import deflate
    from isal import isal_zlib

    of_deflate: Any = deflate.deflate_decompress if bits < 0 else deflate.zlib_decompress
    return {
        f"zlib {zlib.ZLIB_RUNTIME_VERSION}": lambda packed, size: zlib.decompress(packed, bits, size),
        f"isal {metadata.version('isal')} (ISA-L)": lambda packed, size: isal_zlib.decompress(packed, bits, size),
        f"deflate {metadata.version('deflate')} (libdeflate)": lambda packed, size: bytes(of_deflate(packed, size)),
    }


def compare(title: str, packed: Packed, bits: int, rounds: int) -> list[list[str]]:
    """Inflate everything by each library in turn; return a row of the report for each."""
    functions = ways(bits)
    n_bytes = sum(size for _, size in packed)
    repeats = max(1, 20_000_000 // n_bytes)
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    expected = [zlib.decompress(one, bits, size) for one, size in packed]
    for name, function in functions.items():
        if [function(*one) for one in packed] != expected:
            sys.exit(f"inflating.py: {name} gives other bytes")
    for _ in range(rounds):
        for name, function in functions.items():
            begin = time.process_time()
            for _ in range(repeats):
                for one in packed:
                    function(*one)
            seconds[name].append((time.process_time() - begin) / repeats)
    return [
        [
            f"{title}: {name}",
            f"{n_bytes / typical / 1e6:.0f}",
            f"{n_bytes / min(all_) / 1e6:.0f}",
            f"{typical * 1e3:.1f}",
        ]
        for name, all_ in seconds.items()
        for typical in (statistics.median(all_),)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bam", type=Path, help="BAM file")
    parser.add_argument("blow5", type=Path, help="BLOW5 file, compressed with zlib")
    parser.add_argument("--rounds", type=int, default=9, help="timed readings by each library (default: 9)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", default=RESULTS / "inflating.md")
    options = parser.parse_args()
    blocks, records = blocks_of_bam(options.bam), records_of_blow5(options.blow5)
    rows = compare("blocks of BAM", blocks, _RAW, options.rounds)
    rows += compare("records of BLOW5", records, _ZLIB, options.rounds)
    sizes = [f"{len(packed)} of {sum(size for _, size in packed) / 1e6:.2f} MB" for packed in (blocks, records)]
    lines = [
        "# Inflating",
        "",
        *machine(),
        f"* Python {platform.python_version()}",
        "* made by: `python benchmarks/inflating.py reads.bam zlib.blow5`",
        "",
        f"One thread, processor time; blocks: {sizes[0]} in all, records: {sizes[1]}. Medians of {options.rounds} "
        "rounds.",
        "",
        *table(["", "MB/s inflated", "best round", "ms for all"], rows),
    ]
    options.output.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
