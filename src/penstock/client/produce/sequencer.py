"""The sequencer of a client: makes ids here, by the server's time, without a request for each."""

from __future__ import annotations

from penstock.client.connection.failure import refused
from penstock.client.produce.stamping import Stamping
from penstock.model import limits
from penstock.ordering.timestamp_id import TimestampId


class ClientSequencer:
    """Timestamp ids of this client: unique, rising, and sorted by time with those of all other clients.

    Two ids of different clients are in the order in which they were made if the time between them is longer than the
    uncertainties of both clients together.
    """

    def __init__(self, stamping: Stamping) -> None:
        self._stamping = stamping

    async def take(self, count: int = 1) -> list[TimestampId]:
        """The next `count` ids; all of them have one time. Asks the server only when its time is not known."""
        if not 1 <= count <= limits.IDS_PER_REQUEST:
            raise refused(f"{count} ids: take 1 to {limits.IDS_PER_REQUEST} at once")
        return list((await self._stamping.take_ids(count)).ids())
