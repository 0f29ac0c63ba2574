"""Which class of the asynchronous client has which twin in the blocking one, and what no rule says about it.

`blocking_client.py` has the rules.
"""

from __future__ import annotations

from textwrap import dedent
from typing import NamedTuple


class Twin(NamedTuple):
    """One class of the asynchronous client and what its blocking twin needs that no rule says."""

    source: str
    """The module of the asynchronous class."""
    name: str
    to: str
    """The module of the blocking package that it is written to."""
    field: str
    """Where the blocking object keeps the asynchronous one."""
    blocking: str = ""
    """The blocking name, where it is not `Blocking` and the name."""
    others: tuple[str, ...] = ()
    """More asynchronous classes that the same twin stands for; they have the same methods."""
    inner: frozenset[str] = frozenset()
    """Public for other files of the client, not for users."""
    many: bool = False
    """Whether there are many, so that each is to be small."""
    direct: frozenset[str] = frozenset()
    """Plain methods that are called without the event loop."""
    renamed: dict[str, str] = {}  # noqa: RUF012  # never changed
    docs: dict[str, str] = {}  # noqa: RUF012  # never changed
    """Docs that are about futures in the asynchronous class; "" is the class."""
    bodies: dict[str, str] = {}  # noqa: RUF012  # never changed
    """Methods that cannot be derived: the body, or for a name that the asynchronous class does not have, all of the method."""

    @property
    def blocking_name(self) -> str:
        """The name of the twin."""
        return self.blocking or f"Blocking{self.name}"


_SETTLING = {
    "": "Messages that were delivered together; a sequence of `BlockingMessage`, each made when it is accessed.\n\n"
    "The batch calls settle all messages that are not settled yet; messages whose lease had ended are counted and listed in\n"
    "the `Settlement`, not raised.",
}
_CLOSES_ITSELF = dedent("""
    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
""")
TWINS = [
    Twin(
        "penstock.client.client",
        "Client",
        "client",
        "_client",
        inner=frozenset({"queue_pages"}),
        docs={
            "": "A connection to a server that reconnects by itself; made by `penstock.connect_blocking()`. Use it from any thread.",
            "close": "Flushes producers, ends consumers, closes the connection. `with` does it by itself.",
        },
        bodies={
            "close": dedent("""
                if self._bridge.stopped:
                    return
                try:
                    self._bridge.call(self._client.close)
                finally:
                    self._bridge.stop()
            """),
            "twin": dedent('''
                @property
                def twin(self) -> tuple[Bridge, Client]:
                    """The asynchronous client that does the work, and the way to it."""
                    return self._bridge, self._client
            '''),
            "__enter__": _CLOSES_ITSELF,
        },
    ),
    Twin("penstock.client.produce.sequencer", "ClientSequencer", "sequencer", "_sequencer"),
    Twin(
        "penstock.client.queue",
        "Queue",
        "queue",
        "_queue",
        inner=frozenset({"route", "settler", "peek_pages"}),
    ),
    Twin(
        "penstock.client.produce.producer",
        "Producer",
        "producer",
        "_producer",
        docs={
            "": "Sends many messages quickly; made by `queue.producer()`. Several threads may use one.\n\n"
            "Crossing to the event loop costs tens of µs a call: prefer `send_many`.",
            "send": "Takes a message; waits only for room. Ask the ticket to know that it is stored.\n\n"
            "Raises `ProducerError` when earlier messages failed and that was not reported yet; then this message has\n"
            "not been taken.",
        },
        bodies={
            "send_many": dedent("""
                source = iter(messages)  # read on the caller's thread: a generator may do anything
                while chunk := list(islice(source, MESSAGES_PER_CROSSING)):
                    left = iter(chunk)
                    try:
                        self._bridge.call(self._producer.send_many, left)
                    except ProducerError as error:
                        raise error.with_untaken(left) from None
            """),
        },
    ),
    Twin(
        "penstock.client.produce.outgoing_batch",
        "Ticket",
        "producer",
        "_ticket",
        many=True,
        direct=frozenset({"done"}),
        renamed={"outcome": "result"},
        docs={
            "": "A message that was handed over. Costs next to nothing if its result is not used.",
            "done": "Whether `result` would return at once.",
            "outcome": "Returns when the message is stored; raises why it was not.",
        },
    ),
    Twin(
        "penstock.client.consume.consumer",
        "MessageConsumer",
        "consumer",
        "_consumer",
        blocking="BlockingConsumer",
        others=("GroupConsumer",),
        docs={
            "": "Yields one `BlockingMessage` after the other; use it with `with`, or in a `for` loop.",
            "aclose": "Ends it; messages that were delivered but never handed out go back to their queue.",
        },
    ),
    Twin(
        "penstock.client.consume.consumer",
        "BatchConsumer",
        "consumer",
        "_consumer",
        docs={
            "": "Yields `BlockingDeliveredMessages`: the fast way; use it with `with`, or in a `for` loop."
        },
    ),
    Twin(
        "penstock.client.settle.delivered",
        "Message",
        "delivered",
        "message",
        inner=frozenset({"place"}),
        docs={
            "": "A leased message: read it, then delete, release or extend it before its lease ends.\n\n"
            "Each call returns when the server has done it, on disk, and raises `stale-receipt` when the lease had ended.",
        },
    ),
    Twin(
        "penstock.client.settle.delivered",
        "DeliveredMessages",
        "delivered",
        "_messages",
        inner=frozenset({"parts", "lease", "settler"}),
        many=True,
        direct=frozenset({"bodies"}),
        docs=_SETTLING,
    ),
    Twin(
        "penstock.client.consume.group_messages",
        "GroupMessages",
        "priority_group",
        "_messages",
        many=True,
        direct=frozenset({"bodies"}),
        docs={
            "": "Messages of several queues, the greatest weight first; each knows its queue (`message.queue_name`).\n\n"
            "The batch calls settle all messages that are not settled yet, in every queue.",
        },
    ),
    Twin(
        "penstock.client.consume.priority_group",
        "PriorityGroup",
        "priority_group",
        "_group",
        bodies={
            "__init__": dedent("""
                def __init__(self, client: BlockingClient, weights: Mapping[str, int]) -> None:
                    self._bridge, twin = client.twin
                    self._group = self._bridge.call_plain(PriorityGroup, twin, weights)
            """)
        },
    ),
    Twin("penstock.client.log.log", "Log", "log", "_log"),
    Twin(
        "penstock.client.log.readers",
        "LogMessages",
        "readers",
        "_reader",
        inner=frozenset({"step"}),
        docs={
            "": "Yields one `LoggedMessage` after the other; use it with `with`, or in a `for` loop that goes to the end.\n\n"
            "Slices cross over from the event loop; stepping through their messages does not."
        },
        bodies={
            "__anext__": dedent("""
                message = self._reader.step()
                if message is not None:
                    return message
                try:
                    return self._bridge.call(self._reader.__anext__)
                except StopAsyncIteration:
                    raise StopIteration from None
            """)
        },
    ),
    Twin(
        "penstock.client.log.readers",
        "LogBatches",
        "readers",
        "_reader",
        docs={
            "": "Yields `LoggedMessages`, slices of the log as they were stored: the fast way; use it as `BlockingLogMessages`."
        },
    ),
    Twin(
        "penstock.client.log.group_reader",
        "GroupReader",
        "group_reader",
        "_reader",
        inner=frozenset({"link", "begin", "next_slice", "epoch_of", "handed_out"}),
    ),
]
