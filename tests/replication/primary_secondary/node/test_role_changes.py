"""Nodes change their roles as the table says, whatever happens to a cluster."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest

from penstock.cluster.layout.deletion import marked
from penstock.model.batch import encode_parts
from penstock.replication.primary_secondary.core.roles import PRIMARY, TRANSITIONS, Event, Role
from penstock.replication.primary_secondary.node.layout_view import KnownEntry
from penstock.replication.primary_secondary.node.leader.service import Service
from penstock.replication.primary_secondary.node.roles import Roles
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster
from tests.replication.primary_secondary.node.test_many_lives import World

Change = tuple[Role, Event, Role]


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[Change]]:
    """What nodes did about their roles, checked against the table at the end."""
    seen: set[Change] = set()
    real_act, real_may, real_happened = Roles._act_on, Service.may, Roles.happened

    def act_on(self: Roles, known: KnownEntry) -> bool:
        partition_id = known.entry.partition
        role, event = self.role(partition_id), self._event(known.entry)
        done = real_act(self, known)
        seen.add((role, event, self.role(partition_id)))
        return done

    def may(self: Service, partition_id: int, event: Event) -> None:
        role = self._state.role_of_led(partition_id)
        real_may(self, partition_id, event)
        seen.add((role, event, self._state.role_of_led(partition_id)))

    def happened(self: Roles, partition_id: int, event: Event, why: str) -> None:
        role = self.role(partition_id)
        real_happened(self, partition_id, event, why)
        seen.add((role, event, self.role(partition_id)))

    monkeypatch.setattr(Roles, "_act_on", act_on)
    monkeypatch.setattr(Service, "may", may)
    monkeypatch.setattr(Roles, "happened", happened)
    yield seen
    strange = [change for change in seen if change[2] not in TRANSITIONS[change[0], change[1]].then]
    assert not strange


@pytest.mark.parametrize("seed", range(4))
def test_through_many_lives(seed: int, changes: set[Change]) -> None:
    world = World(seed)
    for _ in range(400):
        world.step()
    assert {change[0] for change in changes} >= {Role.ABSENT, Role.FOLLOWER, Role.LEADING, Role.SERVING}


def test_through_a_failover_a_move_and_a_deletion(changes: set[Change]) -> None:
    cluster = Cluster()
    cluster.create()
    cluster.settle(500)
    assert isinstance(cluster.ask(messages.Send(1), encode_parts([b"one"])), messages.SendResult)
    first = cluster.leader
    first.crash()
    cluster.settle(3_000)
    first.start()
    cluster.settle(3_000)
    entry = cluster.entry()
    away = next(name for name in entry.replicas if name != entry.primary)
    left = [name for name in entry.replicas if name != away]
    cluster.put(msgspec.structs.replace(entry, replicas=left, in_sync=left, leaving=[away]))
    cluster.settle(1_000)
    cluster.put(marked(cluster.entry()))
    cluster.settle(3_000)
    seen = {(role, event) for role, event, _ in changes}
    assert (Role.FOLLOWER, Event.TO_DROP) in seen
    assert (Role.SERVING, Event.MAY_DRAIN) in seen or (Role.SERVING, Event.CONFIRMED) in seen
    assert any(role in PRIMARY and after not in PRIMARY for role, _, after in changes)
