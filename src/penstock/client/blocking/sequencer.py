"""Made from `penstock.client.produce.sequencer` by `make blocking`: do not edit."""

from __future__ import annotations

from penstock.client.blocking.bridge import Bridge
from penstock.client.produce.sequencer import ClientSequencer
from penstock.ordering.timestamp_id import TimestampId


class BlockingClientSequencer:
    """Timestamp ids of this client: unique, rising, and sorted by time with those of all other clients.

    Two ids of different clients are in the order in which they were made if the time between them is longer than the
    uncertainties of both clients together.
    """

    def __init__(self, bridge: Bridge, sequencer: ClientSequencer) -> None:
        self._bridge = bridge
        self._sequencer = sequencer

    def take(self, count: int = 1) -> list[TimestampId]:
        """The next `count` ids; all of them have one time. Asks the server only when its time is not known."""
        return self._bridge.call(self._sequencer.take, count)
