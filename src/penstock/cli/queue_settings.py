"""The settings of a queue as options of `queue create` and `queue alter`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from penstock.cli.parameters import NO_VALUE, duration_seconds, size_bytes

if TYPE_CHECKING:
    from penstock.client.options import QueueOptions

_PANEL = "Settings"


def _option(flag: str, text: str, metavar: str) -> Any:
    return typer.Option(flag, help=text, metavar=metavar, show_default=False, rich_help_panel=_PANEL)


Ordering = Annotated[
    str | None,
    _option("--ordering", "`best-effort` (default), `fifo`, `causal` or `clock`.", "ORDER"),
]
Stamps = Annotated[
    str | None,
    _option("--stamps", "Whose stamps order a `clock` queue: `server` (default) or `producer`.", "WHOSE"),
]
Window = Annotated[
    str | None,
    _option("--window", "How long messages stamped by producers wait for older ones (100ms).", "DURATION"),
]
MaxUncertainty = Annotated[
    str | None,
    _option("--max-uncertainty", "How uncertain the time of a `clock` queue may be (100ms).", "DURATION"),
]
WhenUncertain = Annotated[
    str | None,
    _option("--when-uncertain", "Sends while it is more uncertain: `refuse` (default) or `hold`.", "ACTION"),
]
Consumption = Annotated[
    str | None,
    _option(
        "--consumption", "`queue` (default): deleted by consumers; `log`: retained; `both`.", "CONSUMPTION"
    ),
]
RetainBytes = Annotated[
    str | None,
    _option("--retain-bytes", "A log keeps its newest messages of this size; `none` lifts it.", "SIZE"),
]
IdleExpiry = Annotated[
    str | None,
    _option("--idle-expiry", "Delete the queue when nobody used it for so long; `none`: never.", "DURATION"),
]
Partitions = Annotated[
    str | None, _option("--partitions", "Into how many parts a cluster splits it (1).", "COUNT")
]
Replicas = Annotated[
    str | None, _option("--replicas", "How many nodes of a cluster hold each part (3 in a cluster).", "COUNT")
]
Replication = Annotated[
    str | None,
    _option("--replication", "`sync` (default): on disk at all in sync; `async`: at the primary.", "HOW"),
]
MinInSync = Annotated[
    str | None,
    _option("--min-in-sync", "With fewer in sync sends are refused; `none`: a majority.", "COUNT"),
]
MaxMessages = Annotated[
    str | None, _option("--max-messages", "How many messages it may hold; `none` lifts the limit.", "COUNT")
]
MaxBytes = Annotated[
    str | None, _option("--max-bytes", "How many bytes it may hold; `none` lifts the limit.", "SIZE")
]
MaxMessageSize = Annotated[
    str | None, _option("--max-message-size", "The largest message it takes, up to 16MiB (1MiB).", "SIZE")
]
OverflowPolicy = Annotated[
    str | None,
    _option("--overflow", "When full: `reject` (default), `drop-oldest` or `dead-letter`.", "POLICY"),
]
VisibilityTimeout = Annotated[
    str | None,
    _option("--visibility-timeout", "How long a received message is hidden from others (30s).", "DURATION"),
]
Retention = Annotated[str | None, _option("--retention", "How long messages are kept (4d).", "DURATION")]
Delay = Annotated[
    str | None, _option("--delay", "How long messages wait before they can be received (0s).", "DURATION")
]
DefaultTtl = Annotated[
    str | None,
    _option("--default-ttl", "How long a message is worth delivering; `none`: always.", "DURATION"),
]
DeduplicationWindow = Annotated[
    str | None,
    _option("--deduplication-window", "How long a deduplication id is remembered (5m).", "DURATION"),
]
MaxReceives = Annotated[
    str | None,
    _option(
        "--max-receives", "Received this often and not deleted, a message is dead; `none`: never.", "COUNT"
    ),
]
DeadLetterQueue = Annotated[
    str | None, _option("--dead-letter-queue", "The queue dead messages go to; `none` for none.", "QUEUE")
]

Lifecycle = Annotated[
    bool | None,
    typer.Option(
        "--lifecycle/--no-lifecycle",
        help="Whether what becomes of its messages goes to the log penstock.lifecycle.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise typer.BadParameter(f"{text!r} is not a whole number")
    return int(text)


def _word(text: str) -> str:
    return text


def _one_of(*words: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if text not in words:
            raise typer.BadParameter(f"{text!r} is none of {', '.join(words)}")
        return text

    return read


_READERS: dict[str, Callable[[str], object]] = {
    "ordering": _one_of("best-effort", "fifo", "causal", "clock"),
    "stamps": _one_of("server", "producer"),
    "window": duration_seconds,
    "max_uncertainty": duration_seconds,
    "when_uncertain": _one_of("refuse", "hold"),
    "consumption": _one_of("queue", "log", "both"),
    "retain_bytes": size_bytes,
    "idle_expiry": duration_seconds,
    "partitions": _count,
    "replicas": _count,
    "replication": _one_of("sync", "async"),
    "min_in_sync": _count,
    "max_messages": _count,
    "max_bytes": size_bytes,
    "max_message_bytes": size_bytes,
    "overflow": _one_of("reject", "drop-oldest", "dead-letter"),
    "visibility_timeout": duration_seconds,
    "retention": duration_seconds,
    "delay": duration_seconds,
    "default_ttl": duration_seconds,
    "deduplication_window": duration_seconds,
    "max_receives": _count,
    "dead_letter_queue": _word,
    "lifecycle": lambda text: text == "True",
}
_MAY_BE_NONE = {
    "max_messages",
    "max_bytes",
    "default_ttl",
    "max_receives",
    "dead_letter_queue",
    "retain_bytes",
    "idle_expiry",
    "min_in_sync",
}
_FLAGS = {"max_message_bytes": "--max-message-size"}


def options_of(**given: str | None) -> QueueOptions:
    """What was given, in the units of the client; raises `BadParameter` with the option's name."""
    options: dict[str, object] = {}
    for name, text in given.items():
        if text is None:
            continue
        if text == NO_VALUE and name in _MAY_BE_NONE:
            options[name] = None
            continue
        try:
            options[name] = _READERS[name](text)
        except typer.BadParameter as error:
            flag = _FLAGS.get(name, "--" + name.replace("_", "-"))
            raise typer.BadParameter(str(error), param_hint=flag) from None
    return cast("QueueOptions", options)
