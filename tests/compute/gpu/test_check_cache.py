"""Notes of passed checks: one for each device, machine start and set of settings, and none of a failed one."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from f5py.compute.gpu import self_check


@pytest.fixture
def device(monkeypatch, tmp_path):
    """Stand in for cupy with one device; its properties can be changed."""
    properties = {"uuid": b"\1" * 16}
    runtime = SimpleNamespace(
        getDeviceProperties=lambda number: properties, driverGetVersion=lambda: 12040, runtimeGetVersion=lambda: 12040
    )
    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=runtime), __version__="14.0")
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    boot = tmp_path / "boot_id"
    boot.write_text("one\n")
    monkeypatch.setattr(self_check, "_BOOT", boot)
    return SimpleNamespace(properties=properties, runtime=runtime, boot=boot, cache=tmp_path)


@pytest.fixture
def n_checks(device):
    """Count how often a check of some settings was made."""

    def count(what, times=1):
        done = []
        for _ in range(times):
            self_check.check_once(0, what, lambda: done.append(what))
        return len(done)

    return count


@pytest.mark.parametrize("change", ["settings", "device", "driver", "boot"])
def test_what_has_changed_is_checked_again(change, device, n_checks):
    assert n_checks(b"some") == 1
    if change == "device":
        device.properties["uuid"] = b"\2" * 16
    elif change == "driver":
        device.runtime.driverGetVersion = lambda: 13000
    elif change == "boot":
        device.boot.write_text("two\n")
    assert n_checks(b"other" if change == "settings" else b"some", 2) == 1


def test_who_asks_for_it_gets_every_check(n_checks):
    with self_check.without_cache():
        assert n_checks(b"some", 2) == 2
    assert n_checks(b"some", 2) == 1


def test_other_code_is_checked_again(n_checks, monkeypatch, tmp_path):
    for folder in ("package", "kernels"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(self_check, "_PACKAGE", tmp_path / "package")
    monkeypatch.setattr(self_check, "source_folder", lambda: tmp_path / "kernels")
    assert n_checks(b"some", 2) == 1
    (tmp_path / "package" / "new.py").write_text("")
    assert n_checks(b"some", 2) == 1
    (tmp_path / "kernels" / "new.cu").write_text("")
    assert n_checks(b"some", 2) == 1


def test_a_failed_check_is_not_kept(n_checks):
    def fail():
        raise ValueError("differs")

    with pytest.raises(ValueError, match="differs"):
        self_check.check_once(0, b"some", fail)
    assert n_checks(b"some", 2) == 1


def test_a_device_without_identity_and_settings_without_name_are_always_checked(device, n_checks):
    assert n_checks(None, 2) == 2
    del device.properties["uuid"]
    assert n_checks(b"some", 2) == 2


def test_a_cache_that_cannot_be_written_does_not_matter(device, n_checks):
    (device.cache / "f5py").write_text("a file where the folder should be")
    assert n_checks(b"some", 2) == 2
