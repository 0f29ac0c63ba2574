"""The settings of a queue as options of `queue create` and `queue alter`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from penstock.cli.parameters import NO_VALUE, duration_seconds, size_bytes

if TYPE_CHECKING:
    from penstock.client.options import QueueOptions

_PANEL = "Settings"


def _option(flag: str, text: str, metavar: str) -> Any:
    return typer.Option(flag, help=text, metavar=metavar, show_default=False, rich_help_panel=_PANEL)


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


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise typer.BadParameter(f"{text!r} is not a whole number")
    return int(text)


def _word(text: str) -> str:
    return text


def _policy(text: str) -> str:
    policies = ("reject", "drop-oldest", "dead-letter")
    if text not in policies:
        raise typer.BadParameter(f"{text!r} is no policy; use {', '.join(policies)}")
    return text


_READERS = {
    "ordering": _word,
    "max_messages": _count,
    "max_bytes": size_bytes,
    "max_message_bytes": size_bytes,
    "overflow": _policy,
    "visibility_timeout": duration_seconds,
    "retention": duration_seconds,
    "delay": duration_seconds,
    "default_ttl": duration_seconds,
    "deduplication_window": duration_seconds,
    "max_receives": _count,
    "dead_letter_queue": _word,
}
_MAY_BE_NONE = {"max_messages", "max_bytes", "default_ttl", "max_receives", "dead_letter_queue"}
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
