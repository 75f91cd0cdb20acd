"""Plain loops over the signals of a file, each through a library of the file's format, as its documentation shows them.

They import their library when they are called, in a process of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from signal_formats import CALIBRATION

#: Reads taken at once, by f5py and by loops with threads; the default of call-methylation.
BATCH = 512

#: A plain loop: from the file or folder to (name, samples, values of CALIBRATION) of each read.
PlainLoop = Callable[[Path], Iterator[tuple[str, Any, tuple]]]


def with_h5py(path: Path) -> Iterator[tuple[str, Any, tuple]]:
    import h5py

    with h5py.File(path, "r") as file:
        for name in file:
            read = file[name]
            channel = read["channel_id"].attrs
            yield name[5:], read["Raw/Signal"][()], tuple(channel[what] for what in CALIBRATION)


def with_h5py_single(folder: Path) -> Iterator[tuple[str, Any, tuple]]:
    import h5py

    for path in sorted(folder.iterdir()):
        with h5py.File(path, "r") as file:
            (read,) = file["Raw/Reads"].values()
            channel = file["UniqueGlobalKey/channel_id"].attrs
            yield read.attrs["read_id"].decode(), read["Signal"][()], tuple(channel[what] for what in CALIBRATION)


def with_fast5_api(path: Path) -> Iterator[tuple[str, Any, tuple]]:
    from ont_fast5_api.fast5_interface import get_fast5_file

    for one in sorted(path.iterdir()) if path.is_dir() else [path]:
        with get_fast5_file(str(one), mode="r") as file:
            for read in file.get_reads():
                channel = read.get_channel_info()
                yield read.get_read_id(), read.get_raw_data(), tuple(channel[what] for what in CALIBRATION)


def with_pyslow5(path: Path) -> Iterator[tuple[str, Any, tuple]]:
    import pyslow5

    file = pyslow5.Open(str(path), "r")
    for read in file.seq_reads():
        yield read["read_id"], read["signal"], tuple(read[what] for what in CALIBRATION)
    file.close()


def with_pyslow5_threads(path: Path) -> Iterator[tuple[str, Any, tuple]]:
    import pyslow5

    file = pyslow5.Open(str(path), "r")
    for read in file.seq_reads_multi(threads=2, batchsize=BATCH):
        yield read["read_id"], read["signal"], tuple(read[what] for what in CALIBRATION)
    file.close()


def with_pyslow5_list(path: Path, threads: int = 1) -> Iterator[tuple[str, Any, tuple]]:
    import pyslow5

    file = pyslow5.Open(str(path), "r")
    names = sorted(file.get_read_ids()[0])  # in the order in which f5py is asked for them
    reads = file.get_read_list(names) if threads == 1 else file.get_read_list_multi(names, threads, BATCH)
    for read in reads:
        yield read["read_id"], read["signal"], tuple(read[what] for what in CALIBRATION)
    file.close()


def with_pyslow5_list_threads(path: Path) -> Iterator[tuple[str, Any, tuple]]:
    return with_pyslow5_list(path, 2)


def with_pod5(path: Path, preload: set[str] | None = None) -> Iterator[tuple[str, Any, tuple]]:
    import pod5

    with pod5.Reader(path) as file:
        for read in file.reads(preload=preload):
            run, scale = read.run_info, read.calibration
            digitisation = run.adc_max - run.adc_min + 1
            yield (
                str(read.read_id),
                read.signal,
                (digitisation, scale.offset, scale.scale * digitisation, run.sample_rate),
            )


def with_pod5_preload(path: Path) -> Iterator[tuple[str, Any, tuple]]:
    return with_pod5(path, {"samples"})


class Format(NamedTuple):
    """A format: its name, its file or folder in the scratch folder, and the plain loops over its libraries."""

    title: str
    place: str
    loops: dict[str, PlainLoop]


FORMATS = {
    "gzip": Format(
        "fast5, multi-read, gzip",
        "set/fast5/reads_0.fast5",
        {"h5py": with_h5py, "ont-fast5-api": with_fast5_api},
    ),
    "vbz": Format("fast5, multi-read, VBZ", "vbz.fast5", {"h5py": with_h5py, "ont-fast5-api": with_fast5_api}),
    "single": Format("fast5, single-read, gzip", "single", {"h5py": with_h5py_single, "ont-fast5-api": with_fast5_api}),
    "blow5": Format(
        "BLOW5, zstd, svb-zd",
        "reads.blow5",
        {
            "pyslow5 get_read_list": with_pyslow5_list,
            "pyslow5 get_read_list_multi, 2 threads": with_pyslow5_list_threads,
            "pyslow5 seq_reads": with_pyslow5,
            "pyslow5 seq_reads_multi, 2 threads": with_pyslow5_threads,
        },
    ),
    "pod5": Format("POD5", "reads.pod5", {"pod5 reads": with_pod5, "pod5 reads, preload (threads)": with_pod5_preload}),
}
#: Loops that use the second core too.
PARALLEL = (
    "pyslow5 get_read_list_multi, 2 threads", "pyslow5 seq_reads_multi, 2 threads", "pod5 reads, preload (threads)",
)  # fmt: skip
