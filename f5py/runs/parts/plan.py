"""Plan of a run in parts: a folder with a manifest, and a folder for each finished part.

``plan.json`` has the command and its options, the version of the program, the inputs' sizes and checksums, and the
range of the alignments of every part. ``parts/N`` appears when part N is complete: it is renamed after all of its data
have reached the disk. So a part is complete or missing, however a process ends, and any number of processes may compute
different parts, or the same.
"""

from __future__ import annotations

import dataclasses
import errno
import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from f5py import __version__
from f5py.errors import DamagedValueError, F5pyError, InputFileError, OutputFileError, UsageError
from f5py.io.bam.record_ranges import RecordRange
from f5py.io.files.atomic_write import is_special, temporary_name
from f5py.io.files.complete_file import complete_output
from f5py.io.files.disk import remove_folder, sync_to_disk, temporary_folder
from f5py.io.files.json_values import MOST, JsonObject, is_text
from f5py.io.files.open_below import check_own_folder, is_folder, read_below
from f5py.messages import console
from f5py.options import Option, declarations
from f5py.options.declaration import Kind
from f5py.options.shared import AlignmentOptions
from f5py.options.signal_commands import MOST_PARTS, CallOptions, EventalignOptions, ResquiggleOptions
from f5py.runs.parts.fingerprint import check_unchanged, fingerprints
from f5py.runs.parts.text_chain import CHAINS, Extent, write_errors

_MANIFEST = "plan.json"
PARTS = "parts"
_FORMAT = 3
_MOST_MANIFEST = 1 << 30
_NAMES = ("format", "version", "command", "options", "working_folder", "inputs", "ranges")
_PART_NAME = re.compile(r"0|[1-9][0-9]{0,17}")
_SHOWN = 5
#: Ending of folders of parts beside outputs.
_ENDING = ".f5py-parts"

#: What commands that run in parts have as options.
OPTIONS_OF: Mapping[str, type[AlignmentOptions]] = {
    "call-methylation": CallOptions, "eventalign": EventalignOptions, "resquiggle": ResquiggleOptions,
}  # fmt: skip


def planned_options(command: str, values: Mapping[str, Any]) -> AlignmentOptions:
    """Restore the options of a command from their JSON values.

    Raises `DamagedValueError` for a command without parts, or a value that its option does not allow.
    """
    if command not in OPTIONS_OF:
        raise DamagedValueError("the command is not one that runs in parts")
    kind = OPTIONS_OF[command]
    fields = {field.name: field for field in dataclasses.fields(kind)}
    if values.keys() != fields.keys():
        raise DamagedValueError("its options are not those of the command")
    typed = {name: _value_of(field, values[name]) for name, field in fields.items()}
    try:
        return kind(**typed)
    except UsageError as problem:
        raise DamagedValueError(str(problem)) from None


def _value_of(field: dataclasses.Field[Any], value: Any) -> Any:
    declared: Option | None = field.metadata.get("option")
    wrong = DamagedValueError(f"options.{field.name} has a value that this option cannot have")
    if declared is None:
        if type(value) is not type(field.default) or not (is_text(value) or _is_integer(value)):
            raise wrong
        return value
    if declared.repeated:
        if not isinstance(value, list | tuple) or not all(_fits(declared, one) for one in value):
            raise wrong
        return tuple(value)
    if value is None and (declared.default is None or declared.refused):
        return None
    if not _fits(declared, value):
        raise wrong
    return value


def _fits(declared: Option, value: Any) -> bool:
    """Return whether a value has the type of its option; ranges are checked when options are made."""
    if declared.choices:
        return any(type(value) is type(choice) and value == choice for choice in declared.choices)
    if declared.kind in (Kind.FLAG, Kind.YES_NO):
        return isinstance(value, bool)
    if declared.kind in (Kind.INTEGER, Kind.BASES):
        return _is_integer(value)
    if declared.kind is Kind.NUMBER:
        return _is_integer(value) or isinstance(value, float)
    return is_text(value)


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= MOST


@dataclasses.dataclass(frozen=True)
class Plan:
    """Options, inputs and parts of a run in parts."""

    folder: Path
    command: str  # ``call-methylation``, ``eventalign`` or ``resquiggle``
    options: dict[str, Any]  # the values of its options
    inputs: dict[str, dict[str, Any]]  # fingerprints by path
    # one for each part; none if it turns out on the way how many there are, as for ``resquiggle`` and ``--watch``
    ranges: list[RecordRange]
    working_folder: str  # the folder that paths are relative to
    fingerprint: str  # checksum of the manifest; parts have it too
    # whether parts must outlive what ends the process, or the machine
    is_kept: bool = dataclasses.field(default=True, compare=False)
    # rows of parts that this process has found to be what was written
    checked_tables: set[Extent] = dataclasses.field(default_factory=set, compare=False, repr=False)

    def __len__(self) -> int:
        return len(self.ranges)

    @classmethod
    def make(
        cls,
        folder: str,
        command: str,
        options: AlignmentOptions,
        inputs: Iterable[str | None],
        ranges: list[RecordRange],
    ) -> Plan:
        """Write a plan into a folder, which is created if missing.

        Raises `UsageError` if the folder has a plan already, or `OutputFileError`.
        """
        path = Path(folder).absolute()
        content: dict[str, Any] = {
            "format": _FORMAT, "version": __version__, "command": command, "options": dataclasses.asdict(options),
            "working_folder": os.getcwd(), "inputs": fingerprints(inputs),
        }  # fmt: skip
        if os.path.lexists(path / _MANIFEST):
            raise UsageError(f"--plan {folder}: has a plan already; leave --partitions out to go on with it")
        for name in (PARTS, CHAINS):
            check_own_folder(path, name)
        with write_errors(folder):
            (path / PARTS).mkdir(parents=True, exist_ok=True)
        text = json.dumps(content | {"ranges": list(ranges)}).encode() + b"\n"
        with complete_output(str(path / _MANIFEST)) as file:
            file.write(text)
            file.flush()
            sync_to_disk(file.fileno())
        _to_disk(path)
        return cls(
            path, command, content["options"], content["inputs"], ranges, content["working_folder"],
            hashlib.sha256(text).hexdigest(),
        )  # fmt: skip

    @classmethod
    def load(cls, folder: str) -> Plan:
        """Read the plan in a folder. Raises `InputFileError` if it is missing, damaged or of another version."""
        path = Path(folder).absolute() / _MANIFEST
        try:
            text = read_below(path.parent, _MANIFEST, most=_MOST_MANIFEST)
        except FileNotFoundError:
            raise InputFileError(
                f"{folder}: has no plan; f5py call-methylation --plan {folder} --partitions N ... makes one"
            ) from None
        except OSError as problem:
            raise InputFileError(f"{path}: cannot be read: {problem.strerror}") from None
        for name in (PARTS, CHAINS):
            check_own_folder(path.parent, name)
        try:
            return cls._parsed(path, text)
        except DamagedValueError as problem:
            raise InputFileError(f"{path}: is damaged: {problem}; make a new plan") from None

    @classmethod
    def _parsed(cls, path: Path, text: bytes) -> Plan:
        content = JsonObject.of_text(text)
        version = content.text("version")
        if content.integer("format") != _FORMAT or version != __version__:
            raise InputFileError(
                f"{path}: is a plan of f5py {version}, and this is {__version__}; finish it with that version, or make "
                "a new plan"
            )
        content.check_names(_NAMES)
        command, options = content.text("command"), content.object("options").members
        planned_options(command, options)
        inputs = content.object("inputs")
        return cls(
            path.parent, command, options, {name: _parse_input(inputs, name) for name in inputs.members},
            _parse_ranges(content), content.text("working_folder"), hashlib.sha256(text).hexdigest(),
        )  # fmt: skip

    @classmethod
    def load_same(cls, folder: str, command: str, options: AlignmentOptions) -> Plan:
        """Read the plan in a folder for resuming.

        Raises `UsageError` for another command or other options, `F5pyError` if it was made in another working folder
        or an input has changed, `InputFileError` as for `load`.
        """
        plan = cls.load(folder)
        plan.check_same(command, options)
        if os.path.realpath(plan.working_folder) != os.path.realpath(os.getcwd()):  # paths have another meaning
            raise F5pyError(f"{plan.folder}: was planned in {plan.working_folder}; run it there, or with f5py run-part")
        plan.check_inputs()
        return plan

    @staticmethod
    def is_there(folder: str) -> bool:
        return os.path.exists(os.path.join(folder, _MANIFEST))

    def run_options(self) -> Any:
        """Return the command's options object."""
        return planned_options(self.command, self.options)

    def part_folder(self, number: int) -> Path:
        """Return the path of a finished part's folder."""
        return self.folder / PARTS / str(number)

    def is_done(self, number: int) -> bool:
        return is_folder(self.part_folder(number))

    def done(self) -> set[int]:
        """Return the finished parts."""
        try:
            names = [entry.name for entry in os.scandir(self.folder / PARTS) if entry.is_dir(follow_symlinks=False)]
        except FileNotFoundError:
            return set()
        return {int(name) for name in names if _PART_NAME.fullmatch(name)}

    def unfinished(self) -> list[int]:
        """List the unfinished parts, in order."""
        done = self.done()
        return [number for number in range(len(self)) if number not in done]

    def begin_part(self, number: int) -> Path:
        """Create a folder for the outputs of a part in progress."""
        folder = self.folder / PARTS / f".{number}-{secrets.token_hex(8)}"
        with write_errors(folder):
            folder.mkdir(parents=True)
        return folder

    def complete_part(self, number: int, folder: Path) -> None:
        """Rename a folder of `begin_part` to the part's, unless another process was faster.

        Raises `OutputFileError` if its files cannot be flushed to the disk.
        """
        try:
            if self.is_kept:
                for name in os.listdir(folder):
                    with open(folder / name, "rb") as file:
                        sync_to_disk(file.fileno())
                _to_disk(folder)
            os.rename(folder, self.part_folder(number))
            if self.is_kept:
                _to_disk(folder.parent)
        except OSError as problem:
            if not self.is_done(number):
                raise OutputFileError(f"{folder}: cannot write: {problem.strerror}; the part is not done") from None
            self.abandon_part(folder)

    def abandon_part(self, folder: Path) -> None:
        """Remove a folder of `begin_part`."""
        with suppress(OSError):
            shutil.rmtree(folder)

    def remove_parts(self) -> None:
        """Remove the plan's files from its folder, in an order that never leaves an incomplete part."""
        try:
            for name in (PARTS, CHAINS):
                removed = self.folder / f".removed-{name}"
                shutil.rmtree(removed, ignore_errors=True)
                with suppress(FileNotFoundError):
                    os.rename(self.folder / name, removed)
                    shutil.rmtree(removed)
            (self.folder / _MANIFEST).unlink()
            self.folder.rmdir()
        except OSError as problem:
            if problem.errno != errno.ENOTEMPTY:  # files of others stay
                why = f"cannot be removed ({problem.strerror}), and is of no use any more; remove it"
                console.warning("parts", f"{self.folder}: {why}")

    def check_inputs(self) -> None:
        """Raise `InputFileError` if an input has changed since planning."""
        check_unchanged(self.inputs, "the plan")

    def check_same(self, command: str, options: AlignmentOptions) -> None:
        """Raise `UsageError` unless the plan has this command and these options."""
        if command != self.command:
            raise UsageError(f"{self.folder}: is the plan of f5py {self.command}, not of {command}")
        given = json.loads(json.dumps(dataclasses.asdict(options)))
        declared = declarations(type(options))
        free = {name for name, option in declared.items() if option.is_free} | {"command_line"}
        changed = [
            f"{_spell(declared.get(name), name)}: {_format(self.options.get(name))} then, {_format(value)} now"
            for name, value in given.items()
            if name not in free and value != self.options.get(name)
        ]
        if changed:
            more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
            raise UsageError(
                f"{self.folder}: the plan was made with other options ({'; '.join(changed[:_SHOWN])}{more}); "
                "give the same, or another folder for a new plan"
            )

    def check_divided(self) -> None:
        """Raise `UsageError` if the parts are only defined while reads are loaded."""
        if not len(self):
            option = "--watch" if self.options.get("watch") else "--resume"
            raise UsageError(
                f"{self.folder}: is of f5py {self.command} {option}; the same command again goes on with it"
            )


def _parse_input(inputs: JsonObject, path: str) -> dict[str, Any]:
    """Parse the fingerprint of an input."""
    about = inputs.object(path)
    if not is_text(path):
        raise DamagedValueError("inputs has a name that no file has")
    about.check_names(("bytes", "modified", "sha256"))
    modified = about.members["modified"]
    return {
        "bytes": about.integer("bytes"),
        # of a URL what its service says of it
        "modified": modified if is_text(modified) else about.integer("modified", -MOST),
        "sha256": about.text("sha256"),
    }


def _parse_ranges(content: JsonObject) -> list[RecordRange]:
    """Parse the ranges of the parts, None for the end of the file."""
    listed = content.members["ranges"]
    if not isinstance(listed, list) or not all(isinstance(one, list) for one in listed):
        raise DamagedValueError("ranges is not a list of lists")
    bounds = JsonObject({"ranges": [[-1 if value is None else value for value in one] for one in listed]})
    array = bounds.integers("ranges", (-1, 3), least=-1)
    if len(array) > MOST_PARTS or array[:, [0, 2]].min(initial=0) < 0:
        raise DamagedValueError("ranges has bounds that no part has")
    return [RecordRange(begin, None if end < 0 else end, first) for begin, end, first in array.tolist()]


def _spell(option: Option | None, name: str) -> str:
    return name if option is None or not option.names else option.names[-1]


def _format(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)


def _to_disk(folder: Path) -> None:
    """Flush the entries of a folder to the disk."""
    with suppress(OSError):  # file systems that cannot
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def folder_beside(output: str | None, advice: str) -> str:
    """Return the folder for ``--resume`` next to an output.

    Raises `UsageError` with `advice` if the output is not a regular file; ``-`` and None are standard output.
    """
    if output is None or output == "-":
        raise UsageError(f"--resume: the results go to standard output; {advice}")
    if is_special(output):
        raise UsageError(f"--resume: {output} is a device or a pipe; {advice}")
    return f"{output}{_ENDING}"


@contextmanager
def unfinished_folder(output: str | None) -> Iterator[str]:
    """Create a temporary folder next to an output, or anywhere for None. Also remove one left by a killed run.

    Raises `OutputFileError` if it cannot be created, or another run is writing the output.
    """
    if output is None:
        with temporary_folder("f5py-parts-") as folder:
            yield folder
        return
    path = f"{temporary_name(os.path.realpath(output))}{_ENDING}"
    try:
        with suppress(FileExistsError):
            os.mkdir(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as problem:
        advice = "; make its folder first" if isinstance(problem, FileNotFoundError) else ""
        raise OutputFileError(f"{output}: cannot write: {problem.strerror}{advice}") from None
    try:
        with suppress(OSError):  # where there are no locks, two runs are not kept apart
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OutputFileError(f"{output}: another run is writing to it; give another name") from None
        try:
            remove_folder(folder := os.path.join(path, "run"))
            yield folder
        finally:
            remove_folder(path)
    finally:
        os.close(descriptor)
