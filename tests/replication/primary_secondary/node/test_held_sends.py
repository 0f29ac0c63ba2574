"""Sends that a primary holds for its clock, when it serves for a moment no more: they go back in order, and so does what follows."""

from __future__ import annotations

from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode
from penstock.ordering.clock_interval import ClockInterval
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster, Machine
from tests.replication.primary_secondary.node.test_many_journeys import everything


def start(machine: Machine, number: int, after: int) -> int:
    return machine.request(messages.Send(1, 7, number, after=after), encode_parts([b"%d" % number]))


def code_of(machine: Machine, request: int) -> str:
    answer = machine.answers.pop(request)
    return answer.code if isinstance(answer, messages.Failed) else "stored"


def test_what_follows_held_sends_that_were_turned_away_is_not_stored_before_them() -> None:
    cluster = Cluster()
    cluster.create(nodes=("a", "b"), ordering="clock", when_uncertain="hold", replication="async")
    cluster.settle(500)
    machine = cluster.leader
    assert machine.node is not None
    held = [start(machine, 1, 0), start(machine, 2, 1)]
    cluster.settle(100)
    assert not machine.answers.keys() & set(held)
    # The lease ends before its renewal is heard of: the same primary serves on then, in the same epoch.
    cluster.now_ms += 3_000
    machine.node.tick(cluster.now_ms)
    cluster.settle(100)
    assert [code_of(machine, request) for request in held] == [ErrorCode.NOT_PRIMARY] * 2
    parts = machine.node.replication.state.parts
    parts.clock = lambda: ClockInterval(cluster.now_ms * 1_000, cluster.now_ms * 1_000)
    late = start(machine, 3, 2)  # it was on its way since before
    cluster.settle(100)
    assert code_of(machine, late) == ErrorCode.OUT_OF_ORDER
    again = [start(machine, number, number - 1) for number in (1, 2, 3)]
    cluster.settle(100)
    assert [code_of(machine, request) for request in again] == ["stored"] * 3
    assert everything(cluster, 1) == [b"1", b"2", b"3"]
