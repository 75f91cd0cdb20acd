"""Pore models in the text format of nanopolish and f5c.

A data line has a k-mer, the mean and the standard deviation of its current; further columns are ignored. Lines are
complete and in lexicographic order, with U as T. ``#k<TAB>6`` may state k, ``#noise<TAB>0.5<TAB>0.4<TAB>t7`` the noise
(`f5py.core.noise.Noise`: stay, step, tails), and ``#calibration<TAB>1.4`` the factor of log-likelihood ratios for
probabilities. Other lines with ``#``, empty lines and titles (first column ``kmer``) are skipped. Files of k-mers and
levels only, as the manufacturer publishes them, are completed from the built-in model of the chemistry. A file of
shifts (`f5py.pore_model.shift_file`) is expanded.
"""

import gzip
import io
import os
import zlib
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from f5py.core.kmers import kmer_digits
from f5py.core.noise import GAUSSIAN, MOST_CORRELATED, STUDENT, Noise
from f5py.errors import PoreModelError
from f5py.messages.console import NO_LAST_LINE_END, input_warning
from f5py.pore_model.model import MAX_K, NUCLEOTIDES, NUCLEOTIDES_AND_M, PoreModel, like_builtin, rank_levels
from f5py.pore_model.npz_file import MAGIC, read_npz
from f5py.pore_model.shift_file import SHIFTS, parse_calibration, parse_number, parse_shifted_model

_GZIP_MAGIC = b"\x1f\x8b"

#: Limit of the text; 9-mers over ACGMT have half of it.
_MOST_BYTES = 1 << 28
#: Control characters separate columns, too.
_SPACES = bytes(32 if byte < 32 and byte != 10 else byte for byte in range(256))


def read_model(
    path: str | os.PathLike[str], alphabet: str, like: Callable[[], PoreModel | None] = lambda: None
) -> PoreModel:
    """Read a pore model from text, perhaps gzip-compressed, or from npz; its name is the path.

    `like` returns the built-in model of the chemistry, or None, for an incomplete file. Raises `PoreModelError`, with
    file and line, if the file cannot be read, k is invalid, a k-mer is missing, superfluous or out of order, or a
    number is malformed, not finite or a standard deviation not positive.
    """
    file = os.fspath(path)
    if _starts_with(file, MAGIC):
        return read_npz(file, alphabet, like())
    text = _read_bytes(file)
    if text.startswith(SHIFTS):
        if alphabet != NUCLEOTIDES_AND_M:
            raise PoreModelError(f"{file}: has shifts of methylated k-mers; give it with --meth-model")
        return parse_shifted_model(file, text)
    table = _ModelTable(file, text)
    table.check_names(alphabet)
    if len(table.columns) > 2:
        return table.model(alphabet)
    if alphabet != NUCLEOTIDES:
        table.fail(0, "2 column(s) where k-mer, mean and stdv are needed")
    levels = table.numbers(1, "mean").astype(np.float64)
    return PoreModel(file, table.k, alphabet, *like_builtin(file, table.k, levels, like()))


def read_start(path: str | os.PathLike[str], like: Callable[[], PoreModel | None]) -> PoreModel:
    """Read the start of a training: a model, or two columns of k-mers and levels that only give an order.

    `like` returns the model for the spread of such levels. Raises `PoreModelError` as `read_model`.
    """
    file = os.fspath(path)
    if _starts_with(file, MAGIC):
        return read_npz(file, NUCLEOTIDES, None)
    text = _read_bytes(file)
    if text.startswith(SHIFTS):
        return parse_shifted_model(file, text)
    table = _ModelTable(file, text)
    if len(table.columns) > 2:
        alphabet = NUCLEOTIDES_AND_M if len(table.lines) > len(NUCLEOTIDES) ** table.k else NUCLEOTIDES
        table.check_names(alphabet)
        return table.model(alphabet)
    table.check_names(NUCLEOTIDES)
    model = like()
    if model is None:
        raise PoreModelError(f"{file}: has levels only, and there is no built-in model of this chemistry")
    return PoreModel(file, table.k, NUCLEOTIDES, *rank_levels(table.numbers(1, "mean"), model))


class _ModelTable:
    """First two or three columns of the data lines, their line numbers, and the statements of comments."""

    def __init__(self, file: str, content: bytes) -> None:
        self.file = file
        self.noise: Noise | None = None
        self.calibration: float | None = None
        stated_k = None
        self.lines: list[int] = []
        self.columns: list[list[bytes]] = [[], [], []]
        kmers, means, deviations = self.columns
        widths = []
        for number, line in enumerate(io.BytesIO(content.translate(_SPACES)), 1):
            fields = line.split(None, 3)
            if not fields or fields[0] == b"kmer":
                continue
            if not fields[0].startswith(b"#"):
                self.lines.append(number)
                widths.append(len(fields))
                kmers.append(fields[0])
                means.append(fields[1] if len(fields) > 1 else b"")
                deviations.append(fields[2] if len(fields) > 2 else b"")
                continue
            name, *values = line.split()[:4]
            if name == b"#k":
                stated_k = _parse_k(file, number, values, stated_k)
            if name == b"#noise":
                self.noise = _parse_noise(file, number, values)
            if name == b"#calibration":
                self.calibration = parse_calibration(file, number, b" ".join(values).decode(errors="replace"))
        if not widths:
            raise PoreModelError(f"{file}: no k-mers in it; give a text file with the columns k-mer, mean and stdv")
        if set(widths) == {2}:
            self.columns.pop()
        elif min(widths) < 3:
            row = next(row for row, width in enumerate(widths) if width < 3)
            self.fail(row, f"{widths[row]} column(s) where k-mer, mean and stdv are needed")
        self.k = stated_k or len(self.columns[0][0])
        if self.k > MAX_K:
            self.fail(0, f"the k-mer has {self.k} bases; models of 1 to {MAX_K} are supported")

    def fail(self, row: int, why: str) -> NoReturn:
        raise PoreModelError(f"{self.file}, line {self.lines[row]}: {why}")

    def shown(self, row: int, column: int) -> str:
        """Return a field for a message."""
        return self.columns[column][row][:40].decode(errors="replace")

    def check_names(self, alphabet: str) -> None:
        """Raise unless the k-mers are all those over `alphabet`, in rank order."""
        n_expected, n_found = len(alphabet) ** self.k, len(self.lines)
        rule = f"the file must list all {n_expected} {self.k}-mers over {alphabet} in lexicographic order"
        found = b"\n".join(self.columns[0]).replace(b"U", b"T").decode("latin-1").split("\n")
        expected = list(map("".join, islice(product(alphabet, repeat=self.k), n_found)))
        if wrong := [row for row, (one, other) in enumerate(zip(found, expected, strict=False)) if one != other]:
            self.fail(wrong[0], f"k-mer {self.shown(wrong[0], 0)!r} where {expected[wrong[0]]!r} belongs; {rule}")
        if n_found < n_expected:
            missing = "".join(next(islice(product(alphabet, repeat=self.k), n_found, None)))
            self.fail(n_found - 1, f"the file ends here although {missing!r} comes next; {rule}")
        if n_found > n_expected:
            self.fail(n_expected, f"one line too many; {rule}")

    def numbers(self, column: int, name: str) -> NDArray[np.float32]:
        """Return a column as float32."""
        with np.errstate(over="ignore"):
            values = np.array(list(map(parse_number, self.columns[column]))).astype(np.float32)
        self._refuse(~np.isfinite(values), column, name, "is not a finite decimal number")
        return values

    def model(self, alphabet: str) -> PoreModel:
        """Make the model of the means and standard deviations."""
        level_mean, level_stdv = self.numbers(1, "mean"), self.numbers(2, "stdv")
        self._refuse(~(level_stdv > 0), 2, "stdv", "is not above zero")
        return PoreModel(self.file, self.k, alphabet, level_mean, level_stdv, self.noise, self.calibration)

    def _refuse(self, bad: NDArray[np.bool_], column: int, name: str, why: str) -> None:
        """Raise for the first bad row, if any."""
        if bad.any():
            row = int(bad.argmax())
            self.fail(row, f"column {name}, {self.shown(row, column)!r}: {why}; correct the line")


def _starts_with(file: str, magic: bytes) -> bool:
    try:
        with open(file, "rb") as opened:
            return opened.read(len(magic)) == magic
    except OSError:
        return False  # reading reports it


def _read_bytes(file: str) -> bytes:
    try:
        zipped = _starts_with(file, _GZIP_MAGIC)
        with gzip.open(file, "rb") if zipped else open(file, "rb") as text:
            data = text.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise PoreModelError(f"{file}: has more than {_MOST_BYTES >> 20} MB of text, which no pore model has")
        if data and not data.endswith(b"\n"):
            input_warning("model", f"{file}: {NO_LAST_LINE_END}")
        return data
    except (EOFError, zlib.error, gzip.BadGzipFile) as problem:
        raise PoreModelError(f"{file}: damaged gzip file ({problem}); copy or download it again") from problem
    except OSError as problem:
        raise PoreModelError(
            f"{file}: cannot be read ({problem.strerror}); check the pore model file's name and permissions"
        ) from problem


def _parse_k(file: str, line: int, value: list[bytes], before: int | None) -> int:
    text = value[0].decode(errors="replace") if value else ""
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MAX_K):
        raise PoreModelError(f"{file}, line {line}: '#k' is followed by {text!r}, not by a number from 1 to {MAX_K}")
    if before not in (None, int(text)):
        raise PoreModelError(f"{file}, line {line}: k is {text} here but {before} above; keep one '#k' line")
    return int(text)


def _parse_noise(file: str, line: int, values: list[bytes]) -> Noise:
    try:
        stay, step, tails = (value.decode() for value in values)
        return Noise(float(stay), float(step), tails).check()
    except ValueError:
        said = b" ".join(values).decode(errors="replace")
        raise PoreModelError(
            f"{file}, line {line}: '#noise' is followed by {said!r}, not by two correlations from -{MOST_CORRELATED:g} "
            f"to {MOST_CORRELATED:g} and {GAUSSIAN} or {STUDENT}"
        ) from None


_CHUNK = 1 << 16
_ALPHABETS = {NUCLEOTIDES: "nucleotide"}
#: Unused by f5c and f5py.
_SD_COLUMNS = "1.0000\t1.0000"


def model_text(model: PoreModel, n_events: NDArray[np.floating], kind: str, comment: str) -> Iterator[bytes]:
    """Format a model, a line per k-mer in rank order, with `n_events` in the last column."""
    alphabet = _ALPHABETS.get(model.alphabet, kind)
    noise = "" if model.noise is None else f"#noise\t{model.noise.stay:g}\t{model.noise.step:g}\t{model.noise.tails}\n"
    if model.calibration is not None:
        noise += f"#calibration\t{model.calibration:g}\n"
    yield (
        f"#model_name\tf5py_train\n#source\t{comment}\n#k\t{model.k}\n#alphabet\t{alphabet}\n{noise}"
        "kmer\tlevel_mean\tlevel_stdv\tsd_mean\tsd_stdv\tweight\n"
    ).encode()
    letters = np.frombuffer(model.alphabet.encode(), np.uint8)
    for begin in range(0, len(model.level_mean), _CHUNK):
        ranks = np.arange(begin, min(begin + _CHUNK, len(model.level_mean)))
        names = letters[kmer_digits(ranks, model.k, len(letters))].view(f"S{model.k}")[:, 0]
        part = slice(begin, begin + len(ranks))
        columns = (
            names.astype(str).tolist(),
            model.level_mean[part].tolist(),
            model.level_stdv[part].tolist(),
            np.rint(n_events[part]).astype(np.int64).tolist(),
        )
        line = f"%s\t%.5f\t%.5f\t{_SD_COLUMNS}\t%d\n"
        yield "".join(map(line.__mod__, zip(*columns, strict=True))).encode()
