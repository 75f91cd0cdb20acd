from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pysam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from f5py.commands.index import run
from f5py.errors import F5pyError, InputFileError, OutputFileError
from f5py.io.files.atomic_write import AtomicFile
from f5py.io.reads.read_index import ReadIndex
from f5py.io.sequences.read_index_output import write_rows
from f5py.messages import console
from f5py.options.table_commands import IndexOptions

from ..examples import examples
from ..index_files import fasta, index_reads, multi_fast5, readdb, single_fast5
from ..io.reads.made_index import write_sequence_index


def index_text(reads: Path) -> str:
    return gzip.decompress(Path(f"{reads}.index").read_bytes()).decode()


def test_fasta_is_kept_on_one_line_with_case_and_u(tmp_path: Path) -> None:
    reads = tmp_path / "r.fa"
    reads.write_bytes(b">r1 some comment\r\nACGT\r\nacgu\r\n>r2\tx\nNN NU\n>empty\n\n>r3\nA")
    assert write_sequence_index(str(reads)) == dict.fromkeys(["r1", "r2", "empty", "r3"], "")
    assert index_text(reads) == ">r1\nACGTacgu\n>r2\nNNNU\n>empty\n\n>r3\nA\n"
    fai = Path(f"{reads}.index.fai").read_text()
    assert fai == "r1\t8\t4\t8\t9\nr2\t4\t17\t4\t5\nr3\t1\t34\t1\t2\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "r.fa", "r.fa.index", "r.fa.index.fai", "r.fa.index.gzi",
    ]  # fmt: skip


@pytest.mark.parametrize("zipped", [False, True])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_fastq(tmp_path: Path, zipped: bool, end: str) -> None:
    reads = tmp_path / "r.fastq"
    text = end.join(["@r1 x", "ACGT", "+", "@III", "@r2", "AC", "GG", "+r2", "II", "II", ""]).encode()
    # two members, as bgzip and concatenated downloads have
    reads.write_bytes(gzip.compress(text[:9]) + gzip.compress(text[9:]) if zipped else text)
    write_sequence_index(str(reads))
    assert index_text(reads) == ">r1\nACGT\n>r2\nACGG\n"


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a working folder in which the files are that header lines name."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.fast5", "b.fast5", "x.fast5", "dir/x.fast5", "a\tx.fast5", "y/z.fast5", "q.fast5"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    return tmp_path


def test_of_reads_with_one_name_the_first_counts(
    there: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reads = tmp_path / "r.fa"
    reads.write_text(">r1 a.fast5\nAC\n>r2\nG\n>r1 b.fast5\nTT\n>r2\nC\n")
    assert write_sequence_index(str(reads)) == {"r1": "a.fast5", "r2": ""}
    assert index_text(reads) == ">r1\nAC\n>r2\nG\n"
    assert "read r1 occurs again" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("comment", "path"),
    [
        ("x.fast5", "x.fast5"),
        ("runid=5 dir/x.fast5", "dir/x.fast5"),
        ("dir/x.fast5 ", "dir/x.fast5"),
        ("x.fast5 runid=5", ""),
        ("x.fast5.gz", ""),
        ("a\tx.fast5", "a\tx.fast5"),
        ("", ""),
    ],
)
def test_path_in_comment(there: Path, tmp_path: Path, comment: str, path: str) -> None:
    reads = tmp_path / "r.fa"
    reads.write_text(f">r1 {comment}\nA\n")
    assert write_sequence_index(str(reads)) == {"r1": path}


def test_a_path_that_is_not_there_does_not_count(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Files are moved after basecalling; what the header lines say is then out of date."""
    reads = tmp_path / "r.fa"
    reads.write_text(">a gone.fast5\nA\n>b gone.fast5\nA\n>c also.fast5\nA\n")
    found = multi_fast5(tmp_path / "d/m.fast5", ["a", "b"])
    assert index_reads(reads, tmp_path / "d") == (3, 2)
    assert readdb(reads) == [("a", str(found)), ("b", str(found)), ("c", "")]
    assert "2 fast5 files that its header lines name are not there, such as gone.fast5" in capsys.readouterr().err
    with pytest.raises(F5pyError, match="no fast5 file was found for any of the 3 reads"):
        index_reads(reads)


@settings(max_examples=examples(25), deadline=None)
@given(
    lengths=st.lists(st.integers(0, 5000) | st.integers(16_000, 70_000), min_size=1, max_size=12),
    threads=st.integers(1, 3),
)
def test_htslib_reads_the_index(tmp_path_factory: pytest.TempPathFactory, lengths: list[int], threads: int) -> None:
    reads = tmp_path_factory.mktemp("reads") / "r.fa"
    sequences = {f"r{i}": ("ACGTTGCAN" * 8000)[i : i + length] for i, length in enumerate(lengths)}
    reads.write_text("".join(f">{name}\n{bases}\n" for name, bases in sequences.items()))
    write_sequence_index(str(reads), threads)
    expected = {name: bases for name, bases in sequences.items() if bases}
    ours = Path(f"{reads}.index.fai").read_bytes()
    with pysam.FastaFile(f"{reads}.index") as index:  # finds our .fai and .gzi
        assert {name: index.fetch(name) for name in index.references} == expected
    if lengths[-1]:  # htslib cannot index an empty sequence at the end
        for end in (".fai", ".gzi"):
            Path(f"{reads}.index{end}").unlink()
        pysam.faidx(f"{reads}.index")
        assert Path(f"{reads}.index.fai").read_bytes() == ours


def test_threads_do_not_change_a_byte(tmp_path: Path) -> None:
    reads = tmp_path / "r.fa"
    reads.write_text("".join(f">r{i}\n{'GATTACA' * (i * 37 % 9000)}\n" for i in range(150)))
    contents = set()
    for threads in (1, 2, 5):
        write_sequence_index(str(reads), threads)
        contents.add(tuple(Path(f"{reads}.index{end}").read_bytes() for end in ("", ".fai", ".gzi")))
    assert len(contents) == 1
    assert len(contents.pop()[2]) > 100 * 16  # many blocks


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"hello\n", "neither FASTA nor FASTQ"),
        (gzip.compress(b"BAM\1", mtime=0), "compressed by gzip, not by bgzip"),
        (b"@r1\nACGT\n+\nIIII\n@r2\nAC\n+\nI", "truncated; read 2, r2"),
        (b"@r1\nACGT\n+\nIIII\n@r2\nAC\n", "truncated; read 2, r2"),
        (b"@r1\nACGT\n+\nIIII\n@r2", "truncated; read 2, r2"),
        (b">r1\nAC\n> \nAC\n", "read 2 has no name"),
        (gzip.compress(b">r1\nAC\n" * 9999, mtime=0)[:-5], "damaged or truncated"),
        (gzip.compress(b">r1\nAC\n", mtime=0)[:12], "damaged or truncated"),
    ],
)
def test_bad_reads_leave_nothing_behind(
    tmp_path: Path, content: bytes, message: str, capfd: pytest.CaptureFixture[str]
) -> None:
    reads = tmp_path / "r.fa"
    reads.write_bytes(content)
    with pytest.raises(InputFileError, match=message) as problem:
        write_sequence_index(str(reads))
    assert str(reads) in str(problem.value)
    assert [path.name for path in tmp_path.iterdir()] == ["r.fa"]
    assert "[E::" not in capfd.readouterr().err


def test_headers_are_bytes(tmp_path: Path) -> None:
    """As for f5c and nanopolish: sequencers write sample names in the encoding of their machine."""
    reads = tmp_path / "r.fa"
    reads.write_bytes(b">r1 sample=\xb5g\nAC\n>r\xe9\nACG\n")
    assert list(write_sequence_index(str(reads))) == ["r1", "r\udce9"]
    assert Path(f"{reads}.index.fai").read_bytes().splitlines()[1].startswith(b"r\xe9\t3\t")


@pytest.mark.parametrize("problem", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("n_placed", range(4))
def test_files_of_an_index_are_replaced_together_or_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: type[BaseException], n_placed: int
) -> None:
    reads = fasta(tmp_path / "r.fa", ["r1"])
    multi_fast5(tmp_path / "d/m.fast5", ["r1", "r2"])
    commit = AtomicFile.commit
    n = 0

    def interrupted(file: AtomicFile) -> None:
        nonlocal n
        n += 1
        if n > n_placed:
            raise problem
        commit(file)

    def files() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}

    for _ in range(2):  # without and with an older index
        before = files()
        with monkeypatch.context() as patch:
            patch.setattr(AtomicFile, "commit", interrupted)
            n = 0
            with pytest.raises((problem, OutputFileError)):
                index_reads(fasta(reads, ["r1", "r2"]), tmp_path / "d")
        assert {**files(), "r.fa": b""} == {**before, "r.fa": b""}
        fasta(reads, ["r1"])
        index_reads(reads, tmp_path / "d")
        assert ReadIndex.open(str(reads)).first_names(2) == ["r1"]
        assert len(files()) == 5


def test_an_unwritable_place_is_an_error(tmp_path: Path) -> None:
    reads = fasta(tmp_path / "r.fa", ["r1"])
    with pytest.raises(OutputFileError, match=r"cannot write: No such file.*the index needs a writable folder"):
        write_sequence_index(str(tmp_path / "absent/r.fa"), sources=[str(reads)])
    Path(f"{reads}.index").mkdir()  # in the way
    with pytest.raises(OutputFileError, match=r"r\.fa\.index: cannot write: Is a directory"):
        write_sequence_index(str(reads))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.fa", "r.fa.index"]


@pytest.mark.parametrize("suffix", [".index", ".index.gzi", ".index.fai", ".index.readdb"])
def test_a_folder_in_the_way_of_a_file_leaves_the_others(tmp_path: Path, suffix: str) -> None:
    multi_fast5(tmp_path / "d/m.fast5", ["r1", "r2"])
    reads = fasta(tmp_path / "r.fa", ["r1"])
    index_reads(reads, tmp_path / "d")
    Path(f"{reads}{suffix}").unlink()
    Path(f"{reads}{suffix}").mkdir()
    before = {path: path.read_bytes() for path in tmp_path.glob("r.fa.*") if path.is_file()}
    with pytest.raises(OutputFileError, match=rf"{suffix}: cannot write: Is a directory; the index needs"):
        index_reads(fasta(reads, ["r1", "r2"]), tmp_path / "d")
    assert {path: path.read_bytes() for path in tmp_path.glob("r.fa.*") if path.is_file()} == before


def test_readdb_is_sorted_and_has_reads_that_are_not_in_the_fasta(tmp_path: Path) -> None:
    reads = fasta(tmp_path / "r.fa", ["b", "a", "Z", "10", "9"])
    multi = multi_fast5(tmp_path / "d/m.fast5", ["a", "c", "10"])
    single = single_fast5(tmp_path / "d/s/s.fast5", "b")
    assert index_reads(reads, tmp_path / "d") == (6, 4)
    assert readdb(reads) == [
        ("10", str(multi)), ("9", ""), ("Z", ""), ("a", str(multi)), ("b", str(single)), ("c", str(multi)),
    ]  # fmt: skip


def test_readdb_is_sorted_by_bytes(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 come after all letters, but not those that stand for them in a str."""
    names = [b"a", b"Z", b"\xe9", b"\xef\xbf\xbd", b"\xf0\x9f\x92\xa9", b"a\xff", b"aa", b"\xc3\xa9"]
    path = tmp_path / "x.readdb"
    write_rows(str(path), {os.fsdecode(name): os.fsdecode(b"/d/\xff" + name) for name in names})
    assert path.read_bytes() == b"".join(b"%s\t/d/\xff%s\n" % (name, name) for name in sorted(names))


def test_all_reads_of_pod5_files_are_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Parents of split reads are only there."""
    pytest.importorskip("pod5", reason="needs pod5")
    from ..io.signals.made_pod5 import pod5_name, write_pod5
    from ..io.signals.made_signals import make_reads

    names = [pod5_name(read.name) for read in make_reads()]
    first, second = tmp_path / "first.pod5", tmp_path / "second.pod5"
    write_pod5(first, make_reads()[:4])
    write_pod5(second, make_reads()[3:])
    multi = multi_fast5(tmp_path / "d/m.fast5", [names[1], "in-fast5"])
    reads = fasta(tmp_path / "r.fa", [names[1], "split", "in-fast5", names[5]])
    counts = index_reads(reads, tmp_path / "d", pod5=(str(first), str(second)))
    assert counts == (9, 8)
    in_pod5 = {name: str(first if i < 4 else second) for i, name in enumerate(names)}
    assert readdb(reads) == sorted({**in_pod5, "in-fast5": str(multi), "split": ""}.items())
    (warning,) = (line for line in capsys.readouterr().err.splitlines() if "WARNING" in line)
    assert warning.endswith("could not be located for 1 reads")


def test_reads_of_other_names_than_those_of_the_signals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They may all be split reads; most likely the files are not those of these reads."""
    reads = fasta(tmp_path / "r.fa", ["a", "b"])
    multi = multi_fast5(tmp_path / "d/m.fast5", ["c"])
    assert index_reads(reads, tmp_path / "d") == (3, 1)
    assert readdb(reads) == [("a", ""), ("b", ""), ("c", str(multi))]
    told = capsys.readouterr().err
    assert f"[readdb::WARNING] none of the 2 reads in {reads} has a signal by its own name: the signal" in told


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (["e/a.pod5"], "{d} holds POD5 files; give it with --pod5"),
        (["a.slow5"], "{d} holds SLOW5 files; give the one of these reads with --slow5, such as {d}/a.slow5"),
        (["e/a.blow5"], "{d} holds SLOW5 files; give the one of these reads with --slow5, such as {d}/e/a.blow5"),
        (
            ["a.fast5", "b.pod5"],
            "give the folder of their fast5 files with -d, or signals of another format with --pod5 or --slow5",
        ),
        ([], "give the folder of their fast5 files with -d, or signals of another format with --pod5 or --slow5"),
    ],
)
def test_a_folder_with_files_of_another_kind(tmp_path: Path, names: list[str], advice: str) -> None:
    reads = fasta(tmp_path / "r.fa", ["a"])
    folder = tmp_path / "d"
    (folder / "e").mkdir(parents=True)
    for name in names:
        (folder / name).touch()
    with pytest.raises(F5pyError) as problem:
        index_reads(reads, tmp_path / "nothing", folder)
    assert str(problem.value).endswith(f"any of the 1 reads in {reads}; {advice.format(d=folder)}")


def test_the_last_file_to_name_a_read_wins(tmp_path: Path) -> None:
    reads = fasta(tmp_path / "r.fa", ["a", "b"])
    multi_fast5(tmp_path / "d/1.fast5", ["a", "b"])
    second = multi_fast5(tmp_path / "d/2.fast5", ["b"])
    third = multi_fast5(tmp_path / "e/0.fast5", ["a"])
    index_reads(reads, tmp_path / "d", tmp_path / "e")
    assert readdb(reads) == [("a", str(third)), ("b", str(second))]


def test_no_folder_is_searched_if_every_read_has_a_path(there: Path, tmp_path: Path) -> None:
    reads = tmp_path / "r.fa"
    other = multi_fast5(tmp_path / "d/m.fast5", ["a", "b"])
    reads.write_text(">a x.fast5\nA\n>b y/z.fast5\nA\n")
    for processes in (1, 2):
        options = IndexOptions(reads=(str(reads),), directories=(str(tmp_path / "d"),), iop=processes)
        assert run(options) == (2, 2)
        assert readdb(reads) == [("a", "x.fast5"), ("b", "y/z.fast5")]
    reads.write_text(">a x.fast5\nA\n>b\nA\n>c q.fast5\nC\n")
    index_reads(reads, tmp_path / "d")
    assert readdb(reads) == [("a", str(other)), ("b", str(other)), ("c", "q.fast5")]


def test_skipped_files_and_folders_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reads = fasta(tmp_path / "r.fa", ["a"])
    multi_fast5(tmp_path / "d/m.fast5", ["a"])
    for i in range(12):
        (tmp_path / f"d/bad{i:02}.fast5").touch()
    directories = [str(tmp_path / "d"), str(tmp_path / "absent")]
    index_reads(reads, *directories)
    told = capsys.readouterr().err
    assert told.count("bad") == 10
    assert "WARNING] 12 of 13 fast5 files were skipped" in told
    assert "absent: skipped, is not a folder" in told
    index_reads(reads, *directories, verbose=2)
    assert capsys.readouterr().err.count("bad") == 12


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_sam_file_is_not_taken_for_fastq(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    sam = tmp_path / "reads.sam"
    records = b"r1\t16\tc\t1\t60\t4M\t*\t0\t0\tACCT\t*\nr1\t256\tc\t9\t0\t4M\t*\t0\t0\tAAAA\t*\n"
    sam.write_bytes(compress(b"@HD\tVN:1.6\n@SQ\tSN:c\tLN:100\n" + records))
    assert write_sequence_index(str(sam)) == {"r1": ""}
    assert gzip.decompress(Path(f"{sam}.index").read_bytes()) == b">r1\nAGGT\n"


def test_several_files_and_folders_become_one_index(tmp_path: Path) -> None:
    """Its name is that of -o, and the reads' own folders stay as they are."""
    folder = tmp_path / "fastq_pass"
    folder.mkdir()
    (folder / "b.fastq.gz").write_bytes(gzip.compress(b"@r2\nGG\n+\n!!\n"))
    (folder / "a.fq").write_bytes(b"@r1\nA\n+\n!\n")
    (folder / "notes.txt").write_text("no reads")
    more = fasta(tmp_path / "more.fa", ["r3", "r1"])
    multi = multi_fast5(tmp_path / "d/m.fast5", ["r1", "r3"])
    name = tmp_path / "out" / "run7"
    name.parent.mkdir()
    options = IndexOptions(reads=(str(folder), str(more)), output=str(name), directories=(str(tmp_path / "d"),))
    assert run(options) == (3, 2)
    assert readdb(name) == [("r1", str(multi)), ("r2", ""), ("r3", str(multi))]
    assert index_text(name).split()[::2] == [">r1", ">r2", ">r3"]
    assert sorted(path.name for path in name.parent.iterdir()) == [
        "run7.index", "run7.index.fai", "run7.index.gzi", "run7.index.readdb"
    ]  # fmt: skip
    assert sorted(path.name for path in folder.iterdir()) == ["a.fq", "b.fastq.gz", "notes.txt"]
    with ReadIndex.open(str(name)) as index:
        assert index.sequences(["r2"])[0].tobytes() == b"GG"


def test_repeated_warnings_are_capped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reads = fasta(tmp_path / "r.fa", ["a"])
    multi_fast5(tmp_path / "d/m.fast5", ["a"])
    nothing = [str(tmp_path / f"no{i}") for i in range(40)]
    with console.on_standard_error(), console.recorded_warnings() as recorded:
        index_reads(reads, *nothing, tmp_path / "d")
    told = [line for line in capsys.readouterr().err.splitlines() if "skipped, is not a folder" in line]
    assert len(told) == 5
    assert told[-1].endswith("(no more warnings of this kind are shown: folders that are none)")
    assert len(recorded) == 40
