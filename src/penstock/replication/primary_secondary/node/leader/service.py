"""What clients get from the partitions that a node leads: service, a refusal, or only the moves of a deleted queue."""

from __future__ import annotations

from penstock.backend.logs import membership as log_membership
from penstock.backend.send import sends
from penstock.model.errors import ErrorCode, PenstockError
from penstock.replication.primary_secondary.core.roles import TRANSITIONS, Event, Step
from penstock.replication.primary_secondary.node.state import ClusterState
from penstock.wire.messages import Failed


class Service:
    """Opens and closes partitions to clients."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def may(self, partition_id: int, event: Event) -> None:
        """What this node may do as the primary now."""
        for step in TRANSITIONS[self._state.role_of_led(partition_id), event].steps:
            match step:
                case Step.OPEN:
                    self._open(partition_id)
                case Step.TURN_AWAY:
                    self.turn_away(partition_id)
                case Step.DRAIN:
                    self._state.drain(partition_id)
                case Step.STOP_DRAINING:
                    self._state.drains.discard(partition_id)
                case _:
                    raise ValueError(f"what a primary may do never makes it {step}")

    def _open(self, partition_id: int) -> None:
        """Clients are served from now on."""
        parts = self._state.parts
        assert parts.catalogue.serves is not None
        parts.catalogue.serves.add(partition_id)
        parts.idle.forget(partition_id)  # its use is not known here: it counts from now on
        partition = parts.catalogue.partitions[partition_id]
        parts.timed.add(partition_id)
        if partition.moves:
            parts.movers.add(partition_id)
        log_membership.restore(parts, [partition], self._state.now_ms)

    def turn_away(self, partition_id: int) -> None:
        """Clients that wait at the partition are sent elsewhere."""
        parts = self._state.parts
        assert parts.catalogue.serves is not None
        parts.catalogue.serves.discard(partition_id)
        parts.movers.discard(partition_id)
        error = PenstockError(
            ErrorCode.NOT_PRIMARY, f"this node is not the primary of partition {partition_id} any more"
        )
        for waiter in parts.leave_queue(partition_id):
            parts.answer(waiter.connection, waiter.request_id, Failed(error.code, error.message))
        sends.end_held(parts, parts.held_sends.drop_queue(partition_id), error)
