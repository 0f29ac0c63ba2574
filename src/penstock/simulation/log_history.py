"""The knowledge of readers of retained logs: the messages they read, the offsets of groups, and their answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from penstock.simulation.message_history import QueueLife, SentMessage

Answered = Literal["lost", "done", "refused"]


class LoggedMessage(NamedTuple):
    """A message as it was read at an offset."""

    offset: int
    message: SentMessage | None
    """None: its bytes are none that were ever sent."""
    problem: str | None
    sent_ms: int


class ReaderIdentity(NamedTuple):
    """As whom a member of a group reads or commits."""

    group: str
    member: str
    generation: int


@dataclass(slots=True, eq=False)
class LogRead:
    """A read that was answered."""

    life: QueueLife
    start: int
    most: int
    waited_ms: int
    messages: list[LoggedMessage]
    next: int
    end: int
    asked_ms: int
    answered_ms: int
    place: ReaderIdentity | None


class OffsetGone(NamedTuple):
    """A read was refused because the log begins later."""

    life: QueueLife
    start: int
    asked_ms: int
    answered_ms: int


class BoundsSeen(NamedTuple):
    """The ends of the log, and the first message at or after a time."""

    life: QueueLife
    begin: int
    end: int
    time_ms: int | None
    found: int
    asked_ms: int
    answered_ms: int


class Joined(NamedTuple):
    """A member learned its assignment."""

    life: QueueLife
    place: ReaderIdentity
    offset: int | None
    """Where to continue; None: it stands by."""
    asked_ms: int
    answered_ms: int


@dataclass(slots=True, eq=False)
class OffsetCommit:
    """A committed offset of a group."""

    life: QueueLife
    place: ReaderIdentity
    offset: int
    asked_ms: int
    answered_ms: int | None = None
    result: Answered = "lost"


@dataclass(slots=True, eq=False)
class GroupSeek:
    """An operator set a group back or forward, or deleted it."""

    life: QueueLife
    group: str
    asked_ms: int
    answered_ms: int | None = None
    offset: int | None = None
    """Its new offset, if it is known; None after a deletion too."""
    result: Answered = "lost"


class ListedGroup(NamedTuple):
    """A group as it was listed."""

    life: QueueLife
    group: str
    offset: int
    asked_ms: int
    answered_ms: int


@dataclass(slots=True, eq=False)
class LogHistory:
    """Everything about logs."""

    reads: list[LogRead] = field(default_factory=list)
    gone: list[OffsetGone] = field(default_factory=list)
    bounds: list[BoundsSeen] = field(default_factory=list)
    joined: list[Joined] = field(default_factory=list)
    commits: list[OffsetCommit] = field(default_factory=list)
    seeks: list[GroupSeek] = field(default_factory=list)
    standings: list[ListedGroup] = field(default_factory=list)
