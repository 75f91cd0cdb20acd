"""Choice of the source that the arguments of a command stand for, and reading files of several kinds at once."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from f5py.errors import SignalError
from f5py.io.files.signal_format import file_kind
from f5py.io.sequences.read_index_output import write_rows
from f5py.io.signals import open_any, open_signals, open_source, source_choice
from f5py.io.signals.search import list_formats, list_kind
from f5py.io.signals.source_choice import reader_processes

from .made_signals import GZIP, MadeRead, assert_holds, assert_unreadable, make_reads, write_multi, write_single
from .made_slow5 import GROUPS, write_blow5, write_slow5

FAST5_MAGIC = b"\x89HDF\r\n\x1a\n"
POD5_MAGIC = b"\x8bPOD\r\n\x1a\n"


@pytest.fixture
def reads() -> list[MadeRead]:
    return make_reads()


@pytest.fixture
def reads_path(tmp_path: Path) -> str:
    return str(tmp_path / "reads.fa")


def write_index(reads_path: str, paths: dict[str, str]) -> None:
    write_rows(f"{reads_path}.index.readdb", paths)


def assert_gives(source, reads, names=None):
    block = source.fetch(names or [read.name for read in reads])
    assert block.problems == {}
    for i, read in enumerate(reads):
        assert_holds(block, i, read)
    source.close()


def assert_refuses(error, words, function, *arguments, **options):
    with pytest.raises(error) as stop:
        function(*arguments, **options)
    assert "\n" not in str(stop.value)
    assert words in str(stop.value)


def pod5(path: Path, reads) -> dict[str, str]:
    pytest.importorskip("pod5", reason="needs pod5")
    from .made_pod5 import pod5_name, write_pod5

    write_pod5(path, reads)
    return {pod5_name(read.name): str(path) for read in reads}


# What a file is


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", None),
        (b"BLOW5\x01", "slow5"),
        (b"BLOW5\x02", None),
        (b"#slow5_version\t0.1.0\n", "slow5"),
        (FAST5_MAGIC, "fast5"),
        (bytes(512) + FAST5_MAGIC, "fast5"),
        (bytes(4096) + FAST5_MAGIC, "fast5"),
        (bytes(100) + FAST5_MAGIC, None),
        (POD5_MAGIC, "pod5"),
        (b">read\nACGT\n" * 100, None),
    ],
)
def test_kinds(tmp_path, content, kind):
    (tmp_path / "a").write_bytes(content)
    assert file_kind(str(tmp_path / "a")) == kind


# open_signals: the options of call-methylation and eventalign


def test_an_index_of_fast5_and_pod5_files(tmp_path, reads, reads_path):
    paths = pod5(tmp_path / "b.dat", reads[4:])
    in_pod5 = list(paths)
    paths |= write_multi(tmp_path / "a.dat", reads[:3], **GZIP) | write_single(tmp_path / "c.dat", reads[3])
    write_index(reads_path, paths)
    order = [5, 0, 3, 6, 1, 4, 2]
    names = [reads[i].name if i < 4 else in_pod5[i - 4] for i in order]
    for n_processes in (1, 2):
        assert_gives(open_signals(reads_path, n_processes=n_processes), [reads[i] for i in order], names)


def test_problems_of_a_mixture_stand_at_their_reads(tmp_path, reads):
    (tmp_path / "text").write_text("no signals")
    paths = pod5(tmp_path / "a", reads[:1]) | write_multi(tmp_path / "b", reads[1:2])
    in_pod5 = next(iter(paths))
    absent = "00000000-0000-0000-0000-000000000000"
    paths |= {
        absent: str(tmp_path / "a"),
        "z": str(tmp_path / "b"),
        "t": str(tmp_path / "text"),
        "g": str(tmp_path / "gone"),
        "s": write_blow5(tmp_path / "s", reads),
    }
    source = open_source(paths)
    block = source.fetch(["t", absent, "read-1", "z", in_pod5, "g", "unknown", "s"])
    assert list(block.problems) == [0, 1, 3, 5, 6, 7]
    assert_holds(block, 2, reads[1])
    assert_holds(block, 4, reads[0])
    assert_unreadable(block, 0, "text", "not HDF5")
    assert_unreadable(block, 1, "is not in this file")
    assert_unreadable(block, 3, "read z is not in this file")
    assert_unreadable(block, 5, "gone", "No such file")
    assert_unreadable(block, 6, "f5py index")
    assert_unreadable(block, 7, "is in a SLOW5 file", "--slow5")
    source.close()


def test_the_kind_is_that_of_the_first_file_known(tmp_path, reads):
    """The `.readdb` has reads without files too."""
    in_fast5, in_pod5 = write_multi(tmp_path / "a", reads[:1]), pod5(tmp_path / "b", reads[1:])
    expected = [
        ({}, "fast5"),
        ({"x": ""}, "fast5"),
        ({"x": ""} | in_pod5, "pod5"),
        (in_pod5 | in_fast5, "pod5"),
        (in_fast5 | in_pod5, "fast5"),
        ({"x": str(tmp_path / "gone")} | in_pod5, "fast5"),
        ({"x": "a\0b"}, "fast5"),
    ]
    for paths, kind in expected:
        source = open_source(paths)
        assert source.kind == kind
        source.close()


def test_the_kind_of_pod5_without_reads(tmp_path, reads_path):
    pod5(tmp_path / "a.pod5", [])
    for n_processes in (1, 2):
        source = open_signals(reads_path, pod5=[str(tmp_path)], n_processes=n_processes)
        assert source.kind == "pod5"
        source.close()


def test_run_info_of_a_mixture(tmp_path, reads):
    (path,) = set(write_multi(tmp_path / "a", reads[:2]).values())
    import h5py

    with h5py.File(path, "r+") as file:
        tags = file.create_group("read_read-1/context_tags")
        tags.attrs["Sequencing_Kit"] = np.bytes_("sqk-lsk109")
        tags.attrs["sample_frequency"] = 4000
        tags.attrs["empty"] = ""
        tags.attrs["list"] = [1, 2]
        file.create_group("read_read-1/tracking_id").attrs["run_id"] = "r"
    wanted = {"sequencing_kit": "sqk-lsk109", "sample_frequency": "4000", "run_id": "r"}
    paths = {"s": write_blow5(tmp_path / "s", reads), "gone": str(tmp_path / "gone"), "none": ""}
    for n_processes in (1, 2):
        source = open_source(paths | {"read-0": path, "read-1": path}, n_processes)
        assert source.run_info(["s", "gone", "none", "unknown", "read-0", "read-1"]) == wanted
        assert source.run_info(["s", "gone", "read-0"]) == {}
        source.close()


def test_slow5_option(tmp_path, reads, reads_path, capfd):
    path = write_blow5(tmp_path / "a.blow5", reads)
    assert_gives(open_signals(reads_path, slow5=[path], n_threads=2), reads)
    assert "--iop" not in capfd.readouterr().err
    source = open_signals(reads_path, slow5=[path], n_processes=3)
    assert "[open_signals::WARNING] --iop has no effect on SLOW5 files" in capfd.readouterr().err
    assert source.run_info(["read-0"]) == GROUPS[0]
    assert_gives(source, reads)


def test_an_index_that_names_one_file_for_all_reads(tmp_path, reads, reads_path):
    """nanopolish's form for SLOW5; ours too, and for POD5 as well."""
    for path in (write_blow5(tmp_path / "a", reads), write_slow5(tmp_path / "b", reads)):
        write_index(reads_path, {"*": path})
        assert_gives(open_signals(reads_path), reads)
    (tmp_path / "d").mkdir()
    names = list(pod5(tmp_path / "d/a.pod5", reads))
    for path in ("d", "d/a.pod5"):
        write_index(reads_path, {"*": str(tmp_path / path)})
        assert_gives(open_signals(reads_path), reads, names)


def test_a_folder_for_slow5(tmp_path, reads, reads_path):
    assert_refuses(
        SignalError, "no file below this folder is named *.blow5", open_signals, reads_path, slow5=[str(tmp_path)]
    )
    (tmp_path / "below").mkdir()
    write_blow5(tmp_path / "a.blow5", reads[:2])
    write_slow5(tmp_path / "below" / "b.slow5", reads[2:])
    assert_gives(open_signals(None, slow5=[str(tmp_path)]), reads)


@pytest.mark.parametrize("n_at_once", [1, 2])
def test_several_files_and_folders(tmp_path, reads, n_at_once):
    """Each read is found, wherever it is, also among reads of other files; one that is in several is read once."""
    (tmp_path / "d").mkdir()
    (tmp_path / "e").mkdir()
    slow5 = [write_blow5(tmp_path / "a.blow5", reads[:2]), write_slow5(tmp_path / "b.slow5", reads[1:3])]
    fast5 = [*set(write_multi(tmp_path / "d" / "c.fast5", reads[3:4]).values()), str(tmp_path / "e")]
    write_single(tmp_path / "e" / "d.fast5", reads[4])
    for read in reads[5:]:
        write_single(tmp_path / "e" / f"{read.name}.fast5", read)
    mixed = {"slow5": [*slow5, slow5[0]], "fast5": fast5}
    assert_gives(open_signals(None, **mixed, n_processes=2, n_threads=2, n_at_once=n_at_once), reads)
    assert_gives(open_any([*slow5, *fast5]), reads)
    with closing(open_signals(None, **mixed)) as source:
        assert set(source.first_names(100)) == {read.name for read in reads}
        assert source.first_names(1) == [reads[0].name]
        assert source.has_reads([reads[4].name, "other", reads[0].name]).tolist() == [True, False, True]
        assert source.place(reads[0].name) == "slow5"
        assert source.place(reads[4].name).endswith("d.fast5")
        assert source.place("other") == ""
        assert source.fetch(["other"]).problems[0].startswith("read other is in no signal file known")
        block = source.fetch([reads[4].name, "other", reads[1].name])
        assert list(block.problems) == [1]
        assert_holds(block, 0, reads[4])
        assert_holds(block, 2, reads[1])
        assert source.run_info(["other", reads[0].name]) == source.run_info([reads[0].name])
    with pytest.raises(SignalError, match="gone: not found"):
        open_signals(None, slow5=slow5, fast5=[str(tmp_path / "gone")])


# open_any: any file or folder


@pytest.mark.parametrize("n_processes", [1, 2])
def test_any_fast5(tmp_path, reads, n_processes, capfd):
    (tmp_path / "d/e").mkdir(parents=True)
    for i, read in enumerate(reads[:3]):
        write_single(tmp_path / f"d/{i}.fast5", read)
    write_multi(tmp_path / "d/e/m.fast5", reads[3:])
    (tmp_path / "d/bad.fast5").write_text("bad")
    assert_gives(open_any([str(tmp_path / "d")], n_processes), reads)
    assert "d/bad.fast5: skipped" in capfd.readouterr().err
    (tmp_path / "d/e/m.fast5").rename(tmp_path / "signals")
    assert_gives(open_any([str(tmp_path / "signals")], n_processes), reads[3:])


@pytest.mark.parametrize("n_processes", [1, 2])
def test_any_pod5(tmp_path, reads, n_processes):
    (tmp_path / "d").mkdir()
    names = list(pod5(tmp_path / "d/a.pod5", reads))
    for path in ("d", "d/a.pod5"):
        assert_gives(open_any([str(tmp_path / path)], n_processes), reads, names)


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ([], "no fast5, POD5 or SLOW5 file is below this folder"),
        (["a.txt", "b/c.fasta"], "no fast5, POD5 or SLOW5 file is below this folder"),
        (["a.fast5", "b/c.pod5"], "has both fast5 and POD5 files below it"),
        (["a.fast5", "b/c.blow5"], "has both fast5 and SLOW5 files"),
        (["a.fast5"], "no read was found in 1 fast5 files"),
    ],
)
def test_folders_that_are_no_source(tmp_path, files, words):
    (tmp_path / "d/b").mkdir(parents=True)
    for name in files:
        (tmp_path / "d" / name).touch()
    assert_refuses(SignalError, f"{tmp_path / 'd'}: {words}", open_any, [str(tmp_path / "d")])


def sparse_files(folder: Path, *sizes_in_mib: int) -> list[str]:
    for i, size in enumerate(sizes_in_mib):
        with (folder / f"{i}.fast5").open("wb") as file:
            file.truncate(size << 20)
    return [str(folder / f"{i}.fast5") for i in range(len(sizes_in_mib))]


@pytest.mark.parametrize(
    ("n_threads", "n_cores", "sizes", "n_processes"),
    [
        (1, 16, [100], 2),
        (4, 16, [100], 2),
        (8, 16, [100], 4),
        (64, 64, [1000], 12),
        (64, 3, [1000], 3),
        (16, None, [100], 1),
        (16, 16, [], 1),
        (16, 16, [15], 1),
        (16, 16, [15, 15], 2),
        (16, 16, [40, 7], 3),
    ],
)
def test_number_of_reader_processes(tmp_path, monkeypatch, n_threads, n_cores, sizes, n_processes):
    monkeypatch.setattr(source_choice, "usable_cores", lambda: n_cores or 1)
    files = sparse_files(tmp_path, *sizes)
    assert reader_processes(n_threads, files) == n_processes
    assert reader_processes(n_threads, [*files, *files, str(tmp_path / "gone")]) == n_processes


def test_any_path_that_is_not_there(tmp_path):
    assert_refuses(SignalError, "gone: not found", open_any, [str(tmp_path / "gone")])
    assert_refuses(SignalError, "cannot be opened", open_any, ["a\0b"])


def index_in(folder, *paths):
    """Write an index that says that read i is in the i-th of these files."""
    (folder / "reads.fa").touch()
    lines = [f"r{i}\t{path}\n" for i, path in enumerate(paths)]
    (folder / "reads.fa.index.readdb").write_text("".join(lines))
    return str(folder / "reads.fa")


def test_relative_paths_of_an_index_that_is_elsewhere(tmp_path, reads, monkeypatch, capfd):
    there = tmp_path / "there"
    (there / "signals").mkdir(parents=True)
    write_multi(there / "signals/a.fast5", reads, **GZIP)
    path = index_in(there, "signals/a.fast5", "signals/gone.fast5", "/absolute/gone.fast5")
    monkeypatch.chdir(tmp_path)
    with closing(open_signals(path)) as source:
        assert [source.place(f"r{i}") for i in range(3)] == [
            f"{there}/signals/a.fast5", f"{there}/signals/gone.fast5", "/absolute/gone.fast5",
        ]  # fmt: skip
    assert f"are taken from {there}" in capfd.readouterr().err
    monkeypatch.chdir(there)
    with closing(open_signals(path)) as source:
        assert source.place("r0") == "signals/a.fast5"
    assert capfd.readouterr().err == ""


def test_relative_paths_that_are_nowhere(tmp_path, monkeypatch, capfd):
    there = tmp_path / "there"
    there.mkdir()
    monkeypatch.chdir(tmp_path)
    path = index_in(there, "a.fast5")
    open_signals(path).close()
    told = capfd.readouterr().err
    assert "such as a.fast5" in told
    assert f"are not below {tmp_path} nor {there}" in told


SEARCHES = [
    (lambda path: list_kind(path, "fast5"), ".fast5"),
    (lambda path: list_kind(path, "pod5"), ".pod5"),
    (lambda path: list(list_formats(path).values()), ".pod5"),
]


@pytest.mark.parametrize(("search", "ending"), SEARCHES)
def test_links_are_followed_but_not_in_a_circle(tmp_path: Path, search, ending: str):
    (tmp_path / "d").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / f"other/1{ending}").touch()
    (tmp_path / "d/circle").symlink_to(tmp_path / "d")
    (tmp_path / "d/away").symlink_to(tmp_path / "other")
    (tmp_path / f"d/lost{ending}").symlink_to(tmp_path / "nowhere")
    assert search(f"{tmp_path}/d") == [f"{tmp_path}/d/away/1{ending}"]


@pytest.mark.parametrize(("search", "ending"), SEARCHES)
def test_what_macos_leaves_is_no_signal(tmp_path: Path, search, ending: str):
    (tmp_path / f"._1{ending}").write_bytes(b"\0\5\26\7")
    (tmp_path / f"1{ending}").touch()
    assert search(str(tmp_path)) == [f"{tmp_path}/1{ending}"]


@pytest.mark.parametrize(("search", "ending"), SEARCHES)
def test_a_folder_that_cannot_be_listed_is_an_error(tmp_path: Path, search, ending: str, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / f"1{ending}").touch()
    scandir = os.scandir

    def refuse(path: str):
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(SignalError, match=r"closed: cannot be searched for signals \(Permission denied\)"):
        search(str(tmp_path))
