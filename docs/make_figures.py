"""Draw the figures of the documentation into docs/figures. Needs f5py with the extra plot, and Chromium for pages.

python docs/make_figures.py

The reads are simulated, but for the locus of the tutorial on archived reads, which is drawn if ../shared/data is there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import pysam
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from PIL import Image

import f5py
from f5py.commands.plot import compute
from f5py.options.plot_commands import PlotOptions
from f5py.plotting.data import PlotData

FIGURES = Path(__file__).resolve().parent / "figures"
_BLUE, _RED, _ORANGE, _GREY = "#2f6db3", "#c2453a", "#e08a1e", "#8895a3"
_BAND = 100
_BROWSER = shutil.which("chromium")
_ECOLI = FIGURES.parents[2] / "shared" / "data" / "ecoli_r94"
matplotlib.use("agg")
matplotlib.rcParams |= {"svg.hashsalt": "f5py", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}


def save(figure: Figure, name: str) -> None:
    """Write a figure that lies on a white ground, as pages may be dark."""
    figure.savefig(FIGURES / name, metadata={"Date": None}, facecolor="white", bbox_inches="tight", pad_inches=0.1)


def one_read() -> PlotData:
    """Simulate a read of which 600 k-mers are aligned."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        f5py.simulate(output=data, genome_length=3_000, n_reads=1, median_length=2_500, length_sigma=0, seed=11)
        f5py.index(data / "reads.fastq", directories=data / "fast5")
        name = (data / "reads.fastq").read_text().split()[0][1:]
        return compute(PlotOptions(read=name, reads=str(data / "reads.fastq"), window="101-700", output=""))


def events(data: PlotData) -> None:
    """Draw samples, the events found in them, and the k-mers that these are aligned to."""
    n = 14
    end = data.kmer_end[n] - data.first_sample
    figure = Figure(figsize=(9, 3.2))
    axes = figure.add_subplot()
    axes.plot(np.arange(end) + 0.5, data.current[:end], color="#b3bcc6", linewidth=0.8, label="samples")
    start = data.event_start - data.first_sample
    mine = start < end
    stop = start + data.event_length
    axes.hlines(data.event_mean[mine], start[mine], stop[mine], color=_BLUE, linewidth=2.5, label="events")
    here = np.flatnonzero(~data.skipped[: n + 1])
    left, right = data.kmer_start[here] - data.first_sample, data.kmer_end[here] - data.first_sample
    axes.hlines(data.level[here], left, right, color=_ORANGE, linewidth=1.2, label="level of the pore model")
    top = axes.get_ylim()[1]
    for i, (low, high) in enumerate(zip(left, right, strict=True)):
        axes.axvspan(low, high, color="#f1f4f7" if i % 2 else "white", zorder=-1)
        kmer = data.kmers[here[i]].tobytes().decode()
        axes.text((low + high) / 2, top + 2, kmer, ha="center", va="bottom", size=8, rotation=90, family="monospace")
    axes.set(xlim=(0, end), xlabel="sample", ylabel="current (pA)")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), ncols=3, frameon=False)
    save(figure, "events.svg")


def band(data: PlotData) -> None:
    """Draw the alignment's path through events and k-mers, and the band around it."""
    aligned = data.event_kmer >= 0
    event = np.arange(len(data.event_kmer))[aligned]
    kmer = data.event_kmer[aligned]
    figure = Figure(figsize=(9, 3.6))
    axes = figure.add_subplot()
    # The band goes where its path has been; it is shown for every eighth anti-diagonal.
    diagonal = event + kmer
    center = np.interp(np.arange(0, diagonal[-1], 1), diagonal, event)
    smooth = np.convolve(np.pad(center, 30, mode="edge"), np.full(61, 1 / 61), "valid")
    for d in range(0, len(smooth), 8):
        low, high = smooth[d] - _BAND / 2, smooth[d] + _BAND / 2
        axes.plot([low, high], [d - low, d - high], color="#cfe0f2", linewidth=1, zorder=1)
    axes.plot(event, kmer, color=_RED, linewidth=1.5, zorder=2, label="alignment")
    axes.plot([], [], color="#cfe0f2", linewidth=6, label="band: 100 cells on every anti-diagonal")
    axes.set(xlim=(0, event[-1]), ylim=(kmer[-1], 0), xlabel="event", ylabel="k-mer of the read")
    axes.legend(loc="upper right", frameon=False)
    save(figure, "band.svg")


def hidden_markov_model() -> None:
    """States and transitions, as f5py.core.hmm has them."""
    figure = Figure(figsize=(9, 4))
    axes = figure.add_subplot()
    columns = {"j": 1.0, "j + 1": 4.2, "j + 2": 7.4}
    rows = {"M": 3.2, "B": 1.7, "K": 0.2}
    colors = {"M": _BLUE, "B": _RED, "K": _GREY}

    def arrow(start: tuple[float, float], end: tuple[float, float], words: str, bend: float, **text: Any) -> None:
        axes.annotate(
            "", end, start,
            arrowprops={"arrowstyle": "-|>", "connectionstyle": f"arc3,rad={bend}", "shrinkA": 20, "shrinkB": 20,
                        "color": "#44515e", "linewidth": 1},
        )  # fmt: skip
        x, y = (start[0] + end[0]) / 2, (start[1] + end[1]) / 2
        place = {"x": x + text.pop("dx", 0), "y": y + text.pop("dy", 0)}
        axes.text(s=words, ha="center", va="center", fontsize=8, color="#44515e", **place)

    places = list(columns.values())
    for here, there in pairwise(places):
        arrow((here, rows["M"]), (there, rows["M"]), "step", 0, dy=0.13)
        arrow((here, rows["M"]), (there, rows["K"]), "skip .0025", 0, dx=1.05, dy=-0.5)
        arrow((here, rows["K"]), (there, rows["K"]), "skip again .3", 0, dy=-0.14)
        arrow((here, rows["K"]), (there, rows["M"]), ".7", 0, dx=-0.95, dy=-0.75)
        arrow((here, rows["B"]), (there, rows["M"]), ".333", 0, dx=-0.35, dy=0.02)
    for x in places:
        arrow((x - 0.05, rows["M"]), (x - 0.05, rows["B"]), ".001", 0.25, dx=-0.38)
        arrow((x + 0.05, rows["B"]), (x + 0.05, rows["M"]), ".333", 0.25, dx=0.38, dy=-0.35)
        _loop(axes, x, rows["M"], "stay")
    for name, x in columns.items():
        for state, y in rows.items():
            axes.add_patch(Circle((x, y), 0.27, facecolor=colors[state], edgecolor="none", zorder=5))
            axes.text(x, y, state, color="white", ha="center", va="center", fontweight="bold", zorder=6)
        axes.text(x, 4.25, f"k-mer {name}", ha="center", fontsize=10)
    axes.set(xlim=(0.2, 8.2), ylim=(-0.25, 4.45), aspect="equal")
    axes.axis("off")
    save(figure, "hmm.svg")


def pictures() -> None:
    """Draw with plot and plot-region."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # the report has short names of files
        data = Path("data")
        f5py.simulate(output=data, genome_length=3_000, n_reads=40, median_length=1_500, length_sigma=0.4, seed=3)
        f5py.index(data / "reads.fastq", directories=data / "fast5")
        given = {"reads": data / "reads.fastq", "bam": data / "reads.bam", "genome": data / "ref.fa"}
        report = data / "report.html"
        f5py.call_methylation(**given, output=data / "calls.tsv", modbam=data / "calls.bam", report=report, batchsize=8)
        contig = (data / "ref.fa").read_text().split()[0][1:]
        f5py.plot_region(bam=data / "calls.bam", window=f"{contig}:1-3000", output=FIGURES / "locus.png")
        with pysam.AlignmentFile(str(data / "calls.bam")) as records:
            middle = next(one for one in records if one.reference_start < 1_000 < one.reference_end - 200)
        window = f"{contig}:1,001-1,060"
        f5py.plot(middle.query_name, **given, window=window, output=FIGURES / "read.png")
        page(report, "report.png", 1100, 1245)
        os.chdir(FIGURES)


def training() -> None:
    """Draw what train reports of the reads of its tutorial."""
    with tempfile.TemporaryDirectory() as folder:
        controls = []
        for seed, share in ((1, 0.0), (2, 1.0)):
            data = Path(folder) / str(seed)
            genome = {"genome_length": 100_000} if seed == 1 else {"reference": Path(folder) / "1" / "ref.fa"}
            f5py.simulate(
                output=data, **genome, coverage=4, methylation="per-read", methylated_reads=share, seed=seed,
            )  # fmt: skip
            controls.append(data / "reads.bam")
        f5py.train(
            unmethylated=controls[:1], methylated=controls[1:], genome=Path(folder) / "1" / "ref.fa", fast5=folder,
            start="r9.4_450bps.nucleotide.6mer", output=Path(folder) / "model", report=Path(folder) / "report.html",
        )  # fmt: skip
        page(Path(folder) / "report.html", "training.png", 1100, 1240)


def archive() -> None:
    """Draw the place with most of the E. coli reads."""
    with tempfile.TemporaryDirectory() as folder:
        calls = Path(folder) / "calls.bam"
        reads = Path(folder) / "reads.fasta"
        shutil.copyfile(_ECOLI / "reads.fasta", reads)
        f5py.index(reads, directories=_ECOLI / "fast5")
        f5py.call_methylation(
            reads=reads,
            bam=_ECOLI / "reads.bam",
            genome=_ECOLI / "ref.fa",
            output=Path(folder) / "calls.tsv",
            modbam=calls,
        )
        f5py.plot_region(bam=calls, window="NC_000913.3_500001_760000:229000-230500", output=FIGURES / "locus-r9.png")


def page(path: Path, name: str, width: int, height: int) -> None:
    """Take a picture of the upper part of a page."""
    if _BROWSER is None:
        print(f"{name}: not drawn, as there is no chromium")
        return
    options = ["--headless=new", "--no-sandbox", "--hide-scrollbars", f"--window-size={width},{height}"]
    with tempfile.TemporaryDirectory() as profile:
        where = [f"--user-data-dir={profile}", f"--screenshot={FIGURES / name}", path.resolve().as_uri()]
        subprocess.run([_BROWSER, *options, *where], check=True, capture_output=True)


def shrink() -> None:
    """Give the pictures 64 colors, which is all they need."""
    for path in FIGURES.glob("*.png"):
        with Image.open(path) as picture:
            few = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
        few.save(path, optimize=True)


def _loop(axes: Axes, x: float, y: float, words: str) -> None:
    """Draw an arrow from a state to itself."""
    axes.annotate(
        "", (x + 0.13, y + 0.2), (x - 0.13, y + 0.2),
        arrowprops={"arrowstyle": "-|>", "connectionstyle": "arc3,rad=-1.8", "color": "#44515e", "linewidth": 1},
    )  # fmt: skip
    axes.text(x, y + 0.62, words, ha="center", va="center", fontsize=8, color="#44515e")


def main() -> None:
    FIGURES.mkdir(exist_ok=True)
    data = one_read()
    events(data)
    band(data)
    hidden_markov_model()
    pictures()
    training()
    if _ECOLI.is_dir():
        archive()
    shrink()


if __name__ == "__main__":
    main()
