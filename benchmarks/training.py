"""Train a model of reads that follow a hidden one, and compare the two; and a round's time with eventalign's.

    python benchmarks/training.py FOLDER --pore r10 --bases 50M     # FOLDER gets the reads, some gigabytes

Writes a Markdown report to results/training_PORE.md, or where --output says.
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import f5py
from f5py.evaluation.ratios import area_under_curve
from f5py.pore_model import builtin, read_model
from f5py.pore_model.model import PoreModel, Shifts, with_methylation
from f5py.pore_model.text_file import model_text
from f5py.training.sums import plain_ranks

_STARTS = {"r9": "r9.4_450bps.nucleotide.6mer", "r10": "r10.4.1_400bps.nucleotide.9mer"}
_SHIFTS = {"r9": [0.5, 1.0, -3.5, 4.0, 0.0, -1.0], "r10": [1.0, 0.0, 0.0, 0.0, -2.0, -13.0, -10.0, -3.0, 1.0]}
#: Standard deviation between methylated k-mers, besides the shifts by place, and of plain k-mers from the start; pA.
#: Those of R10 are of the size that real reads show.
_OWN, _BIAS = {"r9": 1.0, "r10": 4.0}, {"r9": 0.0, "r10": 2.0}


def hidden_model(pore: str) -> PoreModel:
    """Make a model that differs from the start model: plain ones little, methylated ones by place and at random."""
    model = with_methylation(builtin(_STARTS[pore]), Shifts.of_places(_SHIFTS[pore]), "hidden")
    rng = np.random.default_rng(1)
    own = rng.normal(0, _OWN[pore], len(model.level_mean)).astype(np.float32)
    plain = plain_ranks(model.k, "ACGMT", "C") < 0
    own[plain] = rng.normal(0, _BIAS[pore], int(plain.sum())) if _BIAS[pore] else 0
    return PoreModel("hidden", model.k, model.alphabet, model.level_mean + own, model.level_stdv)


def timed(command: list[Any]) -> float:
    """Seconds of wall time that a command takes."""
    started = time.perf_counter()
    subprocess.run([str(word) for word in command], check=True, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def auc(folder: Path, model: Path, genome: Path, threads: int) -> float:
    """Of the calls of both controls with a model."""
    ratios = [
        f5py.call_methylation(
            bam=folder / name / "reads.bam", genome=genome, pod5=folder / name / "pod5", meth_model=model,
            threads=threads, returns="arrow",
        )["log_lik_ratio"].to_numpy()
        for name in ("m", "u")
    ]  # fmt: skip
    found = area_under_curve(np.repeat([True, False], [len(one) for one in ratios]), np.concatenate(ratios))
    assert found is not None
    return found


def errors(model: PoreModel, truth: PoreModel, n: np.ndarray) -> list[str]:
    """Rows of a table: root mean square errors by kind and number of events."""
    is_m = plain_ranks(truth.k, "ACGMT", "C") >= 0
    letters = np.arange(len(n))[:, None] // 5 ** np.arange(truth.k - 1, -1, -1) % 5
    follows = letters[:, 1:][letters[:, :-1] == 3]  # only G comes after a methylated C
    assert len(follows)
    possible = ~((letters[:, :-1] == 3) & (letters[:, 1:] != 2)).any(axis=1)
    plain_cg = ((letters[:, :-1] == 1) & (letters[:, 1:] == 2)).any(axis=1)
    possible &= ~(is_m & plain_cg)  # all sites of a control have one state
    rows = []
    for name, these in (("plain", ~is_m), ("methylated", is_m & possible)):
        for words, low, high in (("at least 100", 100, np.inf), ("1 to 99", 1, 100), ("none", 0, 1)):
            chosen = these & (n >= low) & (n < high)
            error = (model.level_mean - truth.level_mean)[chosen].astype(float)
            shown = f"{np.sqrt((error**2).mean()):.3f}" if len(error) else ""
            rows.append(f"| {name} | {words} | {len(error):,} | {shown} |")
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pore", choices=sorted(_STARTS), default="r10")
    parser.add_argument("--bases", default="50M", help="of each control")
    parser.add_argument("--reuse", action="store_true", help="take the reads that an earlier run has left in FOLDER")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--level-noise", type=float, help="of the simulated reads, if not as in real ones")
    parser.add_argument("--sample-noise", type=float)
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    n_bases = float(options.bases.rstrip("M")) * 1e6
    folder = options.folder
    folder.mkdir(exist_ok=True)
    truth = hidden_model(options.pore)
    (folder / "hidden.model").write_bytes(b"".join(model_text(truth, np.zeros(len(truth.level_mean)), "cpg", "made")))
    genome_length = int(min(n_bases / 5, 5e6))
    common: dict[str, Any] = {
        "pore": options.pore, "meth_model": folder / "hidden.model", "coverage": n_bases / genome_length,
        "methylation": "per-read", "no_read_truth": True, "force": True, "signal_format": "pod5",
        "level_noise": options.level_noise, "sample_noise": options.sample_noise,
    }  # fmt: skip
    if not options.reuse:
        f5py.simulate(output=folder / "m", genome_length=genome_length, methylated_reads=1.0, seed=1, **common)
        f5py.simulate(output=folder / "u", reference=folder / "m/ref.fa", methylated_reads=0.0, seed=2, **common)
    genome = folder / "m" / "ref.fa"
    program = [sys.executable, "-m", "f5py"]
    controls = ["--methylated", folder / "m/reads.bam", "--unmethylated", folder / "u/reads.bam", "--pod5", folder]
    wanted = ["-g", genome, "--start", _STARTS[options.pore], "-t", options.threads, "-o", folder / "trained.model"]
    whole = timed([*program, "train", *controls, *wanted, "--report", folder / "report.html"])
    one = ["-g", genome, "-t", options.threads]
    few = [*one, "--pod5", folder / "u/pod5"]
    round_seconds = timed(
        [*program, "train", "--unmethylated", folder / "u/reads.bam", *few, "--rounds", 1, "--held-out", 0,
         "-o", folder / "round.model"]
    )  # fmt: skip
    eventalign_seconds = timed([*program, "eventalign", "-b", folder / "u/reads.bam", *few, "-o", "/dev/null"])
    model = read_model(folder / "trained.model", "ACGMT")
    lines = (line for line in (folder / "trained.model").open() if not line.startswith(("#", "kmer")))
    n = np.array([int(line.rsplit("\t", 1)[1]) for line in lines])
    true_auc, our_auc = (
        auc(folder, folder / name, genome, options.threads) for name in ("hidden.model", "trained.model")
    )
    noise = "noise as in real reads"
    if options.level_noise is not None or options.sample_noise is not None:
        noise = f"level noise {options.level_noise}, sample noise {options.sample_noise} pA"
    text = "\n".join(
        [
            f"# Training, {options.pore}, {options.bases} of each control",
            "",
            f"{datetime.now(tz=UTC):%Y-%m-%d}, {platform.machine()}, {options.threads} threads, "
            f"f5py {f5py.__version__}, Python {platform.python_version()}; "
            f"simulated reads of a hidden model, start {_STARTS[options.pore]}; {noise}.",
            "",
            "| k-mers | events | number | root mean square error (pA) |",
            "|---|---|---:|---:|",
            *errors(model, truth, n),
            "",
            "| | |",
            "|---|---:|",
            f"| area under the ROC curve of CpG groups of both controls, hidden model | {true_auc:.4f} |",
            f"| area under the ROC curve of CpG groups of both controls, trained model | {our_auc:.4f} |",
            f"| training, seconds | {whole:.1f} |",
            f"| one round over the unmethylated control, seconds | {round_seconds:.1f} |",
            f"| eventalign of the same reads, seconds | {eventalign_seconds:.1f} |",
            "",
        ]
    )
    output = options.output or Path(__file__).resolve().parent / "results" / f"training_{options.pore}.md"
    output.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
