"""Ranges of the text of BGZF files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from f5py.errors import InputFileError
from f5py.io.bytes.bgzf import BlockReader
from f5py.io.bytes.bgzf_blocks import END_BLOCK, bgzf_blocks

_TEXT = np.random.default_rng(5).choice(np.frombuffer(b"ACGT\n", np.uint8), 40_000).tobytes()
_BLOCK = 700


@pytest.fixture
def paths(tmp_path: Path) -> tuple[Path, Path]:
    """Write the text in 58 blocks, and their index."""
    blocks = list(bgzf_blocks(_TEXT, _BLOCK))
    assert len(blocks) == 58
    packed_at = np.cumsum([len(block) for block in blocks[:-1]])
    index = np.stack([packed_at, _BLOCK * np.arange(1, len(blocks))], axis=1).astype("<u8")
    file, beside = tmp_path / "reads", tmp_path / "reads.gzi"
    file.write_bytes(b"".join([*blocks, END_BLOCK]))
    beside.write_bytes(len(index).to_bytes(8, "little") + index.tobytes())
    return file, beside


@pytest.mark.parametrize("n_ranges", [1, 3, 40])
def test_ranges_are_those_of_the_text(paths: tuple[Path, Path], n_ranges: int) -> None:
    random = np.random.default_rng(n_ranges)
    reader = BlockReader(*map(str, paths))
    for round_ in range(20):
        begin = np.sort(random.integers(0, len(_TEXT), n_ranges))
        end = np.minimum(begin + random.integers(1, 3 * _BLOCK, n_ranges), len(_TEXT))
        if round_ == 0:
            begin[-1], end[-1] = len(_TEXT) - 1, len(_TEXT)  # in the last block, whose size the index does not have
        text, places = reader.read(begin, end)
        for at, first, last in zip(places.tolist(), begin.tolist(), end.tolist(), strict=True):
            assert text[at : at + last - first].tobytes() == _TEXT[first:last]
    reader.close()


def test_a_damaged_block_is_told(paths: tuple[Path, Path]) -> None:
    file, _ = paths
    reader = BlockReader(*map(str, paths))
    whole = bytearray(file.read_bytes())
    start = int(reader._packed_at[30])
    whole[start + 40] ^= 0xFF
    file.write_bytes(whole)
    places = np.arange(0, len(_TEXT), _BLOCK)
    with pytest.raises(InputFileError, match=f"reads: is damaged at byte {start}; run f5py index again"):
        reader.read(places, places + 1)
    reader.close()


def test_blocks_of_other_sizes_than_the_index_says_are_told(paths: tuple[Path, Path]) -> None:
    file, _ = paths
    reader = BlockReader(*map(str, paths))
    file.write_bytes(file.read_bytes()[int(reader._packed_at[1]) :])
    places = np.arange(0, len(_TEXT), _BLOCK)
    with pytest.raises(InputFileError, match="run f5py index again"):
        reader.read(places, places + 1)
    reader.close()
