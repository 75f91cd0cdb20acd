"""Targets of fuzzing: for each input a command that reads it, and ways to damage it that know its structure.

A target's `damage` writes the damaged input into the case's folder and returns the names of the reads that it may
change, or None if it may change all; if it may change none, the output must be the sound one. `is_checked` says that a
checksum or other files tell damage from other content: then no row may change without a word.
"""

from __future__ import annotations

import gzip
import random
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..io.signals.made_layouts import FILTERS, Layout
from .base import PER_FILE, Base
from .containers import Bam, Blow5, bgzf
from .mutations import BYTES, IN_PLACE, TEXT, Change, mutated

Touched = frozenset[str] | None
Damage = Callable[[random.Random, Base, Path], Touched]

_MAPPED = ("-b", "reads.bam", "-g", "ref.fa", "-t", "1")
_READS = ("-r", "reads.fa.gz")
_CALL = ("call-methylation", "-o", "out")


@dataclass(frozen=True)
class Target:
    """One input.

    Attributes
    ----------
    name : str
    command : tuple of str
        Arguments; the files in the case's folder are links to the sound ones but for the damaged one.
    damage : function
    is_checked : bool
    by_read : int or None
        Column of the output with the read's name; None if it has none.
    in_process : bool
        Let a library's format be read in the process of the case, not in one of its own, for speed; if that ends or
        hangs, the case is judged by the run as it is.
    weight : int
        How often it is chosen.
    output : str
        The file of the case's folder that is looked at.
    """

    name: str
    command: tuple[str, ...]
    damage: Damage
    is_checked: bool = False
    by_read: int | None = 4
    in_process: bool = False
    weight: int = 4
    output: str = "out"


def of_bytes(name: str, changes: tuple[Change, ...] = BYTES) -> Damage:
    def damage(rng: random.Random, base: Base, folder: Path) -> Touched:
        write_changed(folder / name, mutated(rng, base.bytes(name), changes))
        return None

    return damage


def write_changed(path: Path, content: bytes) -> None:
    path.unlink(missing_ok=True)  # it is a link to the sound one
    path.write_bytes(content)


def _keep_index(rng: random.Random, path: Path) -> None:
    """Leave the index of before, whose places may be others, or not."""
    if rng.random() < 0.5:
        path.with_name(f"{path.name}.idx").unlink()


def of_record(name: str) -> Damage:
    """Damage one record of a BLOW5 file, before it is compressed."""

    def damage(rng: random.Random, base: Base, folder: Path) -> Touched:
        file = Blow5.of(base.bytes(name))
        i = rng.randrange(len(file.records))
        record = file.records[i]
        fixed = 2 + int.from_bytes(record[:2], "little")
        if rng.random() < 0.4:  # the length, or another of the fields
            at, size = rng.choice(((0, 2), (0, 4), (4, 8), (20, 8), (36, 8), (36, 8)))
            at += fixed if size > 2 else 0
            value = rng.choice((0, 1, 7, 1 << 15, 1 << 31, 1 << 32, 1 << 62, (1 << 64) - 1, 0x7FF8 << 48))
            record = record[:at] + (value % (1 << 8 * size)).to_bytes(size, "little") + record[at + size :]
        elif rng.random() < 0.5 and len(record) > fixed + 60:  # the beginning of the compressed samples
            begin, end = fixed + 44, fixed + 60
            record = record[:begin] + mutated(rng, record[begin:end], IN_PLACE) + record[end:]
        else:
            record = mutated(rng, record, BYTES)
        name_bytes = record[2 : 2 + int.from_bytes(record[:2], "little")]
        write_changed(folder / name, file.with_record(i, record).bytes())
        _keep_index(rng, folder / name)
        renamed = name_bytes.decode("latin-1")
        return frozenset({file.name(i), renamed})

    return damage


def of_blow5(name: str) -> Damage:
    """Damage the file as it is: header, frames, compressed bytes."""

    def damage(rng: random.Random, base: Base, folder: Path) -> Touched:
        data = base.bytes(name)
        if rng.random() < 0.4:
            end = 68 + int.from_bytes(data[64:68], "little")
            data = mutated(rng, data[:end], rng.choice((BYTES, TEXT))) + data[end:]
        else:
            data = mutated(rng, data, BYTES)
        write_changed(folder / name, data)
        _keep_index(rng, folder / name)
        return None

    return damage


def of_bam_record(name: str) -> Damage:
    """Damage one record of a BAM file, which is compressed again."""

    def damage(rng: random.Random, base: Base, folder: Path) -> Touched:
        bam = Bam.of(base.bytes(name))
        i = rng.randrange(len(bam.records))
        record = bam.records[i]
        framed = rng.random() < 0.7
        if rng.random() < 0.5:  # one of the fixed fields
            at, size = rng.choice(((0, 4), (4, 4), (8, 4), (12, 1), (13, 1), (14, 2), (16, 2), (18, 2), (20, 4)))
            value = rng.choice((0, 1, 2, 4, 16, 255, 256, 2048, 65535, 1 << 20, (1 << 31) - 1, 1 << 31, (1 << 32) - 1))
            record = record[:at] + (value % (1 << 8 * size)).to_bytes(size, "little") + record[at + size :]
        else:
            begin = rng.choice((4, 36, 36 + record[12], len(record) - min(60, len(record) - 40)))
            record = record[:begin] + mutated(rng, record[begin:], BYTES if framed else IN_PLACE)
        changed = bam.with_record(i, record, framed and len(record) > 4)
        write_changed(folder / name, changed.bytes())
        return None if not framed or struct.unpack("<I", changed.records[i][:4])[0] < 32 else frozenset({bam.name(i)})

    return damage


def of_bam_header(name: str) -> Damage:
    """Damage a BAM file's header."""

    def damage(rng: random.Random, base: Base, folder: Path) -> Touched:
        bam = Bam.of(base.bytes(name))
        header = mutated(rng, bam.header, rng.choice((BYTES, TEXT)))
        write_changed(folder / name, bgzf(header + b"".join(bam.records)))
        return None

    return damage


def of_packed(name: str, changes: tuple[Change, ...] = BYTES) -> Damage:
    def damage(rng: random.Random, base: Base, folder: Path) -> Touched:
        write_changed(folder / name, bgzf(mutated(rng, gzip.decompress(base.bytes(name)), changes)))
        return None

    return damage


def of_hdf5(name: str, names: Callable[[Base], frozenset[str]]) -> Damage:
    """Damage a fast5 file: its bytes, or what HDF5 would let a program write."""

    def damage(rng: random.Random, base: Base, folder: Path) -> Touched:
        path = folder / name
        if rng.random() < 0.7:
            write_changed(path, mutated(rng, base.bytes(name), BYTES))
        else:
            path.unlink()
            shutil.copy(base.folder / name, path)
            _edit_hdf5(rng, path)
        _index_fast5(path.parent, base, folder)
        return names(base)

    return damage


def of_layout(name: str) -> Damage:
    """Store the signals of a fast5 file in other layouts; damage the bytes of some files, too."""

    def damage(rng: random.Random, base: Base, folder: Path) -> Touched:
        import h5py

        path = folder / name
        path.unlink()
        shutil.copy(base.folder / name, path)
        changed, found = set(), set()
        with h5py.File(path, "r+") as file:
            groups = [file["Raw/Reads"]] if "Raw" in file else [file[read] for read in file]
            for raw in (next(iter(group.values())) if "Raw" in file else group["Raw"] for group in groups):
                read, samples = raw.attrs["read_id"].decode(), raw["Signal"][:]
                found.add(read)
                is_whole = _random_layout(rng, len(samples)).write(raw, samples)
                try:
                    is_same = (raw["Signal"][:] == samples).all()
                except OSError:
                    is_same = False
                if not is_whole or not is_same:
                    changed.add(read)
        if rng.random() < 0.3:
            write_changed(path, mutated(rng, path.read_bytes(), BYTES))
            changed = found
        _index_fast5(path.parent, base, folder)
        return frozenset(changed)

    return damage


def _random_layout(rng: random.Random, n: int) -> Layout:
    """Choose a layout for a signal of n samples, most often one that sequencers have written."""
    return Layout(
        storage=rng.choice(("contiguous", "compact", *["chunks"] * 8)),
        filters=rng.choice((*FILTERS, *["gzip", "shuffle gzip", "vbz 0", "vbz 1"] * 4)),
        length=rng.choice((n, rng.randint(1, n), rng.randint(n, 4 * n), max(1, n // 3), 201_536)),
        last=rng.choice(("full", "full", "short", "short", "short", "unfiltered", "cut", "left out")),
        kind=rng.choice((*["<i2"] * 6, ">i2", "<i4", "<u2")),
    )


def _index_fast5(below: Path, base: Base, folder: Path) -> None:
    """Write the index of the reads in the files of a folder."""
    files = sorted(below.iterdir())
    of_file = [file for i, file in enumerate(files) for _ in range(_reads_in(files, i, base))]
    lines = [f"{read}\t{file}\n" for read, file in zip(base.names, of_file, strict=True)]
    write_changed(folder / "reads.fasta.index.readdb", "".join(lines).encode())


def _reads_in(files: list[Path], i: int, base: Base) -> int:
    """Return how many reads `base` has put into the i-th of the files."""
    return 1 if len(files) == len(base.names) else (PER_FILE, len(base.names) - PER_FILE)[i]


def _edit_hdf5(rng: random.Random, path: Path) -> None:
    import h5py
    import numpy as np

    with h5py.File(path, "r+") as file:
        found: list[str] = []
        file.visit(found.append)
        place = file[rng.choice(found)]
        kind = rng.randrange(5)
        if kind == 0 and len(place.attrs):
            del place.attrs[rng.choice(list(place.attrs))]
        elif kind == 1:
            values = (
                "", "x" * 300, np.bytes_(b"\xff\0a"), np.nan, -1, 2**63, np.inf, 0.0, [1, 2, 3], np.zeros(0), b"",
                "2.x",
            )  # fmt: skip
            attribute = rng.choice([*place.attrs, "file_version", "read_id", "duration", "offset"])
            place.attrs[attribute] = rng.choice(values)
        elif kind == 2 and place.name != "/":
            del file[place.name]
        else:
            where = [at for at in found if at.endswith("Signal")]
            if not where:
                return
            at = rng.choice(where)
            del file[at]
            made = rng.randrange(7)
            if made == 0:
                file[at] = rng.choice((np.zeros(0, np.int16), np.zeros((3, 4), np.int16), np.zeros(9), np.int16(5)))
            elif made == 1:
                file.create_dataset(at, (1 << rng.choice((20, 30, 40)),), "<i2", chunks=(1 << 16,), compression="gzip")
            elif made == 2:
                file[at] = h5py.ExternalLink("other.fast5", "/x")
            elif made == 3:
                file[at] = h5py.SoftLink(rng.choice((at, "/", "/nowhere")))
            elif made == 4:
                file.create_group(at)
            elif made == 5:
                file[at] = np.array([b"text", b"more"])
            else:
                file[at] = np.random.default_rng(1).integers(0, 900, 4000).astype(">i2")


def of_cram(rng: random.Random, base: Base, folder: Path) -> Touched:
    name = rng.choice(("reads.cram", "reads.cram", "reads.cram", "reads.cram.crai"))
    write_changed(folder / name, mutated(rng, base.bytes(name), BYTES))
    return None


def of_reads_gz(rng: random.Random, base: Base, folder: Path) -> Touched:
    data = base.bytes("reads.fa.gz")
    if rng.random() < 0.5:
        write_changed(folder / "reads.fa.gz", mutated(rng, data, BYTES))
    else:
        write_changed(folder / "reads.fa.gz", gzip.compress(mutated(rng, gzip.decompress(data), TEXT)))
    return None


def of_name(base: Base, *numbers: int) -> frozenset[str]:
    return frozenset(base.names[i] for i in numbers)


def _blow5(name: str) -> tuple[str, ...]:
    return (*_CALL, *_READS, *_MAPPED, "--slow5", name)


def _with_bam(name: str, *options: str) -> tuple[str, ...]:
    return (*_CALL, *_READS, "-b", name, "-g", "ref.fa", "-t", "1", "--slow5", "none.blow5", *options)


_INDEXED = (*_CALL, "-r", "reads.fasta", *_MAPPED)
_SOUND = ("--slow5", "none.blow5")
_WINDOW = ("-w", "windows.bed")
_IN_PROCESS = ("--iop", "1")

TARGETS: tuple[Target, ...] = (
    *(Target(f"{kind}.blow5 record", _blow5(f"{kind}.blow5"), of_record(f"{kind}.blow5"))
      for kind in ("zlib", "none", "svb", "exzd")),
    *(Target(f"{kind}.blow5", _blow5(f"{kind}.blow5"), of_blow5(f"{kind}.blow5")) for kind in ("zlib", "none", "svb")),
    Target("slow5 text", _blow5("text.slow5"), of_bytes("text.slow5", TEXT), weight=6),
    Target("slow5 idx", _blow5("svb.blow5"), of_bytes("svb.blow5.idx"), is_checked=True),
    *(Target(f"fast5 multi {kind}", (*_INDEXED, *_IN_PROCESS),
             of_hdf5(f"multi_{kind}/a.fast5", lambda base: of_name(base, 0, 1, 2)), in_process=True)
      for kind in ("gzip", "vbz", "plain")),
    Target("fast5 single", (*_INDEXED, *_IN_PROCESS), of_hdf5("single/2.fast5", lambda base: of_name(base, 2)),
           in_process=True),
    *(Target(f"fast5 layouts {kind}", (*_INDEXED, *_IN_PROCESS), of_layout(name), in_process=True)
      for kind, name in (("multi", "multi_gzip/a.fast5"), ("single", "single/2.fast5"))),
    Target("fast5 scan", ("index", "-d", "single", "reads.fastq"),
           of_hdf5("single/2.fast5", lambda base: of_name(base, 2)), by_read=None, weight=1),
    Target("pod5", (*_CALL, *_READS, *_MAPPED, "--pod5", "s.pod5", *_IN_PROCESS), of_bytes("s.pod5"), in_process=True,
           weight=8),
    Target("bam bytes", _with_bam("reads.bam"), of_bytes("reads.bam"), is_checked=True),
    Target("bam record", _with_bam("reads.bam"), of_bam_record("reads.bam"), weight=8),
    Target("bam header", _with_bam("reads.bam"), of_bam_header("reads.bam")),
    Target("bam text", _with_bam("reads.bam"), of_packed("reads.bam")),
    Target("bam window", _with_bam("reads.bam", *_WINDOW), of_bam_record("reads.bam")),
    Target("bai", _with_bam("reads.bam", *_WINDOW), of_bytes("reads.bam.bai"), is_checked=True),
    Target("csi", _with_bam("other.bam", *_WINDOW), of_bytes("other.bam.csi"), is_checked=True),
    Target("csi text", _with_bam("other.bam", *_WINDOW), of_packed("other.bam.csi")),
    Target("modbam tags",
           _with_bam("tags.bam", "--modbam", "out.bam", "--bedmethyl", "out.bed", "--partition-tag", "HP"),
           of_bam_record("tags.bam"), weight=6),
    Target("reads from bam", (*_CALL, *_MAPPED, "--slow5", "none.blow5"), of_bam_record("reads.bam")),
    Target("eventalign sam", ("eventalign", "-o", "out", "-b", "tags.bam", "-g", "ref.fa", "-t", "1", *_READS, *_SOUND,
                              "--sam"), of_bam_record("tags.bam"), by_read=0),
    Target("sam", _with_bam("reads.sam"), of_bytes("reads.sam", TEXT)),
    Target("cram", _with_bam("reads.cram"), of_cram),
    Target("reads fasta", (*_CALL, "-r", "plain.fa", *_MAPPED, *_SOUND), of_bytes("plain.fa", TEXT)),
    Target("reads gz", (*_CALL, *_READS, *_MAPPED, *_SOUND), of_reads_gz),
    Target("reads fastq", ("resquiggle", "-o", "out", "-t", "1", "reads.fastq", "none.blow5"),
           of_bytes("reads.fastq", TEXT), by_read=0),
    Target("index fastq", ("index", "--slow5", "none.blow5", "reads.fastq"), of_bytes("reads.fastq", TEXT),
           by_read=None),
    *(Target(f"reads {suffix}", _INDEXED, of_bytes(f"reads.fasta{suffix}", changes), is_checked=checked, weight=3)
      for suffix, changes, checked in ((".index", BYTES, True), (".index.fai", TEXT, True), (".index.gzi", BYTES, True),
                                       (".index.readdb", TEXT, False))),
    Target("reference", (*_CALL, *_READS, *_MAPPED, *_SOUND), of_bytes("ref.fa", TEXT)),
    Target("reference fai", (*_CALL, *_READS, *_MAPPED, *_SOUND), of_bytes("ref.fa.fai", TEXT), is_checked=True),
    Target("model",
           ("resquiggle", "-o", "out", "-t", "1", "--kmer-model", "nucleotide.model", "reads.fastq", "none.blow5"),
           of_bytes("nucleotide.model", TEXT), by_read=0),
    Target("bed", _with_bam("reads.bam", *_WINDOW), of_bytes("windows.bed", TEXT)),
    Target("summary", ("index", "-d", "single", "-s", "sequencing_summary.txt", "reads.fastq"),
           of_bytes("sequencing_summary.txt", TEXT), by_read=None),
    Target("summary list", ("index", "-d", "single", "-f", "list.fofn", "reads.fastq"), of_bytes("list.fofn", TEXT),
           by_read=None, weight=2),
    Target("profile", _with_bam("reads.bam", "-x", "profile.txt"), of_bytes("profile.txt", TEXT)),
    Target("calls", ("meth-freq", "-i", "calls.tsv", "-o", "out"), of_bytes("calls.tsv", TEXT), by_read=None, weight=6),
    Target("calls split", ("meth-freq", "-s", "-i", "calls.tsv", "-o", "out"), of_bytes("calls.tsv", TEXT),
           by_read=None),
    Target("calls bedmethyl", ("meth-freq", "--bedmethyl", "-i", "calls.tsv", "-o", "out"), of_bytes("calls.tsv", TEXT),
           by_read=None),
    Target("calls parquet", ("meth-freq", "-i", "calls.parquet", "-o", "out"), of_bytes("calls.parquet"), by_read=None),
    Target("frequencies parquet", ("freq-merge", "freq.parquet", "calls_freq.tsv", "-o", "out"),
           of_bytes("freq.parquet"), by_read=None),
    Target("frequencies", ("freq-merge", "freq.tsv", "calls_freq.tsv", "-o", "out"), of_bytes("freq.tsv", TEXT),
           by_read=None, weight=6),
)  # fmt: skip
