"""Bugs to plant where replicas cut their logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.backend.node import whole_state
from penstock.queue.partition import Partition
from penstock.replication.primary_secondary.node.follower import cutting
from penstock.replication.primary_secondary.node.follower.cutting import Cutter
from penstock.replication.primary_secondary.node.follower.follower_state import FollowerState
from penstock.simulation.patching import Patch
from tests.simulation.planted.patches import forget_producers


def cuts_one_too_many() -> Sequence[Patch]:
    """A replica cuts the last record that it has in common with its primary too; it is sent that one again."""

    def cut(self: Cutter, follower_state: FollowerState, last: int) -> None:
        real(self, follower_state, max(1, last - 1))

    real = Cutter.cut
    return [(Cutter, "cut", cut)]


def cuts_forget_producers() -> Sequence[Patch]:
    """The state that is made anew without what was cut has forgotten which batches of which producer are stored."""

    def build(*arguments: Any) -> Partition:
        partition = real(*arguments)
        forget_producers(partition)
        return partition

    real = whole_state.build
    return [(cutting, "build", build)]
