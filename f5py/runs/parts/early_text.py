"""Text table of all parts, collected while the last parts are computed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, BinaryIO

from f5py.errors import InputFileError
from f5py.io.files.atomic_write import link_into_place, nameless_file
from f5py.options.output_names import kind_of_output
from f5py.runs.parts.done_part import DonePart, read_part
from f5py.runs.parts.plan import Plan
from f5py.runs.parts.text_chain import Extent, append_rows, can_have_name

#: Names of outputs that are no text with tabs, and such formats.
_OTHERS = "csv", "parquet", "none", "bam"


class EarlyText:
    """Unnamed temporary file that appends finished parts in order and becomes the output; a context manager.

    Nothing of it remains if the process dies. On file systems without unnamed files, for other formats, and after any
    error it does nothing, and the parts are joined at the end.
    """

    def __init__(self, plan: Plan, options: Any) -> None:
        self._plan = plan
        self._taken: list[Extent] = []
        self._file: BinaryIO | None = None
        if _is_text(options) and (descriptor := nameless_file(options.output)) is not None:
            self._file = os.fdopen(descriptor, "wb")

    def __enter__(self) -> EarlyText:
        return self

    def __exit__(self, *problem: object) -> None:
        self._give_up()

    def append_finished(self) -> None:
        """Append the next finished parts."""
        plan = self._plan
        while self._file is not None and len(self._taken) < len(plan) and plan.is_done(number := len(self._taken)):
            try:
                part = DonePart(plan, number, read_part(plan, number))
                part.check_table()
                extent = part.record.table
                # with the header, which is before the rows of part 0
                append_rows(plan.folder, extent if number else extent._replace(begin=0), self._file)
                self._taken.append(extent)
            except (InputFileError, OSError):
                self._give_up()

    def give_name(self, extents: Sequence[Extent], output: str) -> bool:
        """Rename the file to the output if it has these rows; return whether it has."""
        if self._file is None or list(extents) != self._taken:
            return False
        try:
            self._file.flush()
            about = os.fstat(self._file.fileno())
        except OSError:
            return False
        return link_into_place(self._file.fileno(), output, about)

    def _give_up(self) -> None:
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._file = None


def _is_text(options: Any) -> bool:
    is_other = options.output_format in _OTHERS or kind_of_output(options.output) in _OTHERS
    return can_have_name(options.output) and not is_other
