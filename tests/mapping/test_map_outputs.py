"""Outputs of ``f5py map`` that other programs read: names, headers, tags and formats."""

from __future__ import annotations

import gzip
import random
import subprocess
from pathlib import Path

import pysam
import pytest

from ..made_data import process_of, refused, run_command

_RANDOM = random.Random(7)
CONTIG = "".join(_RANDOM.choices("ACGT", k=1500))


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "ref.fa").write_text(f">one\n{CONTIG}\n")
    (tmp_path / "reads.fq").write_text(f"@read\n{CONTIG[:600]}\n+\n{'I' * 600}\n")
    return tmp_path


def mapped(files: Path, *options: object, reads: tuple[str, ...] = ("reads.fq",), name: str = "out.bam") -> Path:
    paths = [files / one for one in reads]
    assert run_command("map", files / "ref.fa", *paths, "-t", 1, *options, "-o", files / name) == 0
    return files / name


def unaligned(path: Path, lines: list[str], reads: dict[str, str]) -> None:
    """Write a basecaller's file with these lines in its header; the reads are given with their groups."""
    header = pysam.AlignmentHeader.from_text("@HD\tVN:1.6\n" + "".join(f"{line}\n" for line in lines))
    with pysam.AlignmentFile(str(path), "wb", header=header) as out:
        for name, group in reads.items():
            record = pysam.AlignedSegment(header)
            record.query_name, record.flag, record.query_sequence = name, 4, CONTIG[:600]
            record.set_tag("xx", "RG")
            record.set_tag("RG", group)
            record.set_tag("yy", 5)
            out.write(record)


@pytest.mark.parametrize(
    "given",
    [
        r"@RG\tID:a\tSM:b c", r"@RG\\tID:a\\tSM:b c", "@RG\tID:a\tSM:b c", r"@RG\\\\tID:a\\\\tSM:b c",
    ],
)  # fmt: skip
def test_a_read_group_with_more_or_fewer_backslashes(given: str, files: Path):
    with pysam.AlignmentFile(str(mapped(files, "-R", given))) as file:
        assert file.header.to_dict()["RG"] == [{"ID": "a", "SM": "b c"}]
        assert [record.get_tag("RG") for record in file] == ["a"]


def test_a_backslash_stays_if_it_is_doubled(files: Path):
    with pysam.AlignmentFile(str(mapped(files, "-R", r"@RG\tID:a\tDS:C:\\tmp"))) as file:
        assert file.header.to_dict()["RG"] == [{"ID": "a", "DS": r"C:\tmp"}]


@pytest.mark.parametrize(
    "given",
    [
        "", "ID:a", r"'@RG\tID:a'", r'"@RG\tID:a"', "@RGtID:atSM:b", r"@RG\tID:", r"@RG\tSM:b", "@RG",
        r"@RG\tID:a\tID:c",
        r"@RG\tID:a\tSM:b\tSM:b", r"@RG\tID:a\tXX", r"@RG\tID:a\t", r"@RG\tID:a\tS:b", "@RG\tID:a\nSM:b", "@RG\tID:é",
        r"@PG\tID:a", r"@RG ID:a", r"@RG\tID:a\t1M:b", "@RG\tID:a\tSM:\udcff",
    ],
)  # fmt: skip
def test_what_is_no_read_group_is_refused(given: str, files: Path, capfd: pytest.CaptureFixture[str]):
    line = refused(capfd, "map", "-R", given, files / "ref.fa", files / "reads.fq", "-o", files / "out.bam", status=2)
    assert r"give a line like '@RG\tID:name\tSM:sample'" in line
    assert not list(files.glob("*out*"))


def test_ids_of_several_inputs_are_unique(files: Path):
    rest = ["@PG\tID:last\tPN:x\tPP:basecaller", "@PG\tID:basecaller\tPN:dorado\tCL:{run}", "@CO\tnotes"]
    for run in ("one", "two", "three"):
        same = run if run != "three" else "two"
        lines = [f"@RG\tID:group\tSM:{same}\tPG:basecaller", *(line.format(run=same) for line in rest)]
        unaligned(files / f"{run}.bam", lines, {f"{run}_read": "group"})
    path = mapped(files, reads=("one.bam", "two.bam", "three.bam"))
    with pysam.AlignmentFile(str(path)) as file:
        header = file.header.to_dict()
        groups = {group["ID"]: group for group in header["RG"]}
        programs = {program["ID"]: program for program in header["PG"]}
        found = {record.query_name: (groups[record.get_tag("RG")], record.get_tag("yy")) for record in file}
    assert len(groups) == len(header["RG"]) == 2
    assert len(programs) == len(header["PG"]) == 5
    assert header["CO"] == ["notes"]
    assert {name: (group["SM"], number) for name, (group, number) in found.items()} == {
        "one_read": ("one", 5), "two_read": ("two", 5), "three_read": ("two", 5)
    }  # fmt: skip
    for sample, run in (("one", "one"), ("two", "two")):
        (group,) = (group for group in groups.values() if group["SM"] == sample)
        assert programs[group["PG"]]["CL"] == run
        (child,) = (one for one in programs.values() if one.get("PP") == group["PG"])
        assert child["PN"] == "x"


def test_a_new_id_is_not_one_of_a_later_file(files: Path):
    for sample, group in (("s1", "a"), ("s2", "a"), ("s3", "a.1"), ("s4", "a")):
        unaligned(files / f"{sample}.bam", [f"@RG\tID:{group}\tSM:{sample}"], {sample: group})
    with pysam.AlignmentFile(str(mapped(files, reads=("s1.bam", "s2.bam", "s3.bam", "s4.bam")))) as file:
        samples = {group["ID"]: group["SM"] for group in file.header.to_dict()["RG"]}
        assert len(samples) == 4
        assert all(samples[record.get_tag("RG")] == record.query_name for record in file)


def test_a_read_group_of_the_option_is_not_that_of_an_input(files: Path):
    unaligned(files / "in.bam", ["@RG\tID:a\tSM:other"], {"read": "a"})
    with pysam.AlignmentFile(str(mapped(files, "-R", r"@RG\tID:a\tSM:mine", reads=("in.bam",)))) as file:
        samples = {group["ID"]: group["SM"] for group in file.header.to_dict()["RG"]}
        assert [samples[record.get_tag("RG")] for record in file] == ["mine"]


@pytest.mark.parametrize("kind", ["fasta", "fastq", "bam"])
def test_names_of_reads_that_are_header_lines_are_refused(kind: str, files: Path, capfd: pytest.CaptureFixture[str]):
    reads = files / f"in.{kind}"
    if kind == "bam":
        unaligned(reads, [], {"fine": "a", "@x": "a"})
    elif kind == "fasta":
        reads.write_text(f">fine\n{CONTIG[:300]}\n>@x\n{CONTIG[:300]}\n")
    else:
        reads.write_text("".join(f"@{name}\nACGT\n+\nIIII\n" for name in ("fine", "@x")))
    line = refused(capfd, "map", files / "ref.fa", reads, "-o", files / "out.sam")
    assert f"{reads}: read @x: " in line
    assert not list(files.glob("*out*"))
    assert run_command("map", files / "ref.fa", reads, "-o", files / "out.paf") == 0


@pytest.mark.parametrize("name", ["*", "=x", "*x"])
def test_names_of_contigs_that_stand_for_something_else_are_refused(
    name: str, files: Path, capfd: pytest.CaptureFixture[str]
):
    (files / "ref.fa").write_text(f">{name}\n{CONTIG}\n")
    line = refused(capfd, "map", files / "ref.fa", files / "reads.fq", "-o", files / "out.bam")
    assert f"contig {name}: " in line
    assert not list(files.glob("*out*"))


def test_names_of_contigs_that_other_programs_refuse_are_told(files: Path, capfd: pytest.CaptureFixture[str]):
    (files / "ref.fa").write_text(f">tRNA(Ala),1\n{CONTIG}\n>@fine\n{CONTIG[::-1]}\n")
    mapped(files)
    (warning,) = [line for line in capfd.readouterr().err.splitlines() if "WARNING" in line]
    assert warning.endswith("refuse: tRNA(Ala),1")


def test_names_beyond_ascii_decide_ties_as_in_minimap2(files: Path):
    """The contigs are those that minimap2 2.24 has for the primary alignments."""
    (files / "ref.fa").write_text("".join(f">c{i}\n{CONTIG}\n" for i in range(4)))
    (files / "reads.fa").write_text("".join(f">é{i}\n{CONTIG[i * 20 : i * 20 + 1000]}\n" for i in range(16)))
    path = mapped(files, reads=("reads.fa",), name="out.paf")
    rows = [line.split("\t") for line in path.read_text().splitlines()]
    assert "".join(row[5][1] for row in rows if "tp:A:P" in row) == "1310202203012321"


def test_compressed_text(files: Path):
    for kind in ("sam", "paf"):
        plain, packed = mapped(files, name=f"out.{kind}"), mapped(files, name=f"out.{kind}.gz")
        lines = [
            [line for line in text.splitlines() if not line.startswith(b"@PG")]
            for text in (plain.read_bytes(), gzip.decompress(packed.read_bytes()))
        ]
        assert lines[0] == lines[1] != []
        assert packed.read_bytes()[12:14] == b"BC"
    assert not list(files.glob("*.bai"))


def test_a_name_without_an_ending_is_bam(files: Path):
    assert gzip.decompress(mapped(files, name="out").read_bytes()).startswith(b"BAM\1")


@pytest.mark.parametrize("kind", ["sam", "cram"])
def test_libraries_say_nothing(kind: str, files: Path):
    """In a process of its own, where nobody has told htslib to be quiet."""
    done = subprocess.run(
        process_of("map", files / "ref.fa", files / "reads.fq", "-t", 1, "-o", files / f"out.{kind}"),
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "EOF marker" not in done.stderr


TAGS = {
    "aa:i:5": "aa:i:5", "ab:i:-70000": "ab:i:-70000", "ac:i:4294967295": "ac:i:4294967295", "ad:f:1.5e1": "ad:f:15",
    "ae:A:x": "ae:A:x", "af:Z:a b": "af:Z:a b", "ag:Z:": "ag:Z:", "ah:H:1AF0": "ah:H:1AF0",
    "ai:B:c,-1,7": "ai:B:c,-1,7",
    "aj:B:c,200": "aj:B:C,200", "ak:B:C,-1,255": "ak:B:s,-1,255", "al:B:c,-1,40000": "al:B:i,-1,40000",
    "am:B:s,3000000000": "am:B:I,3000000000", "an:B:f,.5": "an:B:f,0.5",
    "ba:i:5000000000": None, "bb:i:1.5": None, "bc:i:": None, "bd:i:x": None, "be:f:1e99": None, "bf:f:nan": None,
    "bg:A:": None, "bh:A:ab": None, "bi:H:123": None, "bj:H:1g": None, "bk:B:I,-1,4294967295": None, "bl:B:c,": None,
    "bm:B:x,1": None, "bn:B:": None, "bo:B:c,1;2": None, "bp:Z:a\x01": None, "aa:i:6": None,
    f"bq:f:1e{'9' * 30}": None,
}  # fmt: skip


def test_tags_of_comments_fit_their_types(files: Path, capfd: pytest.CaptureFixture[str]):
    names = list(TAGS)
    text = "".join(f"@read{i}\t{tag}\tzz:i:7\n{CONTIG[:600]}\n+\n{'I' * 600}\n" for i, tag in enumerate(names))
    first = next(i for i, tag in enumerate(names) if TAGS[tag] is None)
    both = f"@both\taa:i:5\taa:i:6\tzz:i:7\n{CONTIG[:600]}\n+\n{'I' * 600}\n"
    (files / "reads.fq").write_text(text.replace(f"@read{names.index('aa:i:6')}\taa:i:6", "@alone\tq:1") + both)
    path = mapped(files, "-y", name="out.sam")
    n_wrong = sum(tag is None for tag in TAGS.values())
    lines = capfd.readouterr().err.splitlines()
    assert any(line.endswith(": left out 1 fields of comments that are no tags, as NM:i:3 is one") for line in lines)
    (warning,) = [line for line in lines if "WARNING" in line]
    assert f": {n_wrong} tags of comments do not fit their types" in warning
    assert warning.endswith(f"{names[first]} of read read{first}")
    records = (line.split("\t") for line in path.read_text().splitlines() if line[0] != "@")
    found = {fields[0]: fields[fields.index("rl:i:0") + 1 :] for fields in records}
    for i, tag in enumerate(names[:-2]):
        assert found[f"read{i}"] == [one for one in (TAGS[tag], "zz:i:7") if one is not None], tag
    assert found["both"] == ["aa:i:5", "zz:i:7"]
    assert found["alone"] == ["zz:i:7"]
