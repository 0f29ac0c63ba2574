"""Everything that waits for an answer: requests in the order they were asked, and open subscriptions."""

from __future__ import annotations

from penstock.client.call import Call, Stream
from penstock.model.errors import ErrorCode, PenstockError

RESENDS_AT_MOST = 16
"""A request that never gets answered, however often the connection is made anew, is at fault itself."""
_LAST_REQUEST_ID = 2**32 - 1


class Waiting:
    """The table of calls and streams by request id; `timeout` is how long each waits for a connection."""

    def __init__(self, timeout: float) -> None:
        self.calls: dict[int, Call] = {}
        self.streams: dict[int, Stream] = {}
        self._timeout = timeout
        self._request_id = 0

    def __bool__(self) -> bool:
        return bool(self.calls or self.streams)

    def new_request_id(self) -> int:
        """The next id that nothing waits under; 0 is left to the server, for what answers no request."""
        while True:
            self._request_id = self._request_id + 1 if self._request_id < _LAST_REQUEST_ID else 1
            if self._request_id not in self.calls and self._request_id not in self.streams:
                return self._request_id

    def connection_lost(self, now: float, reason: str) -> None:
        """Keeps what can be asked again on the next connection and fails the rest."""
        for request_id, call in list(self.calls.items()):
            call.resent += 1
            call.deadline = now + self._timeout
            if call.abandoned():
                del self.calls[request_id]
            elif not call.resend or call.resent > RESENDS_AT_MOST:
                del self.calls[request_id]
                call.fail(_unreachable(f"the connection broke before the answer came: {reason}"))
        for stream in self.streams.values():
            stream.deadline = now + self._timeout

    def soonest_deadline(self) -> float | None:
        """When the first of all gives up on there being a connection."""
        calls = (call.deadline for call in self.calls.values())
        streams = (stream.deadline for stream in self.streams.values())
        return min((deadline for deadline in (*calls, *streams) if deadline is not None), default=None)

    def give_up(self, now: float, reason: str) -> None:
        """Fails what has waited for a connection for the whole timeout."""
        why = f"no connection for {self._timeout:g} s: {reason}"
        for request_id, call in list(self.calls.items()):
            if call.abandoned():
                del self.calls[request_id]
            elif call.deadline is not None and call.deadline <= now:
                del self.calls[request_id]
                call.fail(_unreachable(why))
        for request_id, stream in list(self.streams.items()):
            if stream.deadline is not None and stream.deadline <= now:
                del self.streams[request_id]
                stream.failed(_unreachable(why))

    def fail_all(self, error: PenstockError) -> None:
        """Empties the table."""
        calls, self.calls = self.calls, {}
        streams, self.streams = self.streams, {}
        for call in calls.values():
            call.fail(error)
        for stream in streams.values():
            stream.failed(error)


def _unreachable(why: str) -> PenstockError:
    return PenstockError(ErrorCode.UNREACHABLE, f"{why}. What was asked may have been carried out or not")
