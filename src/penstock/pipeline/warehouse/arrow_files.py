"""A warehouse as PyArrow reads it, without Spark: a directory, or an object store by the name that Spark has for it."""

from __future__ import annotations

import os
from typing import Any

from penstock.pipeline.trouble import PipelineError

_S3 = ("s3a://", "s3n://")
"""What Hadoop calls S3; everybody else says s3."""


def file_system(warehouse: str) -> tuple[Any, str]:
    """The file system, and the path of the warehouse in it."""
    from pyarrow import ArrowException
    from pyarrow.fs import FileSystem, LocalFileSystem

    if "://" not in warehouse:
        return LocalFileSystem(), os.path.abspath(warehouse)
    try:
        system, path = FileSystem.from_uri(arrow_uri(warehouse))
    except (ArrowException, OSError) as error:
        raise PipelineError(f"{warehouse} cannot be read without Spark: {error}") from None
    return system, path.rstrip("/")


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
