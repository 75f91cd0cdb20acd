"""Checks of the outputs that options name."""

import os

from f5py.errors import OutputFileError, UsageError
from f5py.io.files.inputs_in_use import check_can_be_output
from f5py.io.remote import is_url
from f5py.options import Options, declarations
from f5py.options.declaration import paths_written
from f5py.options.output_names import check_name


def check_outputs(options: Options, *piped: str) -> None:
    """Refuse to overwrite an input, to write two outputs to one file, or into a missing folder.

    The `piped` fields may have ``-`` for standard output, as ``-o``. Raises `UsageError` or `OutputFileError`.
    """
    named: dict[str, str] = {}
    for field, option, path in paths_written(options):
        if is_url(path):
            raise UsageError(f"{option} {path}: results are written to files of this machine; copy them from there")
        if path == "-":
            if option != "-o" and field not in piped:
                raise UsageError(f"{option} -: give the name of a file; standard output is for the results")
            continue
        check_can_be_output(path)
        if os.path.isdir(path):
            raise UsageError(f"{option} {path}: is a folder; name a file")
        real = os.path.realpath(path)
        if not os.path.isdir(os.path.dirname(real)):  # some outputs are opened only when all the work is done
            raise OutputFileError(f"{path}: cannot write: No such file or directory; make its folder first")
        if real in named:
            raise UsageError(f"{path}: cannot be the output of both {named[real]} and {option}; give two names")
        named[real] = option
    declared = declarations(type(options))
    for field, option, path in paths_written(options):
        if (written := declared[field].writes) is not None and path != "-":
            check_name(option, path, written)
