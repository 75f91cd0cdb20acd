"""Real fast5 files: all forms of the same reads are equal, and every version of the format is read."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from .made_signals import CALIBRATION, MadeRead, assert_holds, assert_same_block, assert_unreadable, fast5_source

pytestmark = pytest.mark.shared


def test_real_forms_are_equal(ecoli):
    with h5py.File(ecoli / "formats" / "multi_gzip.fast5") as file:
        names = [group.removeprefix("read_") for group in file]
        expected = [file[f"read_{name}/Raw/Signal"][:] for name in names]
        calibration = [
            [np.float32(file[f"read_{name}/channel_id"].attrs[what]) for name in names] for what in CALIBRATION
        ]
    single = {}
    for path in (ecoli / "fast5").iterdir():
        with h5py.File(path) as file:
            (group,) = file["Raw/Reads"].values()
            single[group.attrs["read_id"].decode()] = str(path)
    gzip = fast5_source(dict.fromkeys(names, str(ecoli / "formats" / "multi_gzip.fast5"))).fetch(names)
    assert len(names) == 112
    assert gzip.problems == {}
    np.testing.assert_array_equal(gzip.samples, np.concatenate(expected))
    np.testing.assert_array_equal(np.diff(gzip.offsets), [read.size for read in expected])
    np.testing.assert_array_equal(gzip.calibration[:4], calibration)
    assert_same_block(fast5_source(single).fetch(names), gzip)
    pytest.importorskip("vbz_h5py_plugin", reason="needs vbz-h5py-plugin")
    vbz = dict.fromkeys(names, str(ecoli / "formats" / "multi_vbz.fast5"))
    assert_same_block(fast5_source(vbz).fetch(names), gzip)


def test_real_files_of_every_version(shared_data):
    """Every file of the zoo gives what h5py's plain interface finds in it."""
    n_reads = 0
    for path in sorted((shared_data / "format_zoo" / "fast5").glob("*.fast5")):
        with h5py.File(path) as file:
            if "Raw" in file:
                groups = {"any": (next(iter(file["Raw/Reads"].values())), file["UniqueGlobalKey"])}
            else:
                groups = {name.removeprefix("read_"): (group.get("Raw"), group) for name, group in file.items()}
            block = fast5_source(dict.fromkeys(groups, str(path))).fetch(list(groups))
            for i, (name, (raw, above)) in enumerate(groups.items()):
                if raw is None or "Signal" not in raw:
                    assert_unreadable(block, i, path.name)
                    continue
                attributes = {what: float(above["channel_id"].attrs[what]) for what in CALIBRATION}
                assert_holds(block, i, MadeRead(name, raw["Signal"][:], **attributes))
                n_reads += 1
    assert n_reads >= 30


def test_real_vbz_forms_are_equal(shared_data):
    pytest.importorskip("vbz_h5py_plugin", reason="needs vbz-h5py-plugin")
    folder = shared_data / "format_zoo" / "vbz"
    single = {path.stem: str(path) for path in sorted((folder / "single").iterdir())}
    multi = dict.fromkeys(single, str(folder / "multi.fast5"))
    block = fast5_source(multi).fetch(list(multi))
    assert len(single) == 8
    assert block.problems == {}
    with h5py.File(folder / "multi.fast5") as file:  # the plugin is loaded by now
        for i, name in enumerate(multi):
            attributes = {what: float(file[f"read_{name}/channel_id"].attrs[what]) for what in CALIBRATION}
            assert_holds(block, i, MadeRead(name, file[f"read_{name}/Raw/Signal"][:], **attributes))
    assert_same_block(fast5_source(single).fetch(list(single)), block)
