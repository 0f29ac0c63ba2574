"""Files of this computer for the warehouse: directly, because each access through Hadoop is a call to Java.

Hadoop keeps a checksum beside a file, `.NAME.crc`. It is not counted as a file here, and is removed with the file.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress


def listed(path: str) -> list[tuple[str, bool]]:
    """Names right inside a directory, and whether each is a directory; none where it is missing."""
    try:
        with os.scandir(path) as entries:
            return sorted((entry.name, entry.is_dir()) for entry in entries)
    except (FileNotFoundError, NotADirectoryError):
        return []


def size_bytes(path: str) -> int:
    """Of all files below a directory."""
    size = 0
    for place, _, names in os.walk(path):
        for name in names:
            if not _is_checksum(name):
                with suppress(FileNotFoundError):
                    size += os.path.getsize(f"{place}/{name}")
    return size


def remove(path: str) -> None:
    """A file, or a directory with all that is in it; nothing happens where there is none."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
        return
    directory, _, name = path.rpartition("/")
    for one in (path, f"{directory}/.{name}.crc"):
        with suppress(FileNotFoundError):
            os.remove(one)


def sync(path: str) -> None:
    """A file, or a directory with all that is in it, is on disk when this returns."""
    for place, _, names in os.walk(path):
        for name in names:
            sync_one(f"{place}/{name}")
        sync_one(place)
    if not os.path.isdir(path):
        sync_one(path)


def sync_one(path: str) -> None:
    """A file, or the names in a directory."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def rename(source: str, target: str) -> None:
    """Gives something another name that is on disk when this returns, as all of it is before."""
    sync(source)
    os.rename(source, target)
    sync_one(os.path.dirname(target))


def read_text(path: str) -> str | None:
    """A small file; None where there is none."""
    try:
        with open(path) as file:
            return file.read()
    except FileNotFoundError:
        return None


def write_text(path: str, text: str) -> None:
    """A small file, whole or not at all, on disk when this returns; one of that name is replaced."""
    # Hadoop's local file system cannot replace a file by renaming another to it.
    os.makedirs(os.path.dirname(path), exist_ok=True)
    beside = f"{path}.new"
    with open(beside, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def _is_checksum(name: str) -> bool:
    return name.startswith(".") and name.endswith(".crc")
