"""Direct RNA on the reverse strand, as of negative-sense viruses or with a genome as the reference."""

from __future__ import annotations

from pathlib import Path

import pysam
import pytest

import f5py

from ..made_data import run_command


@pytest.fixture(scope="module", params=[1, 3])
def reverse(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, int]:
    """Make reads of RNA, every n-th of which lies on the reverse strand; return how many do, and how many there are."""
    folder = tmp_path_factory.mktemp("reverse")
    f5py.simulate(
        output=folder,
        pore="rna004",
        genome_length=3000,
        n_reads=6,
        median_length=700,
        signal_format="blow5",
        force=True,
    )
    with pysam.FastaFile(str(folder / "ref.fa")) as reference:
        contigs = {name: reference.fetch(name) for name in reference.references}
    complement = str.maketrans("ACGTacgt", "TGCAtgca")
    with (folder / "both.fa").open("w") as out:
        for name, bases in contigs.items():
            out.write(f">{name}\n{bases}\n>{name}_reverse\n{bases.translate(complement)[::-1]}\n")
    with pysam.AlignmentFile(str(folder / "reads.bam")) as bam:
        records = [record for record in bam if not record.is_unmapped]
    names = [name for one in contigs for name in (one, f"{one}_reverse")]
    header = pysam.AlignmentHeader.from_references(names, [len(contigs[one.removesuffix("_reverse")]) for one in names])
    n = 0
    with pysam.AlignmentFile(str(folder / "both.bam"), "wb", header=header) as bam:
        for i, record in enumerate(records):
            fields = record.to_dict()
            if i % request.param == 0:
                n += 1
                length = len(contigs[fields["ref_name"]])
                fields["flag"] = "16"
                fields["ref_pos"] = str(length - record.reference_end + 1)
                cigar = record.cigartuples[::-1]
                fields["cigar"] = "".join(f"{size}{'MIDNSHP=X'[operation]}" for operation, size in cigar)
                fields["seq"] = record.query_sequence.translate(complement)[::-1]
                fields["qual"] = fields["qual"][::-1]
                fields["ref_name"] += "_reverse"
            fields["tags"] = []
            bam.write(pysam.AlignedSegment.from_dict(fields, header))
    return folder, n, len(records)


@pytest.mark.parametrize("output", ["--m6anet-json", "--m6anet"])
def test_m6anet_is_told_to_take_none(
    reverse: tuple[Path, int, int], tmp_path: Path, output: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, n, n_all = reverse
    given = ["-b", folder / "both.bam", "-g", folder / "both.fa", "--slow5", folder / "reads.blow5", "-r"]
    given += [folder / "reads.fastq", "--rna", "-t", "1"]
    where = [output, tmp_path / "m6anet"] if output == "--m6anet-json" else [output, "-o", tmp_path / "x.tsv"]
    assert run_command("eventalign", *given, *where) == 0
    told = capfd.readouterr().err
    warnings = [line for line in told.splitlines() if "reverse strand" in line]
    assert len(warnings) == 1
    assert f"WARNING] {n} of {n_all} reads lie on the reverse strand, of which m6anet takes none" in warnings[0]
    assert n > 1
    assert ("WARNING] the table of --m6anet is f5c's" in told) == (output == "--m6anet")  # dataprep finds nothing in it


def test_the_usual_table_has_all_and_says_nothing(
    reverse: tuple[Path, int, int], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, _, n_all = reverse
    given = ["-b", folder / "both.bam", "-g", folder / "both.fa", "--slow5", folder / "reads.blow5", "-r"]
    given += [folder / "reads.fastq", "--rna", "-t", "1"]
    assert run_command("eventalign", *given, "-o", tmp_path / "x.tsv") == 0
    assert "reverse strand" not in capfd.readouterr().err
    assert len({line.split("\t")[3] for line in (tmp_path / "x.tsv").read_text().splitlines()[1:]}) == n_all
