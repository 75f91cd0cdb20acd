"""Compare the outputs of some forty command lines with those of an earlier version, byte by byte.

    python benchmarks/same_bytes.py ../shared/data                    # against results/same_bytes.json
    python benchmarks/same_bytes.py ../shared/data --python OLD/.venv/bin/python --output before.json
    python benchmarks/same_bytes.py ../shared/data --against before.json

Every output format is written: for R9, R10, RNA002 and RNA004, in one run, in parts, and resumed after a part. Of a
report only counts and distributions are compared: it holds times and versions. A change of behavior that is meant
shows here too; record it with ``--output benchmarks/results/same_bytes.json`` and say so in the commit.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXPECTED = HERE / "results" / "same_bytes.json"
#: Libraries whose version is part of the bytes of some file.
LIBRARIES = ("numpy", "pyarrow", "pysam", "h5py")

R9 = "-b r9/reads.bam -g r9/ref.fa"
R9_SLOW5 = f"{R9} -r r9/reads.fasta --slow5 r9/formats/reads.blow5"
R9_POD5 = f"{R9} -r r9/reads.fasta --pod5 r9/formats/reads.pod5"
R9_8 = "-b r9/reads8.bam -g r9/ref.fa -r r9/reads.fasta --slow5 r9/formats/reads.blow5"
R10 = "-b r10/reads.bam -g r10/ref.fa -r r10/reads.fastq --slow5 r10/reads.blow5"
RNA002 = "-b rna002/reads.bam -g rna002/ref.fa -r rna002/reads.fastq --slow5 rna002/reads.blow5"
RNA004 = "-b rna004/reads.bam -g rna004/ref.fa -r rna004/reads.fastq"
CALL, EVENTS, MOVES = "call-methylation", "eventalign", "resquiggle"
WINDOW = "-w NC_000913.3_500001_760000:60000-90000"

#: Name of a case: its command lines. Each case runs in a folder of its own, and what it leaves there is compared.
CASES: dict[str, list[str]] = {
    "calls": [f"{CALL} {R9_SLOW5}"],
    "calls from POD5, old layout": [f"{CALL} {R9_POD5} --meth-out-version 1 -K 20 -o o.tsv"],
    "calls from fast5 with an index": [
        "index -d r9/fast5 r9/reads.fasta",
        f"{CALL} {R9} -r r9/reads.fasta -o o.tsv.gz --failed-reads failed.tsv",
    ],
    "calls from bases in the alignments": [f"{CALL} {R9} --slow5 r9/formats/reads.blow5 --secondary yes -o o.tsv"],
    "calls as Parquet": [f"{CALL} {R9_SLOW5} -o o.parquet"],
    "calls of three motifs": [f"{CALL} {R9_SLOW5} -q cpg,gpc,dam -o o.tsv --modbam o.bam"],
    "calls of single sites": [f"{CALL} {R9_SLOW5} --per-site -o o.tsv -t 1"],
    "calls in windows": [f"{CALL} {R9_SLOW5} {WINDOW} -o o.tsv --modbam o.bam --bedmethyl o.bed"],
    "calls clipped to a window": [f"{CALL} {R9_SLOW5} {WINDOW} --window-mode clip -o o.parquet"],
    "everything of call-methylation": [
        f"{CALL} {R9_SLOW5} -o o.tsv --modbam o.bam --bedmethyl o.bed.gz --report o.json --failed-reads f.tsv "
        "--skip-ultra u.bam --ultra-thresh 8000"
    ],
    "modBAM of the reference": [f"{CALL} {R9_SLOW5} --modbam-style reference --prior 0.3 -o o.bam"],
    "modBAM merged": [
        f"{CALL} {R9_SLOW5} -q gpc -o gpc.bam",
        f"{CALL} -b gpc.bam -g r9/ref.fa --slow5 r9/formats/reads.blow5 --merge-tags -o both.bam",
    ],
    "bigWig and bedGraph": [
        f"{CALL} {R9_SLOW5} -o o.bw",
        f"{CALL} {R9_SLOW5} --combine-strands --threshold-per-site -o o.bedgraph",
    ],
    "stages among the calls": [
        f"{CALL} {R9_8} --print-events yes --print-banded-aln yes --print-scaling yes -o o.tsv",
    ],
    "calls in three parts": [
        f"{CALL} {R9_SLOW5} -o o.tsv --modbam o.bam --bedmethyl o.bed --failed-reads f.tsv --report o.json "
        "--skip-ultra u.bam --ultra-thresh 8000 --plan plan --partitions 3",
        "run-part plan 1", "run-part plan 0 2", "finish plan --remove",
    ],
    "Parquet of calls in parts": [f"{CALL} {R9_SLOW5} -o o.parquet --plan plan --partitions 4 --engine local"],
    "calls resumed": [f"{CALL} {R9_SLOW5} -o o.tsv.gz --bedmethyl o.bed.gz --resume"],
    "frequencies": [
        f"{CALL} {R9_SLOW5} -o o.tsv", "meth-freq -i o.tsv -o freq.tsv", "meth-freq -s -i o.tsv -o split.parquet",
        "meth-freq --bedmethyl -i o.tsv -o o.bed", "freq-merge -o merged.tsv freq.tsv freq.tsv",
    ],
    "events": [f"{EVENTS} {R9_8}"],
    "events by name, scaled, with samples": [
        f"{EVENTS} {R9_8} --print-read-names --scale-events --signal-index --samples -o o.tsv.gz --summary s.tsv"
    ],
    "events collapsed": [f"{EVENTS} {R9_SLOW5} --collapse-events --min-mapq 0 -o o.tsv --failed-reads f.tsv"],
    "events as Parquet": [f"{EVENTS} {R9_8} --signal-index -o o.parquet --summary s.tsv"],
    "events as SAM": [f"{EVENTS} {R9_8} --sam --sam-out-version 1 -o o.sam", f"{EVENTS} {R9_8} --sam -o o2.sam"],
    "events as BAM": [f"{EVENTS} {R9_SLOW5} -o o.bam --report o.json"],
    "events as PAF": [f"{EVENTS} {R9_SLOW5} -o o.paf"],
    "events for m6anet": [f"{EVENTS} {RNA002} --rna --m6anet -o o.tsv", f"{EVENTS} {RNA002} --rna --m6anet-json m6"],
    "events in parts": [
        f"{EVENTS} {R9_8} -o o.tsv --summary s.tsv --failed-reads f.tsv --plan plan --partitions 3",
        "run-part plan", "finish plan --remove",
    ],
    "Parquet of events resumed": [f"{EVENTS} {R9_8} -o o.parquet --summary s.tsv --resume"],
    "BAM of events in parts": [f"{EVENTS} {R9_SLOW5} -o o.bam --plan plan --partitions 3 --engine local"],
    "m6anet in parts": [f"{EVENTS} {RNA002} --rna --m6anet-json m6 --plan plan --partitions 2 --engine local"],
    "moves": [f"{MOVES} r9/reads.fasta r9/formats/reads.blow5 -o o.tsv --failed-reads f.tsv"],
    "moves as PAF": [f"{MOVES} -c r9/reads.fasta r9/formats/reads.pod5 -o o.paf.gz"],
    "moves resumed": [f"{MOVES} r9/reads.fasta r9/formats/reads.blow5 -o o.tsv --failed-reads f.tsv --resume"],
    "R10 calls": [f"{CALL} {R10} -o o.tsv --modbam o.bam"],
    "R10 accurate calls": [f"{CALL} {R10} --accurate --per-site -o o.tsv --modbam o.bam"],
    "R10 events": [f"{EVENTS} {R10} --collapse-events -o o.tsv --summary s.tsv"],
    "R10 moves": [f"{MOVES} -c r10/reads.fastq r10/reads.blow5 -o o.paf"],
    "RNA002 events": [f"{EVENTS} {RNA002} --rna --print-read-names --signal-index -o o.tsv --summary s.tsv"],
    "RNA002 moves": [f"{MOVES} --rna rna002/reads.fastq rna002/reads.blow5 -o o.tsv"],
    "RNA004 events": [f"{EVENTS} {RNA004} --pod5 rna004/reads.pod5 --rna --print-read-names -o o.tsv"],
    "RNA004 PAF": [f"{EVENTS} {RNA004} --slow5 rna004/reads.blow5 --rna --paf -o o.paf --failed-reads f.tsv"],
    "RNA004 m6anet": [f"{EVENTS} {RNA004} --slow5 rna004/reads.blow5 --rna --m6anet-json m6 --m6anet-min-reads 1"],
}  # fmt: skip


def linked_data(data: Path, folder: Path) -> None:
    """Put the read sets into a folder under short names; indexes are made beside the copies."""
    names = {"r9": "ecoli_r94", "r10": "r10_wga", "rna002": "rna002_sequin", "rna004": "rna004_lacz"}
    for short, name in names.items():
        shutil.copytree(data / name, folder / short, ignore=shutil.ignore_patterns("expected"), dirs_exist_ok=True)
        for path in (folder / short).rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        (folder / short).chmod(0o755)


def digests(folder: Path) -> Iterator[tuple[str, str]]:
    """List the files below a folder, with a digest of each."""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.relative_to(folder).parts[0] == "plan":
            continue  # what is kept of parts has times and names of machines
        content = path.read_bytes()
        if path.suffix == ".json" and path.parent == folder:
            run = json.loads(content)["run"]
            kept = {key: value for key, value in run.items() if key in ("counts", "distributions")}
            content = json.dumps(kept, sort_keys=True).encode()
        yield str(path.relative_to(folder)), hashlib.sha256(content).hexdigest()[:32]


def run_case(python: list[str], lines: list[str], data: Path, folder: Path) -> dict[str, str]:
    """Run the command lines of a case; return digests of their output and files."""
    folder.mkdir()
    for short in ("r9", "r10", "rna002", "rna004"):
        (folder / short).symlink_to(data / short)
    found = {}
    for number, line in enumerate(lines):
        done = subprocess.run(
            [*python, "-m", "f5py", *shlex.split(line)], cwd=folder, capture_output=True, check=False,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if done.returncode:
            print(f"f5py {line}\n{done.stderr.decode()}", file=sys.stderr)
        found[f"status {number}"] = str(done.returncode)
        if done.stdout:
            found[f"stdout {number}"] = hashlib.sha256(done.stdout).hexdigest()[:32]
    found.update(digests(folder))
    shutil.rmtree(folder)
    return found


def versions(python: list[str]) -> dict[str, str]:
    """Versions of the other packages that the bytes depend on."""
    code = (
        "import json, platform, sys, zlib; from importlib.metadata import version as v; "
        f"print(json.dumps({{'machine': platform.machine(), 'zlib': zlib.ZLIB_RUNTIME_VERSION, "
        f"**{{name: v(name) for name in {LIBRARIES!r}}}}}))"
    )
    return dict(json.loads(subprocess.run([*python, "-c", code], capture_output=True, check=True).stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder of the read sets")
    parser.add_argument("--python", default=sys.executable, help="interpreter that has the f5py to run")
    parser.add_argument("--against", type=Path, default=EXPECTED, help="digests to compare with")
    parser.add_argument("--output", type=Path, help="write the digests instead of comparing them")
    parser.add_argument("-k", "--only", default="", help="cases with this word in the name")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="cases run at the same time")
    options = parser.parse_args()
    python = [options.python]
    cases = {name: lines for name, lines in CASES.items() if options.only in name}
    with tempfile.TemporaryDirectory(prefix="f5py-same-") as name:
        folder = Path(name)
        linked_data(options.data.resolve(), folder)
        with ThreadPoolExecutor(options.jobs) as pool:
            results = pool.map(
                lambda case: run_case(python, case[1][1], folder, folder / f"case{case[0]}"), enumerate(cases.items())
            )
            found = dict(zip(cases, results, strict=True))
    if options.output is not None:
        about = {"versions": versions(python), "cases": found}
        options.output.write_text(json.dumps(about, indent=1) + "\n")
        return 0
    expected = json.loads(options.against.read_text())
    if (now := versions(python)) != expected["versions"]:
        print(f"recorded with {expected['versions']}, now {now}: compressed files and Parquet may differ for that")
    differing = 0
    for case, files in found.items():
        before = expected["cases"].get(case, {})
        for file in sorted(before.keys() | files.keys()):
            if before.get(file) != files.get(file):
                differing += 1
                print(f"{case}: {file}: {before.get(file, 'was not there')} -> {files.get(file, 'is missing')}")
    n_lines, n_files = sum(map(len, cases.values())), sum(map(len, found.values()))
    print(f"{len(found)} cases, {n_lines} command lines, {n_files} results; {differing} differ")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
