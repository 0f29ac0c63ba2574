"""Disks that lose what was not synced, as when the power fails.

Each is a file with an ext4 on it. When its power fails the file system is shut down without writing anything more (the
ioctl that file systems are tested with): what was synced is there when it is mounted again, and what only was in the
memory of the system is not. It needs no device-mapper and no file system made for it.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import struct
import tempfile
import time
from pathlib import Path

from tests.chaos.isolation import program, run

_SHUT_DOWN = 0x8004587D
"""FS_IOC_SHUTDOWN."""
_WITHOUT_FLUSHING = struct.pack("I", 2)
_MEGABYTES = 4_096
_UNMOUNT_SECONDS = 30.0


def why_not() -> str | None:
    """Why unsynced writes cannot be lost here; None where they can, which is tried."""
    if program("mkfs.ext4") is None:
        return (
            "unsynced writes are not lost in this run: there is no mkfs.ext4 (Debian and Ubuntu: e2fsprogs)"
        )
    place = Path(tempfile.mkdtemp(prefix="penstock-disk-"))
    try:
        disk = Disk(place / "image", place / "mounted", megabytes=32)
        disk.make()
        try:
            _write(place / "mounted" / "synced", sync=True)
            _write(place / "mounted" / "unsynced", sync=False)
            disk.lose_power()
            disk.restore_power()
            left = {one.name for one in (place / "mounted").iterdir()}
        finally:
            disk.unmount()
    except OSError as error:
        return f"unsynced writes are not lost in this run: this machine has no disks for it ({error})"
    finally:
        shutil.rmtree(place, ignore_errors=True)
    if left != {"synced"}:
        return f"unsynced writes are not lost in this run: after a loss of power {sorted(left)} were there"
    return None


class Disk:
    """A disk in a file, mounted at a place."""

    def __init__(self, image: Path, place: Path, megabytes: int = _MEGABYTES) -> None:
        self._image = image
        self._place = place
        self._megabytes = megabytes

    def make(self) -> None:
        """A new, empty one; takes room as it is filled."""
        self._image.parent.mkdir(parents=True, exist_ok=True)
        with self._image.open("wb") as image:
            image.truncate(self._megabytes << 20)
        run("mkfs.ext4", "-q", "-F", "-m", "0", str(self._image))
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._mount()
        (self._place / "lost+found").rmdir()
        self._place.chmod(0o700)
        run("sync", "-f", str(self._place))

    def lose_power(self) -> None:
        """From now on nothing is written; whoever tries gets errors."""
        handle = os.open(self._place, os.O_RDONLY)
        try:
            fcntl.ioctl(handle, _SHUT_DOWN, _WITHOUT_FLUSHING)
        finally:
            os.close(handle)

    def restore_power(self) -> None:
        """As after a restart of the machine; nobody may use the disk now."""
        self.unmount()
        self._mount()

    def unmount(self) -> None:
        """Waits for whoever is about to let go of it."""
        deadline = time.monotonic() + _UNMOUNT_SECONDS
        while True:
            try:
                run("umount", str(self._place))
                return
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)  # nobody tells when the last file is closed

    def _mount(self) -> None:
        run("mount", "-o", "loop", str(self._image), str(self._place))


def _write(file: Path, *, sync: bool) -> None:
    with file.open("wb") as stream:
        stream.write(b"x" * 10_000)
        stream.flush()
        if sync:
            os.fsync(stream.fileno())
            directory = os.open(file.parent, os.O_RDONLY)
            os.fsync(directory)
            os.close(directory)
