"""Operators of logs: list groups, move them back or forward by offset and by time, delete them, commit for those without
members.
"""

from __future__ import annotations

from penstock.simulation.log_history import ReaderIdentity
from penstock.simulation.log_recorder import LogRecorder
from penstock.simulation.message_history import QueueLife
from penstock.simulation.tasks import Ask, Pause, Steps
from penstock.simulation.workload.log_reader import GROUPS, GroupMember
from penstock.simulation.workload.stage import Stage
from penstock.wire.log_messages import DeleteGroup, GroupDescription, GroupList, ListGroups, SeekGroup
from penstock.wire.messages import Done


class LogOperator:
    """One operator of all logs."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = name
        self._reader = GroupMember(stage, name)
        self._client = self._reader.client
        self._recorder = LogRecorder(stage.recorder, stage.schedule)

    def run(self) -> Steps[None]:
        """Does something every now and then."""
        stage, random = self._stage, self._stage.random
        while not stage.stopping:
            yield Pause(random.randint(50, 1_500))
            life = stage.pick_log()
            if life is None:
                continue
            action, group = random.random(), random.choice(GROUPS)
            if action < 0.4:
                yield from self.list(life)
            elif action < 0.7:
                yield from self._seek(life, group)
            elif action < 0.8:
                yield from self._delete(life, group)
            else:
                bounds = yield from self._reader.find(life, None)
                if bounds is not None:
                    place = ReaderIdentity(random.choice((*GROUPS, "nobody")), "", 0)
                    yield from self._reader.commit(life, place, random.randint(bounds.begin, bounds.end))

    def list(self, life: QueueLife) -> Steps[None]:
        """Describes all groups."""
        asked_ms, after, more = self._stage.schedule.now_ms, "", True
        while more:
            reply = yield Ask(self._client, ListGroups(life.queue_id, after))
            if reply is None or not isinstance(reply.answer, GroupList):
                self._stage.failed(life, reply)
                return
            self._recorder.listed(life, reply.answer.groups, asked_ms)
            more = reply.answer.more
            after = reply.answer.groups[-1].name if more else ""

    def _seek(self, life: QueueLife, group: str) -> Steps[None]:
        stage, random = self._stage, self._stage.random
        bounds = yield from self._reader.find(life, None)
        if bounds is None:
            return
        seek = self._recorder.seeking(life, group)
        request = SeekGroup(life.queue_id, group, offset=random.randint(bounds.begin, bounds.end))
        if random.random() < 0.4:
            request = SeekGroup(
                life.queue_id, group, time_ms=stage.schedule.now_ms - random.choice((0, 500, 3_000))
            )
        reply = yield Ask(self._client, request)
        if reply is not None:
            done = isinstance(reply.answer, GroupDescription)
            self._recorder.answered(seek, done=done)
            if isinstance(reply.answer, GroupDescription):
                seek.offset = reply.answer.offset
            stage.failed(life, reply)
        stage.trace.add(self._name, f"seeks {group} of {life.name} to {seek.offset}: {seek.result}")

    def _delete(self, life: QueueLife, group: str) -> Steps[None]:
        seek = self._recorder.seeking(life, group)
        reply = yield Ask(self._client, DeleteGroup(life.queue_id, group))
        if reply is not None:
            self._recorder.answered(seek, done=isinstance(reply.answer, Done))
            self._stage.failed(life, reply)
        self._stage.trace.add(self._name, f"deletes {group} of {life.name}: {seek.result}")
