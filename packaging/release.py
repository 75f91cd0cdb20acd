"""Prepare, check and build a release.

    python packaging/release.py prepare 0.2.0    # put the version into all files, and the date into the changelog
    python packaging/release.py check            # all files agree; run by the tests
    python packaging/release.py checksum         # that of the recipe is the published one's
    python packaging/release.py build            # dist/ with both distributions, and the hash for the conda recipe

packaging/README.md lists all steps, and what has to be done by hand.
"""

from __future__ import annotations

import datetime
import hashlib
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_VERSION = r"\d+\.\d+\.\d+"
#: Where versions stand: a file, and the text before it.
PLACES = (
    ("f5py/__init__.py", '__version__ = "'),
    ("CITATION.cff", "\nversion: "),
    ("packaging/bioconda/meta.yaml", 'set version = "'),
    ("packaging/nextflow/f5py/callmethylation/environment.yml", "./f5py_nanopore-"),
    ("packaging/nextflow/f5py/callmethylation/tests/main.nf.test.snap", '"f5py",\n                        "'),
    ("packaging/galaxy/f5py_call_methylation.xml", '@TOOL_VERSION@">'),
    ("packaging/snakemake/call-methylation/environment.yaml", "./f5py_nanopore-"),
    ("packaging/snakemake/parts/environment.yaml", "./f5py_nanopore-"),
)
CHANGELOG = ROOT / "docs" / "changelog.md"
RECIPE = ROOT / "packaging" / "bioconda" / "meta.yaml"


def versions() -> dict[tuple[str, str], str]:
    """Read the version from each place that has one; empty where there is none."""
    found = {}
    for name, before in PLACES:
        match = re.search(re.escape(before) + f"({_VERSION})", (ROOT / name).read_text())
        found[name, before] = match[1] if match else ""
    return found


def current() -> str:
    """Return the version of the package."""
    return versions()[PLACES[0]]


def repository() -> str:
    """Return the address of the repository, empty while it has none."""
    match = re.search(r'^repository = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    return match[1] if match else ""


def problems() -> list[str]:
    """List what does not agree."""
    version = current()
    others = [(name, other) for (name, _), other in versions().items() if other != version]
    found = [f"{name}: has version {other or '?'}, not {version}" for name, other in others]
    newest = re.search(r"^## (\S+), (.+)$", CHANGELOG.read_text(), re.MULTILINE)
    if newest is None or newest[1] != version:
        found.append(f"{CHANGELOG.name}: its first heading is not that of {version}")
    return found


def prepare(version: str) -> None:
    """Put a version into all files, and today's date into the changelog."""
    if not re.fullmatch(_VERSION, version):
        sys.exit(f"{version}: is not a version such as 0.2.0")
    for name, before in PLACES:
        path = ROOT / name
        path.write_text(re.sub(f"({re.escape(before)}){_VERSION}", rf"\g<1>{version}", path.read_text()))
    today = datetime.datetime.now(tz=datetime.timezone.utc).date()
    heading = re.compile(f"^## {re.escape(version)}, .*$", re.MULTILINE)
    text, n = heading.subn(f"## {version}, {today}", CHANGELOG.read_text())
    if n != 1:
        sys.exit(f"{CHANGELOG.name}: has no heading '## {version}, not yet released'; write what has changed first")
    CHANGELOG.write_text(text)
    print(f"Look at the difference, commit it, run .ci/run, then: {sys.argv[0]} build")


def build() -> None:
    """Build from a clean checkout, and put the hash into the conda recipe."""
    check()
    if "not yet released" in CHANGELOG.read_text().split("\n## ")[1]:
        sys.exit(f"{CHANGELOG.name}: {current()} has no date; run prepare first")
    if not repository():
        sys.exit("pyproject.toml: name the address of the repository ([tool.hatch.metadata.hooks.custom])")
    if subprocess.run(["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, check=True).stdout:
        sys.exit("the checkout has changes that are not committed")
    subprocess.run([sys.executable, "-m", "build", "--outdir", "dist", "."], cwd=ROOT, check=True)
    source = ROOT / "dist" / f"f5py_nanopore-{current()}.tar.gz"
    (wheel,) = (ROOT / "dist").glob(f"f5py_nanopore-{current()}-*.whl")
    subprocess.run([sys.executable, ".ci/check_wheel.py", str(wheel)], cwd=ROOT, check=True)
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", str(source), str(wheel)], check=True)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    RECIPE.write_text(re.sub(r"sha256: \w+", f"sha256: {digest}", RECIPE.read_text()))
    print(f"{source.name}: sha256 {digest}, now in {RECIPE.relative_to(ROOT)}")
    print("Go on with packaging/README.md, 4.")


def checksum() -> None:
    """Compare the checksum in the conda recipe with the source distribution that its address leads to."""
    recipe = RECIPE.read_text()
    address = re.search(r"url: (\S.*)", recipe)
    stated = re.search(r"sha256: (\w+)", recipe)
    if address is None or stated is None:
        sys.exit(f"{RECIPE.name}: has no url or no sha256")
    url = address[1].replace("{{ version }}", current())
    with urllib.request.urlopen(url) as answer:
        found = hashlib.sha256(answer.read()).hexdigest()
    if found != stated[1]:
        sys.exit(f"{url}: has sha256 {found}, but {RECIPE.name} {stated[1]}; upload what release.py build has made")
    print(f"{url}: sha256 {found}, as in {RECIPE.name}")


def check() -> None:
    """End with a line for each problem."""
    if found := problems():
        sys.exit("\n".join(found))


def main() -> None:
    commands = {"check": check, "build": build, "checksum": checksum}
    match sys.argv[1:]:
        case ["prepare", version]:
            prepare(version)
        case [name] if name in commands:
            commands[name]()
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
