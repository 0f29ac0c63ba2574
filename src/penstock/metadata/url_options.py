"""Options at the end of a metadata URL: `?timeout=10&secret_file=FILE`."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import parse_qsl


def read_options(query: str, known: Collection[str], servers: str) -> dict[str, str]:
    """The options by name; raises `ValueError` where one is unknown. `servers` is what the URL is of."""
    options = dict(parse_qsl(query, keep_blank_values=True))
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(
            f"unknown option {unknown[0]} in the URL of {servers}; there are {', '.join(sorted(known))}"
        )
    return options


def timeout_seconds(options: dict[str, str], default: float) -> float:
    """The option `timeout`; raises `ValueError`."""
    text = options.get("timeout")
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0.1 <= seconds <= 600:
        raise ValueError(f"timeout={text} is not a number of seconds between 0.1 and 600")
    return seconds
