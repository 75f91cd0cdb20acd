"""Check a wheel: its files are those of the package and of kernels/, and its requirements have wheels."""

from __future__ import annotations

import sys
import zipfile
from email import message_from_bytes
from itertools import product
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
#: What must be there in any case, even if it were missing from the checkout.
NEEDED = (
    "f5py/pore_model/data/r9.4_450bps.nucleotide.6mer.npz",
    "f5py/pore_model/data/r9.4_450bps.cpg.6mer.npz",
    "f5py/pore_model/data/NOTICE",
)
MACHINES = ("x86_64", "aarch64")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
_EVERYWHERE = set(product(MACHINES, PYTHONS))
#: Packages of the extra ``all``, and where they have wheels on PyPI (2026-11-27, asked with
#: `uv pip compile --only-binary :all: --python-version --python-platform`).
WHEELS = {
    **dict.fromkeys(("matplotlib", "pod5", "pyarrow", "vbz-h5py-plugin", "zstandard"), _EVERYWHERE),
    "pybigwig": {("x86_64", python) for python in PYTHONS[:-1]},
}


def files_below(folder: str, prefix: str) -> set[str]:
    """Files of the checkout, by their names in the wheel."""
    return {
        f"{prefix}/{path.relative_to(ROOT / folder)}"
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def problems(names: set[str]) -> list[str]:
    """List what is wrong with a wheel that holds the files `names`."""
    metadata = {name for name in names if name.split("/")[0].endswith(".dist-info")}
    kernels = files_below("kernels", "f5py/kernels")
    data = {name for name in names if name.split("/")[0].endswith(".data")}
    pages = {Path(name).name for name in data}
    expected = files_below("f5py", "f5py") | kernels | set(NEEDED)
    found = [f"{name}: missing" for name in sorted(expected - names)]
    found += [f"{name}: does not belong there" for name in sorted(names - expected - metadata - data)]
    manual = {Path(name).name for name in files_below("packaging/man", "man1")}
    found += [f"share/man/man1/{name}: missing" for name in sorted(manual - pages)]
    found += [f"{name}: does not belong there" for name in sorted(data) if Path(name).name not in manual]
    if not kernels:
        found.append("kernels/: is empty")
    for licence in ("LICENSE", "NOTICE"):
        if not any(name.endswith(f"/{licence}") and "/licenses/" in name for name in metadata):
            found.append(f"{licence}: missing from the licences in the metadata")
    return found


def requirement_problems(metadata: bytes) -> list[str]:
    """List where the extra ``all`` asks for a package that has no wheel, or not for one that has.

    Read from the metadata, because build backends may lose markers of pyproject.toml.
    """
    found = []
    stated = [Requirement(text) for text in message_from_bytes(metadata).get_all("Requires-Dist", [])]
    for machine, python in product(MACHINES, PYTHONS):
        here = {"platform_machine": machine, "python_version": python, "sys_platform": "linux", "extra": "all"}
        asked = {canonicalize_name(one.name) for one in stated if one.marker and one.marker.evaluate(here)}
        have_wheels = {name for name, where in WHEELS.items() if (machine, python) in where}
        where = f"METADATA: extra all, {machine}, Python {python}"
        found += [f"{where}: asks for {name}" for name in sorted(asked - have_wheels)]
        found += [f"{where}: does not ask for {name}" for name in sorted(have_wheels - asked)]
    return found


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: check_wheel.py WHEEL (exactly one wheel)")
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
        metadata = wheel.read(next(name for name in names if name.endswith(".dist-info/METADATA")))
    found = problems(names) + requirement_problems(metadata)
    if found:
        sys.exit("\n".join([f"{sys.argv[1]}:", *found]))
    print(f"{Path(sys.argv[1]).name}: {len(names)} files, complete")


if __name__ == "__main__":
    main()
