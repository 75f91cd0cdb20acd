"""Reads, their index, and signals that cannot be used, or not all of them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from ...made_data import N_READS, ReadSet, error_line, run_command, write_signals
from .commands import MAPPED, SignalCommand
from .conftest import Fails, Stops, Succeeds

mapped = pytest.mark.parametrize("command", MAPPED, ids=lambda command: command.name, indirect=True)


def test_read_shorter_than_a_kmer(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds
) -> None:
    name = made.names[5]
    output, told = succeeds(made.with_mapped_reads(tmp_path, {name: "ACGTA"}))
    expected = command.by_read(table)
    del expected[name]
    assert command.by_read(output) == expected
    assert "could not calibrate: 0, no alignment: 1, bad reads: 0\n" in told


def test_letters_that_are_no_base_count_as_a_in_reads(made: ReadSet, tmp_path: Path, succeeds: Succeeds) -> None:
    rng = np.random.default_rng(1)
    resolved, ambiguous = {}, {}
    for name in made.names[:6]:
        letters = np.array(list(made.sequence(name)))
        where = rng.choice(len(letters), 60, replace=False)
        letters[where] = rng.choice(list("NRYKMSWn"), 60)
        ambiguous[name] = "".join(letters)
        letters[where] = "A"
        resolved[name] = "".join(letters).lower()
    outputs = []
    for which in (ambiguous, resolved):
        folder = tmp_path / str(len(outputs))
        folder.mkdir()
        outputs.append(succeeds(made.with_mapped_reads(folder, which))[0])
    assert outputs[0] == outputs[1]
    assert outputs[0].count(b"\n") > 500


# Single signals


def _truncate(path: Path, _: str) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _edit(change):
    def damage(path: Path, name: str) -> None:
        with h5py.File(path, "r+") as file:
            change(file, file[f"read_{name}"])

    return damage


def _empty_signal(_, read) -> None:
    del read["Raw/Signal"]
    read["Raw"].create_dataset("Signal", data=np.empty(0, np.int16))


_DAMAGES = [
    (_truncate, "is truncated"),
    (lambda path, _: path.write_text("text"), "is not HDF5"),
    (lambda path, _: path.write_bytes(b""), "is empty"),
    (lambda path, _: path.unlink(), "No such file"),
    (_edit(lambda _, read: read.__delitem__("channel_id")), "no calibration"),
    (_edit(lambda _, read: read["channel_id"].attrs.__delitem__("range")), "attribute range"),
    (_edit(lambda _, read: read["channel_id"].attrs.modify("range", 0.0)), "range 0"),
    (_edit(_empty_signal), "has no samples"),
    (_edit(lambda file, read: file.__delitem__(read.name)), "is not in this file"),
]


@mapped
def test_bad_signals_are_bad_reads(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, succeeds: Succeeds
) -> None:
    """One of each kind, also where several processes read them; f5c ends then."""
    names = dict(zip(made.names[3 : 3 + len(_DAMAGES)], _DAMAGES, strict=True))
    files = {}
    for name, (damage, _) in names.items():
        files[name] = tmp_path / f"{name}.fast5"
        shutil.copy(made.signal_file(name), files[name])
        damage(files[name], name)
    changed = made.with_signals(tmp_path, {**files, made.names[0]: ""})
    expected = {name: rows for name, rows in command.by_read(table).items() if name not in (*files, made.names[0])}
    for processes in (1, 2):
        output, told = succeeds(changed, "--iop", processes, "--failed-reads", tmp_path / "failed.tsv")
        assert command.by_read(output) == expected
        assert f"no alignment: 0, bad reads: {len(files) + 1}\n" in told
        failed = (tmp_path / "failed.tsv").read_text().splitlines()
        for name, (_, cause) in names.items():
            assert any(name in line and cause in line and str(files[name]) in line for line in failed), cause
        assert any(made.names[0] in line and "no signal file in the index" in line for line in failed)
        assert "more than a tenth, have no usable signal: " in told


@mapped
def test_a_bad_signal_ends_the_run_if_wanted(
    command: SignalCommand, made: ReadSet, table: bytes, tmp_path: Path, stops: Stops
) -> None:
    bad = made.names[4]
    line, output = stops(made.with_signals(tmp_path, {bad: tmp_path / "absent.fast5"}), "--skip-unreadable=no", "-K", 1)
    for words in ("absent.fast5", bad, "No such file", "--skip-unreadable=no", "the output is incomplete"):
        assert words in line
    assert table.startswith(output)
    assert list(command.by_read(output)) == made.names[:4]


def test_no_read_has_a_signal(
    command: SignalCommand, made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    signals = made.signals(made.names[:2])
    for i, read in enumerate(signals):
        read.name = f"00000000-0000-0000-0000-00000000000{i}"
    others = write_signals(tmp_path / "other.blow5", signals)
    options = ["--slow5", others] if command.is_mapped else []
    out = tmp_path / "out.tsv"
    assert run_command(*command.arguments(replace(made, signal_path=others), "-o", out, *options)) == 1
    told = capfd.readouterr().err
    cause = f"all {N_READS} reads failed" if command.is_mapped else "none of the reads has a signal; give the signals"
    assert cause in error_line(told)
    assert f"total entries: {N_READS}," in told
    assert f"bad reads: {N_READS}\n" in told
    assert not out.exists()


# Signal files


@mapped
def test_signals_of_another_kind_or_missing(made: ReadSet, unlabelled: ReadSet, tmp_path: Path, fails: Fails) -> None:
    blow5, fast5 = unlabelled.signal_path, made.signal_file(made.names[0])
    pod5 = write_signals(tmp_path / "signals.pod5", made.signals(made.names[:2]))
    (tmp_path / "text.blow5").write_text("no signals\n")
    (tmp_path / "empty.blow5").touch()
    (tmp_path / "folder").mkdir()
    for options, words in [
        (["--slow5", fast5], f"{fast5}: is a fast5 file; give it with --fast5"),
        (["--pod5", fast5], f"{fast5}: is a fast5 file; give it with --fast5"),
        (["--slow5", pod5], f"{pod5}: is a POD5 file; give it with --pod5"),
        (["--pod5", blow5], f"{blow5}: is a SLOW5 file; give it with --slow5"),
        (["--slow5", blow5, "--pod5", blow5], f"{blow5}: is a SLOW5 file; give it with --slow5"),
        (["--slow5", tmp_path / "folder"], "no file below this folder is named *.blow5 or *.slow5"),
        (["--slow5", tmp_path / "absent.blow5"], "absent.blow5: not found"),
        (["--pod5", tmp_path / "absent.pod5"], "absent.pod5: not found"),
        (["--slow5", tmp_path / "text.blow5"], "text.blow5: is not a SLOW5, POD5 or fast5 file"),
        (["--slow5", tmp_path / "empty.blow5"], "empty.blow5: is empty"),
        (["--pod5", tmp_path / "folder"], "folder: "),
    ]:
        assert words in fails(made, *options)
