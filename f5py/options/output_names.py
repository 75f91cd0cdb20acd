"""Formats that names of outputs ask for."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from f5py.errors import UsageError

_KINDS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".bam": "bam",
    ".sam": "sam",
    ".paf": "paf",
    ".bed": "bedmethyl",
    ".bedmethyl": "bedmethyl",
    ".bedgraph": "bedgraph",
    ".bg": "bedgraph",
    ".bw": "bigwig",
    ".bigwig": "bigwig",
}
#: Endings of formats that are not written, though a table under such a name would be taken for one.
_OTHERS = {
    **dict.fromkeys((".vcf", ".bcf"), "methylation is no variant, so there is no VCF"),
    **dict.fromkeys((".xlsx", ".xls", ".ods"), "spreadsheets are not written, but open .csv and tables with tabs"),
    **dict.fromkeys((".pdf", ".png", ".svg", ".html"), "a table is no picture; see f5py plot-region and --report"),
    **dict.fromkeys((".json", ".h5", ".hdf5", ".feather", ".arrow", ".npz"), "is a format that is not written"),
    **dict.fromkeys((".docx", ".doc", ".odt", ".rtf", ".md"), "documents are not written"),
    **dict.fromkeys((".zst", ".xz", ".bz2", ".zip"), "the only compression of text is bgzip, .gz"),
    **dict.fromkeys((".fa", ".fasta", ".fq", ".fastq"), "a table is no sequence"),
    **dict.fromkeys((".pod5", ".fast5", ".slow5", ".blow5"), "a table is no signal"),
}
#: Names of formats that are not text, or have a compression of their own.
_PACKED_ALREADY = {"parquet": "Parquet", "bam": "BAM", "bigwig": "bigWig"}


class OutputContent(NamedTuple):
    """Content of an output, whatever its name."""

    what: str  # with its verb
    endings: tuple[str, ...]  # how its name may end, besides in what stands for no format
    is_packed: bool = False  # it is compressed if the name ends in .gz


#: Outputs whose names do not choose among all formats.
ALIGNMENTS = OutputContent("alignments are written", (".bam", ".sam", ".cram"))
BAM = OutputContent("BAM is written", (".bam",))
PAF = OutputContent("PAF is written", (".paf", ".tsv", ".txt"), True)
REPORT = OutputContent("HTML or JSON is written", (".html", ".json"))
SITES = OutputContent("counts of sites are written", (".bed", ".bedgraph", ".bw", ".bedmethyl", ".bg", ".bigwig"), True)
TABLE = OutputContent("a table of text is written", (".tsv", ".csv", ".txt"), True)
MOVES = OutputContent("a table of text or PAF is written", (".tsv", ".csv", ".paf", ".txt"), True)
MODEL = OutputContent("a model is written as text", (".model", ".txt", ".tsv"), True)
TEXT = OutputContent("text is written", (".txt", ".tsv"))
#: Of text and alignments.
_KNOWN = (".tsv", ".txt", ".cram")
#: Kinds that have a row per site instead of one per call.
OF_SITES = ("bedmethyl", "bedgraph", "bigwig")
#: Tables of sites for packages of R, which no name asks for.
FOR_R = ("dss", "methylkit", "bismark")
#: Endings of names of alignments that a mapper writes, and of those that are text.
_OF_ALIGNMENTS, _OF_ALIGNMENTS_AS_TEXT = (".bam", ".cram", ".sam", ".paf"), (".sam", ".paf")
#: Why a table in that format needs a name.
PARQUET_TO_FILE = "name a file with -o, as such a table cannot go to a pipe"
#: How the names of compressed text end.
PACKED = (".gz", ".bgz")


def packed_ending(path: str) -> str:
    """Return how the name of compressed text ends, "" for any other."""
    return next((suffix for suffix in PACKED if path.endswith(suffix)), "")


def kind_of_several(option: str, path: str, kinds: Sequence[str]) -> str:
    """Find the one of `kinds` that a name ends in; `UsageError` for any other name."""
    kind = os.path.splitext(path)[1][1:].lower()
    if kind not in kinds:
        raise UsageError(f"{option} {path}: does not end in .{', .'.join(kinds)}")
    return kind


def kind_if_unset(path: str, output_format: str | None) -> str:
    """Return the format that a name asks for if no option says one, else an empty text."""
    return kind_of_name(path) if output_format is None else ""


def is_csv_name(path: str) -> bool:
    """Return whether a table of this name has commas between its columns."""
    return _ending(path) == ".csv"


def is_alignments(path: str) -> bool:
    """Return whether a name is that of alignments."""
    return path.endswith((".bam", ".sam", ".cram"))


def kind_of_output(path: str) -> str:
    """Return the format of an output by its name, such as bedMethyl for ``x.bed.gz``, else ``tsv``.

    Raises `UsageError` if it asks for one that is not written.
    """
    if (why := _OTHERS.get(_ending(path))) is not None:
        raise UsageError(f"-o {path}: {why}; name the table .tsv or .parquet")
    kind = kind_of_name(path)
    if kind in _PACKED_ALREADY and (packed := packed_ending(path)):
        raise UsageError(f"-o {path}: {_PACKED_ALREADY[kind]} is compressed already; give a name without {packed}")
    return kind


def kind_among(path: str, what: str, kinds: Sequence[str]) -> str:
    """Return the format of a name, one of `kinds`. Raises `UsageError` that begins with `what` for others."""
    kind = kind_of_output(path)
    if kind in kinds and not path.endswith(".cram"):
        return kind
    *others, last = (".tsv" if one == "tsv" else min(name for name in _KINDS if _KINDS[name] == one) for one in kinds)
    raise UsageError(f"-o {path}: {what}; name the file {', '.join(others)}{' or ' * bool(others)}{last}")


def check_name(option: str, path: str, written: OutputContent) -> None:
    """Raise `UsageError` if a name has the ending of another format."""
    ending, packed = _ending(path), packed_ending(path)
    is_of_another = ending not in written.endings and (ending in _KNOWN or ending in _KINDS or ending in _OTHERS)
    if is_of_another or (packed and not written.is_packed):
        *others, last = written.endings[:3]
        raise UsageError(
            f"{option} {path}: {written.what}; name the file {', '.join(others)}{' or ' * bool(others)}{last}"
        )


def kind_of_alignments(path: str) -> str:
    """Find the format of alignments by name: ``bam`` (also without an ending), ``cram``, ``sam``, ``paf``.

    Raises `UsageError` for any other name.
    """
    ending, packed = _ending(path), packed_ending(path)
    if path == "-" or not (ending or packed):
        return "bam"
    if ending not in _OF_ALIGNMENTS:
        raise UsageError(f"-o {path}: alignments are written; name the file .bam, .cram, .sam or .paf")
    if packed and ending not in _OF_ALIGNMENTS_AS_TEXT:
        raise UsageError(f"-o {path}: {ending[1:].upper()} is compressed already; give a name without {packed}")
    return ending[1:]


def format_of_records(path: str) -> str:
    """Return the format of alignment records by a file's name: ``sam``, ``cram``, else ``bam``."""
    ending = _ending(path)
    return ending[1:] if ending in (".sam", ".cram") else "bam"


def kind_of_name(path: str) -> str:
    """Return the format of a file by its name, as for `kind_of_output`, else ``tsv``."""
    return _KINDS.get(_ending(path), "tsv")


def _ending(path: str) -> str:
    return os.path.splitext(path.removesuffix(packed_ending(path)))[1].lower()
