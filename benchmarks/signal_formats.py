"""Write the signals of a replicated read set in every format that f5py reads, through the format's own library.

The reads have the same order in all files, which is that of their names in the multi-read fast5 file.
"""

from __future__ import annotations

import datetime
import os
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

CALIBRATION = ("digitisation", "offset", "range", "sampling_rate")
#: What MinKNOW sets for int16: version, integer size, zig-zag, zstd level.
_VBZ_FILTER, _VBZ_OPTIONS = 32020, (0, 2, 1, 1)


class Signal(NamedTuple):
    """One read: name, samples, and the values of `CALIBRATION`."""

    name: str
    samples: Any
    calibration: tuple[float, ...]


def signals_of(fast5: Path) -> Iterator[Signal]:
    """Read a multi-read fast5 file."""
    import h5py

    with h5py.File(fast5, "r") as file:
        for group in file:
            channel = file[group]["channel_id"].attrs
            calibration = tuple(float(channel[what]) for what in CALIBRATION)
            yield Signal(group.removeprefix("read_"), file[group]["Raw/Signal"][()], calibration)


def write_vbz(fast5: Path, target: Path) -> None:
    """Copy a multi-read fast5 file with its signals compressed by VBZ."""
    import h5py

    load_vbz()
    with h5py.File(fast5, "r") as source, h5py.File(target, "w") as out:
        out.attrs.update(source.attrs)
        for name, read in source.items():
            group = out.create_group(name)
            group.attrs.update(read.attrs)
            for part in read:
                if part != "Raw":
                    source.copy(read[part], group)
            raw = group.create_group("Raw")
            raw.attrs.update(read["Raw"].attrs)
            samples = read["Raw/Signal"][()]
            raw.create_dataset(
                "Signal", data=samples, chunks=samples.shape, compression=_VBZ_FILTER, compression_opts=_VBZ_OPTIONS
            )


def write_single(fast5: Path, folder: Path) -> None:
    """Write a single-read fast5 file for each read, gzip-compressed as in the multi-read file."""
    import h5py

    folder.mkdir()
    with h5py.File(fast5, "r") as source:
        for name, read in source.items():
            with h5py.File(folder / f"{name.removeprefix('read_')}.fast5", "w") as out:
                out.attrs["file_version"] = 1.0
                source.copy(read["Raw"], out.create_group("Raw/Reads"), f"Read_{read['Raw'].attrs['read_number']}")
                common = out.create_group("UniqueGlobalKey")
                for part in read:
                    if part != "Raw":
                        source.copy(read[part], common)


def write_blow5(fast5: Path, target: Path) -> None:
    """Write BLOW5 with zstd and svb-zd."""
    import pyslow5

    out = pyslow5.Open(str(target), "w", rec_press="zstd", sig_press="svb_zd")
    header = dict.fromkeys(out.get_empty_header(), ".") | {"experiment_type": "genomic_dna"}
    if out.write_header(header) != 0:
        raise OSError(f"{target}: pyslow5 did not write the header")
    for read in signals_of(fast5):
        record = out.get_empty_record()
        record.update(
            dict(zip(CALIBRATION, read.calibration, strict=True)),
            read_id=read.name,
            read_group=0,
            len_raw_signal=len(read.samples),
            signal=read.samples,
        )
        if out.write_record(record) != 0:
            raise OSError(f"{target}: pyslow5 did not write read {read.name}")
    out.close()


def write_pod5(reads: Iterable[Signal], target: Path) -> None:
    """Write POD5 as the sequencer does: VBZ, in pieces of 102,400 samples."""
    import pod5

    day = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    with pod5.Writer(target) as out:
        for read in reads:
            digitisation, offset, span, sampling_rate = read.calibration
            run = {field: "" for field in pod5.RunInfo.__dataclass_fields__}
            run |= {
                "acquisition_id": "benchmark",
                "acquisition_start_time": day,
                "protocol_start_time": day,
                "adc_min": -int(digitisation) // 2,
                "adc_max": int(digitisation) // 2 - 1,
                "context_tags": {},
                "tracking_id": {},
                "sample_rate": int(sampling_rate),
            }
            out.add_read(
                pod5.Read(
                    read_id=uuid.UUID(read.name),
                    pore=pod5.Pore(1, 1, "not_set"),
                    calibration=pod5.Calibration.from_range(offset, span, digitisation),
                    read_number=0,
                    start_sample=0,
                    median_before=0.0,
                    end_reason=pod5.EndReason(pod5.EndReasonEnum.UNKNOWN, False),
                    run_info=pod5.RunInfo(**run),
                    signal=read.samples,
                )
            )


def load_vbz() -> None:
    """Make HDF5 find the VBZ filter."""
    from h5py import h5pl
    from vbz_h5py_plugin import get_vbz_resource_path

    h5pl.prepend(os.fsencode(get_vbz_resource_path()))
