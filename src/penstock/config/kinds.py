"""The kinds of values in a configuration: how each is read from text or TOML, and which values it allows."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from urllib.parse import urlsplit

from penstock.config.address import ADDRESS_EXAMPLES, Address
from penstock.config.processors import PROCESSOR_EXAMPLES, Processors, format_processors, parse_processors
from penstock.config.units import (
    DURATION_EXAMPLES,
    SIZE_EXAMPLES,
    format_duration,
    format_size,
    parse_duration_ms,
    parse_size_bytes,
)


@dataclass(frozen=True)
class Kind:
    """Reads one value, or raises `ValueError` with a sentence that says what is allowed."""

    allowed: str
    read: Callable[[object], object]
    write: Callable[[object], str] = str
    metavar: str = "TEXT"
    """The placeholder for the value in help texts."""


def size(low: int, high: int) -> Kind:
    """A number of bytes between two bounds."""
    allowed = f"a size from {format_size(low)} to {format_size(high)}, such as {SIZE_EXAMPLES}"

    def read(value: object) -> int:
        size_bytes = parse_size_bytes(value) if isinstance(value, str) else _integer(value, allowed)
        if not low <= size_bytes <= high:
            raise ValueError(f"{_shown(value)} is out of bounds; use {allowed}")
        return size_bytes

    return Kind(allowed, read, lambda value: format_size(_integer(value, allowed)), "SIZE")


def duration(low_ms: int, high_ms: int) -> Kind:
    """A time between two bounds; a bare number counts seconds."""
    allowed = f"a duration from {format_duration(low_ms)} to {format_duration(high_ms)}, such as {DURATION_EXAMPLES}"

    def read(value: object) -> int:
        if isinstance(value, float):
            value = str(value)
        milliseconds = (
            parse_duration_ms(value) if isinstance(value, str) else 1_000 * _integer(value, allowed)
        )
        if not low_ms <= milliseconds <= high_ms:
            raise ValueError(f"{_shown(value)} is out of bounds; use {allowed}")
        return milliseconds

    return Kind(allowed, read, lambda value: format_duration(_integer(value, allowed)), "TIME")


def count(low: int, high: int) -> Kind:
    """A whole number between two bounds."""
    allowed = f"a whole number from {low} to {high}"

    def read(value: object) -> int:
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            value = int(value)
        number = _integer(value, allowed)
        if not low <= number <= high:
            raise ValueError(f"{_shown(value)} is out of bounds; use {allowed}")
        return number

    return Kind(allowed, read, metavar="N")


def choice(*values: str) -> Kind:
    """One of a closed set of words."""
    allowed = "one of " + ", ".join(f'"{value}"' for value in values)

    def read(value: object) -> str:
        if value not in values:
            raise ValueError(f"{_shown(value)} is not allowed; use {allowed}")
        return str(value)

    return Kind(allowed, read, metavar="|".join(values))


def address(default_port: int, lowest_port: int = 0) -> Kind:
    """An address to listen on or to connect to."""
    allowed = f"HOST:PORT, such as {ADDRESS_EXAMPLES}"

    def read(value: object) -> Address:
        if not isinstance(value, str):
            raise ValueError(f"{_shown(value)} is not text; use {allowed}")
        found = Address.parse(value, default_port=default_port)
        if found.port < lowest_port:
            raise ValueError(f"{_shown(value)} has port {found.port}, which no process can have")
        return found

    return Kind(allowed, read, metavar="HOST:PORT")


def processors() -> Kind:
    """Which processors to use."""

    def read(value: object) -> Processors:
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise ValueError(f"{_shown(value)} names no processors; write {PROCESSOR_EXAMPLES}")
        return parse_processors(str(value).strip())

    def write(value: object) -> str:
        return format_processors(value)  # type: ignore[arg-type]  # what was read before

    return Kind(PROCESSOR_EXAMPLES, read, write, "CPUS")


def networks() -> Kind:
    """Addresses and networks, as a list or separated by commas."""
    allowed = "addresses or networks separated by commas, such as 10.0.0.5, 10.1.0.0/16"

    def read(value: object) -> tuple[str, ...]:
        words = value.split(",") if isinstance(value, str) else value
        if not isinstance(words, list) or not words:
            raise ValueError(f"{_shown(value)} is not {allowed}")
        found = []
        for word in words:
            try:
                network = ip_network(word.strip() if isinstance(word, str) else "")
            except ValueError as error:
                raise ValueError(
                    f"{_shown(word)} is no address and no network ({error}); use {allowed}"
                ) from None
            found.append(str(network if network.num_addresses > 1 else network.network_address))
        return tuple(found)

    def write(value: object) -> str:
        return ", ".join(value)  # type: ignore[arg-type]  # what was read before

    return Kind(allowed, read, write)


def optional(nothing: str, kind: Kind) -> Kind:
    """A value of another kind, or the word that says there is none."""

    def read(value: object) -> object:
        return None if value == nothing else kind.read(value)

    def write(value: object) -> str:
        return nothing if value is None else kind.write(value)

    return Kind(f"{kind.allowed}; or {nothing}", read, write, kind.metavar)


def matching(pattern: str, allowed: str, metavar: str = "TEXT") -> Kind:
    """Text of a certain form."""

    def read(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value, re.ASCII):
            raise ValueError(f"{_shown(value)} is not {allowed}")
        return value

    return Kind(allowed, read, metavar=metavar)


def url() -> Kind:
    """A URL of a server over HTTP, without a slash at its end."""
    allowed = "a URL that begins with http:// or https://, without query or fragment"

    def read(value: object) -> str:
        try:
            parts = urlsplit(value if isinstance(value, str) else "")
            good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            good = False
        if not isinstance(value, str) or not good or re.search(r"[\s?#@\x00-\x1f\x7f]", value):
            raise ValueError(f"{_shown(value)} is not {allowed}")
        return value.rstrip("/")

    return Kind(allowed, read, metavar="URL")


def file() -> Kind:
    """The name of a file."""
    return _path("the path of a file", "FILE")


def directory() -> Kind:
    """The name of a directory."""
    return _path("the path of a directory", "DIR")


def _path(allowed: str, metavar: str) -> Kind:
    def read(value: object) -> str:
        if not isinstance(value, str) or not value.strip() or "\0" in value:
            raise ValueError(f"{_shown(value)} is not {allowed}")
        return value

    return Kind(allowed, read, metavar=metavar)


def _integer(value: object, allowed: str) -> int:
    # bool is an int to Python and never one to a person.
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{_shown(value)} is not {allowed}")
    return value


def _shown(value: object) -> str:
    return (
        f'"{value}"'
        if isinstance(value, str)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )
