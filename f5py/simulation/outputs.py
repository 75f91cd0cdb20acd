"""Files of a simulated data set, written atomically as a folder."""

import os
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from f5py.errors import OutputFileError
from f5py.io.files.disk import free_bytes, temporary_folder
from f5py.io.files.inputs_in_use import check_is_not_read
from f5py.io.files.samtools import run_samtools
from f5py.io.signals.fast5.fast5_writer import fast5_writer
from f5py.io.signals.pod5.pod5_writer import pod5_writer
from f5py.io.signals.slow5.blow5_writer import blow5_writer
from f5py.io.signals.source import Calibration
from f5py.simulation.current import Basecall
from f5py.simulation.genome import LETTERS, Genome
from f5py.simulation.settings import SimulationSettings
from f5py.simulation.sites import SimulatedSites

REFERENCE, ALIGNMENTS = "ref.fa", "reads.bam"
TRUTH, READ_TRUTH = "truth.tsv", "truth_reads.tsv"
#: What a run may leave in its folder, together with the indexes that other commands put beside it.
_OWN_FILE = re.compile(
    r"ref\.fa(\.fai)?|reads\.bam(\.bai)?|truth(_reads|_hp[12])?\.tsv|reads\.blow5(\.idx)?|reads\.fast[aq](\.index(\.fai|\.gzi|\.readdb)?)?"
)
_OWN_SIGNAL_FILE = re.compile(r"reads_\d+\.(fast5|pod5)")
_WRITERS: dict[str, Any] = {"fast5": fast5_writer, "blow5": blow5_writer, "pod5": pod5_writer}
#: Folders of signals, by their format; BLOW5 is one file.
_SIGNAL_FOLDERS = ("fast5", "pod5")
_MAPPING_QUALITY = 60
_REVERSE_FLAG = 16
_ROW_BLOCK = 1 << 18


@contextmanager
def complete_folder(folder: Path, force: bool) -> Iterator[Path]:
    """Create a temporary folder, and move its content into `folder` if the block succeeds.

    With `force` an earlier simulation in `folder` is replaced, by the names of its files. Raises `UsageError` if one of
    these is an input, and `OutputFileError` if the folder is not empty, or is no folder.
    """
    if folder.exists() and not folder.is_dir():
        raise OutputFileError(f"{folder}: is not a folder; give another place for the output")
    if folder.exists() and not force and any(folder.iterdir()):
        raise OutputFileError(f"{folder}: is not empty; give another folder, or --force to replace its simulation")
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if _OWN_FILE.fullmatch(path.name):
            check_is_not_read(str(path))
    with temporary_folder(".unfinished-", beside=folder) as name:
        unfinished = Path(name)
        yield unfinished
        _remove_own_files(folder)
        for signals in filter(os.path.isdir, (unfinished / name for name in _SIGNAL_FOLDERS)):
            (folder / signals.name).mkdir(exist_ok=True)
            for path in sorted(signals.iterdir()):
                os.replace(path, folder / signals.name / path.name)
        for path in sorted(path for path in unfinished.iterdir() if _OWN_FILE.fullmatch(path.name)):
            os.replace(path, folder / path.name)


def check_space(folder: Path, n_bytes: int) -> None:
    """Raise `OutputFileError` if the disk lacks space, as HDF5 does not recover from a full disk.

    The folder may not exist yet.
    """
    place = folder.absolute()
    while not place.exists():
        place = place.parent
    free = free_bytes(place)
    if free is not None and free < n_bytes:
        raise OutputFileError(
            f"{folder}: the simulation needs about {n_bytes / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free; "
            "make room or simulate less"
        )


def _remove_own_files(folder: Path) -> None:
    for path in folder.iterdir():
        if _OWN_FILE.fullmatch(path.name):
            path.unlink()
    for signals in filter(os.path.isdir, (folder / name for name in _SIGNAL_FOLDERS)):
        for path in signals.iterdir():
            if _OWN_SIGNAL_FILE.fullmatch(path.name):
                path.unlink()


class ReadWriter(AbstractContextManager["ReadWriter"]):
    """Write signals, basecalls, alignments and per-read truth, read by read."""

    def __init__(
        self, folder: Path, genome: Genome, settings: SimulationSettings, fasta: bool, read_truth: bool
    ) -> None:
        import pysam

        self._folder, self._genome, self._settings, self._fasta = folder, genome, settings, fasta
        self._n_reads = 0
        if settings.signal_format in _SIGNAL_FOLDERS:
            (folder / settings.signal_format).mkdir()
        with ExitStack() as stack:
            self._reads = stack.enter_context(open(folder / f"reads.{'fasta' if fasta else 'fastq'}", "wb"))
            self._truth = None
            if read_truth:
                self._truth = stack.enter_context(open(folder / READ_TRUTH, "wb"))
                self._truth.write(b"read_name\tchromosome\tstrand\tposition\tmethylated\n")
            header = {
                "HD": {"VN": "1.6", "SO": "unsorted"},
                "SQ": [
                    {"SN": name, "LN": int(length)}
                    for name, length in zip(genome.names, np.diff(genome.offsets), strict=True)
                ],
                "PG": [{"ID": "f5py", "PN": "f5py", "CL": "f5py simulate"}],
            }
            self._header = pysam.AlignmentHeader.from_dict(header)
            self._alignments = stack.enter_context(
                pysam.AlignmentFile(str(folder / "unsorted.bam"), "wbu", header=self._header)
            )
            self._signal_file = stack.enter_context(ExitStack())
            self._files = stack.pop_all()

    def __exit__(self, *problem: Any) -> None:
        self._files.__exit__(*problem)

    def write(
        self, name: str, start: int, reverse: bool, call: Basecall, haplotype: int, sites: NDArray[np.int64],
        methylated: NDArray[np.bool_], samples: NDArray[np.int16], calibration: Calibration, channel: int,
    ) -> None:  # fmt: skip
        """Write a read, with its covered sites and their states; positions are flat."""
        if self._n_reads == 0 or (
            self._settings.signal_format in _SIGNAL_FOLDERS and self._n_reads % self._settings.reads_per_file == 0
        ):
            self._open_signals()
        self._signals.write(name, samples, calibration, channel=channel, read_number=self._n_reads)
        sequence = LETTERS[call.codes].tobytes()
        if self._fasta:
            self._reads.write(b">%b\n%b\n" % (name.encode(), sequence))
        else:
            self._reads.write(b"@%b\n%b\n+\n%b\n" % (name.encode(), sequence, (call.qualities + 33).tobytes()))
        contig = int(self._genome.contig_of(np.array([start]))[0])
        first = int(self._genome.offsets[contig])
        self._write_alignment(name, reverse, call, haplotype, contig, start - first)
        if self._truth is not None and len(sites):
            begin = f"{name}\t{self._genome.names[contig]}\t{'-' if reverse else '+'}"
            states = zip((sites - first).tolist(), methylated.tolist(), strict=True)
            self._truth.write("".join(f"{begin}\t{position}\t{state:d}\n" for position, state in states).encode())
        self._n_reads += 1

    def _open_signals(self) -> None:
        """Open the first or next file of signals."""
        kind, chemistry = self._settings.signal_format, self._settings.chemistry
        name = f"{kind}/reads_{self._n_reads // self._settings.reads_per_file}" if kind in _SIGNAL_FOLDERS else "reads"
        experiment = "rna" if chemistry.rna else "genomic_dna"
        self._signal_file.close()
        writer = _WRITERS[kind](self._folder / f"{name}.{kind}", experiment_type=experiment, kit=chemistry.kit)
        self._signals = self._signal_file.enter_context(writer)

    def _write_alignment(
        self, name: str, reverse: bool, call: Basecall, haplotype: int, contig: int, position: int
    ) -> None:
        import pysam

        record = pysam.AlignedSegment(self._header)
        record.query_name = name
        record.flag = _REVERSE_FLAG if reverse else 0
        record.reference_id = contig
        record.reference_start = position
        record.mapping_quality = _MAPPING_QUALITY
        direction = -1 if reverse else 1
        codes = 3 - call.codes if reverse else call.codes
        record.query_sequence = LETTERS[codes[::direction]].tobytes().decode()
        if not self._fasta:
            record.query_qualities_str = (call.qualities[::direction] + 33).tobytes().decode()
        record.cigartuples = list(
            zip(call.operations[::direction].tolist(), call.lengths[::direction].tolist(), strict=True)
        )
        record.set_tag("NM", call.edit_distance)
        if self._settings.haplotypes:
            record.set_tag("HP", haplotype + 1)
            record.set_tag("PS", 1)
        self._alignments.write(record)


def sort_alignments(folder: Path) -> None:
    """Sort the reads into ``reads.bam`` with its index.

    Raises `OutputFileError`, mostly because the disk is full.
    """
    import pysam

    unsorted = folder / "unsorted.bam"
    try:
        options = ["--no-PG", "-T", str(folder / "sort"), "-o", bam := str(folder / ALIGNMENTS), str(unsorted)]
        run_samtools(pysam.sort, *options, target=bam)
        with suppress(OSError):  # it goes with its folder
            unsorted.unlink()
        run_samtools(pysam.index, bam, target=bam)
    except pysam.SamtoolsError as problem:
        reason = " ".join(str(problem).split())
        raise OutputFileError(f"{folder.parent}: cannot sort the alignments ({reason})") from None


def write_truth(sites: SimulatedSites, genome: Genome, folder: Path) -> None:
    """Write ``truth.tsv``, and for two haplotypes also ``truth_hp1.tsv`` and ``truth_hp2.tsv``.

    A row is a covered site, in reference order. ``start`` and ``end`` are both the 0-based position of its first base,
    as in the frequencies of single sites; ``frequency`` is over the reads that cover the site, ``rate`` the simulated
    probability (for both haplotypes, its mean).
    """
    n_reads, n_methylated = sites.n_reads.sum(axis=0), sites.n_methylated.sum(axis=0)
    _write_truth(sites, genome, folder / TRUTH, n_reads, n_methylated, sites.rates.mean(axis=0))
    if len(sites.rates) > 1:
        for i, of_haplotype in enumerate(zip(sites.n_reads, sites.n_methylated, sites.rates, strict=True)):
            _write_truth(sites, genome, folder / f"truth_hp{i + 1}.tsv", *of_haplotype)


def _write_truth(
    sites: SimulatedSites, genome: Genome, path: Path, all_reads: NDArray[np.int64], all_methylated: NDArray[np.int64],
    rates: NDArray[np.float64],
) -> None:  # fmt: skip
    covered = np.flatnonzero(all_reads > 0)
    with open(path, "w", encoding="utf-8") as out:
        out.write("chromosome\tstart\tend\tn_reads\tn_methylated\tfrequency\trate\n")
        for i in range(0, len(covered), _ROW_BLOCK):
            part = covered[i : i + _ROW_BLOCK]
            contigs = genome.contig_of(sites.positions[part])
            numbers = sites.positions[part] - genome.offsets[contigs], all_reads[part], all_methylated[part]
            # rounded before they are formatted, so that ties go to even digits
            shares = (np.rint(one * 1e4).astype(np.int64) for one in (numbers[2] / numbers[1], rates[part]))
            for contig, at, n, m, share, rate in np.stack([contigs, *numbers, *shares], axis=1).tolist():
                shown = f"{share // 10000}.{share % 10000:04d}\t{rate // 10000}.{rate % 10000:04d}"
                out.write(f"{genome.names[contig]}\t{at}\t{at}\t{n}\t{m}\t{shown}\n")
