"""Writes the history of logs: the requests of readers, and their answers."""

from __future__ import annotations

from penstock.simulation.log_history import (
    BoundsSeen,
    GroupSeek,
    Joined,
    ListedGroup,
    LoggedMessage,
    LogHistory,
    LogRead,
    OffsetCommit,
    OffsetGone,
    ReaderIdentity,
)
from penstock.simulation.message_history import QueueLife
from penstock.simulation.recorder import Recorder, slices
from penstock.simulation.schedule import Schedule
from penstock.wire.log_messages import GroupDescription, GroupMembership, LogBounds, LogSlice, ReadLog


class LogRecorder:
    """The history of logs, the messages that were sent, and the time."""

    def __init__(self, recorder: Recorder, schedule: Schedule) -> None:
        self._recorder = recorder
        self._schedule = schedule
        self.history: LogHistory = recorder.history.log

    def read(
        self, life: QueueLife, request: ReadLog, answer: LogSlice, body: memoryview, asked_ms: int
    ) -> LogRead:
        """A slice was read."""
        messages: list[LoggedMessage] = []
        for head, batch, problem in slices(answer.batches, body):
            for index in range(head.count):
                message, difference = self._recorder.compare(batch, index, problem)
                messages.append(LoggedMessage(head.first + index, message, difference, head.sent_ms))
        place = ReaderIdentity(request.group, request.member, request.generation) if request.group else None
        found = LogRead(
            life,
            request.start,
            request.max_messages,
            request.wait_ms,
            messages,
            answer.next,
            answer.end,
            asked_ms,
            self._schedule.now_ms,
            place,
        )
        self.history.reads.append(found)
        return found

    def offset_gone(self, life: QueueLife, start: int, asked_ms: int) -> None:
        """A read was refused because the log begins later."""
        self.history.gone.append(OffsetGone(life, start, asked_ms, self._schedule.now_ms))

    def bounds(self, life: QueueLife, answer: LogBounds, time_ms: int | None, asked_ms: int) -> None:
        """A client asked for the ends of the log."""
        self.history.bounds.append(
            BoundsSeen(life, answer.begin, answer.end, time_ms, answer.found, asked_ms, self._schedule.now_ms)
        )

    def joined(
        self, life: QueueLife, group: str, member: str, answer: GroupMembership, asked_ms: int
    ) -> Joined:
        """A member learned its share."""
        found = Joined(
            life,
            ReaderIdentity(group, member, answer.generation),
            answer.shares[0][1] if answer.shares else None,
            asked_ms,
            self._schedule.now_ms,
        )
        self.history.joined.append(found)
        return found

    def committing(self, life: QueueLife, place: ReaderIdentity, offset: int) -> OffsetCommit:
        """Somebody is about to commit."""
        commit = OffsetCommit(life, place, offset, self._schedule.now_ms)
        self.history.commits.append(commit)
        return commit

    def seeking(self, life: QueueLife, group: str) -> GroupSeek:
        """A client is about to move a group, or to delete it."""
        seek = GroupSeek(life, group, self._schedule.now_ms)
        self.history.seeks.append(seek)
        return seek

    def answered(self, asked: OffsetCommit | GroupSeek, *, done: bool) -> None:
        """The node accepted or refused."""
        asked.answered_ms = self._schedule.now_ms
        asked.result = "done" if done else "refused"

    def listed(self, life: QueueLife, groups: list[GroupDescription], asked_ms: int) -> None:
        """Groups were listed."""
        now_ms = self._schedule.now_ms
        self.history.standings += [
            ListedGroup(life, group.name, group.offset, asked_ms, now_ms) for group in groups
        ]
