"""Only the reads of a list."""

from __future__ import annotations

from pathlib import Path

import pysam
import pytest

import f5py
from f5py.errors import UsageError

from ..made_data import ReadSet, process_of, refused, run_command, run_main, run_process

#: Of the reads in the order of the alignments.
_CHOSEN = [11, 2, 7]


@pytest.fixture
def chosen(made: ReadSet, tmp_path: Path) -> Path:
    path = tmp_path / "chosen.txt"
    path.write_text("".join(f"{made.names[i]}\n" for i in _CHOSEN))
    return path


@pytest.fixture
def only_these(made: ReadSet, tmp_path: Path) -> ReadSet:
    (tmp_path / "few").mkdir()
    return made.with_records(tmp_path / "few", [made.records()[1][i] for i in sorted(_CHOSEN)])


_RUNS = [
    ("call-methylation", []),
    ("call-methylation", ["-w", "simulated:2001-9000"]),
    ("call-methylation", ["-K", "1", "--skip-overlaps"]),
    ("eventalign", []),
    ("eventalign", ["--sam"]),
]


@pytest.mark.parametrize(("command", "options"), _RUNS)
def test_results_are_those_of_their_alignments(
    command: str, options: list[str], made: ReadSet, only_these: ReadSet, chosen: Path, tmp_path: Path
) -> None:
    names = []
    for form in ("out", "out.plan"):
        given = [*made.options(), *options, "--read-ids", chosen, "-o", tmp_path / form]
        parts = ["--plan", tmp_path / "plan", "--engine", "local", "--partitions", 3] if form == "out.plan" else []
        assert run_command(command, *given, *parts) == 0
        names.append((tmp_path / form).read_bytes())
    assert run_command(command, *only_these.options(), *options, "-o", tmp_path / "expected") == 0
    expected = (tmp_path / "expected").read_bytes()
    if options == ["--sam"]:  # whose header has the command line
        names, expected = [_without_program(text) for text in names], _without_program(expected)
    assert names == [expected, expected]


def _without_program(text: bytes) -> bytes:
    return b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"@PG"))


@pytest.mark.parametrize("ending", ["sam", "cram"])
def test_other_formats_in_parts(ending: str, made: ReadSet, only_these: ReadSet, chosen: Path, tmp_path: Path) -> None:
    """Read indices count the chosen reads, in parts too."""
    path = tmp_path / f"reads.{ending}"
    pysam.view("-h", "-O", ending, "-T", str(made.genome), "-o", str(path), str(made.bam), catch_stdout=False)
    given = ["-r", made.reads, "-b", path, "-g", made.genome, "-t", 2, "--iop", 1, "--read-ids", chosen]
    assert run_command("eventalign", *given, "-o", tmp_path / "one") == 0
    plan = ["--plan", tmp_path / "plan", "--engine", "local", "--partitions", 3]
    assert run_command("eventalign", *given, *plan, "-o", tmp_path / "parts") == 0
    assert run_command("eventalign", *only_these.options(), "-o", tmp_path / "expected") == 0
    expected = (tmp_path / "expected").read_bytes()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "parts").read_bytes() == expected


def test_other_outputs_have_only_these_reads(made: ReadSet, chosen: Path, tmp_path: Path) -> None:
    outputs = {"--modbam": tmp_path / "out.bam", "--failed-reads": tmp_path / "failed.tsv"}
    given = [word for pair in outputs.items() for word in pair]
    assert run_main(*made.options(), "--read-ids", chosen, "-o", tmp_path / "calls.tsv", *given) == 0
    with pysam.AlignmentFile(tmp_path / "out.bam") as file:
        assert [record.query_name for record in file] == [made.names[i] for i in sorted(_CHOSEN)]


def test_resquiggle(made: ReadSet, chosen: Path, tmp_path: Path) -> None:
    given = ["resquiggle", made.reads, made.signal_path, "--iop", 1]
    assert run_command(*given, "-o", tmp_path / "all.tsv") == 0
    header, *rows = (tmp_path / "all.tsv").read_bytes().splitlines(keepends=True)
    wanted = {made.names[i].encode() for i in _CHOSEN}
    expected = header + b"".join(row for row in rows if row.split(b"\t")[0] in wanted)
    for more in ([], ["--resume"]):
        assert run_command(*given, "--read-ids", chosen, "-o", tmp_path / "few.tsv", *more) == 0
        assert (tmp_path / "few.tsv").read_bytes() == expected


def test_standard_input(made: ReadSet, chosen: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main(*made.options(), "--read-ids", chosen, "-o", tmp_path / "expected") == 0
    command = process_of("call-methylation", *made.options(), "--read-ids", "-", "-o", tmp_path / "out")
    with chosen.open("rb") as file:
        assert run_process(command, stdin=file).returncode == 0
    assert (tmp_path / "out").read_bytes() == (tmp_path / "expected").read_bytes()
    given = ["-r", made.reads, "-g", made.genome, "--read-ids", "-"]
    assert "can be read only once" in refused(capfd, "call-methylation", "-b", "-", *given, status=2)
    for plan in (["--plan", tmp_path / "p"], ["--resume", "-o", tmp_path / "x"]):
        assert "name a file" in refused(capfd, "call-methylation", "-b", made.bam, *given, *plan, status=2)
    resumed = ["resquiggle", made.reads, made.signal_path, "--read-ids", "-", "--resume", "-o", tmp_path / "x.tsv"]
    assert "cannot be read again" in refused(capfd, *resumed, status=2)


def test_names_that_are_not_there(made: ReadSet, chosen: Path, tmp_path: Path, capfd) -> None:
    out = tmp_path / "calls.tsv"
    assert run_main(*made.options(), "--read-ids", chosen, "-o", out) == 0
    expected = out.read_bytes()
    text = chosen.read_text().replace("\n", " and more\r\n")
    chosen.write_bytes(b"\xef\xbb\xbf" + f"{text}\n\nnobody\n{made.names[2]}\n".encode())
    capfd.readouterr()
    assert run_main(*made.options(), "--read-ids", chosen, "-o", out) == 0
    assert out.read_bytes() == expected
    assert f"{chosen}: 1 of 4 reads are not in the alignments, such as nobody" in capfd.readouterr().err
    refused(capfd, "call-methylation", *made.options(), "--read-ids", chosen, "--strict", "-o", tmp_path / "s.tsv")
    assert run_command("resquiggle", made.reads, made.signal_path, "--iop", 1, "--read-ids", chosen, "-o", out) == 0
    assert "1 of 4 reads are not in the file of reads" in capfd.readouterr().err


@pytest.mark.parametrize(("content", "said"), [(b"", "has no names of reads"), (b"a\0b\n", "has a byte of zero")])
def test_lists_that_are_none(content: bytes, said: str, made: ReadSet, tmp_path: Path, capfd) -> None:
    path = tmp_path / "list"
    path.write_bytes(content)
    assert said in refused(capfd, "call-methylation", *made.options(), "--read-ids", path, "-o", tmp_path / "x")
    assert "cannot be opened" in refused(capfd, "eventalign", *made.options(), "--read-ids", tmp_path / "gone")
    assert not (tmp_path / "x").exists()


def test_lists_from_python(made: ReadSet, chosen: Path) -> None:
    inputs = {"reads": made.reads, "bam": made.bam, "genome": made.genome, "threads": 1, "iop": 1}
    calls = f5py.call_methylation(**inputs, read_ids=chosen)
    names = [made.names[i] for i in _CHOSEN]
    assert set(calls["read_name"].to_pylist()) <= set(names)
    for listed in (names, tuple(names), calls["read_name"], set(names)):
        assert f5py.call_methylation(**inputs, read_ids=listed).equals(calls)


# -- plots


def test_plots_of_a_list(made: ReadSet, chosen: Path, tmp_path: Path, capfd) -> None:
    given = ["plot", "-r", made.reads, "--read-ids", chosen]
    assert run_command(*given, "-o", tmp_path / "of-{}.html") == 0
    names = [made.names[i] for i in _CHOSEN]
    assert {path.name for path in tmp_path.glob("*.html")} == {f"of-{name}.html" for name in names}
    assert run_command("plot", names[0], "-r", made.reads, "-o", tmp_path / "one.html") == 0
    assert (tmp_path / f"of-{names[0]}.html").read_bytes() == (tmp_path / "one.html").read_bytes()
    assert "is one name for 3 reads" in refused(capfd, *given, "-o", tmp_path / "x.html", status=2)
    assert "exclude each other" in refused(capfd, *given, names[0], status=2)
    assert "no read is named" in refused(capfd, "plot", "-r", made.reads, status=2)
    with chosen.open("a") as file:
        file.write("nobody\n")
    assert "1 of 4 reads could not be drawn" in refused(capfd, *given, "-o", tmp_path / "again-{}.html")
    assert len(list(tmp_path.glob("again-*.html"))) == 3
    with pytest.raises(UsageError, match="one picture can be returned"):
        f5py.plot(reads=made.reads, read_ids=names)


def test_a_plot_from_alignments_and_signals(made: ReadSet, tmp_path: Path) -> None:
    """No reads and no index, and reads without an index."""
    plain = tmp_path / "plain.fasta"
    plain.write_bytes(made.reads.read_bytes())
    signals = ["--fast5", made.signal_path]
    inputs = ["plot", made.names[3], "-b", made.bam, "-g", made.genome]
    pages = []
    for i, more in enumerate((["-r", made.reads], signals, ["-r", plain, *signals])):
        assert run_command(*inputs, *more, "-o", tmp_path / f"{i}.html") == 0
        pages.append((tmp_path / f"{i}.html").read_bytes())
    assert pages[1:] == pages[:1] * 2
