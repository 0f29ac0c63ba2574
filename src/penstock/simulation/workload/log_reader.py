"""Readers of logs: from any offset, alone; and as members of groups, which join and leave, crash, and stay for too long."""

from __future__ import annotations

from penstock.model.errors import ErrorCode
from penstock.simulation.log_history import Joined, LogRead, ReaderIdentity
from penstock.simulation.log_recorder import LogRecorder
from penstock.simulation.message_history import QueueLife
from penstock.simulation.tasks import Ask, Pause, Steps
from penstock.simulation.workload.stage import Stage
from penstock.wire.log_messages import (
    CommitOffset,
    FindOffset,
    GroupMembership,
    JoinGroup,
    LeaveGroup,
    LogBounds,
    LogSlice,
    ReadLog,
)
from penstock.wire.messages import Done

GROUPS = ("readers", "others")
_ROUND_MS = 5_000


class LogReader:
    """One reader that remembers its offsets itself."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self.name = name
        self.client = stage.client(name)
        self.recorder = LogRecorder(stage.recorder, stage.schedule)

    def run(self) -> Steps[None]:
        """Reads until the run ends: each round from somewhere else."""
        stage, random = self._stage, self._stage.random
        while not stage.stopping:
            yield Pause(random.randint(10, 400))
            life = stage.pick_log()
            if life is None:
                yield from stage.look_up_logs(self.client)
                continue
            bounds = yield from self.find(life, None)
            if bounds is None:
                continue
            start = random.choice((bounds.begin, bounds.end, bounds.end, random.randint(1, bounds.end)))
            if random.random() < 0.3:
                back_ms = random.choice((100, 1_000, 5_000))
                found = yield from self.find(life, stage.schedule.now_ms - back_ms)
                start = found.found if found is not None else start
            yield from self._follow(life, start)

    def _follow(self, life: QueueLife, start: int) -> Steps[None]:
        stage, random = self._stage, self._stage.random
        until_ms = stage.schedule.elapsed_ms + random.randint(100, _ROUND_MS)
        while not stage.stopping and stage.schedule.elapsed_ms < until_ms:
            found = yield from self.read(life, start, random.choice((0, 300, 1_000, 2_000)), None)
            if found is None:
                return
            start = found.next
            if not found.messages:
                yield Pause(random.randint(5, 200))

    def find(self, life: QueueLife, time_ms: int | None) -> Steps[LogBounds | None]:
        """The ends of the log, and the messages sent at or after a time."""
        stage = self._stage
        asked_ms = stage.schedule.now_ms
        reply = yield Ask(self.client, FindOffset(life.queue_id, time_ms))
        if reply is not None and isinstance(reply.answer, LogBounds):
            self.recorder.bounds(life, reply.answer, time_ms, asked_ms)
            return reply.answer
        yield from self._failed(life, "find an offset", stage.failed(life, reply))
        return None

    def read(
        self, life: QueueLife, start: int, wait_ms: int, place: ReaderIdentity | None
    ) -> Steps[LogRead | None]:
        """One read; None where it was refused or not answered."""
        stage, random = self._stage, self._stage.random
        asked_ms = stage.schedule.now_ms
        most, most_bytes = random.choice((1, 3, 50, 1_000)), random.choice((None, None, 1, 200, 2_000))
        request = ReadLog(life.queue_id, start, most, most_bytes, wait_ms)
        if place is not None:
            request = ReadLog(life.queue_id, start, most, most_bytes, wait_ms, *place)
        reply = yield Ask(self.client, request, timeout_ms=wait_ms + 8_000)
        if reply is not None and isinstance(reply.answer, LogSlice):
            found = self.recorder.read(life, request, reply.answer, reply.body, asked_ms)
            stage.trace.add(
                self.name, f"read {life.name} from {start} to {found.next}, the end is {found.end}"
            )
            return found
        failed = stage.failed(life, reply)
        if failed is not None and failed.code == ErrorCode.OFFSET_GONE:
            self.recorder.offset_gone(life, start, asked_ms)
        yield from self._failed(life, f"read from {start}", failed)
        return None

    def _failed(self, life: QueueLife, what: str, failed: object) -> Steps[None]:
        stage = self._stage
        code = getattr(failed, "code", "no answer")
        stage.trace.add(self.name, f"{what} of {life.name}: {code}")
        if code == ErrorCode.QUEUE_NOT_FOUND:
            yield from stage.look_up(self.client, life.name)
        yield Pause(stage.random.randint(10, 200))


class GroupMember(LogReader):
    """A member of a group: joins, reads, commits; dies silently, and comes back under a new name or the old one."""

    def __init__(self, stage: Stage, name: str) -> None:
        super().__init__(stage, name)
        self._lives = 0
        self._old: list[tuple[QueueLife, ReaderIdentity, int]] = []
        """Where it once stood: what it must not be able to commit any more."""

    def run(self) -> Steps[None]:
        """Lives until the run ends."""
        stage, random = self._stage, self._stage.random
        while not stage.stopping:
            yield Pause(random.randint(10, 300))
            life = stage.pick_log()
            if life is None:
                yield from stage.look_up_logs(self.client)
                continue
            if random.random() < 0.6:
                self._lives += 1
            yield from self._be_member(life, random.choice(GROUPS), f"{self.name}.{self._lives}")

    def _be_member(self, life: QueueLife, group: str, member: str) -> Steps[None]:
        stage, random = self._stage, self._stage.random
        until_ms = stage.schedule.elapsed_ms + random.randint(300, _ROUND_MS)
        while not stage.stopping and stage.schedule.elapsed_ms < until_ms:
            joined = yield from self._join(life, group, member)
            if joined is None:
                return
            if joined.offset is None:
                yield Pause(random.randint(50, 500))
                continue
            yield from self._read_on(joined, joined.offset, until_ms)
        if random.random() < 0.4:
            yield Ask(self.client, LeaveGroup(life.queue_id, group, member))
            stage.trace.add(self.name, f"left {group} of {life.name}")

    def _join(self, life: QueueLife, group: str, member: str) -> Steps[Joined | None]:
        stage, random = self._stage, self._stage.random
        asked_ms = stage.schedule.now_ms
        lease_ms = random.choice((1_000, 1_000, 3_000))
        reply = yield Ask(self.client, JoinGroup(life.queue_id, group, member, lease_ms))
        if reply is not None and isinstance(reply.answer, GroupMembership):
            joined = self.recorder.joined(life, group, member, reply.answer, asked_ms)
            stage.trace.add(
                self.name,
                f"joined {group} of {life.name} as {member}, generation {joined.place.generation}, goes on at "
                f"{joined.offset}",
            )
            return joined
        yield from self._failed(life, f"join {group}", stage.failed(life, reply))
        return None

    def _read_on(self, joined: Joined, offset: int, until_ms: int) -> Steps[None]:
        """Reads from its offset until its assignment ends, or time is over."""
        stage, random = self._stage, self._stage.random
        life, place = joined.life, joined.place
        self._old.append((life, place, offset))
        while not stage.stopping and stage.schedule.elapsed_ms < until_ms:
            found = yield from self.read(life, offset, random.choice((0, 200, 700)), place)
            if found is None:
                bounds = yield from self.find(life, None)
                if bounds is not None and bounds.begin > offset:  # it was too slow: the log is cut there
                    yield from self.commit(life, place, bounds.begin)
                return
            offset = found.next
            yield Pause(random.choice((0, 5, 50, 50, 400, 2_500)))
            if random.random() < 0.6 and not (yield from self.commit(life, place, offset)):
                return
            if random.random() < 0.1:
                yield from self.commit(*random.choice(self._old))

    def commit(self, life: QueueLife, place: ReaderIdentity, offset: int) -> Steps[bool]:
        """Writes an offset down; whether that was done."""
        stage = self._stage
        commit = self.recorder.committing(life, place, offset)
        reply = yield Ask(self.client, CommitOffset(life.queue_id, place.group, offset, *place[1:]))
        if reply is not None:
            self.recorder.answered(commit, done=isinstance(reply.answer, Done))
            stage.failed(life, reply)
        stage.trace.add(
            self.name,
            f"committed {offset} of {life.name} for {place.group}, generation {place.generation}: {commit.result}",
        )
        return commit.result == "done"
