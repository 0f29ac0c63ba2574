"""Settles delivered messages with futures; `client_core.settling` decides what is sent and what its answer means."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from penstock.client.connection.link import Link
from penstock.client.duration import Duration, milliseconds
from penstock.client.replies.replier import Replier
from penstock.client_core.call import Call
from penstock.client_core.lease import Lease
from penstock.client_core.settling import DELETE, SettleAction, Settlement, Settling, WholeReceipt
from penstock.model import limits
from penstock.model.runs import runs_of
from penstock.wire.messages import Delete, Extend, Receipt, Release

__all__ = ["DELETE", "SettleAction", "Settlement", "Settler", "giving_back"]


def giving_back(delay: Duration, error: str | BaseException = "") -> SettleAction:
    """A release; of what went wrong as much is told as a server keeps."""
    if isinstance(error, BaseException):
        error = f"{type(error).__name__}: {error}"
    return SettleAction("release", milliseconds(delay, "delay"), error[: limits.RELEASE_ERROR_CHARACTERS])


class Settler(Settling):
    """Settles messages of one queue."""

    def __init__(self, queue: str, link: Link, replier: Replier | None = None) -> None:
        super().__init__(queue)
        self._link = link
        self.replier = replier
        """Sends replies to messages that ask for one; None: there are none here."""

    def _turn_began(self) -> None:
        self._link.loop.call_soon(self.end_turn)
        self._link.background.add(self)

    def _start(self, call: Call, request: Delete | Release | Extend) -> None:
        self._link.start(call, request)

    async def close(self) -> None:
        """The link is about to end: messages settled in this turn are sent first."""
        self.end_turn()

    def one(self, action: SettleAction, lease: Lease, sequence: int) -> asyncio.Future[None]:
        """Settles one message, together with all others of this turn; raises `stale-receipt` when too late."""
        future: asyncio.Future[None] = self._link.loop.create_future()
        self.add_one(action, lease, sequence, future)
        return future

    def together(self, action: SettleAction, lease: Lease) -> asyncio.Future[Settlement]:
        """Settles all open messages of a delivery, together with others of this turn."""
        future: asyncio.Future[Settlement] = self._link.loop.create_future()
        receipt = lease.receipt()
        if receipt is None:
            future.set_result(Settlement(0, 0, []))
        else:
            self.add_whole(action, [WholeReceipt(lease, receipt, future)])
        return future

    async def all_of(self, action: SettleAction, leases: Iterable[Lease]) -> Settlement:
        """Settles all open messages of any number of deliveries."""
        return await self._all_settled(
            action, [(lease, receipt) for lease in leases if (receipt := lease.receipt()) is not None]
        )

    async def chosen(self, action: SettleAction, chosen: Iterable[tuple[Lease, int]]) -> Settlement:
        """Settles chosen messages, of any number of deliveries."""
        by_lease: dict[Lease, set[int]] = {}
        for lease, sequence in chosen:
            by_lease.setdefault(lease, set()).add(sequence)
        pairs = [
            (lease, Receipt(lease.token, runs_of(sorted(numbers)))) for lease, numbers in by_lease.items()
        ]
        return await self._all_settled(action, pairs)

    async def _all_settled(self, action: SettleAction, pairs: list[tuple[Lease, Receipt]]) -> Settlement:
        futures: list[asyncio.Future[Settlement]] = [self._link.loop.create_future() for _ in pairs]
        if pairs:
            self.add_whole(
                action,
                [WholeReceipt(*pair, future) for pair, future in zip(pairs, futures, strict=True)],
            )
        settlements = await asyncio.gather(*futures)
        return Settlement(
            sum(one.done for one in settlements),
            sum(one.gone for one in settlements),
            [sequence for one in settlements for sequence in one.stale],
        )
