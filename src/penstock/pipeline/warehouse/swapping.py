"""Replaces a directory of a table by another one, so that a reader sees one or the other.

On Linux's own file systems the two are exchanged in one step. Elsewhere the old one is renamed away and the new one takes
its name: for that moment its rows are missing, never duplicated. Object stores cannot rename a directory: the old one is
removed and the new one's files are moved there one by one. The plan is recorded before, so that the next run after a crash
completes it.
"""

from __future__ import annotations

import json
import uuid
from typing import Any

from penstock.pipeline.warehouse import paths
from penstock.pipeline.warehouse.files import Files


def staging_place(table: str, purpose: str) -> str:
    """A name that nobody else has."""
    return f"{paths.STAGING}/{table}/{purpose}-{uuid.uuid4().hex[:12]}"


def swap(files: Files, staged: str, target: str) -> None:
    """`staged` becomes `target`; the former target is removed."""
    if not files.renames_whole:
        note = _noted(files, staged, target)
        _move_over(files, note, staged, target)
        return
    if files.rename(staged, target):
        return
    if not files.exchange(staged, target):
        note = _noted(files, staged, target)
        _take_over(files, staged, target)
        files.remove(note)
    files.remove(staged)


def _noted(files: Files, staged: str, target: str) -> str:
    note = f"{paths.SWAPS}/{uuid.uuid4().hex}.json"
    files.write_text(note, json.dumps({"staged": staged, "target": target}))
    return note


def recover(files: Files, table: str) -> None:
    """Finishes what a crash has left undone in a table, and clears away what it left behind."""
    for note, wanted in _unfinished(files, table).items():
        staged, target = wanted["staged"], wanted["target"]
        if not files.renames_whole:
            _move_over(files, note, staged, target, cleared=wanted.get("cleared", False))
            continue
        if files.exists(staged):
            _take_over(files, staged, target)
        files.remove(note)
    files.remove(f"{paths.STAGING}/{table}")


def abandon(files: Files, table: str) -> None:
    """Before a table is removed: its planned contents must not be restored."""
    for note in _unfinished(files, table):
        files.remove(note)
    files.remove(f"{paths.STAGING}/{table}")


def being_replaced(files: Files, table: str) -> list[str]:
    """Directories that are being replaced, or were when a run was killed: their contents will change."""
    return [wanted["target"] for wanted in _unfinished(files, table).values()]


def _unfinished(files: Files, table: str) -> dict[str, dict[str, Any]]:
    """The contents of the notes about a table, by the name of each."""
    found: dict[str, dict[str, Any]] = {}
    for note in files.files(paths.SWAPS):
        if not note.endswith(".json"):
            continue  # it was being written: nothing was done yet
        wanted = json.loads(files.read_text(note) or "{}")
        if wanted.get("target", "").startswith(f"{table}/"):
            found[note] = wanted
    return found


def _move_over(files: Files, note: str, staged: str, target: str, *, cleared: bool = False) -> None:
    """File by file. `cleared`: the former contents are gone, and the present ones are part of the new."""
    if not cleared:
        files.remove(target)
        files.write_text(note, json.dumps({"staged": staged, "target": target, "cleared": True}))
    files.move_files(staged, target)
    files.remove(note)
    files.remove(staged)


def _take_over(files: Files, staged: str, target: str) -> None:
    if files.exists(target):
        aside = f"{staged}.old"
        files.remove(aside)
        files.rename(target, aside)
    files.rename(staged, target)
    files.remove(f"{staged}.old")
