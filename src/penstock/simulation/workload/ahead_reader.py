"""A reader that reads ahead like the client library: several reads in progress, handed out in order
(`client_core.read_ahead`).

The same is required of its results as of single reads: one number after the other, and nothing is skipped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from penstock.client_core.read_ahead import (
    Arrived,
    Contradiction,
    Dropped,
    Effect,
    Question,
    RangeRead,
    ReadAnswer,
    ReadingAhead,
)
from penstock.simulation.log_history import LogRead
from penstock.simulation.message_history import QueueLife
from penstock.simulation.tasks import Pause, Reply, Steps
from penstock.simulation.workload.log_reader import LogReader
from penstock.simulation.workload.stage import Stage
from penstock.wire.log_messages import LogSlice, ReadLog
from penstock.wire.messages import Unsubscribe

AHEAD_SHARE = 0.5
"""So many of the runs that have readers have one that reads ahead."""
_PATIENCE_MS = 8_000
_ROUND_MS = 5_000
_AS_MANY_AS_THERE_ARE = 1 << 40


class AheadReader(LogReader):
    """Reads rounds of a log, each from another offset."""

    def __init__(self, stage: Stage, name: str) -> None:
        super().__init__(stage, name)
        self._asked: dict[RangeRead, int] = {}
        """The ids of the requests under way."""
        self._answers: dict[RangeRead, LogRead] = {}
        """Answers that were not handed out yet."""
        self._failed_round = False

    def _follow(self, life: QueueLife, start: int) -> Steps[None]:
        stage, random = self._stage, self._stage.random
        bounds = yield from self.find(life, None)
        if bounds is None:
            return
        self._asked, self._answers, self._failed_round = {}, {}, False
        ahead = ReadingAhead(
            start,
            random.choice((bounds.end, bounds.begin)),
            stop=random.choice((None, None, bounds.end)),
            limit=random.choice((None, None, 1, 10, 100)),
            slice_bytes=random.choice((1, 100, 1_000, 100_000)),
            in_flight=random.choice((1, 2, 3, 8)),
        )
        until_ms = stage.schedule.elapsed_ms + random.randint(100, _ROUND_MS)
        while not (stage.stopping or self._failed_round) and stage.schedule.elapsed_ms < until_ms:
            self._carry_out(life, ahead, ahead.plan())
            first = ahead.first
            if first is None:
                break
            if (found := self._answers.pop(first, None)) is None:
                yield Pause(random.choice((1, 5, 50)))
                continue
            self.recorder.history.reads.append(
                replace(found, start=ahead.position, most=_AS_MANY_AS_THERE_ARE, waited_ms=1)
            )
            ahead.hand_out(found.next, len(found.messages))
        for read in ahead.close():
            self._drop(read)
        stage.trace.add(self.name, f"read {life.name} ahead from {start} to {ahead.position}")

    def _carry_out(
        self, life: QueueLife, ahead: ReadingAhead, effects: Iterable[Effect], found: LogRead | None = None
    ) -> None:
        for effect in effects:
            match effect:
                case Question():
                    self._ask(life, ahead, effect)
                case Dropped(read):
                    self._drop(read)
                case Arrived(read, up_to):
                    if found is not None:
                        self._answers[read] = found if up_to is None else _up_to(found, up_to)
                case Contradiction(read):
                    self._stage.recorder.history.stuck.append(
                        f"{self.name}: a read of {life.name!r} from {read.start} was answered with something else"
                    )
                    self._failed_round = True

    def _ask(self, life: QueueLife, ahead: ReadingAhead, question: Question) -> None:
        read, stage = question.read, self._stage
        asked_ms = stage.schedule.now_ms
        request = ReadLog(
            life.queue_id, read.start, question.max_messages, question.max_bytes, question.wait_ms
        )

        def answered(reply: Reply | None) -> None:
            if self._asked.pop(read, None) is None:
                return  # it was dropped
            if reply is None or not isinstance(reply.answer, LogSlice):
                stage.failed(life, reply)
                self._failed_round = True
                return
            answer = reply.answer
            found = self.recorder.read(life, request, answer, reply.body, asked_ms)
            batches = answer.batches
            first = batches[0].first if batches else read.start
            of_first = batches[0].count if batches else 0
            came = ReadAnswer(first, answer.next, answer.end, len(found.messages), len(reply.body), of_first)
            self._carry_out(life, ahead, ahead.arrived(read, came), found)

        self._asked[read] = 0
        self.client.ask(request, b"", question.wait_ms + _PATIENCE_MS, answered)
        if read in self._asked:
            self._asked[read] = self.client.last_request

    def _drop(self, read: RangeRead) -> None:
        self._answers.pop(read, None)
        if number := self._asked.pop(read, 0):
            self.client.tell(Unsubscribe(number))


def _up_to(found: LogRead, number: int) -> LogRead:
    return replace(
        found, messages=[one for one in found.messages if one.offset < number], next=min(found.next, number)
    )
