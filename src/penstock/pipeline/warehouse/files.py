"""Files and directories of a warehouse, wherever Spark can write: through Hadoop's FileSystem, or directly on local disks.

Paths given here are relative to the root of the warehouse.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from penstock.pipeline.warehouse import local_files

_OBJECT_STORES = {"s3", "s3a", "s3n", "gs", "oss", "cos", "swift", "wasb", "wasbs", "abfs", "abfss"}
MARK = "_SUCCESS"
"""Spark's own mark that a directory is finished, written last."""
_AT_WORKING_DIRECTORY = -100
_RENAME_EXCHANGE = 2


class Files:
    """The file system under a root."""

    def __init__(self, spark: SparkSession, root: str, *, renames_whole: bool | None = None) -> None:
        """`renames_whole`: whether a directory is renamed in one step; object stores copy file by file."""
        jvm: Any = spark._jvm
        # By its whole name: `jvm.org.apache…` would ask for each part, and Java look for it in all archives.
        self._new_path: Any = getattr(jvm, "org.apache.hadoop.fs.Path")
        configuration = spark._jsc.hadoopConfiguration()
        given = self._new_path(root if urlsplit(root).scheme not in ("", None) else os.path.abspath(root))
        self._system: Any = given.getFileSystem(configuration)
        self.root: str = self._system.makeQualified(given).toString().rstrip("/")
        scheme = urlsplit(self.root).scheme
        self.local = self.root.removeprefix("file:").replace("///", "/") if scheme == "file" else None
        """The root as the operating system knows it; None: it is elsewhere."""
        self.renames_whole = scheme not in _OBJECT_STORES if renames_whole is None else renames_whole

    def uri(self, path: str) -> str:
        """The path as Spark reads and writes it."""
        return f"{self.root}/{path}" if path else self.root

    def _path(self, path: str) -> Any:
        return self._new_path(self.uri(path))

    def near(self, path: str) -> str | None:
        """The path as the operating system knows it; None: only Hadoop can get at it."""
        if self.local is None:
            return None
        return f"{self.local}/{path}" if path else self.local

    def forgo_checksums(self) -> None:
        """From now on Java writes no `.NAME.crc` beside its files here: each costs the start of a program (`chmod`)."""
        if self.local is not None:
            self._system.setWriteChecksum(False)

    # -- looking ---------------------------------------------------------------------------------------------

    def exists(self, path: str) -> bool:
        """Whether there is a file or directory."""
        if (near := self.near(path)) is not None:
            return os.path.exists(near)
        return bool(self._system.exists(self._path(path)))

    def directories(self, path: str) -> list[str]:
        """The directories right inside one; none where it is missing."""
        return [f"{path}/{name}" for name, is_directory in self._listed(path) if is_directory]

    def files(self, path: str) -> list[str]:
        """The files right inside a directory, hidden ones left out; none where it is missing."""
        return [
            f"{path}/{name}"
            for name, is_directory in self._listed(path)
            if not is_directory and not name.startswith((".", "_"))
        ]

    def size_bytes(self, path: str) -> int:
        """Of everything in a directory."""
        if (near := self.near(path)) is not None:
            return local_files.size_bytes(near)
        if not self.exists(path):
            return 0
        return int(self._system.getContentSummary(self._path(path)).getLength())

    def _listed(self, path: str) -> list[tuple[str, bool]]:
        if (near := self.near(path)) is not None:
            return local_files.listed(near)
        if not self.exists(path):
            return []
        return [
            (status.getPath().getName(), bool(status.isDirectory()))
            for status in self._system.listStatus(self._path(path))
        ]

    # -- changing --------------------------------------------------------------------------------------------

    def make_directory(self, path: str) -> None:
        """With everything above it; one that is there stays as it is."""
        if (near := self.near(path)) is not None:
            os.makedirs(near, exist_ok=True)
            return
        self._system.mkdirs(self._path(path))

    def rename(self, source: str, target: str) -> bool:
        """Gives a file or directory another name, in one step where the store can; False if there is one of that name."""
        if self.exists(target):
            return False  # Hadoop would move the one into the other
        self.make_directory(target.rpartition("/")[0])
        near, there = self.near(source), self.near(target)
        if near is not None and there is not None:
            local_files.rename(near, there)
            return True
        if not self._system.rename(self._path(source), self._path(target)):
            if self.exists(target):
                return False
            raise OSError(f"{self.uri(source)} cannot be renamed to {self.uri(target)}")
        return True

    def move_files(self, source: str, target: str) -> None:
        """Moves every file below a directory to the same place below another, the success marker last.

        For stores that cannot rename a directory in one step. If it is interrupted, a repetition does the rest. A file
        that is there already is the same one, because stores show a copy only when it is complete.
        """
        for path in sorted(self._files_below(source), key=lambda path: (path.endswith(f"/{MARK}"), path)):
            if not self.rename(path, target + path.removeprefix(source)):
                self.remove(path)

    def _files_below(self, path: str) -> list[str]:
        found: list[str] = []
        for name, is_directory in self._listed(path):
            found += self._files_below(f"{path}/{name}") if is_directory else [f"{path}/{name}"]
        return found

    def remove(self, path: str) -> None:
        """A file, or a directory with all that is in it; nothing happens where there is none."""
        if (near := self.near(path)) is not None:
            local_files.remove(near)
            return
        self._system.delete(self._path(path), True)

    def exchange(self, one: str, other: str) -> bool:
        """Lets two directories change places in one step; False if this store or system cannot."""
        if self.local is None:
            return False
        here, there = f"{self.local}/{one}", f"{self.local}/{other}"
        local_files.sync(here)
        if not _exchange(here, there):
            return False
        for path in (here, there):
            local_files.sync_one(os.path.dirname(path))
        return True

    def read_text(self, path: str) -> str | None:
        """A small file; None where there is none."""
        if (near := self.near(path)) is not None:
            return local_files.read_text(near)
        if not self.exists(path):
            return None
        stream = self._system.open(self._path(path))
        try:
            return bytes(stream.readAllBytes()).decode()
        finally:
            stream.close()

    def write_text(self, path: str, text: str) -> None:
        """A small file, whole or not at all, on disk when this returns; one of that name is replaced."""
        if (near := self.near(path)) is not None:
            local_files.write_text(near, text)
            return
        stream = self._system.create(self._path(path), True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()


def _exchange(one: str, other: str) -> bool:
    """Linux's renameat2, which Python has no name for."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here = _AT_WORKING_DIRECTORY
    if rename(here, os.fsencode(one), here, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EXDEV):
        return False
    raise OSError(number, os.strerror(number), one, None, other)
