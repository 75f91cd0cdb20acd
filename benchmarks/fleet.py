"""Time that a large plan takes on a cluster: parts as events, with failures, slow machines and shared storage.

The speed of a job and the bytes of signal for a base are measured on a real run of this program here; the numbers of
the cluster are assumptions, printed with the results. All jobs that are at work share the bandwidth of the storage
evenly.
"""

from __future__ import annotations

import argparse
import heapq
import random
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from measure import measure
from report import ROOT, machine, table
from scaling import make_set


@dataclass(frozen=True)
class Cluster:
    """Machines that parts are worked on with.

    Attributes
    ----------
    n_jobs : int
        At the same time.
    speed : float
        Bases in a second of a job that storage does not slow down.
    start : float
        Seconds before a part's first read.
    bytes_per_base : float
        Of signals.
    bandwidth : float
        Bytes in a second that the storage gives all jobs together.
    failures : float
        Of a job in an hour.
    slow : float
        Standard deviation of the logarithm of a job's speed.
    """

    n_jobs: int
    speed: float
    start: float
    bytes_per_base: float
    bandwidth: float
    failures: float
    slow: float


@dataclass(frozen=True)
class Result:
    """Hours until the end, job-hours of work that was lost, parts that were worked on again, and the busy share."""

    hours: float
    lost: float
    n_again: int
    busy: float


def simulate(cluster: Cluster, n_parts: int, bases: float, seed: int) -> Result:
    """Work on parts of that many bases, the next one whenever a job is free; a part that fails is worked on again.

    Work goes on at a common pace, which is below 1 while the jobs together want more than the storage gives. So events
    are ordered by the time that they would have at full pace.
    """
    chance = random.Random(seed)
    paces = [chance.lognormvariate(0.0, cluster.slow) for _ in range(cluster.n_jobs)]
    waiting = n_parts
    events: list[tuple[float, int, bool, float]] = []
    now = wall = lost = worked = 0.0
    n_again = n_done = 0

    def begin(job: int) -> None:
        nonlocal waiting
        waiting -= 1
        seconds = cluster.start + bases / cluster.speed * paces[job]
        until_failure = chance.expovariate(cluster.failures / 3600.0) if cluster.failures else seconds + 1.0
        fails = until_failure < seconds
        heapq.heappush(events, (now + min(seconds, until_failure), job, fails, min(seconds, until_failure)))

    for job in range(min(cluster.n_jobs, n_parts)):
        begin(job)
    while n_done < n_parts:
        at, job, fails, seconds = heapq.heappop(events)
        active = len(events) + 1
        wanted = active * cluster.speed * cluster.bytes_per_base
        pace = min(1.0, cluster.bandwidth / wanted)
        wall += (at - now) / pace
        now = at
        worked += seconds
        if fails:
            lost += seconds
            n_again += 1
            waiting += 1
        else:
            n_done += 1
        if waiting:
            begin(job)
    return Result(wall / 3600.0, lost / 3600.0, n_again, worked / (now * cluster.n_jobs))


def measured(read_set: Path, threads: int, replicates: int) -> tuple[float, float, float]:
    """Bases in a second of a job, seconds before its first read, and bytes of signal for a base."""
    program, environment = [sys.executable, "-m", "f5py"], {"PYTHONPATH": str(ROOT)}
    walls, bases = [], []
    with tempfile.TemporaryDirectory() as made:
        for times in (1, replicates):
            folder = Path(made) / str(times)
            bases.append(make_set(read_set, folder, times))
            size = (folder / "reads.blow5").stat().st_size
            index = ["index", "--slow5", str(folder / "reads.blow5"), str(folder / "reads.fasta")]
            measure([*program, *index], log=folder / "log", environment=environment)
            call = [
                "call-methylation", "-r", str(folder / "reads.fasta"), "-b", str(folder / "reads.bam"), "-g",
                str(folder / "ref.fa"), "--slow5", str(folder / "reads.blow5"), "-t", str(threads), "-o",
                str(folder / "calls.tsv"), "--disable-cuda=yes",
            ]  # fmt: skip
            used = [measure([*program, *call], log=folder / "log", environment=environment) for _ in range(4)]
            walls.append(statistics.median(one.wall for one in used[1:]))
    speed = (bases[1] - bases[0]) / (walls[1] - walls[0])
    return speed, walls[0] - bases[0] / speed, size / bases[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("read_set", type=Path)
    parser.add_argument("--flow-cells", type=int, default=1000)
    parser.add_argument("--gigabases", type=float, default=100.0, help="of a flow cell")
    parser.add_argument("-j", "--jobs", type=int, default=500)
    parser.add_argument("-t", "--threads", type=int, default=2, help="of a job")
    parser.add_argument("--bandwidth", type=float, nargs="+", default=[20.0, 10.0, 5.0], help="of the storage, GB/s")
    parser.add_argument("--failures", type=float, default=0.01, help="of a job in an hour")
    parser.add_argument("--slow", type=float, default=0.15, help="deviation of the logarithm of a job's speed")
    parser.add_argument("-n", "--replicates", type=int, default=40)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "benchmarks" / "results" / "fleet.md")
    options = parser.parse_args()
    speed, start, bytes_per_base = measured(options.read_set, options.threads, options.replicates)
    total = options.flow_cells * options.gigabases * 1e9
    rows = []
    for bandwidth in options.bandwidth:
        cluster = Cluster(options.jobs, speed, start, bytes_per_base, bandwidth * 1e9, options.failures, options.slow)
        for minutes in (2, 10, 30, 120, 480):
            n_parts = max(round(total / (speed * 60 * minutes)), 1)
            results = [simulate(cluster, n_parts, total / n_parts, seed) for seed in range(3)]
            rows.append(
                [f"{bandwidth:g}", str(minutes), f"{n_parts:,}", f"{statistics.mean(one.hours for one in results):.2f}",
                 f"{statistics.mean(one.lost for one in results):.0f}",
                 f"{statistics.mean(one.n_again for one in results):.0f}",
                 f"{100 * statistics.mean(one.busy for one in results):.1f} %"]
            )  # fmt: skip
    lines = [
        "# A plan for many flow cells", "", *machine(), "",
        f"Measured here: {speed / 1e6:.2f} Mbases/s for a job of {options.threads} threads, {start:.1f} s before its "
        f"first read, {bytes_per_base:.2f} bytes of signal (BLOW5) for a base.",
        "",
        f"Assumed: {options.flow_cells:,} flow cells of {options.gigabases:g} Gbases; {options.jobs} jobs at the same "
        f"time; {options.failures:g} failures of a job in an hour, after which its part is worked on again; speeds of "
        f"the jobs that differ by {100 * options.slow:.0f} %; storage that all jobs share evenly. At full speed the "
        f"jobs want {options.jobs * speed * bytes_per_base / 1e9:.1f} GB/s. Means of three simulations.",
        "",
        *table(
            ["storage, GB/s", "a part, minutes", "parts", "hours", "job-hours lost", "parts again", "jobs busy"], rows
        ),
    ]  # fmt: skip
    options.output.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
