"""Write the tables of options in README.md and docs/ from their declarations; with --check only compare.

A table stands between the lines ``<!-- options: COMMAND -->`` and ``<!-- end of options -->``.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from f5py.core import options
from f5py.core.options import Group, Option, declarations

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = {
    "index": options.IndexOptions,
    "call-methylation": options.CallOptions,
    "meth-freq": options.FrequencyOptions,
    "eventalign": options.EventalignOptions,
    "resquiggle": options.ResquiggleOptions,
    "freq-merge": options.MergeOptions,
    "fast5-check": options.CheckOptions,
    "plot": options.PlotOptions,
    "simulate": options.SimulateOptions,
    "demo": options.DemoOptions,
}
#: Where the documents explain an option, by field; relative to docs/.
LINKS = {
    "profile": "usage.md#profiles",
    "pore": "usage.md#chemistries",
    "rna": "usage.md#chemistries",
    "kmer_model": "formats.md#pore-models",
    "reads": "usage.md#reads-without-an-index",
    "kmer_view": "usage.md#m6anet-and-xpore",
    "m6anet_json": "usage.md#m6anet-and-xpore",
    "failed_reads": "formats.md#failed-reads",
    "per_site": "usage.md#calls-of-single-sites",
    "motif": "usage.md#motifs",
    "modbam": "formats.md#modbam",
    "bedmethyl": "formats.md#bedmethyl",
    "output_format": "formats.md#parquet",
    "report": "formats.md#run-report",
    "hard_clips": "differences-from-f5c.md#numbers",
    "summary": "formats.md#summary",
    "paf": "formats.md#paf-and-sam",
    "sam": "formats.md#paf-and-sam",
}
_TABLE = re.compile(r"(<!-- options: (\S+) -->\n).*?(<!-- end of options -->)", re.DOTALL)
_TITLES = "| option | default | meaning |\n|---|---|---|\n"


def table(command: str, to_docs: str) -> str:
    """The tables of a command's options, group by group; `to_docs` leads from the document to docs/."""
    groups = []
    for group in Group:
        rows = [
            _row(name, option, to_docs)
            for name, option in declarations(COMMANDS[command]).items()
            if option.group is group and option.refused is None and not option.is_argument
        ]
        if group is Group.OTHER:
            rows += ["| `-V`, `--version` | | print the version |", "| `-h`, `--help` | | show the help |"]
        if rows:
            note = ", not in the help" if group is Group.DEVELOPER else ""
            groups.append(f"{group.value}{note}:\n\n{_TITLES}" + "\n".join(rows) + "\n")
    return "\n" + "\n".join(groups) + "\n"


def _row(name: str, option: Option, to_docs: str) -> str:
    words = option.value_words().replace("|", " or ")
    spelled = ", ".join(f"`{spelling}`" for spelling in option.names)
    meaning = option.help[0].lower() + option.help[1:].removesuffix(".") if option.help[1].islower() else option.help
    if name in LINKS:
        meaning += f" ([more]({to_docs}{LINKS[name]}))"
    if option.aliases:
        meaning += f"; also {', '.join(f'`{alias}`' for alias in option.aliases)}"
    return f"| {spelled} {words}".rstrip() + f" | {option.default_shown() or 'off'} | {meaning.replace('|', 'or')} |"


def with_tables(path: Path) -> str:
    """The text of a document with its tables as they should be."""
    to_docs = "" if path.parent.name == "docs" else "docs/"
    return _TABLE.sub(lambda found: found[1] + table(found[2], to_docs) + found[3], path.read_text())


def main() -> int:
    """Write or compare; return the exit status."""
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    old = [path for path in documents if with_tables(path) != path.read_text()]
    if "--check" in sys.argv:
        for path in old:
            print(f"{path}: tables of options are not those of the declarations; run python docs/make_tables.py")
        return int(bool(old))
    for path in old:
        path.write_text(with_tables(path))
    return 0


if __name__ == "__main__":
    sys.exit(main())
