"""Runs in parts as inputs: plans, parts and journals, which may come from elsewhere or from a damaged disk."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

from f5py.runs.parts.done_part import with_checksum

from .base import Base
from .mutations import BYTES, TEXT, mutated
from .result_base import MOVES, RESUMED, WATCHED
from .targets import Damage, Target, Touched, of_bytes, write_changed

_OTHERS: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 10**400, 1.5, -0.0, float("nan"), float("inf"), "", "x",
    "../../x", "/etc/passwd", "\0", "\ud800", "A" * 70_000, [], {}, [[]], [None], {"": 0}, [0] * 1000, "0" * 64,
)  # fmt: skip


def relocate(base: Base, folder: Path) -> None:
    """Make plans below a folder those of runs there: they say where that is, and parts name them by a checksum."""
    for manifest in folder.rglob("plan.json"):
        before = manifest.read_bytes()
        after = before.replace(json.dumps(str(base.folder))[1:-1].encode(), json.dumps(str(folder))[1:-1].encode())
        write_changed(manifest, after)
        names = [hashlib.sha256(text).hexdigest().encode() for text in (before, after)]
        for record in manifest.parent.rglob("part.json"):
            content = json.loads(record.read_bytes().replace(*names))
            del content["checksum"]
            write_changed(record, with_checksum(content))


def changed_json(rng: random.Random, text: bytes) -> bytes:
    """Change or remove a value anywhere in a text of JSON, or add a member that is not known."""
    content = json.loads(text)
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(min(len(value), 8)):
            places.append((value, key))
            if isinstance(value[key], dict | list):
                collect(value[key])

    collect(content)
    where, key = rng.choice(places)
    kind = rng.randrange(8)
    if kind == 0:
        del where[key]
    elif kind == 1 and isinstance(where, dict):
        where[rng.choice(("x", "", "\0", "../x"))] = rng.choice(_OTHERS)
    elif kind == 2:
        return json.dumps(rng.choice(_OTHERS)).encode()
    elif kind == 3:
        return rng.choice((b"[" * 200_000, b'{"a":' * 100_000, b"1" * 5000, text[:-3], text + text))
    else:
        value = where[key]
        near = (value + rng.choice((-1, 1, 1 << 20)),) if type(value) is int else ()
        where[key] = rng.choice((*near, *_OTHERS))
    # whoever can change where the rows of a table begin can change the rows, too
    is_record = isinstance(content, dict) and content.pop("checksum", None) is not None
    if is_record and content.get("table") == json.loads(text)["table"] and rng.random() < 0.7:
        return with_checksum(content)
    return json.dumps(content).encode()


def of_files(place: str, *patterns: str) -> Damage:
    """Damage one of the files of runs in parts, as bytes, or what is in its JSON."""

    def damage(rng: random.Random, base: Base, folder: Path) -> Touched:
        relocate(base, folder)
        files = sorted(path for pattern in patterns for path in (folder / place).glob(pattern) if path.is_file())
        path = rng.choice([file for file in files if file.stat().st_size])
        content = path.read_bytes()
        if path.suffix == ".json" and rng.random() < 0.7:
            write_changed(path, changed_json(rng, content))
        else:
            write_changed(path, mutated(rng, content, BYTES if path.suffix != ".json" or rng.random() < 0.5 else TEXT))
        return None

    return damage


def of_places(place: str) -> Damage:
    """Files of parts that are gone, exchanged, doubled, links, or of another plan."""

    def damage(rng: random.Random, base: Base, folder: Path) -> Touched:
        relocate(base, folder)
        files = sorted(path for path in (folder / place).rglob("*") if path.is_file() and path.name != "plan.json")
        one, other = rng.sample(files, 2)
        content = other.read_bytes()
        kind = rng.randrange(5)
        if kind == 0:
            one.unlink()
        elif kind == 1:
            write_changed(other, one.read_bytes())
            write_changed(one, content)
        elif kind == 2:
            write_changed(one, content)
        elif kind == 3:
            one.unlink()
            one.symlink_to(rng.choice((str(other), "/etc/passwd", "/dev/zero", "nowhere", ".")))
        else:
            one.unlink()
            one.mkdir()
        return None

    return damage


_FINISH = ("finish", "plan")
_PARQUET = ("finish", "plan_parquet")

TARGETS: tuple[Target, ...] = (
    *(Target(f"finish {name}{kind}", command, of_files(command[1], *patterns), is_checked=True, by_read=None,
             output=output, weight=weight)
      for command, kind, output in ((_FINISH, "", "planned.tsv"), (_PARQUET, " parquet", "planned.parquet"))
      for name, patterns, weight in (("files", ("parts/*/[!p]*.*", "tables/*"), 6),
                                     ("part.json", ("parts/*/part.json",), 6),
                                     ("plan.json", ("plan.json",), 4))),
    Target("finish places", _FINISH, of_places("plan"), is_checked=True, by_read=None, output="planned.tsv", weight=6),
    Target("finish modbam", _FINISH, of_files("plan", "parts/*/*.bam"), is_checked=True, by_read=None,
           output="planned.bam", weight=3),
    Target("finish bedmethyl", _FINISH, of_files("plan", "parts/*/*.npz"), is_checked=True, by_read=None,
           output="planned.bed", weight=3),
    Target("run-part plan.json", ("run-part", "empty_plan"), of_files("empty_plan", "plan.json"), by_read=None,
           output="empty_plan/parts/0/part.json", weight=4),
    Target("plan plan.json", ("plan", "plan", "--estimate", "-o", "out"),
           of_files("plan", "plan.json", "parts/*/part.json"), by_read=None, weight=3),
    Target("resume", RESUMED, of_files("resumed.tsv.f5py-parts", "plan.json", "parts/*/*", "tables/*"), is_checked=True,
           by_read=None, output="resumed.tsv", weight=6),
    Target("resquiggle resume", MOVES, of_files("moves.tsv.f5py-parts", "plan.json", "parts/*/*", "tables/*"),
           is_checked=True, by_read=None, output="moves.tsv", weight=4),
    Target("watch", WATCHED,
           of_files("watched.tsv.f5py-watch", "plan.json", "*/plan.json", "*/parts/*/*", "*/tables/*"),
           is_checked=True, by_read=None, output="watched.tsv", weight=2),
    Target("index journal", ("index", "-d", "single", "--resume", "journal.fastq"),
           of_bytes("journal.fastq.index.scanned", TEXT), is_checked=True, by_read=None,
           output="journal.fastq.index.readdb", weight=4),
)  # fmt: skip
