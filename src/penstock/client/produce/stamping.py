"""Stamping: which messages get a timestamp id from this client, by which clock, and what happens when the time is uncertain.

On a `causal` queue the order is that of the session's own stamps: this computer's clock is enough, whatever time it shows.
On a `clock` queue with producers' stamps the server's time is needed, with the certainty that the queue's settings demand.
The session is the client: all its producers share one process number for each of the clocks.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import NamedTuple

from penstock.client.produce.clock import ClientClock
from penstock.client.produce.outgoing import Sendable, bring_times, given_time_us
from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.ordering.clock_interval import ClockInterval
from penstock.ordering.stamper import Stamper, Stamps
from penstock.ordering.timestamp_id import IdRange, draw_process

logger = logging.getLogger("penstock.client")

HOLD_SECONDS = 0.1
"""How often the time is asked for while a queue waits for it to become certain enough."""


class StampPlan(NamedTuple):
    """How messages to one queue are stamped."""

    synchronized: bool
    """By the server's time; else by this computer's clock."""
    max_uncertainty_ms: int | None = None
    """How uncertain stamps may be; None: as they are."""
    holds: bool = False
    """Whether messages wait while the time is more uncertain; else they are refused."""

    @property
    def limit_us(self) -> int | None:
        """How uncertain the time may be: a tenth is left for what stamping adds to it."""
        return None if self.max_uncertainty_ms is None else self.max_uncertainty_ms * 900


_OWN_CLOCK = StampPlan(synchronized=False)
_AS_IT_IS = StampPlan(synchronized=True)


def plan_of(settings: QueueSettings, wanted: bool | None) -> StampPlan | None:
    """How messages are stamped; None: not at all. `wanted` is the program's choice, None: none."""
    if wanted is False or settings.server_stamped:
        return None
    if settings.ordering == "causal":
        return _OWN_CLOCK
    if settings.sorted:
        return StampPlan(True, settings.max_uncertainty_ms, settings.when_uncertain == "hold")
    return _AS_IT_IS if wanted else None


class Stamping:
    """The stamps of one client."""

    def __init__(self, clock: ClientClock) -> None:
        dice = random.SystemRandom()
        self.clock = clock
        self.reading_us = clock.local.reading_us
        """The local clock at which a message is made."""
        self._own_shift_us = clock.local.wall_us() - clock.local.reading_us()
        self._own = Stamper(draw_process(dice), 0)
        self._synchronized = Stamper(draw_process(dice), clock.drift_ppm)
        self._dice = dice

    # -- whether the time is known well enough ---------------------------------------------------------------

    def is_ready(self, plan: StampPlan) -> bool:
        """Whether messages can be stamped now."""
        return not plan.synchronized or self.clock.is_within(plan.limit_us)

    async def prepare(self, queue: str, plan: StampPlan) -> None:
        """Returns when messages can be stamped; raises `clock-uncertain` where the queue's setting is to refuse.

        Where it is to hold, that is for as long as a server holds a send.
        """
        loop = asyncio.get_running_loop()
        give_up: float | None = None
        while plan.synchronized:
            now = await self.clock.within(plan.limit_us)
            if now is not None and (plan.limit_us is None or now.uncertainty_us <= plan.limit_us):
                return
            error = self._too_uncertain(queue, now, plan)
            if not plan.holds:
                raise error
            if give_up is None:
                logger.warning("sends wait: %(reason)s", {"reason": error.message})
                give_up = loop.time() + limits.SEND_HELD_MS / 1000
            elif loop.time() > give_up:
                raise error
            await asyncio.sleep(HOLD_SECONDS)

    # -- stamps ----------------------------------------------------------------------------------------------

    def stamp(
        self, plan: StampPlan | None, readings_us: Sequence[int], messages: Sequence[Sendable]
    ) -> Stamps | None:
        """The ids of messages made at these readings; None: none. Times that they bring along are theirs."""
        given = [given_time_us(message) for message in messages] if bring_times(messages) else []
        brings = [time_us for time_us in given if time_us is not None]
        if plan is None and not brings:
            return None
        plan = plan or _OWN_CLOCK
        if len(brings) == len(messages):
            stamps = self._synchronized if plan.synchronized else self._own
            return stamps.given(brings)
        made = self._stamp(plan, readings_us)
        if not brings:
            return made
        times_us = [
            made_us if own is None else own for own, made_us in zip(given, made.times_us, strict=True)
        ]
        return made._replace(times_us=times_us)

    def _stamp(self, plan: StampPlan, readings_us: Sequence[int]) -> Stamps:
        now, reading_us = self._now(plan)
        if not plan.synchronized:
            return self._own.stamp(now, reading_us, readings_us)
        if (
            plan.limit_us is not None
            and self._synchronized.ahead_us(now) + now.uncertainty_us > plan.limit_us
        ):
            # A stamp made when the time was uncertain is so far ahead that this queue's order with it is lost anyway.
            self._synchronized = Stamper(draw_process(self._dice), self.clock.drift_ppm)
        return self._synchronized.stamp(now, reading_us, readings_us)

    async def take_ids(self, count: int) -> IdRange:
        """Ids by the server's time, made here."""
        await self.prepare("", _AS_IT_IS)
        now, reading_us = self._now(_AS_IT_IS)
        return self._synchronized.take(now, reading_us, count)

    def _now(self, plan: StampPlan) -> tuple[ClockInterval, int]:
        if plan.synchronized:
            now, reading_us = self.clock.interval()
            if now is not None:
                return now, reading_us
            raise self.clock.unknown()
        reading_us = self.reading_us()
        time_us = reading_us + self._own_shift_us
        return ClockInterval(time_us, time_us), reading_us

    def _too_uncertain(self, queue: str, now: ClockInterval | None, plan: StampPlan) -> PenstockError:
        if now is None or plan.max_uncertainty_ms is None:
            return self.clock.unknown()
        return PenstockError(
            ErrorCode.CLOCK_UNCERTAIN,
            f"this client knows the server's time only to {now.uncertainty_us / 1000:.3f} ms, and {queue!r} demands "
            f"{plan.max_uncertainty_ms} ms (its max_uncertainty): use a larger value, or check the network "
            "and the server's clock with `penstock clock`",
        )
