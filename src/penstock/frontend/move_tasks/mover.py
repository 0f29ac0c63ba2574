"""Carries out message move tasks: which are due, and the steps of one slice.

It has no clock and starts nothing: a timer calls `due`, carries out `move` for each returned task, and asks `next_ms` for
the next call (a change under `moves/` is a reason to call at once). Any number of front ends may do this; only its owner
moves a task. If an owner dies, the messages that it moved stay moved, but those that it had not counted yet stay
uncounted, because all these numbers are approximate.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from penstock.frontend.move_tasks.ending import Ending, ending_of, failure_of
from penstock.frontend.move_tasks.pace import SLICE_MS, Pace
from penstock.frontend.move_tasks.task import (
    PREFIX,
    SILENCE_MS,
    MoveHistory,
    MoveTask,
    decode,
    encode,
    key_of,
)
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.store.interface import Change, VersionConflictError
from penstock.model.errors import PenstockError
from penstock.model.limits import SECOND_MS
from penstock.model.partition_numbers import going_on, number_of
from penstock.steps.asking import ask, put, remove
from penstock.steps.step import Steps
from penstock.wire.messages import Redrive, Redriven

logger = logging.getLogger(__name__)

HEARTBEAT_MS = 1 * SECOND_MS
BACK_OFF_MS = 1 * SECOND_MS
"""How long to wait when the engine is busy, full or away."""
SOONEST_MS = 1
"""After a change, of which a timer may hear before the mover does."""
LATEST_MS = 60 * SECOND_MS
"""A timer that is set for longer looks again meanwhile: the wall clock may be set."""


class _Work:
    """A task of this owner, and its progress since it was last stored."""

    def __init__(self, task: MoveTask, now_ms: int) -> None:
        self.task_id = task.task_id
        self.pace = Pace(task.messages_per_second, now_ms)
        self.moved = task.moved
        self.position = task.position
        self.scanned = False
        self.written_ms = now_ms
        self.next_ms = now_ms


class Mover:
    """One front end's share of the work; `owner` must be different at every start of a process."""

    def __init__(self, owner: str, metadata: MetadataCache) -> None:
        assert owner
        self._owner = owner
        self._metadata = metadata
        self._active: dict[str, MoveTask] = {}
        """The tasks that are not over, by the engine's name of their source."""
        self._works: dict[str, _Work] = {}
        self._busy: set[str] = set()
        for entry in metadata.list(PREFIX):
            self._heard(Change(*entry))
        metadata.listen(PREFIX, self._heard)

    def _heard(self, change: Change) -> None:
        native = change.key.removeprefix(PREFIX)
        task = _running(native, change.value) if change.value is not None else None
        if task is None:
            self._active.pop(native, None)
        else:
            self._active[native] = task
        work = self._works.get(native)
        if work is not None and (task is None or (task.task_id, task.owner) != (work.task_id, self._owner)):
            del self._works[native]

    # -- when ------------------------------------------------------------------------------------------------

    def due(self, now_ms: int) -> list[str]:
        """The sources, by the engine's names, of which a slice is to be moved now."""
        return [native for native in self._active if self._due_ms(native) <= now_ms]

    def next_ms(self) -> int | None:
        """When to ask again, if nothing changes before; None: not until then."""
        return min(
            (self._due_ms(native) for native in self._active if native not in self._busy), default=None
        )

    def pause_ms(self, now_ms: int) -> int | None:
        """How long a timer waits before it asks again, if nothing changes before; None: until something changes."""
        next_ms = self.next_ms()
        return min(max(next_ms - now_ms, SOONEST_MS), LATEST_MS) if next_ms is not None else None

    def _due_ms(self, native: str) -> int:
        task, work = self._active[native], self._works.get(native)
        if native in self._busy:
            return 2**63
        if task.status == "CANCELLING" and task.owner == self._owner:
            return 0
        if work is not None:
            return work.next_ms
        return task.heartbeat_ms + SILENCE_MS + 1 if task.owner not in ("", self._owner) else 0

    # -- what ------------------------------------------------------------------------------------------------

    def move(self, native: str, now_ms: int) -> Steps[None]:
        """One slice of the task of a source: takes it over, moves, writes down, or ends it."""
        if native in self._busy:
            return
        self._busy.add(native)
        try:
            yield from self._move(native, now_ms)
        except VersionConflictError:
            pass  # cancelled, taken over or deleted: the next slice uses the received entry
        finally:
            self._busy.discard(native)

    def _move(self, native: str, now_ms: int) -> Steps[None]:
        history = self._history(native)
        task = history.running() if history is not None else None
        if history is None or task is None:
            return
        work = self._works.get(native)
        if work is None:
            if task.owner != self._owner and not task.free(self._owner, now_ms):
                return
            yield from self._write(native, task.task_id, now_ms)
            work = self._works[native] = _Work(task, now_ms)
        elif now_ms - work.written_ms > SILENCE_MS // 2:
            # We were away for long: others may think us dead, so first see whether the task is still ours.
            yield from self._write(native, task.task_id, now_ms)
            work.written_ms = now_ms
        if task.status == "CANCELLING":
            yield from self._end(native, work, Ending("CANCELLED"), now_ms)
            return
        try:
            if not work.scanned:
                yield from self._slice(history.queue_id, task, work, now_ms)
            ending = yield from ending_of(native, task, now_ms) if work.scanned else _not_yet()
        except PenstockError as error:
            if not error.retryable:
                reason = yield from failure_of(native, history.queue_id, error)
                yield from self._fail(native, work, reason, now_ms)
                return
            work.next_ms = now_ms + BACK_OFF_MS
            ending = None
        if ending is not None:
            yield from self._end(native, work, ending, now_ms)
        elif now_ms - work.written_ms >= HEARTBEAT_MS:
            yield from self._write(native, task.task_id, now_ms, moved=work.moved, position=work.position)
            work.written_ms = now_ms

    def _slice(self, queue_id: int, task: MoveTask, work: _Work, now_ms: int) -> Steps[None]:
        allowed = work.pace.allowed(now_ms)
        if allowed:
            request = Redrive(queue_id, task.destination, allowed, work.position)
            redriven = yield from ask(request, Redriven)
            work.moved += redriven.messages
            work.pace.took(redriven.messages)
            following = going_on(redriven.next, task.until, task.partitions)
            work.scanned = following is None
            work.position = following if following is not None else number_of(task.partitions - 1, task.until)
        work.next_ms = now_ms + SLICE_MS if work.scanned else work.pace.next_ms(now_ms)

    # -- writing down ----------------------------------------------------------------------------------------

    def _history(self, native: str) -> MoveHistory | None:
        entry = self._metadata.get(key_of(native))
        return decode(entry.value) if entry is not None else None

    def _write(self, native: str, task_id: str, now_ms: int, **changes: Any) -> Steps[None]:
        """Stores the task as owned and alive, if it is still the last received version."""
        entry = self._metadata.get(key_of(native))
        if entry is None:
            raise VersionConflictError(native)
        changed = decode(entry.value).changed(task_id, owner=self._owner, heartbeat_ms=now_ms, **changes)
        yield from put(entry.key, encode(changed), entry.version)

    def _end(self, native: str, work: _Work, ending: Ending, now_ms: int) -> Steps[None]:
        yield from self._write(
            native,
            work.task_id,
            now_ms,
            status=ending.status,
            failure_reason=ending.failure_reason,
            moved=max(0, work.moved - ending.returned),
            position=work.position,
        )

    def _fail(self, native: str, work: _Work, reason: str | None, now_ms: int) -> Steps[None]:
        if reason is not None:
            yield from self._end(native, work, Ending("FAILED", reason), now_ms)
            return
        entry = self._metadata.get(key_of(native))
        if entry is not None:
            yield from remove(entry.key, entry.version)  # the source is gone, and its tasks with it


def _running(native: str, stored: bytes) -> MoveTask | None:
    """The task that is to be carried on; one that cannot be believed, or is of a newer version, is not."""
    try:
        return decode(stored).running()
    except msgspec.MsgspecError as error:
        logger.error(
            "the message move tasks of queue %(queue)s are not run: %(error)s",
            {"queue": native, "error": error},
        )
        return None


def _not_yet() -> Steps[Ending | None]:
    return None
    yield
