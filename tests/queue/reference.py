"""A queue so plain that it is obviously right: a dict of messages, looked through from end to end every time.

It says what may happen; where the engine may choose (which group, which priority is next), it checks the
choice instead of making one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal

from penstock.model.settings import QueueSettings

State = Literal["ready", "leased", "delayed", "moving"]
FOREVER = 2**62


def rounded_up(time_ms: int, slot_ms: int) -> int:
    """The end of the slot a time lies in."""
    while time_ms % slot_ms:
        time_ms += 1
    return time_ms


@dataclass
class Message:
    """One message and all that is known of it."""

    sequence: int
    body: bytes
    size: int
    priority: int
    group: bytes
    sent_ms: int
    state: State = "ready"
    ready_ms: int = 0
    expires_ms: int = FOREVER
    receives: int = 0
    first_received_ms: int = 0
    lease: int = 0
    until_ms: int = 0
    move: tuple[str, str] | None = None


@dataclass
class Outgoing:
    """A message as its producer sees it."""

    body: bytes
    attributes: bytes = b""
    priority: int = 0
    group: bytes = b""
    delay_ms: int | None = None
    ttl_ms: int | None = None
    identifier: bytes = b""


@dataclass
class Answer:
    """What a producer is told: a sequence number for each message, and which of them were duplicates."""

    sequences: list[int]
    duplicates: list[int]


class QueueIsFull(Exception):
    """There is no room and none can be made."""


@dataclass
class Reference:
    """The queue."""

    settings: QueueSettings
    next: int = 1
    messages: dict[int, Message] = field(default_factory=dict)
    identifiers: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    answers: dict[tuple[int, int], Answer] = field(default_factory=dict)
    arrived: set[tuple[int, int]] = field(default_factory=set)
    ended: dict[str, int] = field(default_factory=dict)

    # -- sending ---------------------------------------------------------------------------------------------

    def send(self, batch: list[Outgoing], producer: int, number: int, now_ms: int) -> Answer:
        """Stores what is new of a batch; raises `QueueIsFull`."""
        if producer and (producer, number) in self.answers:
            return self.answers[producer, number]
        new: list[Outgoing] = []
        here: dict[bytes, int] = {}
        sequences: list[int] = []
        duplicates: list[int] = []
        for index, message in enumerate(batch):
            original, until_ms = self.identifiers.get(message.identifier, (0, 0))
            if message.identifier and now_ms < until_ms:
                duplicates.append(index)
                sequences.append(original)
            elif message.identifier and message.identifier in here:
                duplicates.append(index)
                sequences.append(here[message.identifier])
            else:
                here[message.identifier] = self.next + len(new)
                sequences.append(self.next + len(new))
                new.append(message)
        answer = Answer(sequences, duplicates)
        if new:
            self._make_room(new)
        for message in new:
            self._store(message, now_ms)
        if producer:
            self.answers[producer, number] = answer
        return answer

    def _store(self, message: Outgoing, now_ms: int) -> None:
        settings = self.settings
        delay_ms = message.delay_ms if message.delay_ms is not None else settings.delay_ms
        ttl_ms = message.ttl_ms if message.ttl_ms is not None else settings.default_ttl_ms or 0
        stored = self._append(message, now_ms)
        if delay_ms:
            stored.state, stored.ready_ms = "delayed", rounded_up(now_ms + delay_ms, 10)
        if ttl_ms:
            stored.expires_ms = rounded_up(now_ms + ttl_ms, 10)
        if message.identifier:
            until_ms = now_ms + settings.deduplication_window_ms
            self.identifiers[message.identifier] = (stored.sequence, until_ms)

    def _append(self, message: Outgoing, now_ms: int) -> Message:
        stored = Message(
            self.next,
            message.body,
            len(message.body) + len(message.attributes),
            0 if self.settings.fifo else message.priority,
            message.group,
            now_ms,
        )
        self.messages[self.next] = stored
        self.next += 1
        return stored

    def _make_room(self, new: list[Outgoing]) -> None:
        settings = self.settings
        staying = [message for message in self.messages.values() if message.state != "moving"]
        messages = len(staying) + len(new)
        size = sum(m.size for m in staying) + sum(len(m.body) + len(m.attributes) for m in new)
        leaving = self._leaving_groups(staying, {message.group for message in new} - {b""})
        messages -= len(leaving)
        size -= sum(message.size for message in leaving)
        for message in staying:
            if messages <= (settings.max_messages or FOREVER) and size <= (settings.max_bytes or FOREVER):
                break
            if message.state == "ready" and settings.overflow != "reject" and message not in leaving:
                leaving.append(message)
                messages -= 1
                size -= message.size
        if messages > (settings.max_messages or FOREVER) or size > (settings.max_bytes or FOREVER):
            raise QueueIsFull
        for message in leaving:
            if settings.overflow == "dead-letter":
                self._move(message, "overflow")
            else:
                self._end(message, "dropped")

    def _leaving_groups(self, staying: list[Message], new: set[bytes]) -> list[Message]:
        """All messages of the oldest groups that have to go for new ones; raises `QueueIsFull`."""
        there = {message.group for message in staying} - {b""}
        over = len(there | new) - (self.settings.max_groups or FOREVER)
        if new <= there or over <= 0:
            return []
        stuck = {message.group for message in staying if message.state != "ready"}
        oldest = list(dict.fromkeys(m.group for m in staying if m.group and m.group not in stuck | new))
        if len(oldest) < over or self.settings.overflow == "reject":
            raise QueueIsFull
        return [message for message in staying if message.group in oldest[:over]]

    def arrive(self, batch: list[Outgoing], source_id: int, sequences: list[int], now_ms: int) -> None:
        """Takes in moved messages: at once ready, without a time to live, each only once."""
        for message, sequence in zip(batch, sequences, strict=True):
            if (source_id, sequence) not in self.arrived:
                self.arrived.add((source_id, sequence))
                self._append(message, now_ms)

    # -- receiving -------------------------------------------------------------------------------------------

    def lines(self) -> list[list[Message]]:
        """Messages that may be delivered: lists, each of which must be served from the front."""
        lines: dict[tuple[int, bytes], list[Message]] = {}
        closed: set[bytes] = set()
        for message in self.messages.values():
            if message.state == "ready" and not (self.settings.fifo and message.group in closed):
                lines.setdefault((message.priority, message.group), []).append(message)
            elif message.state != "ready":
                closed.add(message.group)
        return list(lines.values())

    def lease(
        self, sequences: list[int], lease: int, now_ms: int, until_ms: int, max_messages: int, max_bytes: int
    ) -> None:
        """Checks what the engine handed out, and hands it out."""
        lines = self.lines()
        waiting = sum(map(len, lines))
        taken_bytes = 0
        for sequence in sequences:
            line = next((line for line in lines if line and line[0].sequence == sequence), None)
            assert line is not None, f"{sequence} was not next in any line"
            message = line.pop(0)
            taken_bytes += message.size
            message.state, message.lease, message.until_ms = "leased", lease, until_ms
            message.receives += 1
            message.first_received_ms = message.first_received_ms or now_ms
        if self.settings.fifo:
            groups = [self.messages[sequence].group for sequence in sequences]
            visits = [group for i, group in enumerate(groups) if i == 0 or groups[i - 1] != group]
            assert len(visits) == len(set(visits)), "a group was left and taken up again"
        assert len(sequences) <= max_messages
        assert taken_bytes <= max_bytes or len(sequences) == 1
        if len(sequences) < min(max_messages, waiting):
            heads = [line[0].size for line in lines if line]
            assert sequences
            assert any(taken_bytes + size >= max_bytes for size in heads)

    # -- settling --------------------------------------------------------------------------------------------

    def held(self, lease: int, sequences: Iterable[int]) -> list[Message]:
        """Which of the messages are still out under the lease."""
        found = (self.messages.get(sequence) for sequence in sorted(set(sequences)))
        return [m for m in found if m is not None and m.state == "leased" and m.lease == lease]

    def delete(self, lease: int, sequences: Iterable[int]) -> None:
        """Those that are held are gone."""
        for message in self.held(lease, sequences):
            self._end(message, "deleted")

    def waiting(
        self, sequences: Iterable[int], received: int, states: Iterable[str] = ("ready", "delayed")
    ) -> list[Message]:
        """Which of the messages wait and have been received so often."""
        found = (self.messages.get(sequence) for sequence in sorted(set(sequences)))
        return [m for m in found if m and m.state in states and 0 < m.receives == received]

    def resume(self, lease: int, sequences: Iterable[int], received: int, until_ms: int) -> None:
        """Those that are ready and that nobody has received since are out again."""
        for message in self.waiting(sequences, received, ["ready"]):
            message.state, message.lease, message.until_ms = "leased", lease, until_ms

    def delete_waiting(self, sequences: Iterable[int], received: int) -> None:
        """Those that nobody has received since are gone."""
        for message in self.waiting(sequences, received):
            self._end(message, "deleted")

    def release(self, lease: int, sequences: Iterable[int], now_ms: int, delay_ms: int) -> None:
        """Those that are held come back."""
        for message in self.held(lease, sequences):
            self._give_back(message, now_ms, delay_ms)

    def unreceive(self, lease: int, sequences: Iterable[int], now_ms: int, delay_ms: int) -> None:
        """Those that are held come back as if they had not been received."""
        for message in self.held(lease, sequences):
            message.receives -= 1
            if not message.receives:
                message.first_received_ms = 0
            message.state, message.lease = "ready", 0
            if delay_ms:
                message.state, message.ready_ms = "delayed", rounded_up(now_ms + delay_ms, 10)

    def extend(self, lease: int, sequences: Iterable[int], until_ms: int) -> None:
        """Those that are held are held until then."""
        for message in self.held(lease, sequences):
            message.until_ms = until_ms

    def _give_back(self, message: Message, now_ms: int, delay_ms: int) -> None:
        settings = self.settings
        message.state, message.lease = "ready", 0
        if settings.max_receives is not None and message.receives >= settings.max_receives:
            self._move(message, "max-receives")
        elif delay_ms:
            message.state, message.ready_ms = "delayed", rounded_up(now_ms + delay_ms, 10)

    # -- time ------------------------------------------------------------------------------------------------

    def expire(self, now_ms: int) -> None:
        """Times to live that are over."""
        for message in self._staying(lambda m: m.expires_ms <= now_ms):
            if self.settings.dead_letter_queue is not None:
                self._move(message, "expired")
            else:
                self._end(message, "expired")

    def retain(self, now_ms: int) -> None:
        """Retention that is over."""
        oldest_ms = now_ms - self.settings.retention_ms
        for message in self._staying(lambda m: rounded_up(m.sent_ms, 100) <= oldest_ms):
            self._end(message, "expired")

    def end_delays(self, now_ms: int) -> None:
        """Delays that are over."""
        for message in self._staying(lambda m: m.state == "delayed" and m.ready_ms <= now_ms):
            message.state = "ready"

    def end_leases(self, now_ms: int) -> None:
        """Leases that are over."""
        for message in self._staying(lambda m: m.state == "leased" and m.until_ms <= now_ms):
            self._give_back(message, now_ms, 0)

    def next_ms(self) -> int:
        """When time next does something."""
        times = [FOREVER]
        for message in self._staying(lambda _: True):
            times += [message.expires_ms, rounded_up(message.sent_ms, 100) + self.settings.retention_ms]
            if message.state == "leased":
                times.append(message.until_ms)
            elif message.state == "delayed":
                times.append(message.ready_ms)
        return min(times)

    def purge(self) -> None:
        """Everything is gone but what is on its way."""
        for message in self._staying(lambda _: True):
            self._end(message, "purged")
        self.identifiers.clear()

    def _staying(self, condition: Callable[[Message], bool]) -> list[Message]:
        return [m for m in self.messages.values() if m.state != "moving" and condition(m)]

    # -- moving ----------------------------------------------------------------------------------------------

    def start_move(self, sequences: Iterable[int], target: str) -> int:
        """Those that are ready are on their way."""
        ready = [m for s in sequences if (m := self.messages.get(s)) is not None and m.state == "ready"]
        for message in ready:
            self._move(message, "redrive", target)
        return len(ready)

    def moving(self) -> dict[tuple[str, str], list[int]]:
        """What is on its way, by target and reason."""
        moves: dict[tuple[str, str], list[int]] = {}
        for message in self.messages.values():
            if message.move is not None:
                moves.setdefault(message.move, []).append(message.sequence)
        return moves

    def finish_move(self, sequences: Iterable[int]) -> None:
        """They are gone from here."""
        for message in self._on_their_way(sequences):
            dead = message.move is not None and message.move[1] != "redrive"
            self._end(message, "dead_lettered" if dead else "redriven")

    def abandon_move(self, sequences: Iterable[int]) -> None:
        """They cannot go: what has expired is gone, the rest is ready again."""
        for message in self._on_their_way(sequences):
            expired = message.move is not None and message.move[1] == "expired"
            message.state, message.move = "ready", None
            if expired:
                self._end(message, "expired")

    def _on_their_way(self, sequences: Iterable[int]) -> list[Message]:
        found = [self.messages.get(sequence) for sequence in sequences]
        return [message for message in found if message is not None and message.move is not None]

    def _move(self, message: Message, reason: str, target: str | None = None) -> None:
        target = target or self.settings.dead_letter_queue
        assert target is not None
        message.state, message.move, message.lease = "moving", (target, reason), 0

    def _end(self, message: Message, how: str) -> None:
        del self.messages[message.sequence]
        self.ended[how] = self.ended.get(how, 0) + 1
