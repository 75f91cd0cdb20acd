"""Inputs and outputs of ``map``: reads, references, indices, and what stands at the place of an output."""

from __future__ import annotations

import os
import random
from pathlib import Path

from .base import Base
from .mutations import BYTES, TEXT, mutated
from .targets import Target, Touched, of_bam_header, of_bam_record, of_bytes, of_cram, of_packed, of_reads_gz

_OUT = "out.sam"


def _map(*words: str) -> tuple[str, ...]:
    return ("map", "-t", "1", "--gpu", "off", *words, "-o", _OUT)


def of_output_place(rng: random.Random, base: Base, folder: Path) -> Touched:
    """Put something at the places of the output, its index, and the names that these have until they are complete."""
    for _ in range(rng.randint(1, 3)):
        name = rng.choice(("out.bam", "out.bam.bai"))
        is_temporary = rng.random() < 0.5
        path = folder / (f".unfinished-{name}" if is_temporary else name)
        if path.is_dir() and not path.is_symlink():
            continue
        path.unlink(missing_ok=True)
        kind = rng.randrange(7)
        if kind == 0:
            path.mkdir()
        elif kind == 1:
            # an output that is /dev/null is thrown away, as asked
            null = ("/dev/null",) if is_temporary else ()
            path.symlink_to(rng.choice(("nowhere", "no/where", "reads.fastq", "ref.fa", *null, ".", path.name)))
        elif kind == 2 and is_temporary:  # an output waits for a pipe's reader
            os.mkfifo(path)
        elif kind == 3:
            os.link(folder / rng.choice(("reads.fastq", "ref.fa", "calls.tsv")), path)
        else:
            path.write_bytes(mutated(rng, base.bytes("reads.bam"), BYTES))
            path.chmod(rng.choice((0o644, 0o444, 0o600, 0)))
    return None


TARGETS: tuple[Target, ...] = (
    Target("map fasta", _map("ref.fa", "plain.fa"), of_bytes("plain.fa", TEXT), by_read=0, output=_OUT, weight=6),
    Target("map fastq", _map("ref.fa", "reads.fastq"), of_bytes("reads.fastq", TEXT), by_read=0, output=_OUT, weight=6),
    Target("map comments", _map("-y", "ref.fa", "tagged.fastq"), of_bytes("tagged.fastq", TEXT), by_read=0,
           output=_OUT, weight=10),
    Target("map gz", _map("ref.fa", "reads.fa.gz"), of_reads_gz, by_read=0, output=_OUT),
    Target("map bam", _map("ref.fa", "tags.bam"), of_bam_record("tags.bam"), by_read=0, output=_OUT, weight=8),
    Target("map bam header", _map("ref.fa", "tags.bam", "groups.bam"), of_bam_header("groups.bam"), by_read=0,
           output=_OUT, weight=8),
    Target("map bam text", _map("ref.fa", "tags.bam"), of_packed("tags.bam"), by_read=0, output=_OUT),
    Target("map sam", _map("ref.fa", "reads.sam"), of_bytes("reads.sam", TEXT), by_read=0, output=_OUT, weight=6),
    Target("map cram", _map("ref.fa", "reads.cram"), of_cram, by_read=0, output=_OUT),
    Target("map reference", _map("ref.fa", "reads.fastq"), of_bytes("ref.fa", TEXT), by_read=0, output=_OUT, weight=8),
    Target("map index", _map("ref.f5i", "reads.fastq"), of_bytes("ref.f5i"), is_checked=True, by_read=0, output=_OUT,
           weight=8),
    Target("map index mem", _map("--seeds", "mem", "mem.f5i", "reads.fastq"), of_bytes("mem.f5i"), is_checked=True,
           by_read=0, output=_OUT, weight=6),
    Target("map overlaps", ("map", "-t", "1", "--gpu", "off", "-x", "darwin", "reads.fastq", "reads.fastq", "-o",
                            "out.paf"), of_bytes("reads.fastq", TEXT), by_read=None, output="out.paf"),
    Target("map output", ("map", "-t", "1", "--gpu", "off", "ref.fa", "reads.fastq", "-o", "out.bam"), of_output_place,
           is_checked=True, by_read=None, output="out.bam", weight=6),
    Target("merge modbam header", ("merge", "mod.bam", "groups.bam", "-t", "1", "-o", "out.bam"),
           of_bam_header("groups.bam"), by_read=None, output="out.bam", weight=6),
    Target("merge events", ("merge", "events.tsv", "sound_events.tsv", "-o", "out.tsv"), of_bytes("events.tsv", TEXT),
           by_read=None, output="out.tsv"),
)  # fmt: skip
