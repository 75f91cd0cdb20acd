"""Agreement of packaging/ with pyproject.toml and the package; commands in it run."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import click
import pytest

import f5py
from f5py import cli
from f5py.errors import EXTRAS, pip_install

tomllib = pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")  # which pytest brings

ROOT = Path(__file__).resolve().parents[1]
PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
#: Packages that have other names in conda.
CONDA_NAMES = {
    "isal": "python-isal", "matplotlib": "matplotlib-base", "vbz-h5py-plugin": "ont_vbz_hdf_plugin",
    "pybigwig": "pybigwig",
}  # fmt: skip


def module_of(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def release() -> ModuleType:
    return module_of(PACKAGING / "release.py")


def test_versions_agree(release: ModuleType):
    assert release.problems() == []
    assert release.current() == f5py.__version__


def test_links_of_the_description_lead_to_the_repository():
    """On a package index nothing is beside it; all links are to files that there are."""
    pytest.importorskip("hatchling", reason="needs hatchling")
    text = module_of(PACKAGING / "readme.py").absolute_links(
        (ROOT / "README.md").read_text(), "https://host/f5py", "1.2.3"
    )
    links = re.findall(r"(!?)\[[^\]]*\]\(([^)]+)\)", text)
    assert len(links) > 20
    for picture, link in links:
        assert link.startswith("https://"), link
        if link.startswith("https://host/"):
            kind, path = link.removeprefix("https://host/f5py/").split("/v1.2.3/")
            assert kind == ("raw" if picture else "blob")
            assert (ROOT / path.partition("#")[0]).exists(), path


def test_disagreement_is_told(release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for name, _ in release.PLACES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    (tmp_path / "changelog.md").write_text("# Changes\n\n## 0.3.0, not yet released\n")
    monkeypatch.setattr(release, "ROOT", tmp_path)
    monkeypatch.setattr(release, "CHANGELOG", tmp_path / "changelog.md")
    assert release.problems() == [f"changelog.md: its first heading is not that of {f5py.__version__}"]
    release.prepare("0.3.0")
    assert release.problems() == []
    assert set(release.versions().values()) == {"0.3.0"}
    assert re.search(r"^## 0\.3\.0, \d{4}-\d\d-\d\d$", (tmp_path / "changelog.md").read_text(), re.MULTILINE)
    (tmp_path / "CITATION.cff").write_text("version: x\n")
    assert release.problems() == ["CITATION.cff: has version ?, not 0.3.0"]
    with pytest.raises(SystemExit, match="has no heading"):
        release.prepare("0.4.0")


def test_map_has_a_line_for_every_file():
    """`python docs/make_map.py` writes them, from the first lines of the files."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "make_map.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def split(requirement: str) -> tuple[str, str]:
    found = re.fullmatch(r"([A-Za-z0-9_-]+) *(.*)", requirement.partition(";")[0].rstrip())
    assert found is not None
    name = found[1].lower()
    return CONDA_NAMES.get(name, name), found[2]


def named_extras(requirements: list[str]) -> list[str]:
    found = [re.fullmatch(rf"{PROJECT['name']}\[([\w,]+)\](;.*)?", requirement) for requirement in requirements]
    return [extra for match in found if match for extra in match[1].split(",")]


def test_requirements_of_a_wheel():
    """The extra `all` asks for packages that have wheels, and for all of them; a marker that was lost is found."""
    pytest.importorskip("packaging", reason="the script needs packaging")
    problems = module_of(ROOT / ".ci" / "check_wheel.py").requirement_problems
    others = ("matplotlib", "pod5", "pyarrow", "vbz-h5py-plugin", "zstandard")
    metadata = "".join(f"Requires-Dist: {name}; extra == 'all'\n" for name in others)
    metadata += "Requires-Dist: numpy>=1.26\nRequires-Dist: pybigwig; extra == 'bigwig'\n"
    condition = "(platform_machine == 'x86_64' and python_version < '3.14') and "
    bigwig = f"Requires-Dist: pyBigWig>=0.3; {condition}extra == 'all'\n"
    assert problems((metadata + bigwig).encode()) == []
    found = problems((metadata + bigwig.replace(condition, "")).encode())
    assert found[0] == "METADATA: extra all, x86_64, Python 3.14: asks for pybigwig"
    assert len(found) == 6
    found = problems(metadata.encode())
    assert found[0] == "METADATA: extra all, x86_64, Python 3.10: does not ask for pybigwig"
    assert len(found) == 4


def test_conda_recipe_runs_its_own_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its imports and command lines, as conda-build runs them, in an empty folder; the long simulation made short."""
    from f5py.cli import demo, main

    recipe = (PACKAGING / "bioconda" / "meta.yaml").read_text()
    section = recipe[recipe.index("\ntest:\n") : recipe.index("\nabout:")]
    imports, commands = section.split("  commands:\n")
    modules = re.findall(r"^    - (\S+)$", imports, re.MULTILINE)
    assert modules
    for module in modules:
        importlib.import_module(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "_SIZE", "--genome-length 5K --coverage 25 --median-length 2K --site-rates beta:0.7:0.7")
    lines = re.findall(r"^    - (.+)$", commands, re.MULTILINE)
    assert len(lines) >= 2
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "f5py"
        with pytest.raises(SystemExit) as stop:
            main(arguments)
        assert stop.value.code == 0, line
    assert list(tmp_path.iterdir())


def test_conda_requires_what_pip_does():
    recipe = (PACKAGING / "bioconda" / "meta.yaml").read_text()
    section = recipe[recipe.index("  run:\n") : recipe.index("\ntest:")]
    conda = dict(split(line) for line in re.findall(r"^    - (.+)$", section, re.MULTILINE))
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"]]
    for requirement in extras["all"]:
        wanted += [one for extra in named_extras([requirement]) for one in extras[extra]] or [requirement]
    assert set(extras["bigwig"]) <= {requirement.partition(";")[0] for requirement in wanted}
    pip = dict(split(requirement) for requirement in wanted)
    assert conda == pip | {"python": PROJECT["requires-python"]}


def requirement_names(requirements: list[str]) -> set[str]:
    """Collect the packages that requirements ask for, in lower case."""
    return {re.split(r"[^\w-]", requirement)[0].lower() for requirement in requirements}


def test_messages_ask_for_what_the_extras_have():
    """Not for `f5py[...]`, which is another project on PyPI."""
    extras = PROJECT["optional-dependencies"]
    asked = {extra: requirement_names(shlex.split(packages)) for extra, packages in EXTRAS.items()}
    assert asked == {extra: requirement_names(extras[extra]) for extra in EXTRAS}
    assert set(extras) == {*EXTRAS, "all", "docs", "test", "dev"}
    assert pip_install("vbz") == "pip install vbz-h5py-plugin"
    assert pip_install("cuda11", again=True) == 'pip install --force-reinstall "cupy-cuda11x<14"'


def checkout_texts() -> Iterator[tuple[str, str]]:
    """Every text file of the checkout: its name and what is in it."""
    skipped = {".git", ".venv", "__pycache__", ".hypothesis", ".pytest_cache", ".mypy_cache", ".ruff_cache", "dist"}
    for path in ROOT.rglob("*"):
        name = path.relative_to(ROOT)
        if not skipped.intersection(name.parts) and path.is_file() and path.suffix not in {".npz", ".png", ".pyc"}:
            yield str(name), path.read_text(errors="replace")


#: What the checkout itself and workflows are installed from.
_OUR_OWN = re.compile(r"\.|\.\[[\w,]+\]|f5py-nanopore(\[[\w,]+\])?|\$\(ls|\S*[$@{].*")
#: Tools of the development, and of recipes for other people's programs.
_TOOLS = {"build", "polars", "torch", "uv", "setuptools", "nvidia-cuda-nvdisasm", "m6anet", "pip", "pandas", "fsspec"}


def test_only_our_own_distribution_and_its_packages_are_advised():
    """Nobody is sent to the project that is called f5py on PyPI, from messages, documentation or recipes."""
    lists = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    known = _TOOLS | {name for requirements in lists for name in requirement_names(requirements)}
    foreign = re.compile(
        r"(?<![\w/.-])f5py\[[a-z]|pypi\.org/\S*/f5py(?![\w-])|(bioconda::|containers/|singularity/)f5py[=:]"
    )
    wrong, n_found = [], 0
    for name, text in checkout_texts():
        for line in text.splitlines():
            if foreign.search(line) and name != "tests/test_packaging.py":
                wrong.append(f"{name}: {line.strip()}")
            for arguments in re.findall(r"pip install((?: +-\S+)* +[^\s`]+)", line):
                package = arguments.split()[-1].lstrip("'\"(").rstrip("'\"();,:.") or "."
                n_found += 1
                if not _OUR_OWN.fullmatch(package) and re.split(r"[^\w-]", package)[0].lower() not in known:
                    wrong.append(f"{name}: {line.strip()}")
    assert wrong == []
    assert n_found > 30


def test_no_image_or_package_is_named_that_is_not_published():
    """Only images of others, which ours begin with, come from registries; ours are built from the checkout."""
    named = re.compile(r"\S*(?:biocontainers|quay\.io|depot\.galaxyproject|bioconda::|docker\.io|ghcr\.io)\S*")
    published = re.compile(r"docker\.io/library/(python|ubuntu):[\w.-]+|ghcr\.io/astral-sh/uv:[\w.-]+")
    wrong = [
        f"{name}: {found}"
        for name, text in checkout_texts()
        if name.startswith(("packaging/", "docs/", "README"))
        for found in named.findall(text)
        if not published.fullmatch(found)
    ]
    assert wrong == []


@pytest.mark.parametrize("path", sorted((PACKAGING / "containers").iterdir()), ids=lambda path: path.name)
def test_containers_name_extras_that_exist(path: Path):
    extras = re.findall(r"whl\)\[([\w,${}]+)\]", path.read_text())
    assert len(extras) == 1
    for version in re.findall(r"--build-arg CUDA=(\d+)", path.read_text()) or [""]:
        named = extras[0].replace("${CUDA}", version).split(",")
        assert set(named) <= set(PROJECT["optional-dependencies"])


@pytest.mark.parametrize("path", sorted((PACKAGING / "containers").iterdir()), ids=lambda path: path.name)
def test_images_compile_when_they_are_built(path: Path):
    """After the last installation, into a folder that all users of the image can write to."""
    text = path.read_text()
    made = r"^RUN f5py (compile[^&\n]*) && chmod -R a\+rwX (\S+) && \\\n    chmod -R go-w \2/f5py-\*"
    commands = re.findall(made, text, re.MULTILINE)
    assert len(commands) == 1
    name, *arguments = shlex.split(commands[0][0])
    command = cli.f5py.get_command(click.Context(cli.f5py), name)
    assert command is not None
    command.make_context(name, arguments)
    assert f"NUMBA_CACHE_DIR={commands[0][1]}" in text
    assert ("--cuda-arch" in arguments) == ("cuda" in text.split("whl)")[1].split("]")[0])
    assert text.rindex("pip install") < text.index("RUN f5py compile")


def test_compiling_ahead(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """All commands that it runs on a few reads do their work; the stages' kernels have tests of their own."""
    from f5py.jit import warm_up

    monkeypatch.setattr(warm_up, "code_folder", lambda: None)
    with pytest.raises(SystemExit) as stop:
        cli.main(["compile"])
    assert stop.value.code == 0
    assert "compiled for this processor" in capfd.readouterr().err


def test_kernels_for_gpus_that_are_not_there(
    played_machine: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Compiled once for each kind, and found where runs look for them."""
    from f5py.compute.gpu import sources

    played_machine(devices=0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sources.compile_for("90")
    kept = sorted((tmp_path / "f5py" / "kernels").iterdir())
    assert len(kept) == len(sources.KERNELS)
    monkeypatch.setattr(sources, "_compile", None)  # nothing is compiled again
    sources.compile_for("90")


@pytest.mark.parametrize("words", ["x", "61", "9.0", "90,", "-90"])
def test_wrong_capabilities(words: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        cli.main(["compile", f"--cuda-arch={words}"])
    assert stop.value.code == 2
    assert "give compute capabilities from 72" in capsys.readouterr().err


def test_galaxy_tool_runs_its_own_test(tmp_path: Path):
    """Its command line, with the values of its test."""
    tool = ElementTree.parse(PACKAGING / "galaxy" / "f5py_call_methylation.xml").getroot()
    values = {
        one.get("name") or one.get("argument", "").strip("-").replace("-", "_"): one for one in tool.iter("param")
    }
    given = {
        "kind": "slow5", "methylation": "cpg", "min_mapq": values["min_mapq"].get("value", ""),
        "accurate": values["accurate"].get("falsevalue", ""),
    }  # fmt: skip
    data = PACKAGING / "galaxy" / "test-data"
    for name, source in (("reads.bam", "reads.bam"), ("ref.fa", "ref.fa"), ("signals/0.blow5", "reads.blow5")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(data / source, tmp_path / name)
    command = tool.findtext("command") or ""
    words = re.sub(
        r"\$(\w+)", lambda found: given[found[1]], command[command.index("f5py call") :].replace("\\$", "$$")
    )
    words = words.replace('"$${GALAXY_SLOTS:-2}"', "2")
    arguments = [str(tmp_path / word) if (tmp_path / word).exists() else word for word in shlex.split(words)[1:]]
    outputs = [one.get("from_work_dir", "") for one in tool.iter("data")]
    arguments = [str(tmp_path / word) if word in outputs else word for word in arguments]
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 0
    assert all((tmp_path / name).exists() for name in outputs)
    assert len((tmp_path / "calls.tsv").read_text().splitlines()) >= 20
    assert {len(line.split("\t")) for line in (tmp_path / "counts.bed").read_text().splitlines()} == {18}


def nextflow_block(name: str, values: dict[str, str]) -> str:
    """Fill values into a block of the module's commands, as Nextflow does."""
    text = (PACKAGING / "nextflow" / "f5py" / "callmethylation" / "main.nf").read_text()
    block = text[text.index(f"    {name}:") :].split('"""')[1].replace("\\\\", "\\")
    for variable, value in values.items():
        block = re.sub(rf"\$\{{{re.escape(variable)}\}}|(?<!\\)\${re.escape(variable)}(?!\w)", value, block)
    left = re.search(r"(?<!\\)\$(?!\()\S+", block)
    assert left is None, left
    lines = block.replace("\\$", "$").splitlines()
    return "\n".join(line.removeprefix("    ") for line in lines)


@pytest.mark.parametrize("block", ["script", "stub"])
def test_nextflow_module_makes_its_outputs(block: str, tmp_path: Path):
    f5py.simulate(output=tmp_path / "in", genome_length=5_000, n_reads=4, median_length=2_000, seed=2)
    values = {
        "args": "--min-mapq 0", "task.cpus": "2", "bam": "in/reads.bam", "fasta": "in/ref.fa", "kind": "--fast5",
        "signals": "in/fast5", "prefix": "test", "task.process": "F5PY",
    }  # fmt: skip
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["bash", "-euo", "pipefail", "-c", nextflow_block(block, values)]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "PATH": path}, check=True, timeout=300)
    text = (PACKAGING / "nextflow" / "f5py" / "callmethylation" / "main.nf").read_text()
    declared = re.findall(r'path[( ]"([^"]+)"', text[text.index("output:") : text.index("when:")])
    assert len(declared) == 5
    for pattern in declared:
        assert list(tmp_path.glob(pattern)), pattern
    (version,) = re.findall(r'eval\("(.+?)"\)', text)
    told = subprocess.run(["bash", "-c", version], env={**os.environ, "PATH": path}, capture_output=True, check=True)
    assert told.stdout.decode() == f"{f5py.__version__}\n"
