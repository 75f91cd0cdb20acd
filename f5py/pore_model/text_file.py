"""Pore models in the text format of nanopolish and f5c.

A data line has a k-mer, the mean and the standard deviation of its current; further columns are ignored. Lines are
complete and in lexicographic order, with U as T. ``#k<TAB>6`` may state k, ``#noise<TAB>0.5<TAB>0.4<TAB>t7`` the noise
(`f5py.core.noise.Noise`: stay, step, tails), and ``#calibration<TAB>1.4`` the factor of log-likelihood ratios for
probabilities. Other lines with ``#``, empty lines and titles (first column ``kmer``) are skipped. Files of k-mers and
levels only, as the manufacturer publishes them, are completed from the built-in model of the chemistry. A file of
shifts (`f5py.pore_model.shift_file`) is expanded.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from f5py.core.noise import GAUSSIAN, MOST_CORRELATED, STUDENT, Noise
from f5py.errors import PoreModelError
from f5py.messages.console import NO_LAST_LINE_END, input_warning
from f5py.pore_model.levels import like_builtin, rank_levels
from f5py.pore_model.model import MAX_K, NUCLEOTIDES, NUCLEOTIDES_AND_M, PoreModel
from f5py.pore_model.npz_file import MAGIC, read_npz
from f5py.pore_model.shift_file import SHIFTS, parse_calibration, parse_shifted_model

_GZIP_MAGIC = b"\x1f\x8b"

#: Limit of the text; 9-mers over ACGMT have half of it.
_MOST_BYTES = 1 << 28
#: Limit of a number's characters.
_LONGEST_NUMBER = 64


def read_model(
    path: str | os.PathLike[str], alphabet: str, like: Callable[[], PoreModel | None] = lambda: None
) -> PoreModel:
    """Read a pore model from text, perhaps gzip-compressed, or from npz; its name is the path.

    Raises `PoreModelError`, with file and line, if the file cannot be read, k is invalid, a k-mer is missing,
    superfluous or out of order, or a number is malformed, not finite or a standard deviation not positive.

    Parameters
    ----------
    alphabet : str
        ``"ACGT"`` for ``--kmer-model``, ``"ACGMT"`` for ``--meth-model``.
    like : callable
        Returns the built-in model of the chemistry, or None, for an incomplete file.
    """
    file = os.fspath(path)
    if _starts_with(file, MAGIC):
        return read_npz(file, alphabet, like())
    text = _read_bytes(file)
    if text.startswith(SHIFTS):
        if alphabet != NUCLEOTIDES_AND_M:
            raise PoreModelError(f"{file}: has shifts of methylated k-mers; give it with --meth-model")
        return parse_shifted_model(file, text)
    table = _ModelColumns.of(file, text)
    k = table.k
    _check_names(table, k, alphabet)
    if table.n_columns == 2:
        if alphabet != NUCLEOTIDES:
            table.fail(0, "2 column(s) where k-mer, mean and stdv are needed")
        levels = _numbers(table, 1, "mean").astype(np.float64)
        return PoreModel(table.file, k, alphabet, *like_builtin(table.file, k, levels, like()))
    return _model_of(table, k, alphabet)


def read_start(path: str | os.PathLike[str], like: Callable[[], PoreModel | None]) -> PoreModel:
    """Read the start of a training: a model, or two columns of k-mers and levels that only give an order.

    Raises `PoreModelError` as `read_model`. `like` returns the model for the mean, spread and median standard deviation
    of such levels.
    """
    file = os.fspath(path)
    if _starts_with(file, MAGIC):
        return read_npz(file, NUCLEOTIDES, None)
    text = _read_bytes(file)
    if text.startswith(SHIFTS):
        return parse_shifted_model(file, text)
    table = _ModelColumns.of(file, text)
    k = table.k
    if table.n_columns > 2:
        alphabet = NUCLEOTIDES_AND_M if len(table.line) > len(NUCLEOTIDES) ** k else NUCLEOTIDES
        _check_names(table, k, alphabet)
        return _model_of(table, k, alphabet)
    _check_names(table, k, NUCLEOTIDES)
    model = like()
    if model is None:
        raise PoreModelError(f"{table.file}: has levels only, and there is no built-in model of this chemistry")
    return PoreModel(table.file, k, NUCLEOTIDES, *rank_levels(_numbers(table, 1, "mean"), model))


def _model_of(table: _ModelColumns, k: int, alphabet: str) -> PoreModel:
    """Make the model from a table of means and standard deviations."""
    level_mean = _numbers(table, 1, "mean")
    level_stdv = _numbers(table, 2, "stdv")
    table.fail_at(~(level_stdv > 0), "column stdv, {!r}: is not above zero; correct the line", 2)
    return PoreModel(table.file, k, alphabet, level_mean, level_stdv, table.noise, table.calibration)


@dataclass(frozen=True, eq=False)
class _ModelColumns:
    """Positions of the first two or three columns of every data line.

    `line` has the 1-based line numbers, shape (n,); `start` and `end` the extents in `text`, shape (n, n_columns).
    """

    file: str
    text: NDArray[np.uint8]
    stated_k: int | None
    line: NDArray[np.intp]
    start: NDArray[np.intp]
    end: NDArray[np.intp]
    noise: Noise | None
    calibration: float | None

    @classmethod
    def of(cls, file: str, content: bytes) -> _ModelColumns:
        """Find the columns, which are runs of non-blank characters."""
        text = np.frombuffer(b"\n" + content + b"\n", np.uint8)
        dark = (text > 32).view(np.int8)
        edges = np.diff(dark)
        token_start, token_end = np.flatnonzero(edges == 1) + 1, np.flatnonzero(edges == -1) + 1
        line_start = np.flatnonzero(text == 10)[:-1] + 1
        first_token = np.append(np.searchsorted(token_start, line_start), len(token_start))
        n_columns = np.diff(first_token)

        written = np.flatnonzero(n_columns)
        comment = text[token_start[first_token[written]]] == ord("#")
        stated_k = noise = calibration = None
        for index in written[comment]:
            tokens = [
                text[token_start[token] : token_end[token]].tobytes()
                for token in range(first_token[index], first_token[index + 1])[:4]
            ]
            if tokens[0] == b"#k":
                stated_k = _parse_k(file, index + 1, tokens[1:], stated_k)
            if tokens[0] == b"#noise":
                noise = _parse_noise(file, index + 1, tokens[1:])
            if tokens[0] == b"#calibration":
                calibration = parse_calibration(file, index + 1, b" ".join(tokens[1:]).decode(errors="replace"))
        data = written[~comment]
        first = first_token[data]
        data = data[~_spells(text, token_start[first], token_end[first], b"kmer")]
        wanted = 2 if (n_columns[data] == 2).all() and len(data) else 3
        short = data[n_columns[data] < wanted]
        if len(short):
            raise PoreModelError(
                f"{file}, line {short[0] + 1}: {n_columns[short[0]]} column(s) where k-mer, mean and stdv are needed"
            )
        columns = first_token[data][:, None] + np.arange(wanted)
        return cls(file, text, stated_k, data + 1, token_start[columns], token_end[columns], noise, calibration)

    @property
    def k(self) -> int:
        """The stated k, else the length of the first k-mer; raises `PoreModelError` without one."""
        if not len(self.line):
            raise PoreModelError(
                f"{self.file}: no k-mers in it; give a text file with the columns k-mer, mean and stdv"
            )
        if self.stated_k is not None:
            return self.stated_k
        k = int(self.end[0, 0] - self.start[0, 0])
        if k > MAX_K:
            self.fail(0, f"the k-mer has {k} bases; models of 1 to {MAX_K} are supported")
        return k

    @property
    def n_columns(self) -> int:
        """2 for k-mers and levels only, else 3."""
        return self.start.shape[1]

    def shown(self, row: int, column: int) -> str:
        """Return a field for a message."""
        start, end = self.start[row, column], self.end[row, column]
        return self.text[start : min(end, start + 40)].tobytes().decode(errors="replace")

    def fail(self, row: int, why: str) -> None:
        raise PoreModelError(f"{self.file}, line {self.line[row]}: {why}")

    def fail_at(self, bad: NDArray[np.bool_], why: str, column: int) -> None:
        """Raise for the first bad row, if any; `why` is formatted with its field."""
        if bad.any():
            row = int(bad.argmax())
            self.fail(row, why.format(self.shown(row, column)))

    def fields(self, column: int, width: int) -> NDArray[np.uint8]:
        """Return a column as zero-padded characters, shape (n, width)."""
        start, end = self.start[:, column, None], self.end[:, column, None]
        where = start + np.arange(width)
        return np.where(where < end, self.text[np.minimum(where, len(self.text) - 1)], 0).astype(np.uint8)


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


def _spells(text: NDArray[np.uint8], start: NDArray[np.intp], end: NDArray[np.intp], word: bytes) -> NDArray[np.bool_]:
    """Return which tokens equal `word`."""
    same = end - start == len(word)
    for offset, character in enumerate(word):
        same &= text[np.minimum(start + offset, len(text) - 1)] == character
    return same


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


def _check_names(table: _ModelColumns, k: int, alphabet: str) -> None:
    """Raise unless the k-mers are all those over `alphabet`, in rank order."""
    n_expected, n_found = len(alphabet) ** k, len(table.line)
    n_compared = min(n_expected, n_found)
    rule = f"the file must list all {n_expected} {k}-mers over {alphabet} in lexicographic order"
    expected = _first_kmers(n_compared, k, alphabet)
    # one column more than k detects longer names
    found = table.fields(0, k + 1)[:n_compared]
    found[found == ord("U")] = ord("T")
    wrong = (found != np.pad(expected, ((0, 0), (0, 1)))).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        table.fail(row, f"k-mer {table.shown(row, 0)!r} where {_name(expected[row])!r} belongs; {rule}")
    if n_found < n_expected:
        missing = _name(_first_kmers(n_found + 1, k, alphabet)[-1])
        table.fail(n_found - 1, f"the file ends here although {missing!r} comes next; {rule}")
    if n_found > n_expected:
        table.fail(n_expected, f"one line too many; {rule}")


def _first_kmers(n: int, k: int, alphabet: str) -> NDArray[np.uint8]:
    """Return the k-mers of ranks 0..n-1, shape (n, k)."""
    bases = np.frombuffer(alphabet.encode(), np.uint8)
    kmers = np.empty((n, k), np.uint8)
    ranks = np.arange(n)
    for column in range(k)[::-1]:
        ranks, digit = np.divmod(ranks, len(bases))
        kmers[:, column] = bases[digit]
    return kmers


def _name(kmer: NDArray[np.uint8]) -> str:
    return kmer.tobytes().decode()


def _numbers(table: _ModelColumns, column: int, name: str) -> NDArray[np.float32]:
    """Return a column as float32."""
    advice = f"column {name}, {{!r}}: is not a finite decimal number; correct the line"
    length = table.end[:, column] - table.start[:, column]
    table.fail_at(length > _LONGEST_NUMBER, advice, column)
    width = int(length.max())
    characters = table.fields(column, width)
    # excludes nan, inf and underscores
    allowed = np.zeros(256, np.bool_)
    allowed[np.frombuffer(b"\x000123456789+-.eE", np.uint8)] = True
    table.fail_at(np.asarray(~allowed[characters].all(axis=1)), advice, column)
    texts = characters.view(f"S{width}").ravel()
    try:
        exact = texts.astype(np.float64)
    except ValueError:
        table.fail_at(np.array([not _is_number(text) for text in texts]), advice, column)
        raise
    with np.errstate(over="ignore"):
        values = exact.astype(np.float32)
    table.fail_at(~np.isfinite(values), advice, column)
    return values


def _is_number(text: bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
