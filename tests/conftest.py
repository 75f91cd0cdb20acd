"""Fixtures shared by all tests."""

from __future__ import annotations

from . import kept_bytecode  # noqa: F401

# isort: split
import gc
import os
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, nullcontext
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from f5py.messages import console
from f5py.threads.pool import WorkerPool

from .examples import examples
from .forked import HERE, at_start, close_servers, helpers_forked
from .made_data import ReadSet, last_of_each, run_main
from .played_gpu.checks import kept_in
from .readers_here import readers_here, scans_here

# On a busy machine an example may take any time, and so may making one.
settings.register_profile(
    "patient", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")


def pytest_configure() -> None:
    """Let the processes that tests start and end not ignore signals, as what nohup and cron start does.

    Garbage is not collected until all tests are: there is hardly any, and looking for it takes a sixth of that time.
    """
    gc.disable()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, lambda *_: None)  # still no matter here, and the default in other processes
    for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGXCPU):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def pytest_collection_finish() -> None:
    """Let no collection of garbage look at what has been imported, and at thousands of tests, which stay to the end."""
    gc.freeze()
    gc.enable()


def pytest_unconfigure() -> None:
    """End the processes that fork."""
    close_servers()


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """One more than xdist would start, as some tests always wait for a process."""
    return (yield) + 1


@pytest.fixture(autouse=True)
def messages_on_standard_error() -> Iterator[None]:
    """As at the command line; the tests of the Python functions are without it."""
    with console.on_standard_error():
        yield


@pytest.fixture(autouse=True)
def environment_is_restored() -> Iterator[None]:
    """Take back what a test, or a library such as dask, has set for processes that it starts.

    With another environment no run could be forked in all later tests, and what is compiled would not be found.
    """
    yield
    for name in at_start(os.environ).keys() - HERE.keys():
        del os.environ[name]
    os.environ.update(HERE)


#: Tests of signal files and of damaged ones; they have the processes of real runs.
_OF_FILES = {"signals", "fuzz", "test_index.py", "test_faults.py", "test_reads_and_signals.py"}


#: Tests of how helper processes start, of whose children they are, and of a system that refuses them.
_OF_PROCESSES = {"test_processes.py", "test_helper_process.py", "fault_layer"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """With ``--iop 1`` read fast5 and POD5 here, and scan fast5 files here, in tests and all their fixtures.

    Processes that do it would take most of the time of the tests. Tests of signal files have the processes of real
    runs, and so has what is started as a process of its own.
    """
    parts = item.path.parts
    with (
        nullcontext() if "signals" in parts else readers_here(lambda n_processes: n_processes == 1),
        nullcontext() if _OF_FILES.intersection(parts) else scans_here(),
        nullcontext() if _OF_PROCESSES.intersection(parts) else helpers_forked(),
    ):
        return (yield)


#: On the module path, it has the cupy of played GPUs.
PLAYED_GPU = Path(__file__).resolve().parent / "played_gpu"


@pytest.fixture(scope="session")
def passed_checks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of what played GPUs are known to compute right."""
    return tmp_path_factory.mktemp("checks")


@pytest.fixture
def played_gpu(monkeypatch: pytest.MonkeyPatch, passed_checks: Path) -> Iterator[Path]:
    """`import cupy` gives devices that are played on the CPU, fresh ones for every test, checked once for all."""
    if shutil.which("g++") is None:
        pytest.skip("needs g++ to build the CUDA kernels for the CPU")
    forget_cupy()
    monkeypatch.syspath_prepend(str(PLAYED_GPU))
    with kept_in(passed_checks):
        yield PLAYED_GPU
    forget_cupy()


@pytest.fixture
def played_machine(played_gpu: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that sets up the played machine: its number of devices, their memory, and its fault."""

    def set_up(**variables: object) -> None:
        for name, value in variables.items():
            monkeypatch.setenv(f"F5PY_PLAYED_{name.upper()}", str(value))

    return set_up


def forget_cupy() -> None:
    """Drop the imported modules, and the kernels made with them."""
    from f5py.compute.gpu import sources

    sources._functions.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "cupy"]:
        del sys.modules[name]


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    """Two worker threads."""
    with closing(WorkerPool(2)) as threads:
        yield threads


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Return the folder of real read sets with the outputs of f5c, nanopolish and minimap2, beside the checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"needs the real read sets in {folder}")
    return folder


@pytest.fixture(scope="session")
def ecoli(shared_data: Path) -> Path:
    """112 E. coli R9.4 reads: fast5, FASTA, BAM, reference and expected outputs."""
    return shared_data / "ecoli_r94"


@pytest.fixture(scope="session")
def indexed_ecoli(ecoli: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with the E. coli reads and their index; signals stay where they are."""
    from f5py.cli import command_of

    command = command_of("index")

    folder = tmp_path_factory.mktemp("ecoli")
    reads = folder / "reads.fasta"
    reads.symlink_to(ecoli / "reads.fasta")
    command.main(["-d", str(ecoli / "fast5"), str(reads)], standalone_mode=False)
    return folder


@pytest.fixture(scope="session")
def call_ecoli(indexed_ecoli: Path, ecoli: Path, tmp_path_factory: pytest.TempPathFactory):
    """Return a function that runs call-methylation on a BAM file of the E. coli set and returns its output."""
    from f5py.cli import command_of

    command = command_of("call-methylation")

    folder = tmp_path_factory.mktemp("calls")

    def call(bam: str, *options: str) -> bytes:
        out = folder / "out.tsv"
        inputs = ["-r", str(indexed_ecoli / "reads.fasta"), "-b", str(ecoli / bam), "-g", str(ecoli / "ref.fa")]
        given = last_of_each([*inputs, "-t", "2", "--iop", "1", "-o", str(out), *options])
        command.main(given, standalone_mode=False)
        return out.read_bytes()

    return call


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> ReadSet:
    return ReadSet.simulated(tmp_path_factory.mktemp("made"))


@pytest.fixture(scope="session")
def short(tmp_path_factory: pytest.TempPathFactory) -> ReadSet:
    return ReadSet.simulated(tmp_path_factory.mktemp("short"), 400)


@pytest.fixture(scope="session")
def made_calls(made: ReadSet) -> bytes:
    out = made.folder / "calls.tsv"
    assert run_main(*made.options(), "-o", out) == 0
    return out.read_bytes()


@pytest.fixture(scope="session")
def slow5_set(shared_data: Path, tmp_path_factory: pytest.TempPathFactory):
    """Return a function from the name of a set of BLOW5 reads to a folder with its files and their index."""
    from f5py.cli import command_of

    command = command_of("index")

    folders: dict[str, Path] = {}

    def prepare(name: str) -> Path:
        if name not in folders:
            folder = tmp_path_factory.mktemp(name)
            for file in (shared_data / name).glob("re*.*"):
                (folder / file.name).symlink_to(file)
            shutil.copyfile((shared_data / name / "reads.blow5"), folder / "signals.blow5")  # an index goes beside it
            command.main(["--slow5", str(folder / "signals.blow5"), str(folder / "reads.fastq")], standalone_mode=False)
            folders[name] = folder
        return folders[name]

    return prepare
