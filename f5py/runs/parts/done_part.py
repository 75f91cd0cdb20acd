"""Finished parts: their record, their files, checked before use, and the collected text table.

Everything here may be damaged, or from another plan or another machine. ``part.json`` has a checksum of the plan's
manifest, size and CRC-32 (ITU-T V.42) of every file, and a CRC-32 of its own values; so a part is intact, or an error.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, BinaryIO

from f5py.compute.statistics import RunStatistics
from f5py.errors import DamagedValueError, F5pyError, InputFileError
from f5py.io.files.atomic_write import link_into_place, nameless_file
from f5py.io.files.json_values import JsonObject
from f5py.io.files.open_below import open_below, read_below
from f5py.io.files.output import TextOutput
from f5py.jit.instructions import processor_has_fused_sums
from f5py.options.output_names import kind_of_output
from f5py.runs.outcome import Outcome
from f5py.runs.parts.plan import PARTS, Plan
from f5py.runs.parts.text_chain import CHAINS, Extent, append_rows, can_have_name

#: Names of the files that sinks keep for a part; they lead nowhere else.
_FILE_NAME = re.compile(r"[a-z0-9_]+(\.[a-z0-9]+)+")
RECORD = "part.json"
_MOST_RECORD = 1 << 28
_CHAIN_NAME = re.compile(r"[0-9a-f]{16}\.txt")
_PIECE = 1 << 20
_CHECKSUM = "checksum"
#: Names of outputs that are no text with tabs, and such formats.
_OTHERS = "csv", "parquet", "none", "bam"

#: Size of a file, and its CRC-32.
FileChecksum = tuple[int, int]


@dataclass(frozen=True)
class PartRecord:
    """Record of a finished part."""

    plan: str  # checksum of the plan's manifest
    number: int
    outcome: Outcome
    has_known: bool  # there is a read with bases in it
    seconds: float
    peak_bytes: int  # most memory of the process until then
    host: str  # the machine's name
    has_fused_sums: bool  # its processor has fused multiply-add
    table: Extent  # the rows of its table of text
    files: dict[str, FileChecksum]

    def as_json(self) -> bytes:
        """Encode ``part.json``."""
        return with_checksum(vars(self) | {"outcome": self.outcome.as_json()})

    @classmethod
    def from_json(cls, text: bytes, statistics: RunStatistics | None = None) -> PartRecord:
        """Restore the result of `as_json`, filling `statistics`. Raises `DamagedValueError`."""
        values = JsonObject.of_text(text)
        values.check_names([*cls.__dataclass_fields__, _CHECKSUM])
        checksum = values.integer(_CHECKSUM)
        if checksum != _checksum_of({name: values.members[name] for name in cls.__dataclass_fields__}):
            raise DamagedValueError("has changed since it was written")
        files = {}
        for name in values.object("files").members:
            if name == RECORD or not _FILE_NAME.fullmatch(name):
                raise DamagedValueError("files has a name that no file of a part has")
            n_bytes, crc = values.object("files").integers(name, (2,)).tolist()
            files[name] = n_bytes, crc
        return cls(
            values.text("plan"), values.integer("number"), Outcome.from_json(values.object("outcome"), statistics),
            values.flag("has_known"), values.number("seconds"), values.integer("peak_bytes"), values.text("host"),
            values.flag("has_fused_sums"), _parse_extent(values.members["table"]),
            files,
        )  # fmt: skip


def with_checksum(members: dict[str, Any]) -> bytes:
    """Encode a record with a checksum of its values as JSON."""
    as_read = json.loads(json.dumps(members))
    return json.dumps(as_read | {_CHECKSUM: _checksum_of(as_read)}).encode() + b"\n"


def _checksum_of(members: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(members, sort_keys=True).encode())


def _parse_extent(value: Any) -> Extent:
    if not isinstance(value, list) or len(value) != len(Extent._fields):
        raise DamagedValueError("table is not a file, its borders and a checksum")
    bounds = JsonObject(dict(zip(Extent._fields, value, strict=True)), "table")
    extent = Extent(bounds.text("file"), *(bounds.integer(name) for name in Extent._fields[1:]))
    if not _CHAIN_NAME.fullmatch(extent.file) or extent.begin > extent.end:
        raise DamagedValueError("table is not that of a part")
    return extent


@dataclass(frozen=True)
class DonePart:
    """Outputs of a finished part."""

    plan: Plan
    number: int
    record: PartRecord

    def open(self, name: str) -> BinaryIO:
        """Open one of its files. Raises `InputFileError` if it is damaged or missing."""
        if name not in self.record.files:
            raise damaged(self.plan, self.number, f"it has no {name}")
        try:
            file = _open_named(self.plan, PARTS, str(self.number), name)
        except OSError as problem:
            raise damaged(self.plan, self.number, f"{name} {_explain(problem)}") from None
        try:
            if _state(file, 0, None) != self.record.files[name]:
                raise damaged(self.plan, self.number, f"{name} has changed since it was written")
            file.seek(0)
        except BaseException:
            file.close()
            raise
        return file

    def check_table(self) -> None:
        """Raise `InputFileError` unless the rows of its text table, and the header of part 0, are intact."""
        if self.record.table in self.plan.checked_tables:
            return
        extent = self.record.table
        begin = extent.begin if self.number else 0
        try:
            with _open_named(self.plan, CHAINS, extent.file) as file:
                file.seek(begin)
                state = _state(file, begin, extent.end)
        except OSError as problem:
            raise damaged(self.plan, self.number, f"its table {_explain(problem)}") from None
        if state != (extent.end - begin, extent.checksum):
            raise damaged(self.plan, self.number, "the rows of its table have changed since they were written")
        self.plan.checked_tables.add(extent)

    def append_rows(self, out: TextOutput) -> None:
        """Check and write the rows of its text table."""
        self.check_table()
        append_rows(self.plan.folder, self.record.table, out)


def read_part(plan: Plan, number: int, statistics: RunStatistics | None = None) -> PartRecord:
    """Read the record of a finished part, filling `statistics`.

    Raises `InputFileError` if it is damaged or of another plan; of its files only the sizes are checked.
    """
    try:
        text = read_below(plan.folder, PARTS, str(number), RECORD, most=_MOST_RECORD)
        record = PartRecord.from_json(text, statistics)
    except DamagedValueError as problem:
        raise damaged(plan, number, f"{RECORD}: {problem}") from None
    except OSError as problem:
        raise damaged(plan, number, f"{RECORD} {_explain(problem)}") from None
    if record.plan != plan.fingerprint:
        raise damaged(plan, number, "it is a part of another plan")
    if record.number != number:
        raise damaged(plan, number, f"it is part {record.number} of this plan under another name")
    _check_sizes(plan, number, record)
    return record


def _check_sizes(plan: Plan, number: int, record: PartRecord) -> None:
    for name, (size, _) in record.files.items():
        try:
            with _open_named(plan, PARTS, str(number), name) as file:
                n_bytes = os.fstat(file.fileno()).st_size
        except OSError as problem:
            raise damaged(plan, number, f"{name} {_explain(problem)}") from None
        if n_bytes != size:
            raise damaged(plan, number, f"{name} has {n_bytes:,} bytes instead of {size:,}")
    try:
        with _open_named(plan, CHAINS, record.table.file) as file:
            n_bytes = os.fstat(file.fileno()).st_size
    except OSError as problem:
        raise damaged(plan, number, f"its table {_explain(problem)}") from None
    if n_bytes < record.table.end:
        raise damaged(plan, number, "the rows of its table are not there")


def damaged(plan: Plan, number: int, why: str) -> InputFileError:
    """Make the error of a part that must be repeated."""
    again = f"work on the part again: f5py run-part {plan.folder} {number}" if len(plan) else "run the command again"
    return InputFileError(f"{plan.part_folder(number)}: is damaged ({why}); remove it and {again}")


def check_processors(parts: Iterable[DonePart]) -> None:
    """Raise `F5pyError` if only some parts were computed with fused multiply-add.

    A few results in ten thousand would differ in the last digit.
    """
    found: dict[bool, DonePart] = {}
    for part in parts:
        found.setdefault(part.record.has_fused_sums, part)
    if len(found) > 1:
        raise _mixed_error(found[True], found[False].record.host, f"part {found[False].number}")


def check_processor(plan: Plan) -> None:
    """Raise `F5pyError` if this processor differs from that of finished parts; see `check_processors`."""
    for number in sorted(plan.done())[:1]:
        try:
            part = DonePart(plan, number, read_part(plan, number))
        except InputFileError:  # which finish will tell about
            return
        if part.record.has_fused_sums != processor_has_fused_sums():
            raise _mixed_error(part, os.uname().nodename, "this machine")


def _mixed_error(part: DonePart, host: str, other: str) -> F5pyError:
    kind = "has" if part.record.has_fused_sums else "lacks"
    return F5pyError(
        f"{part.plan.folder}: part {part.number} was done on {part.record.host}, whose processor {kind} fused "
        f"multiply-add, unlike that of {other} ({host}); last digits would differ: work on all parts on machines of "
        "one kind"
    )


def file_state(folder: Any, name: str) -> FileChecksum:
    """Return size and checksum of a new file."""
    with open(os.path.join(folder, name), "rb") as file:
        return _state(file, 0, None)


def _state(file: BinaryIO, begin: int, end: int | None) -> FileChecksum:
    """Return size and checksum of the rest of a file, or up to `end`."""
    n_bytes, checksum = 0, 0
    buffer = memoryview(bytearray(_PIECE))
    while end is None or begin + n_bytes < end:
        most = _PIECE if end is None else min(_PIECE, end - begin - n_bytes)
        n_read = file.readinto(buffer[:most])  # type: ignore[attr-defined]
        if not n_read:
            break
        checksum = zlib.crc32(buffer[:n_read], checksum)
        n_bytes += n_read
    return n_bytes, checksum


def _open_named(plan: Plan, *names: str) -> BinaryIO:
    """Open a file below the folder of a plan."""
    path = str(plan.folder.joinpath(*names))
    descriptor = open_below(plan.folder, *names)
    return open(path, "rb", opener=lambda *_: descriptor)


def _explain(problem: OSError) -> str:
    return f"cannot be read: {problem.strerror}"


class EarlyText:
    """Unnamed temporary file that appends finished parts in order and becomes the output. A context manager.

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


class PartsProgress:
    """Progress of the parts of a plan in other processes; `early` collects the rows of finished ones."""

    def __init__(self, plan: Plan, early: EarlyText, advance: Callable[[int], object]) -> None:
        self._plan, self._early, self._advance = plan, early, advance
        self._n_done = len(plan.done())

    def look(self) -> None:
        """Collect the rows of newly finished parts, and advance."""
        self._early.append_finished()
        n_before, self._n_done = self._n_done, len(self._plan.done())
        self._advance(self._n_done - n_before)


def _is_text(options: Any) -> bool:
    is_other = options.output_format in _OTHERS or kind_of_output(options.output) in _OTHERS
    return can_have_name(options.output) and not is_other
