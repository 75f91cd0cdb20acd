"""Alignment output with an index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

from f5py.io.files.atomic_write import AtomicFile, is_direct
from f5py.io.files.complete_file import complete_output
from f5py.io.files.samtools import run_samtools
from f5py.messages import console
from f5py.options.output_names import format_of_records
from f5py.text.encoding import undecoded

if TYPE_CHECKING:
    import pysam

#: Longest contig of a BAI index.
_LONGEST_BAI = (1 << 29) - 1


def index_suffix(path: str, longest: int) -> str | None:
    """Return the suffix of an output's index by its format and the longest contig."""
    kind = format_of_records(path)
    if kind == "sam":
        return None
    return ".crai" if kind == "cram" else ".csi" if longest > _LONGEST_BAI else ".bai"


def write_index(path: str, target: str, suffix: str, n_threads: int) -> None:
    """Index sorted BAM or CRAM; raise `pysam.SamtoolsError` if that fails."""
    import pysam

    # htslib interprets parts of names, such as ##idx##; so it gets descriptors
    with open(path, "rb") as file, open(target, "r+b") as out:
        names = [f"/dev/fd/{one.fileno()}" for one in (out, file)]
        options = ["-@", str(n_threads - 1), *(["-c"] if suffix == ".csi" else [])]
        run_samtools(pysam.index, *options, "-o", *names, target=target)


@contextmanager
def indexed_output(path: str, header: pysam.AlignmentHeader, n_threads: int) -> Iterator[BinaryIO]:
    """Open a `complete_output` for alignments, indexed at the end if they are sorted by position.

    The index appears after the alignments. If records are not in the header's order, there is a warning instead.
    """
    import pysam

    suffix = index_suffix(path, max(header.lengths, default=0))
    text = undecoded(header.__str__).partition(b"\n")[0].split(b"\t")
    if suffix is None or is_direct(path) or b"SO:coordinate" not in text:
        with complete_output(path) as file:
            yield file
        return
    index: AtomicFile | None = None
    try:
        with complete_output(path) as file:
            yield file
            file.flush()
            index = AtomicFile(path + suffix)
            loudness = pysam.set_verbosity(0)
            try:
                write_index(file.name, index.path, suffix, n_threads)
            except (pysam.SamtoolsError, OSError) as problem:
                index.discard()
                index = None
                why = " ".join(str(problem).split())
                advice = (
                    "do it later: samtools index"
                    if isinstance(problem, OSError)
                    else "sort it: samtools sort --write-index"
                )
                console.warning("index", f"{path}: cannot be indexed ({why}); {advice}")
            finally:
                pysam.set_verbosity(loudness)
        if index is not None:
            index.commit()
    except BaseException:
        if index is not None:
            index.discard()
        raise
