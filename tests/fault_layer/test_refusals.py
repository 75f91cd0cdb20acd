"""Each call that the system may refuse is refused in turn: the results are the same, or the run ends with one line."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from f5py.options.cores import usable_cores

from ..examples import examples
from ..made_data import ReadSet, error_line, run_command
from ..readers_here import scans_here
from .refusals import KINDS, Counts, Refusal

#: Files that save time later on; a run whose results are there may lack them.
_ENDINGS_OF_INDICES = (".bai", ".csi", ".tbi", ".crai", ".fai", ".gzi", ".blow5.idx")
_OLD = b"old\n"
#: Also calls from where an earlier one has come.
REFUSE_ALL = examples(10) >= 10


@dataclass
class Commands:
    """Command lines, and what is in the folder of their outputs before the first of them.

    Attributes
    ----------
    lines : list of list
        ``OUT`` stands for the folder.
    old : tuple of str
        Names of earlier outputs, of another mode than new files have.
    copies : dict
        Inputs that are copied there, by their names.
    varying : tuple of str
        Outputs that have times or places of memory in them.
    needed : tuple of str
        Kinds of calls that are needed here and nowhere else.
    left_out : tuple of str
    """

    lines: list[list[object]]
    old: tuple[str, ...] = ()
    copies: dict[str, Path] | None = None
    varying: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ("read a file",)


def _words(line: str, *more: object) -> list[object]:
    return [*line.split(), *more]


def _call_methylation(made: ReadSet, _: Path) -> Commands:
    line = (
        "call-methylation -K 4 -o OUT/calls.tsv --modbam OUT/t.bam --bedmethyl OUT/s.bed.gz --failed-reads OUT/f.tsv "
        "--report OUT/r.json"
    )
    old = ("calls.tsv", "s.bed.gz", "s.bed.gz.csi", "t.bam", "r.json", ".unfinished-f.tsv")
    return Commands([_words(line, *made.options())], old, varying=("r.json",), left_out=())


def _parts(made: ReadSet, _: Path) -> Commands:
    line = "call-methylation -K 8 -o OUT/calls.tsv --bedmethyl OUT/s.bed.gz --plan OUT/plan"
    given = _words(line, *made.options())
    return Commands([[*given, "--partitions", 2], given], ("calls.tsv",))


def _resumed(made: ReadSet, folder: Path) -> Commands:
    slow5 = made.with_slow5(folder)
    return Commands([["resquiggle", slow5.reads, slow5.signal_path, *_words("-o OUT/r.tsv --iop 1 --resume")]])


def _eventalign(made: ReadSet, _: Path) -> Commands:
    return Commands([_words("eventalign -o OUT/e.tsv --summary OUT/s.tsv", *made.options())], ("e.tsv",))


def _eventalign_bam(made: ReadSet, _: Path) -> Commands:
    return Commands([_words("eventalign --sam -o OUT/e.bam", *made.options())])


def _map(made: ReadSet, _: Path) -> Commands:
    lines = [
        ["map", made.genome, made.reads, *_words("-o OUT/m.bam --report OUT/r.json")],
        ["map", made.genome, *_words("-d OUT/i.idx")],
        ["map", "OUT/i.idx", made.reads, *_words("-o OUT/m.paf")],
    ]
    return Commands(lines, ("m.bam",), varying=("r.json",))


def _index(made: ReadSet, _: Path) -> Commands:
    """Index twice: without old indices, and with them."""
    lines = [
        ["index", "-d", made.folder / "fast5", *_words("OUT/r.fa --iop 1 --resume")],
        ["index", "-d", made.folder / "fast5", *_words("OUT/r.fa --iop 1")],
    ]
    # that some of the old ones go shall not leave those of two runs beside each other
    return Commands(lines, copies={"r.fa": made.reads}, needed=("remove a file",))


def _mapped_first(made: ReadSet, _: Path) -> Commands:
    line = "call-methylation -K 8 -r OUT/r.fa -g OUT/g.fa -t 2 --iop 1 -o OUT/calls.tsv --fast5"
    return Commands([_words(line, made.folder / "fast5")], copies={"r.fa": made.reads, "g.fa": made.genome})


def _tables(made: ReadSet, folder: Path) -> Commands:
    calls = folder / "calls.tsv"
    assert run_command("call-methylation", *made.options(), "-o", calls) == 0
    lines = [
        ["meth-freq", "-i", calls, "-o", "OUT/f.tsv"],
        ["meth-freq", "-i", calls, "-o", "OUT/f.bedgraph.gz"],
        _words("freq-merge -o OUT/g.tsv OUT/f.tsv OUT/f.tsv"),
        ["meth-freq", "-i", calls, *_words("--format dss -o OUT/d.tsv.gz")],
    ]
    return Commands(lines)


def _single_reads(made: ReadSet, folder: Path) -> Commands:
    """Extract calls of reads, and sum them by region, from alignments with tags."""
    tagged, bed = folder / "t.bam", folder / "regions.bed"
    assert run_command("call-methylation", *made.options(), "-o", folder / "calls.tsv", "--modbam", tagged) == 0
    contig = made.genome.read_text().split("\n")[0][1:].split()[0]
    bed.write_text(f"{contig}\t0\t2000\n")
    lines = [["extract", tagged, "-o", "OUT/e.tsv"], ["extract", tagged, "-o", "OUT/e.parquet"],
             ["regions", bed, tagged, "-o", "OUT/r.tsv"]]  # fmt: skip
    return Commands(lines, ("e.tsv",))


def _comparison(made: ReadSet, folder: Path) -> Commands:
    events = folder / "events.tsv"
    assert run_command("eventalign", *made.options(), "--print-read-names", "-o", events) == 0
    line = "compare --min-coverage 1 -t 1 -o OUT/c.tsv --report OUT/c.html"
    return Commands([_words(line, events, events)])


def _plot(made: ReadSet, _: Path) -> Commands:
    return Commands([["plot", made.names[0], "-r", made.reads, "-b", made.bam, "-g", made.genome, "-o", "OUT/p.html"]])


def _by_url(made: ReadSet, folder: Path) -> Commands:
    """Read inputs of another file system, which are copied, or of which pieces are fetched."""
    memory = pytest.importorskip("fsspec").filesystem("memory")
    signals = made.with_slow5(folder).signal_path
    for path in (signals, Path(f"{signals}.idx"), made.bam, Path(f"{made.bam}.bai"), made.genome):
        memory.put(str(path), f"/run/{path.name}")
    line = f"call-methylation -t 2 -b memory://run/{made.bam.name} -g memory://run/{made.genome.name} -o OUT/calls.tsv"
    return Commands([_words(line, "--slow5", f"memory://run/{signals.name}")])


def _simulate(_: ReadSet, __: Path) -> Commands:
    line = "simulate -n 4 --genome-length 5000 --length 600 -o OUT/s --seed 1"
    return Commands([_words(line)], varying=("s/fast5/reads_0.fast5",))


class Refused:
    """Command lines of which one call after the other is refused."""

    def __init__(self, commands: Commands, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
        self._commands, self._capfd = commands, capfd
        self.out, self._temporary, self._kept = folder / "out", folder / "temporary", folder / "cache"
        self._counts = Counts()
        for counts in (Counts(), self._counts):  # what the first run leaves in memory the others find there
            status, told = self.run(counts)
            assert status == 0, told
        self._sound = self._contents()

    def run(self, refusal: Refusal | Counts) -> tuple[int, str]:
        """Run all, from the same state, until one fails."""
        for place in (self.out, self._temporary, self._kept):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
        for name in self._commands.old:
            (self.out / name).write_bytes(_OLD)
            (self.out / name).chmod(0o640)
        for name, path in (self._commands.copies or {}).items():
            shutil.copy(path, self.out / name)
        usable_cores.cache_clear()
        status = 0
        self._capfd.readouterr()
        tempfile.tempdir = str(self._temporary)
        with refusal():
            for line in self._commands.lines:
                status = status or run_command(*(str(word).replace("OUT", str(self.out)) for word in line))
        return status, self._capfd.readouterr().err

    def _contents(self) -> dict[str, bytes]:
        """Read all files but those of plans, whose names and contents are of one run."""
        found = {}
        for path in self.out.rglob("*"):
            name = str(path.relative_to(self.out))
            if path.is_file() and not any(part == "plan" or part.endswith(".f5py-parts") for part in Path(name).parts):
                found[name] = path.read_bytes()
        return found

    def check(self, name: str) -> int:
        """Refuse all calls of a kind in turn, or the first one of each place; return their number."""
        kind = KINDS[name]
        places = self._counts.of[name].places
        n_calls = len(places)
        for nth in range(1, n_calls + 1):
            if places[nth - 1] in places[: nth - 1] and not REFUSE_ALL:
                continue
            refusal = Refusal(kind, nth)
            status, told = self.run(refusal)
            where = f"{name}, call {nth} of {n_calls}: {told}"
            assert "Traceback" not in told, where
            assert "Exception ignored" not in told, where
            if status:
                assert kind.is_needed or name in self._commands.needed, where
                assert status == 1, where
                error_line(told)
                self._check_no_halves(where)
            else:
                assert refusal.is_done or nth > 1, where  # which calls threads make may depend on their turns
                self._check_results(where, "WARNING" in told)
        return n_calls

    def _check_results(self, where: str, is_warned: bool) -> None:
        found = self._contents()
        for name, content in self._sound.items():
            if name not in found:
                assert name.endswith(_ENDINGS_OF_INDICES), f"{name} is missing: {where}"
            elif name not in self._commands.varying:
                assert found[name] == content, f"{name} is another one: {where}"
            elif name.endswith(".json"):
                json.loads(found[name])
        more = found.keys() - self._sound.keys() - set(self._commands.old)
        assert is_warned or not more, f"{more} are left: {where}"

    def _check_no_halves(self, where: str) -> None:
        """Check that what has the name of a result is one, or an earlier file."""
        for name, content in self._contents().items():
            if ".unfinished-" in name or name.endswith(".scanned") or content == _OLD:
                continue
            assert name in self._sound, f"{name} is left: {where}"
            assert name in self._commands.varying or content == self._sound[name], f"{name} is another one: {where}"


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For temporary files, and for copies of inputs."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    before = tempfile.tempdir
    yield
    tempfile.tempdir = before
    usable_cores.cache_clear()


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # of files that NumPy leaves to the collector
@pytest.mark.parametrize(
    "commands",
    [
        _call_methylation,
        _parts,
        _resumed,
        _eventalign,
        _eventalign_bam,
        _map,
        _index,
        _mapped_first,
        _tables,
        _single_reads,
        _comparison,
        _plot,
        _by_url,
        _simulate,
    ],
)
def test_each_call_is_refused(
    made: ReadSet, tmp_path: Path, capfd: pytest.CaptureFixture[str], commands: Callable[[ReadSet, Path], Commands]
) -> None:
    """Refuse each call of each kind in turn."""
    with scans_here():
        chosen = commands(made, tmp_path)
        refused = Refused(chosen, tmp_path, capfd)
        counts = {name: refused.check(name) for name in KINDS if name not in chosen.left_out}
    assert counts["make a file"] > 0  # else nothing was refused
    assert counts["give a name"] > 0
