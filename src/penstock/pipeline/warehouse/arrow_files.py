"""A warehouse for PyArrow, without Spark: a directory, or an object store with Spark's URL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from penstock.pipeline.errors import PipelineError

_S3 = ("s3a://", "s3n://")
"""Hadoop's name for S3; all others use s3."""


def file_system(warehouse: str) -> tuple[Any, str]:
    """The file system, and the path of the warehouse in it."""
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem, LocalFileSystem

    if (near := local_path(warehouse)) is not None:
        return LocalFileSystem(), near
    try:
        system, path = FileSystem.from_uri(arrow_uri(warehouse))
    except (ArrowException, OSError) as error:
        raise PipelineError(f"{warehouse} cannot be read without Spark: {error}") from None
    return system, path.rstrip("/")


def local_path(warehouse: str) -> str | None:
    """The path of a warehouse on this machine; None: it is elsewhere, or Arrow finds out. Hadoop writes `file:/path`."""
    if "://" in warehouse:
        return None
    return os.path.abspath(warehouse.removeprefix("file:"))


def check_is_there(warehouse: str, system: Any, path: str) -> None:
    """Raises `PipelineError` where there is no directory of that name: it was mistyped, or no job has run yet."""
    if not is_directory(system, path):
        raise PipelineError(
            f"there is no warehouse in {warehouse}: `penstock pipeline run usage --once` makes one; name another "
            "with --warehouse"
        )


@contextmanager
def reading(warehouse: str) -> Iterator[None]:
    """Tables are read inside: an error of a file becomes a sentence with its name."""
    from pyarrow import ArrowException

    try:
        yield
    except FileNotFoundError as error:
        raise PipelineError(
            f"tables in {warehouse} changed while they were read ({error}): run it again"
        ) from None
    except (ArrowException, OSError) as error:
        raise PipelineError(
            f"a table in {warehouse} cannot be read: {error}. Put the file back; or rebuild the tables of the job from the rows "
            "that the log still has: penstock pipeline run JOB --once --rebuild"
        ) from None


def arrow_uri(warehouse: str) -> str:
    """The address as PyArrow knows it."""
    for scheme in _S3:
        if warehouse.startswith(scheme):
            return f"s3://{warehouse.removeprefix(scheme)}"
    return warehouse


def is_directory(system: Any, path: str) -> bool:
    """Whether there is anything at all; a store that does not answer is an error."""
    from pyarrow.fs import FileType

    try:
        return bool(system.get_file_info(path).type == FileType.Directory)
    except OSError as error:
        raise PipelineError(f"the warehouse cannot be read: {error}") from None
