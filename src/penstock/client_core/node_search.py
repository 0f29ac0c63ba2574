"""Whether a read of a log goes to the node that leads the partition or through the front end, and when the node is tried
again.

If the node cannot be read, reads go through the front end, and the node is tried again, less and less often.
"""

from __future__ import annotations

from enum import Enum

from penstock.model.errors import ErrorCode
from penstock.wire.backoff import Backoff

FIND_SECONDS = 2.0
"""So long the first reads wait for a connection to the node; later ones do not wait at all."""
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 30.0
NOT_OFFERED_SECONDS = 30.0
"""Where the cluster has no ports for readers, or is a single server, it is asked again after so long."""


class ReadRoute(Enum):
    """Who is asked."""

    NODE = "the node"
    FRONT_END = "the front end"
    HELD = "the read waits until the search for the node is over"


class NodeSearch:
    """The search for the node of one partition. `look` begins it, and one of `found`, `not_found` and `not_offered` ends it."""

    def __init__(self) -> None:
        self._pauses = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
        self._look_at = 0.0
        self._is_looking = False
        self._holds = True
        """Whether reads wait for the search: the first ones do."""
        self._has_node = False
        self._is_closed = False

    def looks(self, now: float) -> bool:
        """A read is asked for: whether the search for the node begins now."""
        if self._has_node or self._is_looking or self._is_closed or now < self._look_at:
            return False
        self._is_looking = True
        return True

    def way(self) -> ReadRoute:
        """Who is asked now."""
        if self._has_node:
            return ReadRoute.NODE
        return ReadRoute.HELD if self._is_looking and self._holds else ReadRoute.FRONT_END

    def found(self) -> None:
        """There is a connection to the node."""
        self._has_node = True

    def not_offered(self, now: float) -> None:
        """The cluster has no ports for readers."""
        self._look_at = now + NOT_OFFERED_SECONDS

    def not_found(self, now: float, code: ErrorCode | None) -> None:
        """The node cannot be read, or the front end has refused to name it (`code`)."""
        if code is ErrorCode.UNKNOWN_REQUEST:  # an older front end
            self.not_offered(now)
        else:
            self._look_at = now + self._pauses.pause()

    def ended(self) -> None:
        """The search is over: reads that it held are sent now."""
        self._is_looking = self._holds = False

    def handed_back(self, now: float, *, reads: int, was_good: bool, is_gone: bool) -> None:
        """The node has not answered so many reads, which the front end is asked now. `was_good`: it had answered others.

        `is_gone`: the connection has ended.
        """
        if is_gone:
            self._has_node = False
        if not reads:
            # There were no reads: the ticket has ended meanwhile, and the next reader gets another.
            self._holds = self._holds or now >= self._look_at
            return
        if was_good:
            self._pauses.reset()  # it is looked for again soon
        self._look_at = now + self._pauses.pause()

    def close(self) -> None:
        """No node is searched for any more."""
        self._is_closed = True
