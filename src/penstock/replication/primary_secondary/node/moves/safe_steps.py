"""Steps of moves that wait until no failover can lose the step before: what is done then, as data.

`LedPartition.when_everywhere` keeps them, and `ClusterMoves.carry_out` does them.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.replication.primary_secondary.node.moves.journey import Journey
from penstock.replication.primary_secondary.node.peer_stream import PeerStream
from penstock.wire.peer_messages import Arrived, AskArrived, MovedIn, MoveDone


class JourneyReady(NamedTuple):
    """That messages left their source is safe: they may set out."""

    journey: Journey


class JourneyFinished(NamedTuple):
    """That messages have left their source for good is safe: the target may forget them."""

    journey: Journey
    epoch: int
    """Of the primary that led the source."""


class TellPrimary(NamedTuple):
    """The primary of a partition is told something."""

    partition_id: int
    message: MoveDone | AskArrived | Arrived


class AnswerNode(NamedTuple):
    """Messages of another node are safe at their target. The answer goes on the stream of the request, or nowhere."""

    stream: PeerStream
    answer: MovedIn


class ArrivedHere(NamedTuple):
    """Messages of a partition that this node leads are safe at a target that it leads too."""

    answer: MovedIn


SafeStep = JourneyReady | JourneyFinished | TellPrimary | AnswerNode | ArrivedHere
