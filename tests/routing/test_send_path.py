"""Sends from the code of the client library to partitions that fail over, in random interleavings.

What is checked:

- No message is stored twice, and no id within its window, over all partitions.
- Every message that is acknowledged is stored under the number that was told.
- Of one producer, what is acknowledged is stored in the order in which it was sent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import NamedTuple

import pytest

from penstock.model.batch import DEDUPLICATION, Batch
from penstock.model.partition_numbers import LARGEST_NUMBER, ORDINAL_SHIFT
from penstock.model.records import Sent, decode_record
from tests.routing.send_path import NODES, FrontEnd, Partition, SendPath, Wire
from tests.routing.send_path_clients import Client, Connection

STEPS = 5_000
LAST_STEPS = 20_000
OPEN_BATCHES = 8
ALWAYS = {
    "request": 30,
    "answer": 30,
    "read": 60,
    "commit": 40,
    "hear": 60,
    "wait": 25,
    "news": 20,
    "join": 30,
}
WORK = {"gather": 14.0, "lose": 1.0, "break": 1.0, "kill": 0.15}


class Walk(SendPath):
    """Random steps."""

    def step(self, *, calm: bool = False) -> None:
        """One step; when it is `calm` nothing new comes and nothing fails."""
        weights: dict[str, float] = dict(ALWAYS)
        if not calm:
            weights |= WORK | {"fail over": self.settings.failovers}
        self._do(self.dice.choices(list(weights), list(weights.values()))[0])
        for front_end in self.front_ends:
            front_end.turn()
        for client in self.clients:
            client.turn()
        self.old = [wire for wire in self.old if wire.requests]

    def _do(self, what: str) -> None:
        dice = self.dice
        client, front_end = dice.choice(self.clients), dice.choice(self.front_ends)
        connection = client.connection
        match what:
            case "gather" if len(client.open) < OPEN_BATCHES:
                client.gather()
            case "request" if connection is not None and connection.requests:
                for _ in range(dice.randint(1, len(connection.requests))):
                    connection.front_end.take(connection, *connection.requests.popleft())
            case "answer" if connection is not None and connection.answered:
                client.hear(*connection.answered.popleft())
            case "read":
                wires = [wire for wire in self._wires() if wire.requests]
                if wires:
                    self.read(dice.choice(wires))
            case "commit":
                dice.choice(self.partitions).commit()
            case "hear":
                self._hear(front_end)
            case "wait":
                self.now += dice.choice([0.001, 0.01, 0.05, 0.2, 0.2, 1.0 if dice.random() < 0.1 else 0.02])
            case "news" if front_end.news:
                front_end.hear()
            case "join":
                self._join(client, front_end)
            case "lose" if connection is not None:
                client.lose()
            case "break":
                self.break_off(front_end, dice.choice(NODES))
            case "kill":
                self._kill(front_end)
            case "fail over":
                partition = dice.choice(self.partitions)
                partition.lead(dice.choice(NODES), self.now_ms)
                for one in self.front_ends:
                    one.news.append(partition)
            case _:
                pass

    def _wires(self) -> list[Wire]:
        return [*(wire for one in self.front_ends for wire in one.wires.values()), *self.old]

    def _hear(self, front_end: FrontEnd) -> None:
        wires = [wire for wire in front_end.wires.values() if wire.answered]
        if wires:
            wire = self.dice.choice(wires)
            place = self.dice.randrange(len(wire.answered)) if self.dice.random() < 0.3 else 0
            sent, outcome = wire.answered.pop(place)
            wire.unanswered.remove(sent)
            front_end.answered(sent, outcome)

    def _join(self, client: Client, front_end: FrontEnd) -> None:
        node = self.dice.choice(NODES)
        if node not in front_end.wires:
            front_end.wires[node] = Wire(node, self.number())
        if client.connection is None:
            client.connect(Connection(front_end, self.number()))

    def _kill(self, front_end: FrontEnd) -> None:
        """A front end dies; its successor knows who leads by now."""
        for node in list(front_end.wires):
            self.break_off(front_end, node, told=False)
        self.front_ends[self.front_ends.index(front_end)] = FrontEnd(self, 1_000_000 + self.number())
        for client in self.clients:
            if client.connection is not None and client.connection.front_end is front_end:
                client.lose()


class Found(NamedTuple):
    """A message in the log of a partition."""

    ordinal: int
    number: int
    identifier: bytes
    body: bytes
    sent_ms: int


def found_in(partition: Partition) -> Iterator[Found]:
    """The messages in the log of a partition."""
    for entry in partition.rig.log:
        assert isinstance(entry, tuple)
        record = decode_record(entry[0])
        if isinstance(record, Sent):
            assert entry[1] is not None
            batch = Batch(entry[1])
            names = batch.names(DEDUPLICATION) or [b""] * batch.count
            for number, (name, body) in enumerate(zip(names, batch.bodies(), strict=True), record.first):
                yield Found(partition.ordinal, number, bytes(name), bytes(body), record.sent_ms)


def check(walk: Walk) -> int:
    """Raises where a promise is broken; how many batches were acknowledged."""
    found = [one for partition in walk.partitions for one in found_in(partition)]
    by_body = {one.body: one for one in found}
    by_number = {(one.ordinal, one.number): one for one in found}
    assert len(by_body) == len(found), "a message is stored twice"
    by_id: dict[bytes, list[int]] = {}
    for one in found:
        if one.identifier:
            by_id.setdefault(one.identifier, []).append(one.sent_ms)
    for identifier, times in by_id.items():
        for first, second in pairwise(sorted(times)):
            assert second >= first + walk.settings.window_ms, f"{identifier!r} is stored twice"
    acknowledged = 0
    for client in walk.clients:
        last: dict[int, int] = {}
        for batch in client.batches:
            if batch.result is None:
                continue
            acknowledged += 1
            numbers = [n for first, count in batch.result.runs for n in range(first, first + count)]
            for place, (number, body) in enumerate(zip(numbers, batch.bodies, strict=True)):
                stored = by_number[number >> ORDINAL_SHIFT, number & LARGEST_NUMBER]
                if place in batch.result.duplicates:
                    assert stored.identifier == batch.ids[place] != b""
                else:
                    assert stored.body == body
                    assert last.get(stored.ordinal, 0) < stored.number, f"{body!r} is stored too early"
            last |= {by_body[body].ordinal: by_body[body].number for body in batch.bodies if body in by_body}
    return acknowledged


@pytest.mark.parametrize(
    ("seed", "ordered"), [*((seed, True) for seed in range(12)), *((seed, False) for seed in range(16, 24))]
)
def test_what_is_acknowledged_is_stored_once_and_in_order(seed: int, ordered: bool) -> None:
    walk = Walk(Random(seed), ordered=ordered)
    for _ in range(STEPS):
        walk.step()
    for _ in range(LAST_STEPS):
        if not any(client.open for client in walk.clients):
            break
        walk.step(calm=True)
    assert not any(client.open for client in walk.clients), "every batch has an answer"
    assert check(walk) > 10
