"""Outputs of several runs or windows as one file: ``f5py merge``."""

import os

from f5py.errors import UsageError
from f5py.io.arrow.text_input import check_read_once
from f5py.io.files.complete_file import complete_output
from f5py.io.files.output import display_output
from f5py.io.output_checks import check_outputs
from f5py.messages import console
from f5py.options.output_names import OF_SITES, kind_of_name, kind_of_output
from f5py.options.signal_commands import JoinOptions
from f5py.outputs.merge.merged_modbam import merge_modbams
from f5py.outputs.merge.merged_tables import merge_bedmethyls, merge_parquets, merge_texts

_WHO = "merge"


def run(options: JoinOptions) -> None:
    """Merge the files into one. Raises `F5pyError`."""
    if not options.inputs:
        raise UsageError("no files are given; name the outputs to merge")
    check_read_once(options.inputs)
    check_outputs(options)
    kinds = {kind_of_name(path) for path in options.inputs}
    if len(kinds) > 1:
        raise UsageError(f"the files are of several kinds ({', '.join(sorted(kinds))}); merge those of one kind")
    kind = kinds.pop()
    if kind in ("bedgraph", "bigwig", "sam"):
        raise UsageError(f"{options.inputs[0]}: {kind} cannot be merged; merge bedMethyl, or BAM")
    to = kind_of_output(options.output)
    if options.output != "-" and to != kind and not (kind == "bedmethyl" and to in OF_SITES):
        raise UsageError(f"-o {options.output}: would be {to}, and the files are {kind}; give another name")
    if kind == "parquet" and options.output == "-":
        raise UsageError("-o: name a file; Parquet cannot go to a pipe")
    if kind == "bam":
        with complete_output(options.output) as out:
            n_shared = merge_modbams(options.inputs, out, options.output, options.threads, options.command_line)
        if n_shared:
            console.info(_WHO, f"{n_shared} records stood in several files; each is there once, with the calls of all")
    elif kind == "parquet":
        with complete_output(options.output) as out:
            merge_parquets(options.inputs, out)
    elif kind == "bedmethyl":
        merge_bedmethyls(options.inputs, options.output, options.threads)
    else:
        merge_texts(options.inputs, options.output, options.threads)
    size = f"; {os.path.getsize(options.output):,} bytes" if os.path.isfile(options.output) else ""
    what = f"{len(options.inputs)} files merged; written: {display_output(options.output)}{size}"
    console.result(_WHO, what, options.output)
