"""Real SLOW5 files: every version and compression of the format, and the same reads as in fast5."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from f5py.errors import SignalError
from f5py.io.signals.slow5.reader import Slow5Source, read_groups

from .made_signals import CALIBRATION, MadeRead, assert_expands_anywhere, assert_holds, assert_same_block, fast5_source

pyslow5 = pytest.importorskip("pyslow5", reason="needs pyslow5")
pytestmark = pytest.mark.shared

#: What is wrong with those files that cannot be used, in words of the error.
DEFECTIVE = {
    "duplicate_read.blow5": "holds read bc5615d7-dc94-4315-9cf1-5112555c19d1 more than once",
    "zlib_svb-zd_multi_rg_v1.1.0.blow5": "version of the format that f5py does not know",
}


def linked(folder: Path, path: Path) -> str:
    """Link to the file, so that its index comes beside the link."""
    (folder / path.name).symlink_to(path)
    return str(folder / path.name)


def test_real_files_of_every_version(shared_data, tmp_path, capfd):
    n_files = n_reads = 0
    for path in sorted((shared_data / "format_zoo" / "slow5").iterdir()):
        link = linked(tmp_path, path)
        if path.name in DEFECTIVE:
            with pytest.raises(SignalError, match=DEFECTIVE[path.name]):
                Slow5Source(link)
            continue
        source = Slow5Source(link, 2)
        names = list(source.names())
        block = source.fetch(names)
        source.close()
        assert block.problems == {}
        assert all(line.startswith("[open_slow5::INFO]") for line in capfd.readouterr().err.splitlines())
        expected = pyslow5.Open(link, "r")
        assert names == expected.get_read_ids()[0]
        for i, name in enumerate(names):
            read = expected.get_read(name)
            assert_holds(block, i, MadeRead(name, read["signal"], **{what: read[what] for what in CALIBRATION}))
            n_reads += 1
        for number, group in enumerate(read_groups(link)):
            headers = expected.get_all_headers(number).items()
            assert group == {key: value for key, value in headers if value not in (None, "", ".")}
        capfd.readouterr()  # what pyslow5 prints
        n_files += 1
    assert n_files == 26
    assert n_reads == 62


def test_packed_samples_can_be_expanded_anywhere(shared_data, tmp_path, pool):
    n_packed = 0
    for path in sorted((shared_data / "format_zoo" / "slow5").iterdir()):
        if path.name in DEFECTIVE:
            continue
        source = Slow5Source(linked(tmp_path, path), 2)
        names = list(source.names())
        expected = source.fetch(names)
        source.use_pool(pool, leaves_packed=True)
        block = source.fetch(names)
        source.close()
        n_packed += block.packed.is_packed.any()
        assert_expands_anywhere(block, expected, np.flatnonzero(np.diff(block.offsets))[::-1])
    assert n_packed > 5


def test_real_blow5_is_equal_to_fast5(ecoli):
    source = Slow5Source(str(ecoli / "formats" / "reads.blow5"), 2)
    names = list(source.names())
    block = source.fetch(names)
    source.close()
    fast5 = fast5_source(dict.fromkeys(names, str(ecoli / "formats" / "multi_gzip.fast5")))
    assert len(names) == 112
    assert block.samples.size > 5_000_000
    expected = fast5.fetch(names)
    expected.calibration[-1] = np.nan  # the start, which the BLOW5 file lacks
    assert_same_block(block, expected)
    fast5.close()
