"""Times at which reads were sequenced, from files of every format, and what the report of a run makes of them."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

import h5py
import numpy as np
import pysam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from f5py.core.names import Names
from f5py.io.signals.fast5.reader import Fast5Reader
from f5py.io.signals.processes import ProcessSource
from f5py.io.signals.slow5.reader import Slow5Source
from f5py.io.signals.source import SignalBlock
from f5py.io.signals.split_reads import TO_THE_END, fetch_split

from ...made_data import ReadSet, run_command
from .made_signals import MadeRead, write_multi, write_single

_NONE = (1 << 64) - 1


@pytest.mark.shared
def test_real_files_of_three_formats_agree(ecoli: Path) -> None:
    pod5 = pytest.importorskip("pod5", reason="needs pod5")
    from .made_pod5 import pod5_source

    formats = ecoli / "formats"
    with pod5.Reader(formats / "reads.pod5") as file:
        starts = {str(read.read_id): read.start_sample / read.run_info.sample_rate for read in file}
    names = list(starts)
    expected = np.array(list(starts.values()), np.float32)
    assert len(set(starts.values())) == len(starts) == 112
    for kind in ("multi_gzip.fast5", "multi_vbz.fast5"):
        for source in (Fast5Reader(), ProcessSource(2, dict.fromkeys(names, str(formats / kind)), Fast5Reader)):
            if isinstance(source, Fast5Reader):
                block = source.read(names, [str(formats / kind)] * len(names))
            else:
                block = source.fetch(names)
            source.close()
            assert block.calibration[-1].dtype == np.float32
            np.testing.assert_array_equal(block.calibration[-1], expected)
    block = pod5_source(formats / "reads.pod5").fetch([*names, names[0]])
    np.testing.assert_array_equal(block.calibration[-1], [*expected, expected[0]])
    assert np.isnan(Slow5Source(str(formats / "reads.blow5")).fetch(names).calibration[-1]).all()  # does not say it


@pytest.mark.shared
def test_real_slow5_files_of_every_kind(shared_data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pyslow5 = pytest.importorskip("pyslow5", reason="needs pyslow5")
    paths = [shared_data / "rna002_sequin" / "reads.blow5", shared_data / "r10_wga" / "reads.blow5"]
    paths += sorted((shared_data / "format_zoo" / "slow5").glob("*.?low5"))
    n_known = 0
    for i, path in enumerate(paths):
        if path.name.startswith(("duplicate_read", "zlib_svb-zd_multi_rg_v1.1.0")):
            continue
        (link := tmp_path / f"{i}{path.suffix}").symlink_to(path)
        source, theirs = Slow5Source(str(link)), pyslow5.Open(str(link), "r")
        names = source.first_names(50)
        block = source.fetch(names)
        source.close()
        has_starts = "start_time" in (theirs.get_aux_names() or [])
        for name, start in zip(names, block.calibration[-1], strict=True):
            if has_starts:
                read = theirs.get_read(name, aux=["start_time"])
                assert start == np.float32(read["start_time"] / float(np.float32(read["sampling_rate"])))
                n_known += 1
            else:
                assert np.isnan(start)
    assert n_known > 50


_NUMBERS = {
    "char": "c", "int8_t": "b", "uint8_t": "B", "int16_t": "h", "uint16_t": "H", "int32_t": "i", "uint32_t": "I",
    "int64_t": "q", "uint64_t": "Q", "float": "f", "double": "d", "enum{a,b}": "B",
}  # fmt: skip
_STARTS = st.integers(0, 1 << 40) | st.just(_NONE)
_KINDS = st.sampled_from([*_NUMBERS, *(f"{kind}*" for kind in _NUMBERS)])


def _of_slow5(folder: Path, kinds: Sequence[str], starts: Sequence[int], binary: bool, cut: int = 0) -> SignalBlock:
    """Read back reads with these columns before the start, and one after it."""
    types = ["#char*", "uint32_t", *4 * ["double"], "uint64_t", "int16_t*", *kinds, "uint64_t", "int32_t"]
    names = ["#read_id", "read_group", "digitisation", "offset", "range", "sampling_rate", "len_raw_signal"]
    names += ["raw_signal", *(f"other_{i}" for i in range(len(kinds))), "start_time", "read_number"]
    header = "@experiment_type\tgenomic_dna\n" + "\t".join(types) + "\n" + "\t".join(names) + "\n"
    samples = np.array([500, 510, 490], "<i2")
    path = folder / "reads.slow5"
    (folder / "reads.slow5.idx").unlink(missing_ok=True)
    records = []
    for i, start in enumerate(starts):
        name = f"read-{i}"
        if binary:
            record = struct.pack("<H", len(name)) + name.encode() + struct.pack("<I4dQ", 0, 8192, 3, 1467.6, 4000, 3)
            record += samples.tobytes()
            for kind in kinds:
                code = _NUMBERS[kind.removesuffix("*")]
                one = struct.pack(f"<{code}", b"7" if code == "c" else 7)
                record += struct.pack("<Q", i) + i * one if kind.endswith("*") else one
            record += struct.pack("<Qi", start, 5)
            record = record[: len(record) - cut]
            records.append(struct.pack("<Q", len(record)) + record)
        else:
            others = [",".join(i * "7") or "." if kind.endswith("*") else "7" for kind in kinds]
            fields = [name, "0", "8192", "3", "1467.6", "4000", "3", "500,510,490", *others]
            fields += ["." if start == _NONE else str(start), "5"]
            records.append(("\t".join(fields) + "\n").encode())
    if binary:
        begin = b"BLOW5\x01" + bytes([0, 2, 0, 0]) + struct.pack("<IB", 1, 0)
        length = struct.pack("<I", len(header))
        path.write_bytes(begin.ljust(64, b"\0") + length + header.encode() + b"".join(records) + b"5WOLB")
    else:
        path.write_bytes(f"#slow5_version\t0.2.0\n#num_read_groups\t1\n{header}".encode() + b"".join(records))
    source = Slow5Source(str(path))
    try:
        block = source.fetch([f"read-{i}" for i in range(len(starts))])
    finally:
        source.close()
    assert block.problems == {}
    assert block.samples.tolist() == samples.tolist() * len(starts)
    return block


@pytest.mark.parametrize("binary", [True, False])
@given(kinds=st.lists(_KINDS, max_size=6), starts=st.lists(_STARTS, min_size=1, max_size=4))
def test_columns_of_any_kind_before_the_start(
    binary: bool, kinds: list[str], starts: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    block = _of_slow5(tmp_path_factory.mktemp("slow5"), kinds, starts, binary)
    expected = [np.nan if start == _NONE else start / 4000 for start in starts]
    np.testing.assert_array_equal(block.calibration[-1], np.array(expected, np.float32))


@pytest.mark.parametrize("cut", range(5, 37))
def test_what_is_cut_off_is_not_known(tmp_path: Path, cut: int) -> None:
    block = _of_slow5(tmp_path, ["double", "char*", "int32_t*"], [8000, 4000, 12000], True, cut)
    assert np.isnan(block.calibration[-1]).all()


def test_a_column_of_an_unknown_kind_leaves_it_unknown(tmp_path: Path) -> None:
    for kinds in (["complex"], ["int128_t*"]):
        assert np.isnan(_of_slow5(tmp_path, kinds, [8000], False).calibration[-1]).all()


def test_fast5_with_and_without_it(tmp_path: Path) -> None:
    reads = [MadeRead(f"read-{i}", np.arange(50, dtype=np.int16)) for i in range(4)]
    paths = write_multi(tmp_path / "reads.fast5", reads)
    with h5py.File(tmp_path / "reads.fast5", "r+") as file:
        file["read_read-0/Raw"].attrs["start_time"] = np.uint64(40_000_000)
        file["read_read-1/Raw"].attrs["start_time"] = np.int32(4_000)
        file["read_read-2/Raw"].attrs["start_time"] = "soon"
    single = MadeRead("alone", np.arange(50, dtype=np.int16))
    paths |= write_single(tmp_path / "single.fast5", single)
    with h5py.File(tmp_path / "single.fast5", "r+") as file:
        file["Raw/Reads/Read_17"].attrs["start_time"] = np.array([8_000], np.uint64)
    reader = Fast5Reader()
    block = reader.read([*paths, "read-0"], [*paths.values(), paths["read-0"]])
    reader.close()
    assert block.problems == {}
    np.testing.assert_array_equal(block.calibration[-1], np.float32([10_000, 1, np.nan, np.nan, 2, 10_000]))


class _Parents:
    """A source of one read, of which others are parts."""

    def fetch(self, names: Sequence[str]) -> SignalBlock:
        from f5py.io.signals.source import BlockBuilder

        block = BlockBuilder(names, [""] * len(names))
        for i, name in enumerate(names):
            if name == "parent":
                block.add(i, (np.arange(9000, dtype=np.int16), [8192, 3, 1467.6, 4000, 20_000]))
            else:
                block.add(i, "is not in this file")
        return block.build()


def test_parts_of_a_read_start_later(tmp_path: Path) -> None:
    starts, lengths = np.array([0, 0, 6000]), np.array([TO_THE_END, 3000, TO_THE_END])
    block = fetch_split(_Parents(), ["parent", "a", "b"], Names.of(["", "parent", "parent"]), starts, lengths)  # type: ignore[arg-type]
    assert block.calibration[-1].tolist() == [5.0, 5.0, 6.5]


@pytest.mark.shared
@pytest.mark.parametrize("kind", ["--pod5", "--fast5"])
def test_the_report_shows_the_yield_over_time(ecoli: Path, tmp_path: Path, kind: str) -> None:
    signals = ecoli / "formats" / {"--pod5": "reads.pod5", "--fast5": "multi_vbz.fast5"}[kind]
    given_ = ["-b", ecoli / "reads8.bam", "-g", ecoli / "ref.fa", kind, signals, "-t", "2", "-K", "3"]
    assert run_command("eventalign", *given_, "-o", tmp_path / "out.tsv", "--report", tmp_path / "report.json") == 0
    assert run_command("call-methylation", *given_, "-o", tmp_path / "c.tsv", "--report", tmp_path / "report.html") == 0
    shown = json.loads((tmp_path / "report.json").read_text())["run"]["distributions"]["yield_over_time"]
    with h5py.File(ecoli / "formats" / "multi_vbz.fast5") as file, pysam.AlignmentFile(ecoli / "reads8.bam") as bam:
        reads = [
            (float(file[f"read_{one.query_name}/Raw"].attrs["start_time"]) / 4000, one.infer_read_length())
            for one in bam
        ]
    assert len(reads) == 9
    assert shown["hours"][0] == 0
    assert np.allclose(np.diff(shown["hours"]), 1 / 12, atol=1e-4)
    for hours, bases in zip(shown["hours"], shown["bases_used"], strict=True):
        assert bases == sum(length for start, length in reads if start // 300 < round(hours * 12))
    assert shown["bases_used"][-1] == sum(length for _, length in reads)
    assert shown["bases_used"][-2] < shown["bases_used"][-1]
    page = (tmp_path / "report.html").read_text()
    chart = page[page.index("<h2>Yield over time</h2>") :]
    assert "hours of sequencing" in chart[: chart.index("</section>")]


def test_there_is_no_chart_where_times_are_not_known(made: ReadSet, tmp_path: Path) -> None:
    """Reads that are simulated are all of one moment."""
    report, page = tmp_path / "report.json", tmp_path / "report.html"
    for path in (report, page):
        assert run_command("eventalign", *made.options(), "--report", path, "-o", tmp_path / "out.tsv") == 0
    assert len(json.loads(report.read_text())["run"]["distributions"]["yield_over_time"]["hours"]) <= 2
    assert "Yield over time" not in page.read_text()
    assert "Yield by read length" in page.read_text()
