"""Reader processes: the same blocks, and nothing left behind, whatever happens."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from f5py.errors import MissingDependencyError, SignalError
from f5py.io.signals import open_source
from f5py.io.signals.processes import ProcessSource

from ...patience import PATIENCE, comes_true
from ...shared_memory import left_since, named, to_oneself
from . import odd_readers
from .made_signals import GZIP, MadeRead, assert_same_block, fast5_source, make_reads, write_multi, write_single


@pytest.fixture(autouse=True)
def _nothing_is_left():
    """No process, no file descriptor and no named shared memory outlives a test."""
    with to_oneself():
        n_descriptors, before = len(os.listdir("/proc/self/fd")), named()
        yield
        assert len(os.listdir("/proc/self/fd")) == n_descriptors
        assert not left_since(before)
    assert children() == set()


def children() -> set[int]:
    """Numbers of the reader processes of this process that are alive."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if parent == os.getpid() and b"f5py.io.signals.helper_process" in (process / "cmdline").read_bytes():
                found.add(int(process.name))
    return found


def wait_until(condition):
    assert comes_true(condition), "waited in vain"


# The same as one process


def test_any_number_of_processes_gives_the_same(tmp_path):
    reads = make_reads(40)
    paths = write_multi(tmp_path / "a.fast5", reads[:25], **GZIP)
    paths |= write_multi(tmp_path / "b.fast5", reads[25:30])
    for i, read in enumerate(reads[30:]):
        paths |= write_single(tmp_path / f"{i}.fast5", read, **GZIP)
    bad = MadeRead("bad", np.ones(5, np.int16), digitisation=0.0)
    paths |= write_single(tmp_path / "bad.fast5", bad) | {"gone": str(tmp_path / "gone.fast5"), "lost": ""}
    names = [*paths, "unknown", "read-3", "bad"]
    np.random.default_rng(5).shuffle(names)
    expected = fast5_source(paths).fetch(names)
    assert len(expected.problems) == 5
    for n in (1, 2, 3, 5):
        source = open_source(paths, n)
        for _ in range(2):
            assert_same_block(source.fetch(names), expected)
        assert_same_block(source.fetch(names[:2]), fast5_source(paths).fetch(names[:2]))
        source.close()


@pytest.mark.parametrize("n_processes", [1, 2, 3])
def test_the_shared_memory_grows_and_shrinks_with_the_reads(n_processes):
    longer = 1 << 20
    lengths = [3, longer, 1, 5 * longer + 17, longer - 1, 2, 40 * longer, 10]
    source = ProcessSource(n_processes, {str(n): f"file {n}" for n in lengths}, odd_readers.LongReader)
    for some in (lengths, [4, 5], lengths[:5], [7], [], lengths):
        names = [str(length) for length in some]
        block = source.fetch(names)
        assert np.diff(block.offsets).tolist() == some
        np.testing.assert_array_equal(
            block.samples,
            np.concatenate([np.empty(0, np.int16), *(np.arange(n, 2 * n).astype(np.int16) for n in some)]),
        )
    source.close()


def test_a_script_without_a_guard_is_not_run_again(tmp_path):
    """As multiprocessing would do in each process that it starts."""
    script = tmp_path / "script.py"
    script.write_text(
        "print('running')\n"
        "import odd_readers\n"
        "from f5py.io.signals.processes import ProcessSource\n"
        "source = ProcessSource(2, {}, odd_readers.LongReader)\n"
        "print(source.fetch(['1', '2']).offsets)\n"
        "source.close()\n"
    )
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=PATIENCE, env=child_path())
    assert (ran.stdout, ran.stderr) == ("running\n[0 1 3]\n", "")


def test_processes_import_only_what_they_need():
    program = (
        "import odd_readers\n"
        "from f5py.io.signals.processes import ProcessSource\n"
        "source = ProcessSource(1, {}, odd_readers.ModulesReader)\n"
        "print(source.fetch(['r']).problems[0])\n"
        "source.close()\n"
    )
    modules = run(program).stdout.split()
    assert "numpy" in modules
    assert not {"numba", "pysam", "cupy", "click", "rich"} & set(modules)


def run(program: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE, env=child_path()
    )


def child_path() -> dict[str, str]:
    here = Path(__file__).resolve()
    return os.environ | {"PYTHONPATH": f"{here.parent}{os.pathsep}{here.parents[3]}"}


# Sharing out


# When something goes wrong


@pytest.mark.parametrize("victim", [0, 1])
def test_a_killed_process_is_an_error_at_the_next_fetch(victim):
    source = ProcessSource(2, {}, odd_readers.LongReader)
    source.fetch(["5", "6"])
    os.kill(sorted(children())[victim], signal.SIGKILL)
    with pytest.raises(SignalError, match=r"^a signal reader process \(pid \d+\) was ended by SIGKILL; [^\n]*$"):
        source.fetch(["5", "6"])
    assert children() == set()
    # who asks later may do so for reads that come earlier in the output, whose error is the one that is told
    with pytest.raises(SignalError, match="was ended by SIGKILL"):
        source.fetch(["5"])
    source.close()


def test_nothing_is_read_from_a_source_that_is_closed():
    source = ProcessSource(1, {}, odd_readers.LongReader)
    source.close()
    with pytest.raises(SignalError, match="have been stopped"):
        source.fetch(["5"])


@pytest.mark.parametrize("victim", [0, 1])
def test_a_process_killed_while_it_reads(tmp_path, victim):
    source = ProcessSource(2, dict.fromkeys("abcdef", str(tmp_path)), odd_readers.StuckReader)

    def kill():
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        os.kill(sorted(children())[victim], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(SignalError, match="was ended by SIGKILL"):
        source.fetch(list("abcdef"))
    killer.join()


def test_close_while_another_thread_waits(tmp_path):
    source = ProcessSource(2, dict.fromkeys("ab", str(tmp_path)), odd_readers.StuckReader)
    errors = []

    def fetch():
        try:
            source.fetch(["a", "b"])
        except SignalError as error:
            errors.append(error)

    thread = threading.Thread(target=fetch)
    thread.start()
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    source.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    assert len(errors) == 1


def test_close_ends_a_stopped_process():
    source = ProcessSource(2, {}, odd_readers.LongReader)
    source.fetch(["5", "6"])
    os.kill(min(children()), signal.SIGSTOP)
    source.close()


def test_processes_ignore_ctrl_c_also_while_they_start(capfd):
    source = ProcessSource(2, {}, odd_readers.LongReader)
    for _ in range(30):
        for pid in children():
            os.kill(pid, signal.SIGINT)
        time.sleep(0.01)
    assert np.diff(source.fetch(["5", "6"]).offsets).tolist() == [5, 6]
    for pid in children():
        os.kill(pid, signal.SIGINT)
    assert np.diff(source.fetch(["7", "6"]).offsets).tolist() == [7, 6]
    source.close()
    assert capfd.readouterr().err == ""


def test_an_unexpected_error_in_a_process_is_one_line():
    source = ProcessSource(2, {}, odd_readers.BrokenReader)
    with pytest.raises(SignalError, match=r"^a signal reader process failed: ZeroDivisionError: first line second"):
        source.fetch(["a", "b"])


def test_a_missing_package_in_a_process_is_reported_as_such():
    source = ProcessSource(2, {}, odd_readers.LackingReader)
    with pytest.raises(MissingDependencyError, match="install it"):
        source.fetch(["a", "b"])


STUCK = (
    "import odd_readers, sys\n"
    "from f5py.io.signals.processes import ProcessSource\n"
    "source = ProcessSource(2, dict.fromkeys('ab', sys.argv[1]), odd_readers.StuckReader)\n"
    "try:\n"
    "    source.fetch(['a', 'b'])\n"
    "except KeyboardInterrupt:\n"
    "    sys.exit(130)\n"
)


def gone(pids) -> bool:
    return not any(Path(f"/proc/{pid}").exists() and is_alive(pid) for pid in pids)


def is_alive(pid) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize("to_group", [True, False], ids=["ctrl-c", "kill -INT"])
def test_interrupt_ends_everything_quietly(tmp_path, to_group):
    command = [sys.executable, "-c", STUCK, str(tmp_path)]
    parent = subprocess.Popen(command, stderr=subprocess.PIPE, start_new_session=True, env=child_path())
    wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
    (os.killpg if to_group else os.kill)(parent.pid, signal.SIGINT)
    _, errors = parent.communicate(timeout=PATIENCE)
    assert parent.returncode == 130
    assert errors == b""
    wait_until(lambda: gone(file.name for file in tmp_path.iterdir()))


def test_processes_end_when_their_parent_is_killed():
    """They notice that the connection is closed; nobody is left who could tell them."""
    program = (
        "import odd_readers, time\n"
        "from f5py.io.signals.processes import ProcessSource\n"
        "source = ProcessSource(2, {}, odd_readers.LongReader)\n"
        "source.fetch(['1', '2'])\n"
        "print(*[process.pid for process in source._groups[0].processes], flush=True)\n"
        "time.sleep(60)\n"
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=child_path()
    ) as parent:
        pids = parent.stdout.readline().split()
        assert len(pids) == 2
        assert not gone(pids)
        parent.kill()
        wait_until(lambda: gone(pids))
        assert parent.stderr.read() == ""


def test_a_source_that_is_never_closed_does_no_harm():
    program = (
        "import odd_readers\n"
        "from f5py.io.signals.processes import ProcessSource\n"
        "source = ProcessSource(2, {}, odd_readers.LongReader)\n"
        "print(source.fetch(['1', '2']).offsets)\n"
    )
    result = run(program)
    assert result.stdout == "[0 1 3]\n"
    assert result.stderr == ""
