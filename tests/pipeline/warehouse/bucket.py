"""A directory that behaves like a bucket of an object store, and a process that is killed at any of its requests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.pipeline.warehouse.files import Files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class KilledError(Exception):
    """What a kill is, here."""


class Bucket(Files):
    """There are no directories but what names of files begin with. Nothing but a single file is copied or removed in one
    request, and renaming one is two: its copy is there before the original is gone.
    """

    def __init__(self, spark: SparkSession, root: Path) -> None:
        super().__init__(spark, str(root), renames_whole=False)
        self.requests_left: int | None = None
        """Before the process is killed; None: it is not."""
        self.requests = 0
        self.after_each: Callable[[], object] = lambda: None
        """Somebody who looks at every moment."""

    def _request(self) -> None:
        if self.requests_left == 0:
            raise KilledError
        if self.requests_left is not None:
            self.requests_left -= 1
        self.requests += 1

    def exists(self, path: str) -> bool:
        return os.path.isfile(f"{self.local}/{path}") or bool(self._files_below(path))

    def _listed(self, path: str) -> list[tuple[str, bool]]:
        """Without what Hadoop keeps beside files on a disk."""
        return [
            (name, is_directory)
            for name, is_directory in super()._listed(path)
            if not name.endswith(".crc") and self.exists(f"{path}/{name}")
        ]

    def exchange(self, one: str, other: str) -> bool:
        return False

    def rename(self, source: str, target: str) -> bool:
        assert os.path.isfile(f"{self.local}/{source}"), (
            f"{source} is no file, and nothing else can be renamed"
        )
        if self.exists(target):
            return False
        self._request()
        there = Path(f"{self.local}/{target}")
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_bytes(Path(f"{self.local}/{source}").read_bytes())
        self.after_each()
        self.remove(source)
        return True

    def remove(self, path: str) -> None:
        names = [path] if os.path.isfile(f"{self.local}/{path}") else self._files_below(path)
        for name in names:
            self._request()
            os.remove(f"{self.local}/{name}")
            self.after_each()

    def write_text(self, path: str, text: str) -> None:
        self._request()
        super().write_text(path, text)
        self.after_each()
