"""The package as a user meets it: version, help, what is imported, and that the documentation names what exists."""

from __future__ import annotations

import json
import os
import pkgutil
import re
import runpy
import shlex
import subprocess
import sys
from dataclasses import fields
from importlib import metadata
from pathlib import Path

import click
import pytest

import f5py.cli
from f5py.cli.commands import GROUPS
from f5py.cli.options import OptionsCommand
from f5py.options import declarations
from f5py.options.profiles import PROFILES, Profile
from f5py.options.signal_commands import CallOptions, EventalignOptions

from .made_data import run_command
from .patience import PATIENCE

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
USAGE = ROOT / "docs" / "usage"
COMMANDS = f5py.cli.f5py.list_commands(click.Context(f5py.cli.f5py))
HEAVY = ("cupy", "h5py", "llvmlite", "numba", "numpy", "pysam", "rich")


def named_command(name: str) -> OptionsCommand:
    command = f5py.cli.f5py.get_command(click.Context(f5py.cli.f5py), name)
    assert isinstance(command, OptionsCommand)
    return command


def options_of(name: str, hidden: bool | None = None) -> dict[frozenset[str], click.Parameter]:
    """Each option's spellings and the option; only hidden or only public ones if `hidden` is given."""
    command = named_command(name)
    context = command.make_context(name, [], resilient_parsing=True)
    return {
        frozenset([*option.opts, *option.secondary_opts]): option
        for option in command.get_params(context)
        if isinstance(option, click.Option) and hidden in (None, option.hidden)
    }


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=PATIENCE, check=False)


# Version, help and imports


def test_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc|\.dev|\.post)\d+)?", f5py.__version__)
    done = run_python("-m", "f5py", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"f5py {f5py.__version__}\n", "")


def test_installed_metadata_have_the_version_and_the_command():
    try:
        distribution = metadata.distribution("f5py-nanopore")
    except metadata.PackageNotFoundError:
        pytest.skip("f5py-nanopore is not installed here, the tests run on the checkout")
    assert distribution.version == f5py.__version__
    assert [(entry.name, entry.value) for entry in distribution.entry_points] == [("f5py", "f5py.cli:main")]


def test_the_citation_names_the_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", text, re.MULTILINE)[1] == f5py.__version__
    assert f"## {f5py.__version__}" in (ROOT / "docs" / "changelog.md").read_text()


def test_python_m_f5py_shows_the_help():
    done = run_python("-m", "f5py", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: f5py [OPTIONS] COMMAND [ARGS]...")
    for name in COMMANDS:
        assert len(re.findall(rf"^  {name}  ", done.stdout, re.MULTILINE)) == 1


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_each_command(name):
    """In a fresh process, and without what makes programs start slowly."""
    program = (
        "import json, sys\n"
        "from f5py.cli import main\n"
        "try:\n"
        f"    main([{name!r}, '--help-all'])\n"
        "except SystemExit as end:\n"
        f"    print(json.dumps([end.code, sorted(set(sys.modules) & set({HEAVY!r}))]), file=sys.stderr)\n"
    )
    done = run_python("-c", program)
    assert json.loads(done.stderr) == [0, []]
    assert done.stdout.startswith(f"Usage: f5py {name} [OPTIONS]")
    declared = named_command(name).declared.values()
    aliases = {alias for option in declared for alias in option.aliases + option.foreign}
    for spellings in options_of(name, hidden=False):
        assert all(re.search(rf"(?<![\w-]){spelling}(?![\w-])", done.stdout) for spelling in spellings - aliases)


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_of_each_command(name, capsys):
    """They are shown as they are, and are understood."""
    command = named_command(name)
    assert command.examples
    assert run_command(name, "--help") == 0
    shown = capsys.readouterr().out
    for example in command.examples:
        assert f"\n  {example}\n" in shown
        program, called, *arguments = shlex.split(example)
        assert (program, called) == ("f5py", name)
        command.make_context(name, arguments)


def test_manual_pages_are_installed():
    pages = {path.name for path in (ROOT / "packaging" / "man").glob("*.1")}
    assert pages == {"f5py.1", *(f"f5py-{name}.1" for name in COMMANDS)}
    try:
        files = metadata.files("f5py-nanopore") or []
    except metadata.PackageNotFoundError:
        pytest.skip("f5py-nanopore is not installed here, the tests run on the checkout")
    assert pages <= {Path(str(file)).name for file in files}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("f5py ca", ["plain,call-methylation"]),
        ("f5py call-methylation --modbam-s", ["plain,--modbam-style"]),
        ("f5py call-methylation --pore r1", ["plain,r10"]),
        ("f5py call-methylation -b re", ["file,re"]),
        ("f5py index re", ["file,re"]),
    ],
)
def test_shell_completion(words, found):
    asked = {"_F5PY_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    # the variable is named after the program
    program = "import sys; sys.argv[0] = 'f5py'; from f5py.cli import main; main()"
    command, environment = [sys.executable, "-c", program], os.environ | asked
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.split() == found


@pytest.mark.parametrize(("words", "status"), [(["--version"], 0), (["map"], 2), (["meth-freq", "-i", "no.tsv"], 1)])
def test_the_end_of_the_program(words, status):
    """What is registered for it is done, threads are waited for and texts arrive; only modules are not taken apart."""
    program = (
        "import atexit, sys, threading, time\n"
        "class Part:\n"
        "    def __del__(self):\n"
        "        print('taken apart')\n"
        f"sys.argv[1:] = {words!r}\n"
        "from f5py.cli import main\n"
        "class Thread(threading.Thread):\n"
        "    def run(self):\n"
        "        time.sleep(0.05)\n"
        "        atexit.register(print, 'registered')\n"
        "        print('waited for')\n"
        "sys.kept = Part()\n"
        "Thread().start()\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert done.stdout.splitlines()[-2:] == ["waited for", "registered"]
    assert ("f5py" in done.stdout) == (status == 0)
    assert done.stderr.count("\n") == (status != 0)


def test_imports_are_light():
    modules = ["f5py", "f5py.cli", "f5py.errors", "f5py.messages.console"]
    modules += [f"f5py.cli.{module.name}" for module in pkgutil.iter_modules(f5py.cli.__path__)]
    modules += ["f5py.api.call", "f5py.api.functions"]
    program = (
        "import json, sys\n"
        "from importlib import import_module\n"
        "before, found = set(), {}\n"
        f"for name in {modules!r}:\n"
        "    import_module(name)\n"
        f"    heavy = set(sys.modules) & set({HEAVY!r})\n"
        "    found[name] = sorted(heavy - before)\n"
        "    before = heavy\n"
        "print(json.dumps(found))\n"
    )
    done = run_python("-c", program)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {name: [] for name in modules}


# Documentation


def section(text: str, title: str) -> str:
    """Return the part of a Markdown text below a heading, up to the next one of the same or a higher level."""
    level, found = len(title.split()[0]), []
    lines = iter(text.splitlines())
    assert title in lines, f"no heading {title!r}"
    for line in lines:
        heading = re.match(r"(#+) ", line)
        if heading and len(heading[1]) <= level:
            break
        found.append(line)
    return "\n".join(found)


def table_rows(text: str) -> list[list[str]]:
    """Cells of all table rows, without those of the title and rule lines."""
    rows = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.startswith("|")
    ]
    rules = [i for i, row in enumerate(rows) if set("".join(row)) <= set("-:")]
    return [row for i, row in enumerate(rows) if i not in rules and i + 1 not in rules]


def test_tables_of_options_are_those_of_the_declarations():
    """Pages of commands show names, defaults and meanings as declared: `python docs/make_reference.py` writes them."""
    done = run_python(str(ROOT / "docs" / "make_reference.py"), "--check")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_its_table(name):
    text = (USAGE / f"f5py-{name}.md").read_text()
    shown = {code for row in table_rows(text) for code in re.findall(r"`(-[^`]*)`", row[0])}
    public = {spelling for spellings in options_of(name, hidden=False) for spelling in spellings}
    declared = named_command(name).declared.values()
    aliases = {alias for option in declared for alias in option.aliases + option.foreign}
    assert text.startswith(f"# f5py {name}\n")
    assert re.search(rf"^```sh\nf5py {name}( |$)", text, re.MULTILINE), "no example"
    assert public - aliases <= shown
    assert not [row for row in table_rows(text) if re.search(r"(?<!\\)\*", row[-1])], "would be italics"


def test_pages_of_commands_are_those_that_exist():
    pages = {path.name for path in USAGE.glob("*.md")}
    assert pages == {"index.md", "common.md", *(f"f5py-{name}.md" for name in COMMANDS)}


def test_the_site_lists_commands_in_the_groups_of_the_help():
    yaml = pytest.importorskip("yaml")
    settings = yaml.safe_load((ROOT / "packaging" / "site" / "mkdocs.yml").read_text())
    assert "content.code.copy" in settings["theme"]["features"]
    (commands,) = [one["Commands"] for one in settings["nav"] if "Commands" in one]
    assert commands[0] == "usage/index.md"
    groups = {title: pages for one in commands[1:] for title, pages in one.items()}
    assert groups.pop("What all commands share") == "usage/common.md"
    assert groups == {title: [{name: f"usage/f5py-{name}.md"} for name in names] for title, names in GROUPS.items()}


def test_the_site_lists_options_where_it_is_narrow_and_keeps_units():
    pytest.importorskip("pymdownx")
    hooks = runpy.run_path(str(ROOT / "packaging" / "site" / "names.py"))
    head = "<thead>\n<tr>\n<th>{}</th>\n<th>default</th>\n</tr></thead>"
    made = hooks["on_page_content"](f"<table>\n{head.format('option')}<td>5 % of 3 samples, 2 MB</td><p>1 % </p>")
    assert made.startswith("<table data-options>")
    assert "<td>5&nbsp;% of 3 samples, 2&nbsp;MB</td><p>1 % </p>" in made
    other = f"<table>\n{head.format('column')}"
    assert hooks["on_page_content"](other) == other


def test_all_pages_are_in_the_site():
    text = (ROOT / "packaging" / "site" / "mkdocs.yml").read_text()
    for document in (ROOT / "docs").rglob("*.md"):
        assert re.search(rf"[ :-]{document.relative_to(ROOT / 'docs')}$", text, re.MULTILINE), document


def test_profiles_set_options_that_exist():
    for options in (CallOptions, EventalignOptions):
        assert {field.name for field in fields(Profile)} <= declarations(options).keys()


def test_missing_f5c_options_are_really_missing():
    text = section((ROOT / "docs" / "differences-from-f5c.md").read_text(), "## Not in this version")
    named = set(re.findall(r"`(--[a-z0-9-]+)`", text)) - {"--cuda-block-size"}
    refused = {
        spelling
        for name in COMMANDS
        for option in named_command(name).declared.values()
        if option.refused is not None
        for spelling in option.spellings
    }
    assert "--print-raw" in named
    assert named <= refused


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_commands_in_the_documents_can_be_parsed(document):
    """Every line of a code block that runs f5py is understood by the command that it names."""
    commands: list[list[str]] = []
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", document.read_text(), re.DOTALL | re.MULTILINE)
    for _, block in [one for one in blocks if one[0] in ("", "sh")]:
        block = re.sub(r"\$\([^)]*\)", "WORD", block.replace("\\\n", " "))
        for line in re.sub(r'"\$[A-Z_]+"', "1", block).splitlines():
            if "f5py" not in line:
                continue
            words = shlex.shlex(line, posix=True, punctuation_chars=True)
            words.whitespace_split = True
            commands.append([])
            for word in words:
                if set(word) <= set("|&;<>()"):
                    commands.append([])
                else:
                    commands[-1].append(word)
    ours = [command[1:] for command in commands if command and Path(command[0]).name == "f5py"]
    if document in (ROOT / "README.md", USAGE / "index.md"):
        assert len(ours) >= 4
    for name, *arguments in ours:
        assert name in COMMANDS
        named_command(name).make_context(name, arguments)


def test_profiles_are_documented():
    rows = {row[0]: row[1:] for row in table_rows(section((USAGE / "common.md").read_text(), "## Profiles"))}
    aliases = {"laptop", "desktop", "hpc"}
    assert rows.keys() == PROFILES.keys() - aliases
    for name, row in rows.items():
        profile = PROFILES[name]
        shown = [float(cell.removesuffix("M")) * (1e6 if cell.endswith("M") else 1) for cell in row]
        values = (profile.cuda_max_lf, profile.cuda_avg_epk, profile.cuda_max_epk, profile.batchsize, profile.max_bases)
        assert shown == pytest.approx([*values, profile.threads, profile.iop])
        assert profile.ultra_thresh == 100_000
        assert profile.disable_cuda == (True if name == "hpc-cpu" else None)
    for alias in aliases:
        assert PROFILES[alias] == PROFILES[f"{alias}-mid"]


def anchors(document: Path) -> set[str]:
    """Collect the names by which the headings of a document can be linked to."""
    text = re.sub(r"```.*?```", "", document.read_text(), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_files_that_the_documents_name_exist():
    folders = ("f5py", "kernels", "tests", "docs", "benchmarks", "packaging")
    files = [f"/{path.relative_to(ROOT)}" for folder in folders for path in (ROOT / folder).rglob("*.*")]
    missing = [
        f"{document.relative_to(ROOT)}: {name}"
        for document in DOCUMENTS
        for name in re.findall(r"`([\w./-]+/[\w.-]+\.(?:cuh?|md|pyi?))`", document.read_text())
        if not re.search(r"NAME|\bname\.|npsig|r12|calls_per_read", name)  # examples
        if not any(file.endswith(f"/{name}") for file in files)
    ]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target in re.findall(r"\]\(([^)]+)\)", document.read_text()):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        linked = (document.parent / name).resolve() if name else document
        assert linked.exists(), target
        assert linked.is_relative_to(ROOT), target
        if anchor:
            assert anchor in anchors(linked), target
