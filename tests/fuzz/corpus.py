"""Cases that failed once: the damaged files of each, in a zip file named for the input."""

from __future__ import annotations

import zipfile
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"


def save(folder: Path, base: Path, target: str, seed: int) -> Path:
    """Keep what differs between the case's folder and the sound inputs."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{target.replace(' ', '_')}-{seed}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        out.comment = target.encode()
        for file in sorted(folder.rglob("*")):
            sound = base / file.relative_to(folder)
            if file.is_file() and not (sound.exists() and sound.read_bytes() == file.read_bytes()):
                out.writestr(zipfile.ZipInfo(str(file.relative_to(folder))), file.read_bytes(), zipfile.ZIP_DEFLATED)
        missing = [file.relative_to(base) for file in base.rglob("*") if not (folder / file.relative_to(base)).exists()]
        out.writestr(zipfile.ZipInfo("MISSING"), "".join(f"{file}\n" for file in sorted(missing)))
    return path


def target_of(path: Path) -> str:
    with zipfile.ZipFile(path) as file:
        return file.comment.decode()


def restore(path: Path, folder: Path) -> None:
    """Put the damaged files into a folder of links to the sound ones."""
    with zipfile.ZipFile(path) as file:
        for name in file.namelist():
            if name == "MISSING":
                for missing in file.read(name).decode().split():
                    (folder / missing).unlink(missing_ok=True)
                continue
            (folder / name).unlink(missing_ok=True)
            (folder / name).write_bytes(file.read(name))
