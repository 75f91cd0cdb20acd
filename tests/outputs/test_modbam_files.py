"""modBAM files: which records are written how, and the header."""

from __future__ import annotations

import array
import os

import pysam
import pytest

from f5py import __version__
from f5py.core.motifs import motif_named
from f5py.errors import OutputFileError
from f5py.io.bam.bam_output import RecordOutput
from f5py.io.bam.headers import header_with_program
from f5py.options.signal_commands import CallOptions
from f5py.outputs.calls.modbam import ModbamTags
from f5py.outputs.sink import Sinks

from .made_modbam import GENOME, HEADER, REVERSE, SECONDARY, SUPPLEMENTARY, made_batch, made_record, modified_bases

CPG = motif_named("cpg")


def opened(path, motif=CPG, header=HEADER, windows=None, reference=None, **options):
    options = CallOptions(reads="-", bam="-", genome="-", threads=2, modbam=str(path), **options)
    return Sinks([ModbamTags(str(path), options, header_with_program(header, "f5py x"), [motif], windows, reference)])


def written(tmp_path, batches, motif=CPG, name="out.bam", **options):
    """Read the records of the file that a sink makes of the batches, and its header."""
    path = tmp_path / name
    sinks = opened(path, motif, **options)
    for batch in batches:
        sinks.write(batch)
    sinks.finish()
    with pysam.AlignmentFile(str(path), check_sq=False) as file:
        return list(file.fetch(until_eof=True)), file.header


def lines(records):
    return [record.to_string() for record in records]


def test_a_pipe_that_is_not_read_to_its_end_is_no_failure():
    """Such as that into samtools view and head; see `f5py.cli.main` for the status."""
    reader, end = os.pipe()
    os.close(reader)
    header = header_with_program(HEADER, "f5py x")
    with os.fdopen(end, "wb") as file, pytest.raises(BrokenPipeError), RecordOutput(file, "-", header):
        pass


@pytest.mark.parametrize("style", ["read", "reference"])
def test_the_formats_hold_the_same_records(tmp_path, style):
    genome = tmp_path / "ref.fa"
    genome.write_text(f">chr1\n{GENOME + 'A' * (5000 - len(GENOME))}\n")
    batch = made_batch(GENOME, [made_record(GENOME, "28M")], [[(2, 7, 2, 0.0)]])
    made = [
        lines(written(tmp_path, [batch], modbam_style=style, name=f"out{end}", reference=str(genome))[0])
        for end in (".bam", ".sam", ".cram")
    ]
    assert made[0] == made[1]
    # CRAM adds the tags that follow from the reference, which this record lacks
    assert [line.replace("\tMD:Z:28", "").replace("\tNM:i:0", "") for line in made[2]] == made[0]
    assert (tmp_path / "out.cram").read_bytes()[:4] == b"CRAM"
    assert (tmp_path / "out.sam").read_bytes()[:3] == b"@HD"
    assert (tmp_path / "out.bam").read_bytes()[:2] == b"\x1f\x8b"


def test_cram_without_the_reference_is_refused(tmp_path):
    with pytest.raises(OutputFileError, match="CRAM needs the reference"):
        written(tmp_path, [], name="out.cram")
    assert list(tmp_path.iterdir()) == []


def test_reference_style_shows_the_reference(tmp_path):
    sequence = GENOME[3:7] + "TTT" + GENOME[9:22]
    reads = [
        made_record(sequence, "4M3I2D13M", start=3, flag=flag, name=f"r{flag}", NM=5, MD="4^CC13", HP=1, RG="a", cs="x")
        for flag in (0, REVERSE, REVERSE + SUPPLEMENTARY, SECONDARY, 1024)
    ]
    calls = [[(7, 11, 2, 0.0), (16, 16, 1, 3.0)]] * len(reads)
    records, _ = written(tmp_path, [made_batch(GENOME, reads, calls)], modbam_style="reference")
    for old, new in zip(reads, records, strict=True):
        assert new.flag == old.flag
        assert new.query_sequence == GENOME[3:22]
        assert new.cigarstring == "19M"
        assert set(new.query_qualities) == {30}
        assert (new.reference_start, new.reference_end) == (3, 22)
        assert {tag for tag, _ in new.get_tags()} == {"HP", "RG", "MM", "ML", "MN"}
        positions = [base.position + 3 for base in modified_bases(new)]
        assert positions == ([8, 12, 17] if new.is_reverse else [7, 11, 16])


OTHER = {"MM": "C+h?,0;", "ML": array.array("B", [77]), "MN": 28}
OLD = {"Mm": "C+m,0;", "Ml": array.array("B", [78])}


@pytest.mark.parametrize("style", ["read", "reference"])
def test_other_programs_tags_are_kept_unless_asked(tmp_path, capsys, style):
    reads = [
        made_record(GENOME, "28M", name="other", **OTHER),
        made_record(GENOME, "28M", name="old", **OLD),
        made_record(GENOME, "28M", name="none", XX=1),
        made_record(GENOME, "28M", name="uncalled", **OTHER),
    ]
    calls = [[(2, 2, 1, 0.0)]] * 3 + [[]]
    left_out = made_record(GENOME, "28M", name="left", **OTHER)

    kept, _ = written(tmp_path, [made_batch(GENOME, reads, calls, [(1, left_out)])], modbam_style=style)
    assert lines(kept[:3]) == lines([reads[0], left_out, reads[1]])
    assert kept[3].get_tag("MM") == "C+m?,0;"
    assert lines(kept[4:]) == lines(reads[3:])
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "4 records keep" in message
    assert "--replace-tags" in message

    batch = made_batch(GENOME, reads, calls, [(1, left_out)])
    replaced, _ = written(tmp_path, [batch], modbam_style=style, replace_tags=True)
    for record in (replaced[0], replaced[2], replaced[3]):
        tags = dict(record.get_tags())
        assert (tags["MM"], list(tags["ML"]), tags["MN"]) == ("C+m?,0;", [128], 28)
        assert not {"Mm", "Ml"} & set(tags)
    assert lines([replaced[1], replaced[4]]) == lines([left_out, reads[3]])
    assert "2 records keep" in capsys.readouterr().err


def test_a_lone_length_tag_is_no_modification(tmp_path):
    batch = made_batch(GENOME, [made_record(GENOME, "28M", MN=3)], [[(2, 2, 1, 0.0)]])
    (record,), _ = written(tmp_path, [batch])
    assert record.get_tag("MN") == 28
    assert modified_bases(record)


# -- header


def programs(text):
    header = header_with_program(pysam.AlignmentHeader.from_text(text), "f5py call-methylation\t-r  'a b'\n")
    return [line for line in str(header).split("\n") if line]


def test_the_header_gets_one_line():
    text = "@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:chr1\tLN:5000\tM5:x\n@RG\tID:g\n@CO\tfree\ttext\n"
    assert programs(text) == [
        *text.split("\n")[:-1], f"@PG\tID:f5py\tPN:f5py\tVN:{__version__}\tCL:f5py call-methylation -r  'a b' ",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("chain", "identifier", "previous"),
    [
        (["ID:minimap2\tPN:minimap2", "ID:samtools\tPP:minimap2"], "f5py", "samtools"),
        (["ID:b\tPP:a", "ID:a"], "f5py", "b"),
        (["ID:a", "ID:f5py\tPP:a"], "f5py.1", "f5py"),
        (["ID:f5py", "ID:f5py.1\tPP:f5py"], "f5py.2", "f5py.1"),
        (["ID:a", "ID:b"], "f5py", "b"),
    ],
)
def test_the_program_line_follows_the_chain(chain, identifier, previous):
    text = "@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:5000\n" + "".join(f"@PG\t{line}\n" for line in chain)
    assert programs(text)[-1].startswith(f"@PG\tID:{identifier}\tPN:f5py\tPP:{previous}\tVN:")


def test_a_format_version_without_array_tags_is_raised():
    assert programs("@HD\tVN:1.3\tSO:coordinate\n@SQ\tSN:c\tLN:9\n")[0] == "@HD\tVN:1.6\tSO:coordinate"
    assert programs("@HD\tVN:1.4\n@SQ\tSN:c\tLN:9\n")[0] == "@HD\tVN:1.4"


def test_a_header_that_is_not_utf8_stays_as_it_is(tmp_path):
    raw = tmp_path / "raw.sam"
    raw.write_bytes(b"@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:5000\n@CO\tM\xfcller\n")
    with pysam.AlignmentFile(str(raw)) as file:
        header = file.header
    path = tmp_path / "out.sam"
    opened(path, header=header).finish()
    assert b"@CO\tM\xfcller\n" in path.read_bytes()
    assert b"@PG\tID:f5py" in path.read_bytes()
