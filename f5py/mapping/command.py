"""Map reads to a reference: the command ``f5py map``."""

import os

from f5py.io.arrow.text_input import check_read_once
from f5py.io.files.output import display_output
from f5py.io.output_checks import check_outputs
from f5py.mapping.options import MapOptions
from f5py.mapping.run.flow import MapCounts
from f5py.mapping.run.map_reads import map_reads
from f5py.messages import console


def run(options: MapOptions) -> MapCounts:
    """Map the reads and write them. Raises `F5pyError` for bad options or inputs, or a failed output."""
    check_read_once(options.reads)
    check_outputs(options)
    if not options.is_paf and _is_fastq(options.reference):
        console.warning("map", f"{options.reference}: the reference is FASTQ, as reads are; the order is REF READS")
    if options.max_secondary == 0:
        console.note("map", "-N 0: taken as --secondary no, as minimap2 does")
    counts = map_reads(options)
    if options.reads:
        console.result("map", f"{counts}; written: {display_output(options.output)}", options.output)
    return counts


def _is_fastq(path: str) -> bool:
    """Return whether a file exists and begins as FASTQ does."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(1) == b"@"
