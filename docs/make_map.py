"""Write the list of rooms and files in map.md from the first lines of their docstrings; with --check only compare."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "f5py"
MAP = ROOT / "docs" / "map.md"
BEGIN, END = "<!-- files -->\n", "<!-- end of files -->\n"


def _title(path: Path) -> str:
    """Extract the first sentence or line of a file's docstring, or of the comment that it begins with."""
    text = path.read_text()
    if path.suffix == ".py":
        text = ast.get_docstring(ast.parse(text)) or ""
    else:
        lines = text.splitlines()
        n_comments = next((i for i, line in enumerate(lines) if not line.startswith("//")), len(lines))
        text = " ".join(line.removeprefix("//").strip() for line in lines[:n_comments])
        text = text.partition(". ")[0]
    return text.split("\n\n")[0].replace("\n", " ").rstrip(".")


def listed() -> str:
    """Make a table for every folder of the package, and for the kernels."""
    folders = sorted({path.parent for path in PACKAGE.rglob("*.py")})
    parts = []
    for folder in [*folders, ROOT / "kernels"]:
        files = sorted(path for path in folder.iterdir() if path.suffix in (".py", ".cu", ".cuh"))
        name = folder.relative_to(ROOT)
        init = folder / "__init__.py"
        parts.append(f"### `{name}/`\n\n" + (f"{_title(init)}.\n\n" if init.exists() else ""))
        rows = [f"| `{path.name}` | {_title(path)} |\n" for path in files if path != init]
        if rows:
            parts.append("| file | what |\n|---|---|\n" + "".join(rows) + "\n")
    return "".join(parts)


def main() -> int:
    """Write or compare; return the exit status."""
    old = MAP.read_text()
    begin, end = old.index(BEGIN) + len(BEGIN), old.index(END)
    new = f"{old[:begin]}\n{listed()}{old[end:]}"
    if "--check" in sys.argv:
        if new != old:
            print("docs/map.md: is not what the files are; run python docs/make_map.py")
        return int(new != old)
    MAP.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
