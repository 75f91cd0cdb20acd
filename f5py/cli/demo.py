"""``f5py demo``: from simulated signals to methylation frequencies, checked against the truth."""

import shlex
from collections.abc import Callable
from pathlib import Path

from f5py.options.table_commands import DemoOptions

_MARKER = ".f5py-demo"
_CALLS, _FREQUENCIES = "calls.tsv", "freq.tsv"
_MIN_CALLS = 5
_SIZE = "--genome-length 25K --coverage 30 --median-length 5K --site-rates beta:0.7:0.7"
_MIN_CORRELATION = 0.9


def run(chosen: DemoOptions, step: Callable[[str, list[str]], None]) -> None:
    """Simulate reads, index them, call methylation and compare its frequencies with the truth.

    `step` runs a command line.

    Raises `F5pyError` if a step fails, or the frequencies are not near the true ones.
    """
    from f5py.api.functions import validate
    from f5py.errors import F5pyError
    from f5py.messages import console

    place = _prepare(Path(chosen.folder), chosen.force)
    calls, frequencies = str(place / _CALLS), str(place / _FREQUENCIES)
    reads, signals = str(place / "reads.fastq"), str(place / "fast5")
    on = [] if chosen.threads is None else ["-t", str(chosen.threads)]
    step("simulate", ["-o", str(place), "--force", "--seed", str(chosen.seed), *_SIZE.split()])
    step("index", ["-d", signals, *on, reads])
    inputs = ["-r", reads, "-b", str(place / "reads.bam"), "-g", str(place / "ref.fa")]
    step("call-methylation", [*inputs, *on, "-o", calls])
    step("meth-freq", ["-i", calls, "-o", frequencies, "-s"])

    truth = str(place / "truth.tsv")
    console.note("demo", shlex.join(["f5py", "validate", frequencies, truth, "--min-coverage", str(_MIN_CALLS)]))
    found = validate(frequencies, truth, min_coverage=_MIN_CALLS, output="-")["frequencies"]["correlation"]
    if found is None or not found > _MIN_CORRELATION:
        raise F5pyError(
            f"the called frequencies do not follow the true ones (correlation "
            f"{'unknown' if found is None else f'{found:.3f}'}, "
            f"expected above {_MIN_CORRELATION}); the files are in {place}, please report this"
        )
    console.note(
        "demo",
        f"everything works: called and true frequencies correlate with {found:.3f} (expected above "
        f"{_MIN_CORRELATION}); the files are in {place}",
    )


def _prepare(place: Path, force: bool) -> Path:
    """Create the demo's folder, or reuse an earlier demo's without its results; mark it."""
    from f5py.errors import OutputFileError

    if place.exists():
        if not place.is_dir():
            raise OutputFileError(f"{place}: is not a folder; give another one")
        if not force and any(place.iterdir()) and not (place / _MARKER).exists():
            raise OutputFileError(
                f"{place}: has files that are not a demo's; give another folder, or --force to use this one"
            )
    place.mkdir(parents=True, exist_ok=True)
    (place / _MARKER).write_text("This folder was made by f5py demo, which may replace its files.\n")
    for result in (_CALLS, _FREQUENCIES):
        (place / result).unlink(missing_ok=True)
    return place
