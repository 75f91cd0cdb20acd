"""Indices of references in files, which may be damaged or from elsewhere."""

from __future__ import annotations

import json
import random
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ..made_data import ReadSet, error_line, run_command

_ALIGNMENT = 4096
_BLOCK = 16 << 20


@pytest.fixture(scope="module")
def index(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("index") / "ref.f5i"
    assert run_command("map", made.genome, "-d", path) == 0
    return path.read_bytes()


def taken_apart(content: bytes) -> tuple[bytes, dict[str, Any], dict[str, np.ndarray]]:
    """Take an index apart: what comes before, the header, and the arrays."""
    at = content.index(b"\n") + 1
    size = int.from_bytes(content[at : at + 8], "little")
    header = json.loads(content[at + 8 : at + 8 + size])
    arrays, place = {}, at + 8 + size
    for name, (kind, length) in header["arrays"].items():
        place += -place % _ALIGNMENT
        arrays[name] = np.frombuffer(content, kind, length, place).copy()
        place += arrays[name].nbytes
    return content[:at], header, arrays


def put_together(beginning: bytes, header: object, arrays: dict[str, np.ndarray]) -> bytes:
    text = json.dumps(header).encode()
    content = beginning + len(text).to_bytes(8, "little") + text
    for array in arrays.values():
        content += bytes(-len(content) % _ALIGNMENT) + array.tobytes()
    blocks = [content[at : at + _BLOCK] for at in range(0, len(content), _BLOCK)]
    checksums = b"".join(zlib.crc32(block).to_bytes(4, "little") for block in blocks)
    return content + checksums + zlib.crc32(checksums).to_bytes(4, "little")


def mapped(content: bytes, made: ReadSet, folder: Path, capfd) -> str:
    """Map with an index; return the line of the error, "" if there is none."""
    (folder / "i.f5i").write_bytes(content)
    capfd.readouterr()
    status = run_command("map", folder / "i.f5i", made.reads, "-t", 1, "-o", folder / "o.sam")
    told = capfd.readouterr().err
    return error_line(told) if status else ""


def test_the_sound_one_is_taken(index: bytes, made: ReadSet, tmp_path: Path, capfd):
    assert put_together(*taken_apart(index)) == index
    assert mapped(index, made, tmp_path, capfd) == ""


@pytest.mark.parametrize("name", ["names", "k", "w", "hpc", "reference", "size", "time", "arrays"])
@pytest.mark.parametrize("value", [None, 10**30, -1, "\0", [1], {"x": 1}], ids=str)
def test_headers_of_other_types(index: bytes, made: ReadSet, tmp_path: Path, capfd, name: str, value: object):
    beginning, header, arrays = taken_apart(index)
    if (name, value) == ("time", -1):
        pytest.skip("a time may be before 1970")
    assert "i.f5i: is damaged" in mapped(put_together(beginning, header | {name: value}, arrays), made, tmp_path, capfd)
    without = {key: one for key, one in header.items() if key != name}
    assert f"{name} is missing" in mapped(put_together(beginning, without, arrays), made, tmp_path, capfd)


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("offsets", 0, 5), ("offsets", -1, 1 << 60), ("offsets", -1, -1), ("places", 0, -1), ("places", 0, 1 << 40),
        ("places", 3, 0xFFFFFFFE), ("places", 0, 0), ("unknown", 0, 1), ("ranks", -1, 9), ("directory", 5, 0xFFFFFFFF),
        ("directory", 0, 1), ("directory", -1, 7), ("entries", 0, 5), ("entries", -1, 5), ("entries", 9, 0xFFFFFFFF),
        ("counts", 1, 7),
    ],
)  # fmt: skip
def test_values_that_lead_elsewhere(index: bytes, made: ReadSet, tmp_path: Path, capfd, name: str, at, value: int):
    beginning, header, arrays = taken_apart(index)
    arrays[name][at] = value
    assert "i.f5i: is damaged" in mapped(put_together(beginning, header, arrays), made, tmp_path, capfd)


def test_damage_anywhere(index: bytes, made: ReadSet, tmp_path: Path, capfd):
    """All of it is told by the checksum, or by the version that the file begins with."""
    rng = random.Random(1)
    for _ in range(60):
        at = rng.randrange(len(index) if rng.random() < 0.7 else 600)
        content = index[:at] + bytes([index[at] ^ 1 << rng.randrange(8)]) + index[at + 1 :]
        line = mapped(content if rng.random() < 0.8 else content[:at], made, tmp_path, capfd)
        assert "i.f5i: " in line, at


def test_another_version_is_named(index: bytes, made: ReadSet, tmp_path: Path, capfd):
    assert "of another version of f5py" in mapped(index.replace(b"index 3", b"index 2", 1), made, tmp_path, capfd)


@pytest.mark.parametrize(
    ("of_index", "of_run", "same_as"),
    [
        (["-k", 11], [], ["-k", 11]),
        (["-x", "map-pb"], [], ["-k", 19, "-H"]),
        ([], ["-x", "map-pb"], ["-x", "map-ont"]),
        (["-w", 5], ["-w", 8, "-k", 13], ["-w", 5]),
    ],
)
def test_minimizers_are_those_of_the_index(of_index, of_run, same_as, made: ReadSet, tmp_path: Path, capfd):
    """Whatever the preset and the options of the run are."""
    index, out = tmp_path / "i.f5i", tmp_path / "o.sam"
    assert run_command("map", made.genome, "-d", index, *of_index) == 0
    assert run_command("map", made.genome, made.reads, *same_as, "-o", out) == 0
    expected = records(out)
    capfd.readouterr()
    assert run_command("map", index, made.reads, *of_run, "-o", out) == 0
    (warning,) = [line for line in capfd.readouterr().err.splitlines() if "WARNING" in line]
    assert f"{index}: has minimizers of -k " in warning
    assert records(out) == expected


def test_no_warning_if_the_minimizers_are_those_wanted(made: ReadSet, tmp_path: Path, capfd):
    index = tmp_path / "i.f5i"
    for options in ([], ["-k", 13]):
        assert run_command("map", made.genome, "-d", index, *options) == 0
        assert run_command("map", index, made.reads, *options, "-o", tmp_path / "o.sam") == 0
    assert "WARNING" not in capfd.readouterr().err


@pytest.fixture(scope="module")
def fm_index(made: ReadSet, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("index") / "ref.f5i"
    assert run_command("map", made.genome, "-d", path, "--seeds", "mem") == 0
    return path.read_bytes()


def mapped_by_mems(content: bytes, made: ReadSet, folder: Path, capfd) -> str:
    """Map with exact matches as seeds."""
    (folder / "i.f5i").write_bytes(content)
    capfd.readouterr()
    status = run_command(
        "map", folder / "i.f5i", made.reads, "-t", 1, "--seeds", "mem", "-o", folder / "o.sam", "--gpu", "off"
    )
    told = capfd.readouterr().err
    return error_line(told) if status else ""


def records(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines() if not line.startswith("@PG")]


def test_the_fm_index_is_not_built_again(fm_index: bytes, index: bytes, made: ReadSet, tmp_path, capfd, monkeypatch):
    """The alignments are those of a run that builds it, as one from an index without it does."""
    out = tmp_path / "o.sam"
    assert run_command("map", made.genome, made.reads, "--seeds", "mem", "-o", out, "--gpu", "off") == 0
    expected = records(out)
    assert mapped_by_mems(index, made, tmp_path, capfd) == ""
    assert records(out) == expected
    monkeypatch.setattr("f5py.mapping.run.map_reads.build_fm_index", None)
    assert mapped_by_mems(fm_index, made, tmp_path, capfd) == ""
    assert records(out) == expected
    assert mapped(fm_index, made, tmp_path, capfd) == ""  # minimizers are there as well


@pytest.mark.parametrize(
    ("name", "at", "value"),
    [
        ("fm_places", 0, -1), ("fm_places", -1, 1 << 30),
        ("fm_ends", 0, -1), ("fm_ends", -1, 1 << 40), ("fm_ends", 0, 5), ("fm_first_rows", 0, 1 << 40),
        ("fm_first_rows", 3, 0), ("fm_blocks", 0, 7), ("fm_blocks", 2, 0), ("fm_blocks", -3, 0), ("fm_blocks", 5, 1),
    ],
)  # fmt: skip
def test_rows_that_lead_elsewhere(fm_index: bytes, made: ReadSet, tmp_path: Path, capfd, name: str, at, value: int):
    beginning, header, arrays = taken_apart(fm_index)
    arrays[name][at] = value
    assert "i.f5i: is damaged" in mapped_by_mems(put_together(beginning, header, arrays), made, tmp_path, capfd)


@pytest.mark.parametrize("name", ["fm_blocks", "fm_first_rows", "fm_places"])
def test_an_fm_index_of_another_size(fm_index: bytes, made: ReadSet, tmp_path: Path, capfd, name: str):
    beginning, header, arrays = taken_apart(fm_index)
    arrays[name] = arrays[name][:-1]
    header["arrays"][name][1] -= 1
    assert "i.f5i: is damaged" in mapped_by_mems(put_together(beginning, header, arrays), made, tmp_path, capfd)
