"""Options and arguments that several commands share, and how their values are parsed."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from penstock.config.units import parse_duration_ms, parse_size_bytes

DEFAULT_URL = "penstock://127.0.0.1:9326"
NO_VALUE = "none"
"""The value that removes a limit."""


def duration_seconds(text: str) -> float:
    """`30s` as seconds; a bare number counts seconds."""
    try:
        return parse_duration_ms(text) / 1000
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def moment_of(text: str) -> datetime | float:
    """`2026-03-01T12:00:00.5Z`, seconds since 1970, or `10s` for so long ago."""
    try:
        return float(text)
    except ValueError:
        pass
    with suppress(ValueError):
        return datetime.now(UTC) - timedelta(milliseconds=parse_duration_ms(text))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise typer.BadParameter(
            f"{text!r} is not a time with its zone; write 2026-03-01T12:00:00.5Z, seconds since 1970, or 10s (10 seconds "
            "ago)"
        )
    return moment


def size_bytes(text: str) -> int:
    """`64KiB` as bytes."""
    try:
        return parse_size_bytes(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def attributes_of(texts: list[str]) -> dict[str, str]:
    """`key=value`, any number of times."""
    attributes: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{text!r} is not an attribute; write name=value")
        attributes[name] = value
    return attributes


Url = Annotated[
    str,
    typer.Option(
        "--url",
        envvar="PENSTOCK_URL",
        help="Address of the server: penstock://HOST:PORT, or penstocks://HOST:PORT?ca=FILE for TLS.",
        metavar="URL",
        show_envvar=True,
        rich_help_panel="Common",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON, one object a line.", rich_help_panel="Common")
]
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.", show_default=False)]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
Data = Annotated[
    str | None,
    typer.Option(
        "--data",
        help="The server's data directory (penstock-data).",
        metavar="DIR",
        show_default=False,
        rich_help_panel="Common",
    ),
]
UserName = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.", show_default=False)]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A TOML file; see `penstock check-config`.",
        metavar="FILE",
        envvar="PENSTOCK_CONFIG",
    ),
]
ReadyFile = Annotated[
    Path | None,
    typer.Option(
        "--ready-file", help="Write a JSON file with all addresses when the process is ready.", metavar="FILE"
    ),
]
TlsCertificate = Annotated[
    str | None,
    typer.Option(
        "--tls-certificate",
        help="File with the certificate that this command shows to the processes of the cluster; needs --tls-key and --tls-ca.",
        metavar="FILE",
        show_default=False,
    ),
]
TlsKey = Annotated[
    str | None,
    typer.Option(
        "--tls-key", help="File with the private key of that certificate.", metavar="FILE", show_default=False
    ),
]
TlsCa = Annotated[
    str | None,
    typer.Option(
        "--tls-ca",
        help="File with the authority that signed the certificates of all processes of the cluster.",
        metavar="FILE",
        show_default=False,
    ),
]
