"""Small JSON files of a warehouse about its tables; an unreadable one is reported by name, with what to do."""

from __future__ import annotations

import json
from typing import Any

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.warehouse.files import Files


def read_note(files: Files, path: str) -> dict[str, Any] | None:
    """The contents of a note; None if there is none. Raises `PipelineError` for one that is incomplete or overwritten."""
    text = files.read_text(path)
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise PipelineError(
            f"{files.uri(path)} is damaged: it is not the JSON that Penstock wrote. Put it back, or rebuild all tables of the "
            "job from the rows that the log still has, with --rebuild"
        )
    return found
