"""Runs the lines of a simulated front end, as `runtime.cluster.link.partition_calls` does over sockets.

The product (`routing.partition_line`) decides; here is only the transport of requests, and its faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from random import Random

import msgspec

from penstock.model.errors import ErrorCode, PenstockError
from penstock.routing.cluster_map import ClusterMap
from penstock.routing.line_call import Call, Cancel, Done, Effect, Finish, LookUp, Transmit
from penstock.routing.partition_line import PartitionLines
from penstock.simulation.client import SimulatedClient
from penstock.simulation.cluster.fabric import Fabric
from penstock.simulation.schedule import Schedule
from penstock.simulation.tasks import Reply as ClientReply
from penstock.steps.step import Ask, Outcome, Reply
from penstock.wire.messages import Delete, Extend, Failed, Release, Unsubscribe

_STRAY_SHARE = 0.03
_SILENT_MS = 8_000
"""A node that is silent for so long is given up."""
_TOLD_MS = (0, 0, 1, 3)
"""How long after a connection was lost its requests get their outcome; there may be another connection by then."""
_DIAL_MS = 40
_PATIENCE_MS = 4_000
"""Less than a front end has: clients of the simulation ask again by themselves, and their time is dear."""

Refresh = Callable[[str, Callable[[], None]], None]


def unreachable(why: str) -> PenstockError:
    """The outcome of a request is unknown."""
    return PenstockError(ErrorCode.UNREACHABLE, why)


def is_second_answer(call: Call, outcome: Outcome) -> bool:
    """Whether it answers a settlement of which an earlier attempt may have been carried out."""
    is_settling = isinstance(call.ask.request, Delete | Release | Extend)
    return call.uncertain and is_settling and not isinstance(outcome, PenstockError)


class SimulatedCalls:
    """The lines of one front end, and its connections."""

    def __init__(
        self,
        cluster: ClusterMap,
        clients: Mapping[str, SimulatedClient],
        refresh: Refresh,
        fabric: Fabric,
        schedule: Schedule,
        random: Random,
    ) -> None:
        self._clients = clients
        self._refresh = refresh
        self._fabric = fabric
        self._schedule = schedule
        self._random = random
        self.lines = PartitionLines(cluster, self)
        self._dialled_ms: dict[str, int] = {}
        self._running = False
        self._timer_ms: int | None = None
        self._stopped = False
        cluster.listen(lambda key: schedule.after(0, lambda: self._changed(key)))

    def incarnation(self, address: str) -> int:
        """See `Wires`; a missing connection is tried now and then."""
        client, now_ms = self._clients[address], self._schedule.elapsed_ms
        if not client.incarnation and now_ms >= self._dialled_ms.get(address, 0):
            self._dialled_ms[address] = now_ms + _DIAL_MS
            client.dial()
        return client.incarnation

    def load(self, partition: int) -> float:
        """How many requests a partition has to answer."""
        return self.lines.load(partition)

    def start(self, ask: Ask, done: Done) -> Call:
        """Asks the leader of a partition."""
        call = self.lines.start(
            msgspec.structs.replace(ask, patience_ms=min(ask.patience_ms, _PATIENCE_MS)), done, self._now()
        )
        self._run(within=True)
        return call

    def cancel(self, call: Call) -> None:
        """It need not wait any longer."""
        self.lines.cancel(call)
        self._run(within=True)

    def stop(self) -> None:
        """The front end is killed: its requests are in transit, and their outcome is unknown."""
        self._stopped = True

    # -- events ----------------------------------------------------------------------------------------------

    def _now(self) -> float:
        return self._schedule.elapsed_ms / 1000

    def _answered(self, call: Call, attempt: int, reply: ClientReply | None) -> None:
        outcome: Outcome
        if reply is None:
            outcome = unreachable("the connection was lost")
        elif isinstance(reply.answer, Failed):
            outcome = PenstockError(ErrorCode(reply.answer.code), reply.answer.message)
        else:
            outcome = Reply(reply.answer, reply.body)

        def tell() -> None:
            if not self._stopped:
                self.lines.answered(call, attempt, outcome, self._now())
                self._run()

        self._schedule.after(self._random.choice(_TOLD_MS) if reply is None else 0, tell)

    def _changed(self, key: str) -> None:
        if not self._stopped:
            self.lines.changed(key, self._now())
            self._run()

    def _tick(self, at_ms: int) -> None:
        if self._timer_ms == at_ms and not self._stopped:
            self._timer_ms = None
            self.lines.tick(self._now())
            self._run()

    # -- effects ---------------------------------------------------------------------------------------------

    def _run(self, *, within: bool = False) -> None:
        if self._running or self._stopped:
            return
        self._running = True
        while effects := self.lines.take():
            for effect in effects:
                self._carry_out(effect, within)
        self._running = False
        at = self.lines.next_at()
        if at is not None:
            # A moment that is no whole millisecond may look later than now and be now.
            at_ms = max(ceil(at * 1000), self._schedule.elapsed_ms + 1)
            if self._timer_ms is None or at_ms < self._timer_ms:
                self._timer_ms = at_ms
                self._schedule.after(at_ms - self._schedule.elapsed_ms, lambda: self._tick(at_ms))

    def _carry_out(self, effect: Effect, within: bool) -> None:
        match effect:
            case Transmit(call, attempt, leader, request):
                client = self._clients[self._address(leader.address)]
                wait_ms = max(0, ceil(1000 * (call.wait_end - self._now())))
                client.ask(
                    request,
                    bytes(call.ask.body),
                    wait_ms + _SILENT_MS,
                    lambda reply: self._answered(call, attempt, reply),
                )
                number = client.last_request
                call.ticket = lambda: client.tell(Unsubscribe(number))
            case Finish(call, outcome):
                if not (call.is_known(call.ask.request, outcome) or is_second_answer(call, outcome)):
                    outcome = unreachable(
                        "an earlier attempt may have done it"
                    )  # checkers need more than clients get
                if within:
                    self._schedule.after(0, lambda: call.done(outcome))
                else:
                    call.done(outcome)
            case Cancel(call):
                call.ticket()
            case LookUp(partition, key):
                self._refresh(key, lambda: self._looked_up(partition, key))

    def _looked_up(self, partition: int, key: str) -> None:
        if not self._stopped:
            self.lines.looked_up(partition, key, self._now())
            self._run()

    def _address(self, address: str) -> str:
        """Now and then another node is asked, as by a front end with an outdated map."""
        if not self._fabric.calm and self._random.random() < _STRAY_SHARE:
            return self._random.choice(list(self._clients))
        return address
