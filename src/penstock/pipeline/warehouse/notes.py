"""Small files of JSON that a warehouse keeps about its tables: one that cannot be understood is named, with what to do."""

from __future__ import annotations

import json
from typing import Any

from penstock.pipeline.errors import PipelineError
from penstock.pipeline.warehouse.files import Files


def read_note(files: Files, path: str) -> dict[str, Any] | None:
    """What a note says; None where there is none. Raises `PipelineError` for one that was cut short or overwritten."""
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
