"""Check what is in a wheel: every file of the package and of kernels/, and nothing that does not belong there."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What must be there in any case, even if it were missing from the checkout.
NEEDED = (
    "f5py/pore_model/data/r9.4_450bps.nucleotide.6mer.npz",
    "f5py/pore_model/data/r9.4_450bps.cpg.6mer.npz",
    "f5py/pore_model/data/NOTICE",
)


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


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: check_wheel.py WHEEL (exactly one wheel)")
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        names = {name for name in wheel.namelist() if not name.endswith("/")}
    found = problems(names)
    if found:
        sys.exit("\n".join([f"{sys.argv[1]}:", *found]))
    print(f"{Path(sys.argv[1]).name}: {len(names)} files, complete")


if __name__ == "__main__":
    main()
