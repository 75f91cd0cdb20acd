"""Pore models from text files."""

from __future__ import annotations

import gzip
import itertools
import tracemalloc
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.errors import PoreModelError
from f5py.pore_model import builtin, read_model

_TITLE = "kmer\tlevel_mean\tlevel_stdv\tsd_mean\tsd_stdv\tweight\n"


def _lines(k: int, alphabet: str) -> list[str]:
    kmers = ["".join(bases) for bases in itertools.product(alphabet, repeat=k)]
    return [f"{kmer}\t{60 + i / 7:.6f}\t{1 + i / 1000:.6f}\t1.0\t2.0\t3\n" for i, kmer in enumerate(kmers)]


def _read(folder: Path, text: str | bytes, alphabet: str = "ACGT"):
    path = folder / "my.model"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_model(path, alphabet)


@pytest.mark.parametrize(("k", "alphabet"), [(1, "ACGT"), (2, "ACGMT"), (5, "ACGT"), (6, "ACGMT")])
@pytest.mark.parametrize("stated", [True, False])
def test_a_complete_file_is_read(tmp_path: Path, k: int, alphabet: str, stated: bool) -> None:
    head = "#model_name\tmine\n" + (f"#k\t{k}\n" if stated else "") + "\n" + _TITLE
    model = _read(tmp_path, head + "".join(_lines(k, alphabet)), alphabet)
    rank = np.arange(len(alphabet) ** k)
    assert (model.name, model.k, model.alphabet) == (str(tmp_path / "my.model"), k, alphabet)
    assert model.level_mean.dtype == model.level_stdv.dtype == np.float32
    np.testing.assert_array_equal(model.level_mean, np.float32([f"{60 + r / 7:.6f}" for r in rank]))
    np.testing.assert_array_equal(model.level_stdv, np.float32([f"{1 + r / 1000:.6f}" for r in rank]))


def test_forms_of_the_same_file_give_the_same_model(tmp_path: Path) -> None:
    text = "#k\t2\n" + _TITLE + "".join(_lines(2, "ACGT"))
    plain = _read(tmp_path, text)
    forms = {
        "crlf": text.replace("\n", "\r\n").encode(),
        "gz": gzip.compress(text.encode()),
        "two gz members": gzip.compress(text[:100].encode()) + gzip.compress(text[100:].encode()),
        "no last newline": text[:-1].encode(),
        "blanks": text.replace("\t", "  ").encode(),
        "three columns": text.replace("\t1.0\t2.0\t3\n", "\n").encode(),
    }
    for form, data in forms.items():
        model = _read(tmp_path, data)
        np.testing.assert_array_equal(model.level_mean, plain.level_mean, err_msg=form)
        np.testing.assert_array_equal(model.level_stdv, plain.level_stdv, err_msg=form)


@given(st.lists(st.floats(width=32, min_value=2.0**-100, max_value=2.0**100), min_size=8, max_size=8))
def test_any_float32_survives_its_shortest_decimal(
    tmp_path_factory: pytest.TempPathFactory, values: list[float]
) -> None:
    rows = zip("ACGT", np.float32(values[:4]), np.float32(values[4:]), strict=True)
    text = "".join(f"{base}\t{mean!s}\t{stdv!s}\n" for base, mean, stdv in rows)
    model = _read(tmp_path_factory.getbasetemp(), text)
    np.testing.assert_array_equal(model.level_mean, np.float32(values[:4]))
    np.testing.assert_array_equal(model.level_stdv, np.float32(values[4:]))


def _changed(line: int, new: str) -> str:
    """Return a model of k = 2 with another text in a 1-based line."""
    lines = ["#k\t2\n", _TITLE, *_lines(2, "ACGT")]
    lines[line - 1] = new
    return "".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no k-mers in it; give"),
        ("#k\t2\n" + _TITLE, "no k-mers in it; give"),
        (_changed(1, "#k\t10\n"), "line 1: '#k' is followed by '10', not by a number from 1 to 9"),
        (_changed(1, "#k\t0\n"), "line 1: '#k' is followed by '0'"),
        (_changed(1, "#k\n"), "line 1: '#k' is followed by ''"),
        (_changed(1, "#k\tsix\n"), "line 1: '#k' is followed by 'six'"),
        (_changed(1, "#k\t-2\n"), "line 1: '#k' is followed by '-2'"),
        (_changed(1, "#k\t3\n"), "line 3: k-mer 'AA' where 'AAA' belongs; the file must list all 64 3-mers"),
        (_changed(1, "#k\t1\n"), "line 3: k-mer 'AA' where 'A' belongs"),
        (_changed(5, "#k\t3\n"), "line 5: k is 3 here but 2 above"),
        (_changed(4, "AT\t1\t1\n"), "line 4: k-mer 'AT' where 'AC' belongs"),
        (_changed(4, "ac\t1\t1\n"), "line 4: k-mer 'ac' where 'AC' belongs"),
        (_changed(4, "ACC\t1\t1\n"), "line 4: k-mer 'ACC' where 'AC' belongs"),
        (_changed(4, "A\t1\t1\n"), "line 4: k-mer 'A' where 'AC' belongs"),
        (_changed(4, ""), "line 4: k-mer 'AG' where 'AC' belongs"),
        (_changed(18, ""), "line 17: the file ends here although 'TT' comes next"),
        (_changed(18, "TT\t1\t1\nTT\t1\t1\n"), "line 19: one line too many"),
        (_changed(4, "AC\t80.5\n"), "line 4: 2 column(s) where k-mer, mean and stdv are needed"),
        (_changed(4, "AC\tx\t1\n"), "line 4: column mean, 'x': is not a finite decimal number"),
        (_changed(4, "AC\t1.2.3\t1\n"), "line 4: column mean, '1.2.3': is not a finite decimal number"),
        (_changed(4, "AC\t1_0\t1\n"), "line 4: column mean, '1_0': is not a finite"),
        (_changed(4, "AC\tnan\t1\n"), "line 4: column mean, 'nan': is not a finite"),
        (_changed(4, "AC\tinf\t1\n"), "line 4: column mean, 'inf': is not a finite"),
        (_changed(4, "AC\t1e39\t1\n"), "line 4: column mean, '1e39': is not a finite"),
        (_changed(4, "AC\t" + "1" * 70 + "\t1\n"), "line 4: column mean, '1111"),
        (_changed(4, "AC\t80\t0.0\n"), "line 4: column stdv, '0.0': is not above zero"),
        (_changed(4, "AC\t80\t-1\n"), "line 4: column stdv, '-1': is not above zero"),
        (_changed(4, "AC\t80\t1e-60\n"), "line 4: column stdv, '1e-60': is not above zero"),
        ("AAAAAAAAAA\t80\t1\n", "line 1: the k-mer has 10 bases; models of 1 to 9"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PoreModelError) as caught:
        _read(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "my.model"))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_first_of_several_faults_is_named(tmp_path: Path) -> None:
    lines = _lines(2, "ACGT")
    lines[5], lines[9] = "CC\tx\t1\n", "GC\ty\t1\n"
    with pytest.raises(PoreModelError, match="line 6: column mean, 'x'"):
        _read(tmp_path, "".join(lines))


def test_swapped_models_are_noticed(tmp_path: Path) -> None:
    with pytest.raises(PoreModelError, match=r"line 4: k-mer 'M' where 'T' belongs; .* 4 1-mers over ACGT "):
        _read(tmp_path, "".join(_lines(1, "ACGMT")), "ACGT")
    with pytest.raises(PoreModelError, match=r"line 4: k-mer 'T' where 'M' belongs; .* 5 1-mers over ACGMT "):
        _read(tmp_path, "".join(_lines(1, "ACGT")), "ACGMT")


@pytest.mark.parametrize("cut", [5, 60])
def test_a_truncated_gzip_file_is_damaged(tmp_path: Path, cut: int) -> None:
    with pytest.raises(PoreModelError, match="damaged gzip file"):
        _read(tmp_path, gzip.compress("".join(_lines(2, "ACGT")).encode())[:cut])


def test_u_is_t(tmp_path: Path) -> None:
    lines = _lines(5, "ACGT")
    model = _read(tmp_path, "".join(line.split("\t", 1)[0].replace("T", "U") + line[5:] for line in lines))
    expected = _read(tmp_path, "".join(lines))
    assert model.k == 5
    np.testing.assert_array_equal(model.level_mean, expected.level_mean)
    np.testing.assert_array_equal(model.level_stdv, expected.level_stdv)
    with pytest.raises(PoreModelError, match="line 4: k-mer 'UA' where 'AT' belongs"):
        _read(tmp_path, _changed(6, "UA\t1\t1\n").replace("#k\t2\n", "").replace(_TITLE, ""))


# Files that say less than a model needs


RNA004, R10 = "rna004_130bps.nucleotide.9mer", "r10.4.1_400bps.nucleotide.9mer"


def _levels(values: np.ndarray, k: int, letters: str = "ACGU", reverse: bool = False) -> str:
    kmers = ["".join(bases) for bases in itertools.product(letters, repeat=k)]
    if reverse:
        values = values.reshape((4,) * k).T.ravel()
    return "".join(f"{kmer}\t{value:.6f}\n" for kmer, value in zip(kmers, values, strict=True))


@pytest.mark.parametrize("reverse", [False, True])
def test_published_levels_get_unit_and_deviations_of_the_built_in_model(tmp_path: Path, reverse: bool) -> None:
    """The levels of RNA004 as published: in units of spread, and their k-mers in either direction."""
    expected = builtin(RNA004)
    path = tmp_path / "9mer_levels_v1.txt"
    path.write_text(_levels((expected.level_mean - 84.112089) / 17.5693, 9, reverse=reverse))
    model = read_model(path, "ACGT", lambda: expected)
    np.testing.assert_allclose(model.level_mean, expected.level_mean, atol=1e-4)
    np.testing.assert_array_equal(model.level_stdv, expected.level_stdv)


def test_levels_in_picoampere_get_deviations(tmp_path: Path) -> None:
    expected = builtin(RNA004)
    path = tmp_path / "levels.txt"
    path.write_text("kmer\tlevel_mean\n" + _levels(expected.level_mean, 9))
    model = read_model(path, "ACGT", lambda: expected)
    np.testing.assert_allclose(model.level_mean, expected.level_mean, atol=1e-6)
    np.testing.assert_array_equal(model.level_stdv, expected.level_stdv)


@pytest.mark.parametrize(
    ("like", "says"), [(None, "there is no built-in model of this chemistry"), (RNA004, "the built-in one has k = 9")]
)
def test_levels_without_a_built_in_model_of_their_k(tmp_path: Path, like: str | None, says: str) -> None:
    path = tmp_path / "levels.txt"
    path.write_text(_levels(np.linspace(-2, 2, 1024), 5))
    with pytest.raises(PoreModelError, match=rf"{says} .*columns kmer, level_mean and level_stdv, in picoampere"):
        read_model(path, "ACGT", lambda: None if like is None else builtin(like))


def _uncalled4(path: Path, name: str, reverse: bool, **changed: object) -> Path:
    """Write a built-in model as Uncalled4 does."""
    model = builtin(name)
    mean, stdv = float(model.level_mean.mean()), float(model.level_mean.std())

    def stored(levels: np.ndarray) -> np.ndarray:
        return (levels.reshape((4,) * model.k).T.ravel() if reverse else levels).astype(np.float32)

    arrays: dict[str, object] = {
        "kmer": np.array(["x"]),
        "current.mean": stored((model.level_mean - mean) / stdv),
        "current.stdv": stored(model.level_stdv / stdv),
        "_k": model.k,
        "_pa_mean": mean,
        "_pa_stdv": stdv,
        "_reverse": reverse,
    }
    np.savez_compressed(path, **arrays | changed)
    return path


@pytest.mark.parametrize("reverse", [False, True])
def test_a_model_of_uncalled4(tmp_path: Path, reverse: bool) -> None:
    expected = builtin(R10)
    model = read_model(_uncalled4(tmp_path / "m.npz", R10, reverse), "ACGT")
    assert model.k == 9
    np.testing.assert_allclose(model.level_mean, expected.level_mean, rtol=1e-5)
    np.testing.assert_allclose(model.level_stdv, expected.level_stdv, rtol=1e-5)


def test_a_model_of_uncalled4_without_unit_and_deviations(tmp_path: Path) -> None:
    """As its model of RNA004."""
    expected = builtin(RNA004)
    nothing = np.empty(0, np.float32)
    path = _uncalled4(tmp_path / "m.npz", RNA004, True, _pa_mean=0.166, _pa_stdv=0.886, **{"current.stdv": nothing})
    model = read_model(path, "ACGT", lambda: expected)
    np.testing.assert_allclose(model.level_mean, expected.level_mean, rtol=1e-5)
    np.testing.assert_array_equal(model.level_stdv, expected.level_stdv)
    with pytest.raises(PoreModelError, match="no built-in model of this chemistry"):
        read_model(path, "ACGT")


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"current.mean": np.zeros(7, np.float32)}, "7 means"),
        ({"current.stdv": np.zeros(4**9, np.float32)}, "deviation not above zero"),
        ({"current.mean": np.full(4**9, np.nan)}, "not finite"),
    ],
)
def test_a_damaged_model_of_uncalled4(tmp_path: Path, changed: dict, says: str) -> None:
    with pytest.raises(PoreModelError, match=says):
        read_model(_uncalled4(tmp_path / "m.npz", R10, False, **changed), "ACGT")


@pytest.mark.parametrize(
    "changed",
    [
        {"_pa_mean": [1.0, 2.0]},
        {"_pa_mean": "x"},
        {"_pa_stdv": np.nan},
        {"_reverse": []},
        {"current.mean": ["x"] * 4096},
        {"current.stdv": ["x"]},
        {"current.mean": np.zeros(4096, "f4,i4")},
        {"current.mean": np.zeros(4096, np.complex64)},
        {"current.mean": np.zeros(4096, "M8[s]")},
    ],
)
def test_arrays_of_other_types(tmp_path: Path, changed: dict) -> None:
    with pytest.raises(PoreModelError, match=r"m\.npz: "):
        read_model(_uncalled4(tmp_path / "m.npz", R10, False, **changed), "ACGT")


@pytest.mark.parametrize("is_honest", [True, False])
def test_archives_that_would_take_memory(tmp_path: Path, is_honest: bool) -> None:
    """Two megabytes that would become two gigabytes, and a header that claims what is not there."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (250000000,), }".ljust(117) + b"\n"
    with ZipFile(tmp_path / "m.npz", "w", ZIP_DEFLATED) as archive, archive.open("current.mean.npy", "w") as file:
        file.write(b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header)
        for _ in range(10 if is_honest else 1):
            file.write(bytes(8_000_000))
    tracemalloc.start()
    with pytest.raises(PoreModelError, match=r"more than 64 MB|cannot be there"):
        read_model(str(tmp_path / "m.npz"), "ACGT")
    assert tracemalloc.get_traced_memory()[1] < 50_000_000
    tracemalloc.stop()


def test_other_archives(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.arange(3))
    with pytest.raises(PoreModelError, match=r"no current.mean in it"):
        read_model(tmp_path / "other.npz", "ACGT")
    (tmp_path / "broken.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:60])
    with pytest.raises(PoreModelError, match="cannot be read as a model in npz format"):
        read_model(tmp_path / "broken.npz", "ACGT")
    with pytest.raises(PoreModelError, match="a methylation model is a text file"):
        read_model(_uncalled4(tmp_path / "m.npz", R10, False), "ACGMT")
