"""Benchmark of deflating: ISA-L, which f5py compresses blocks by, against zlib, zlib-ng and libdeflate.

The text of a BAM file is compressed block by block, as f5py writes it, in one thread, each library through its
package for Python at several levels. It needs the packages ``zlib-ng`` and ``deflate``, which f5py does not. Each
result is first inflated and compared.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
import time
import zlib
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

from inflating import blocks_of_bam
from report import machine, table

RESULTS = Path(__file__).resolve().parent / "results"
_RAW = -15
_BLOCK_BYTES = 0xFF00


def ways() -> dict[str, Callable[[bytes], bytes]]:
    """Return the libraries' functions for raw deflate."""
    import deflate
    from isal import isal_zlib
    from zlib_ng import zlib_ng

    def by_zlib(module: Any, level: int) -> Callable[[bytes], bytes]:
        def pack(text: bytes) -> bytes:
            packer = module.compressobj(level, zlib.DEFLATED, _RAW)
            return packer.compress(text) + packer.flush()

        return pack

    found = {f"zlib {zlib.ZLIB_RUNTIME_VERSION}, level {level}": by_zlib(zlib, level) for level in (1, 6)}
    found |= {
        f"isal {metadata.version('isal')} (ISA-L), level {level}": lambda text, level=level: isal_zlib.compress(  # type: ignore[misc]
            text, level, _RAW
        )
        for level in (1, 2, 3)
    }
    found |= {f"zlib-ng {metadata.version('zlib-ng')}, level {level}": by_zlib(zlib_ng, level) for level in (1, 6)}
    found |= {
        f"deflate {metadata.version('deflate')} (libdeflate), level {level}": lambda text, level=level: bytes(  # type: ignore[misc]
            deflate.deflate_compress(text, level)
        )
        for level in (1, 6)
    }
    return found


def compare(texts: list[bytes], rounds: int) -> list[list[str]]:
    """Deflate everything by each library in turn; return a row of the report for each."""
    n_bytes = sum(map(len, texts))
    seconds: dict[str, list[float]] = {}
    sizes: dict[str, int] = {}
    functions = ways()
    for name, function in functions.items():
        packed = [function(text) for text in texts]
        if [zlib.decompress(one, _RAW) for one in packed] != texts:
            sys.exit(f"deflating.py: {name} gives other bytes")
        sizes[name] = sum(map(len, packed))
    for _ in range(rounds):
        for name, function in functions.items():
            begin = time.thread_time()
            for text in texts:
                function(text)
            seconds.setdefault(name, []).append(time.thread_time() - begin)
    return [
        [
            name,
            f"{n_bytes / statistics.median(all_) / 1e6:.0f}",
            f"{n_bytes / min(all_) / 1e6:.0f}",
            f"{sizes[name] / n_bytes:.4f}",
        ]
        for name, all_ in seconds.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bams", type=Path, nargs="+", metavar="BAM", help="BAM file")
    parser.add_argument("--most", type=float, default=20.0, metavar="MB", help="text of a file (default: 20)")
    parser.add_argument("--rounds", type=int, default=5, help="timed readings by each library (default: 5)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", default=RESULTS / "deflating.md")
    options = parser.parse_args()
    lines = [
        "# Deflating", "", *machine(), f"* Python {platform.python_version()}",
        "* made by: `python benchmarks/deflating.py BAM ...`", "",
        f"Blocks of {_BLOCK_BYTES} bytes, one thread, processor time. Medians of {options.rounds} rounds.", "",
    ]  # fmt: skip
    for path in options.bams:
        text = b"".join(zlib.decompress(packed, _RAW, size) for packed, size in blocks_of_bam(path))
        text = text[: int(options.most * 1e6)]
        texts = [text[at : at + _BLOCK_BYTES] for at in range(0, len(text), _BLOCK_BYTES)]
        head = [f"{path.name}, {len(text) / 1e6:.1f} MB", "MB/s", "best round", "packed to"]
        lines += [*table(head, compare(texts, options.rounds)), ""]
    options.output.write_text("\n".join(lines).rstrip() + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
