"""Command lines as users of f5c and nanopolish type them, with f5py for the tool, mean here what they mean there."""

from __future__ import annotations

import gzip
import shlex
from dataclasses import fields, replace
from getopt import gnu_getopt
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest

from f5py.api.call import options_from
from f5py.api.values import GivenFiles
from f5py.cli import f5py
from f5py.cli.options import OptionsCommand
from f5py.errors import UsageError
from f5py.io.signals.fast5.fast5_scan import scan_fast5
from f5py.io.signals.search import list_kind
from f5py.options.table_commands import IndexOptions

from ..made_data import run_command

LINES = (Path(__file__).parents[1] / "data" / "command_lines.txt").read_text().splitlines()
#: Refused with one line that says what to use instead, by what is said.
REFUSED = {
    "--print-raw=yes": "slow5tools view",
    "--write-dump=yes": "convert them to BLOW5",
    "--read-dump=yes": "convert them to BLOW5",
    "--models-fofn": "--kmer-model",
}
ELSEWHERE = ("polya", "phase-reads", "variants", "methyltrain")
#: Of `train`, whose output has another name here.
TRAIN = "nanopolish train "

# What the tools' getopt takes. "=" and ":" mark options with a value.
_FLAGS = (
    "paf sam m6anet print-read-names scale-events samples signal-index collapse-events rna skip-slow5-idx "
    "skip-slow-idx progress verbose version help"
)
_VALUES = (
    "reads bam genome window threads batchsize max-bases output profile iop pore slow5 min-mapq secondary skip-ultra "
    "ultra-thresh skip-unreadable kmer-model meth-model meth-out-version min-recalib-events summary sam-out-version "
    "disable-cuda cuda-dev-id cuda-max-lf cuda-avg-epk cuda-max-epk cuda-mem-frac cuda-block-size print-raw "
    "debug-break supplementary profile-cpu write-dump read-dump directory sequencing-summary "
    "sequencing-summary-file summary-fofn methylation "
    "modbam-output-name modbam-style min-mapping-quality min-separation input watch "
    "watch-process-total watch-process-index"
)
_LONG = _FLAGS.split() + [f"{name}=" for name in _VALUES.split()]
_SHORT = "r:b:g:w:t:K:B:o:x:hVcad:f:i:vnq:s:"
#: What the short options stand for, where they differ from one command to another.
_SHORT_NAMES: dict[str, dict[str, str]] = {
    "": {
        "-r": "reads", "-b": "bam", "-g": "genome", "-w": "window", "-t": "threads", "-K": "batchsize",
        "-B": "max-bases", "-o": "output", "-x": "profile", "-c": "paf", "-a": "sam", "-d": "directory",
        "-f": "summary-fofn", "-v": "verbose", "-V": "version",
    },
    "index": {"-s": "sequencing-summary"},
    "call-methylation": {
        "-q": "methylation", "-s": "modbam-style", "-c": "watch-process-total", "-i": "watch-process-index",
    },
    "eventalign": {"-q": "min-mapq", "-n": "print-read-names"},
    "resquiggle": {},
    "meth-freq": {"-i": "input"},
    "freq-merge": {},
    "fast5-check": {},
}  # fmt: skip
#: Fields whose names are not those of their options.
_FIELDS = {
    "directory": "directories", "sequencing_summary": "summaries", "summary_fofn": "summary_lists",
    "min_mapping_quality": "min_mapq", "q": "min_mapq", "skip_slow_idx": "skip_slow5_idx", "input": "calls",
}  # fmt: skip


def parsed(line: str) -> Any:
    _, name, *words = shlex.split(line.split(" > ")[0])
    command = f5py.get_command(click.Context(f5py), name)
    assert isinstance(command, OptionsCommand), line
    return options_from(command.options, command.given(command.make_context(name, words)), GivenFiles())


def meaning(line: str) -> dict[str, str | bool]:
    """Options that a line names and their values, as getopt reads it."""
    _, name, *words = shlex.split(line.split(" > ")[0])
    if name == "index" and "-v" not in words:
        words = [word for word in words if word != "--verbose"]
    short = _SHORT.replace("c", "c:") if name == "call-methylation" else _SHORT
    found, positional = gnu_getopt(words, short, _LONG)
    names = _SHORT_NAMES[""] | _SHORT_NAMES[name]
    options: dict[str, str | bool] = {}
    for spelled, value in found:
        long = names.get(spelled, spelled.removeprefix("--"))
        options[long.replace("-", "_")] = value if f"{long}=" in _LONG else True
    return options | {str(i): value for i, value in enumerate(positional)}


def same(ours: Any, theirs: str | bool) -> bool:
    """Return whether a value is what a word says."""
    if isinstance(ours, tuple):
        return theirs in ours
    if isinstance(ours, bool):
        return ours == (theirs in (True, "yes", "y"))
    if isinstance(ours, int | float) and isinstance(theirs, str):
        unit = {"K": 1e3, "M": 1e6, "G": 1e9}.get(theirs[-1], 1)
        return ours == float(theirs.rstrip("KMG")) * unit
    return ours == theirs


IN_SCOPE = [
    line
    for line in LINES
    if line.split()[1] not in ELSEWHERE
    and not line.startswith(TRAIN)
    and not any(word in line for word in (*REFUSED, "--version"))
]


def test_the_list_is_whole():
    assert len(LINES) == 79
    assert len(IN_SCOPE) == 79 - 3 - 6 - 1


@pytest.mark.parametrize("line", IN_SCOPE)
def test_meaning(line: str):
    options = parsed(line)
    for name, value in meaning(line).items():
        if name == "profile":
            continue  # its values are the options then
        if name.isdigit():
            assert any(value == one or (isinstance(one, tuple) and value in one) for one in vars(options).values())
        elif name == "verbose":
            assert options.verbose == 1
        elif name == "modbam_output_name":
            assert options.modbam_output_name == value
        else:
            assert same(getattr(options, _FIELDS.get(name, name)), value), name


@pytest.mark.parametrize("line", [line for line in LINES if line.split()[1] in ELSEWHERE])
def test_other_commands(line: str):
    with pytest.raises(UsageError, match=f"^{line.split()[1]}: not a command of f5py; "):
        parsed(line)


def test_train():
    (line,) = (line for line in LINES if line.startswith(TRAIN))
    with pytest.raises(UsageError, match="-d is not possible: there is one model; name its file with -o"):
        parsed(line)
    options = parsed(line.replace("-d out", "-o out.model"))
    assert (options.start, options.train_kmers, options.threads, options.output) == ("m", "all", 8, "out.model")


@pytest.mark.parametrize("line", [line for line in LINES if any(word in line for word in REFUSED)])
def test_refused(line: str):
    says = next(says for word, says in REFUSED.items() if word in line)

    def run() -> None:
        from f5py.commands.call_methylation import check_options

        check_options(parsed(line))

    with pytest.raises(UsageError, match=says):
        run()


@pytest.mark.parametrize("name", ["--print-raw", "--write-dump", "--read-dump"])
def test_no_is_accepted_for_what_is_not_there(name: str):
    assert not getattr(parsed(f"f5c eventalign -b b -g g {name}=no"), name[2:].replace("-", "_"))


# The same lines, run on real reads in the place of the users' files


@pytest.fixture(scope="module")
def places(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with reads, index and alignments of each kind, and files that command lines name."""
    folder = tmp_path_factory.mktemp("places")
    found = {"folder": folder, "shared": shared_data}
    sets = {"dna": "ecoli_r94", "r10": "r10_wga", "rna002": "rna002_sequin", "rna004": "rna004_lacz"}
    for kind, name in sets.items():
        source, target = shared_data / name, folder / kind
        target.mkdir()
        reads = "reads.fasta" if kind == "dna" else "reads.fastq"
        blow5 = source / ("formats/reads.blow5" if kind == "dna" else "reads.blow5")
        bam = "reads8.bam" if kind == "dna" else "reads.bam"
        files = {"reads": reads, "reads.bam": bam, "reads.bam.bai": f"{bam}.bai", "ref.fa": "ref.fa"}
        for link, path in [*((link, source / file) for link, file in files.items()), ("reads.blow5", blow5)]:
            (target / link).write_bytes(path.read_bytes())
        assert run_command("index", "--slow5", target / "reads.blow5", target / "reads") == 0
        found[kind] = target
    for name in ("r9.4_450bps.nucleotide.6mer", "r9.4_450bps.cpg.6mer", "r9.4_70bps_rna.nucleotide.5mer"):
        (folder / name).write_bytes(gzip.decompress((shared_data.parent / "models" / f"{name}.tsv.gz").read_bytes()))
    model = shared_data.parent / "models" / "rna004_130bps.nucleotide.5mer.f5c.model.gz"
    (folder / "rna004.5mer").write_bytes(gzip.decompress(model.read_bytes()))
    (folder / "calls.tsv").write_bytes(gzip.decompress((shared_data / "ecoli_r94/expected/meth.tsv.gz").read_bytes()))
    fast5 = list_kind(str(shared_data / "ecoli_r94/fast5"), "fast5")
    found_names = zip(fast5, scan_fast5(fast5, 1), strict=True)
    lines = [f"{Path(file).name}\t{name}\n" for file, names in found_names for name in names]
    (folder / "summary.txt").write_text("filename\tread_id\n" + "".join(lines))
    return found


def on_real_reads(options: Any, places: dict[str, Path], out: Path) -> Any:
    """Put real files in the place of those that options name, and no more threads than there are."""
    folder, shared = places["folder"], places["shared"]
    rna = bool(getattr(options, "rna", False)) or getattr(options, "pore", None) == "rna004"
    model = getattr(options, "kmer_model", None)
    if rna:
        kind = "rna004" if options.pore == "rna004" or model is not None else "rna002"
    else:
        kind = "r10" if getattr(options, "pore", None) == "r10" else "dna"
    files = {
        "reads": places[kind] / "reads",
        "bam": places[kind] / "reads.bam",
        "genome": places[kind] / "ref.fa",
        "slow5": (str(places[kind] / "reads.blow5"),),
        "signals": (str(places[kind] / "reads.blow5"),),
        "kmer_model": folder / ("rna004.5mer" if rna else "r9.4_450bps.nucleotide.6mer"),
        "meth_model": folder / "r9.4_450bps.cpg.6mer",
        "output": out / f"results{Path(getattr(options, 'output', None) or '').suffix}",
        "summary": out / "summary.txt",
        "skip_ultra": out / "ultra.bam",
        "modbam_output_name": out / "calls.bam",
        "window": (f"{(places[kind] / 'ref.fa').read_text().split()[0][1:]}:1,000-200,000",),
        "calls": (str(folder / "calls.tsv"),),
        "directories": (str(shared / "ecoli_r94" / "fast5"),),
        "summaries": (str(folder / "summary.txt"),),
        "tables": (str(shared / "ecoli_r94/expected/freq.tsv"),) * 2,
    }
    named = {field.name for field in fields(options)} & files.keys()
    changes: dict[str, Any] = {}
    for name in named:
        if (name == "output" and options.output is not None) or getattr(options, name) not in (None, (), "-"):
            changes[name] = files[name] if isinstance(files[name], tuple) else str(files[name])
    if "modbam_output_name" in changes:
        changes["output"] = "-"
    if isinstance(options, IndexOptions):
        copy = out / "reads.fasta"
        copy.write_bytes((places["dna"] / "reads").read_bytes())
        changes["reads"] = (str(copy),)
    if hasattr(options, "threads"):
        changes |= {"threads": 2, "iop": 1 if isinstance(options, IndexOptions) else None}
    return replace(options, **changes)


# --watch does not end by itself; tests/runs/parts has tests of it
RUN = [line for line in IN_SCOPE if "--profile-cpu" not in line and "--watch" not in line]


@pytest.mark.shared
@pytest.mark.parametrize("line", RUN)
def test_lines_run(line: str, places: dict[str, Path], tmp_path: Path):
    options = on_real_reads(parsed(line), places, tmp_path)
    name = line.split()[1].replace("-", "_")
    engine = import_module(f"f5py.commands.{'meth_freq' if name == 'freq_merge' else name}")
    run = {"meth_freq": "write_frequency_file", "freq_merge": "merge_frequency_files"}.get(name, "run")
    getattr(engine, run)(options)
    made = ("results", "calls.bam", "reads.fasta.index")
    results = [path for path in tmp_path.iterdir() if path.name.startswith(made)]
    assert results
    assert all(path.stat().st_size > 1000 or path.suffix in (".readdb", ".gzi", ".bai") for path in results)
