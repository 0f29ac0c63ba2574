"""The options of `format("penstock")`, read and checked before any server is asked.

Errors never contain values that could be secret.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from penstock.client.connection.address import parse_address
from penstock.client.connection.credentials import chosen_credentials
from penstock.client.connection.endpoints import endpoint_urls
from penstock.client.connection.trust import authorities_of
from penstock.model.errors import PenstockError
from penstock.model.partition_numbers import LARGEST_NUMBER, number_of, partition_of
from penstock.model.settings_checks import check_queue_name
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.source.option_table import OPTIONS, SPARKS_OWN, Use
from penstock.wire.credentials import Credentials

RowKind = Literal["messages", "usage", "lifecycle"]
Place = Literal["earliest", "latest", "committed"]
Offsets = Place | dict[int, int]
"""A place, or a sequence number for each of some partitions."""

_ROW_KINDS: tuple[RowKind, ...] = ("messages", "usage", "lifecycle")
_DEFAULTS = {option.name: option.default for option in OPTIONS}
_BY_LOWER = {option.name.lower(): option for option in OPTIONS}


@dataclass(frozen=True)
class Target:
    """The queue, and its server."""

    endpoints: tuple[str, ...]
    """As urls."""
    queue: str
    timeout: float
    credentials: Credentials | None = None
    """The credentials; chosen on the driver, for its tasks too. Its text never shows the secret."""
    authority: str | None = None
    """The trusted authority, in PEM form, read on the driver for its tasks too; None: each machine's own."""


@dataclass(frozen=True)
class ReadOptions:
    """The options of a reader."""

    target: Target
    rows: RowKind
    starting: Offsets | datetime
    ending: Offsets | datetime
    partitions: frozenset[int] | None
    """Only these; None: all."""
    group: str | None
    fail_on_data_loss: bool
    messages_per_task: int | None
    max_messages: int | None
    max_bytes: int | None
    direct: bool
    """Whether tasks read from the nodes of a cluster themselves where they can."""


@dataclass(frozen=True)
class WriteOptions:
    """The options of a writer."""

    target: Target
    exactly_once: bool
    write_id: str | None


def read_options(given: Mapping[str, str], use: Use) -> ReadOptions:
    """The options of a reader; raises with the one that cannot be."""
    words = _Words(given, use)
    group = words["group"] or None
    starting = words.place("startingOffsets", "startingTime", ("earliest", "latest", "committed"))
    if starting == "committed" and group is None:
        raise PipelineError(
            "startingOffsets is 'committed', which is where a group is: set the option group too"
        )
    return ReadOptions(
        target=words.target(),
        rows=words.row_kind(),
        starting=starting,
        ending=words.place("endingOffsets", "endingTime", ("latest",)),
        partitions=words.partitions(),
        group=group,
        fail_on_data_loss=words.truth("failOnDataLoss"),
        messages_per_task=words.count("messagesPerTask"),
        max_messages=words.count("maxMessagesPerTrigger"),
        max_bytes=words.count("maxBytesPerTrigger"),
        direct=words.one_of("direct", ("auto", "never")) == "auto",
    )


def write_options(given: Mapping[str, str], use: Use) -> WriteOptions:
    """The options of a writer; raises with the one that cannot be."""
    words = _Words(given, use)
    return WriteOptions(words.target(), words.truth("exactlyOnce"), words["writeId"] or None)


class _Words:
    """The given options, with defaults."""

    def __init__(self, given: Mapping[str, str], use: Use) -> None:
        self._given = {name.lower(): value for name, value in given.items()}
        for name in self._given:
            if name not in SPARKS_OWN:
                _check_name(name, use)

    def __getitem__(self, name: str) -> str:
        return self._given.get(name.lower(), _DEFAULTS[name]).strip()

    def target(self) -> Target:
        queue = self["queue"] or self._given.get("path", "").strip()
        if not queue:
            raise PipelineError('name the queue: .option("queue", "clicks")')
        try:
            check_queue_name(queue)
        except PenstockError as error:
            raise PipelineError(error.message) from None
        endpoints = tuple(map(_checked, endpoint_urls(self["endpoint"])))
        try:
            timeout = float(self["timeout"])
        except ValueError:
            timeout = 0.0
        if not 0 < timeout <= 86_400:
            raise PipelineError(f"option timeout is {self['timeout']!r}: give seconds, above 0")
        return Target(endpoints, queue, timeout, self.credentials(), self.authority(endpoints))

    def credentials(self) -> Credentials | None:
        key, secret = self["accessKey"] or None, self["secretKey"] or None
        if (key is None) != (secret is None):
            raise PipelineError("give the options accessKey and secretKey together, or neither")
        try:
            return chosen_credentials(key, secret, None)
        except PenstockError as error:
            raise PipelineError(error.message) from None

    def authority(self, endpoints: tuple[str, ...]) -> str | None:
        addresses = [parse_address(url) for url in endpoints]
        if self["ca"] and not any(address.secure for address in addresses):
            raise PipelineError("option ca needs TLS: write the endpoint as penstocks://HOST:PORT")
        try:
            return authorities_of(addresses, self["ca"] or None)
        except PenstockError as error:
            raise PipelineError(error.message) from None

    def row_kind(self) -> RowKind:
        word = self["rows"].lower()
        for kind in _ROW_KINDS:
            if word == kind:
                return kind
        raise PipelineError(f"option rows is {word!r}: use {', '.join(_ROW_KINDS)}")

    def truth(self, name: str) -> bool:
        word = self[name].lower()
        if word not in ("true", "false"):
            raise PipelineError(f"option {name} is {word!r}: use true or false")
        return word == "true"

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        word = self[name].lower()
        if word not in words:
            raise PipelineError(f"option {name} is {word!r}: use {' or '.join(words)}")
        return word

    def count(self, name: str) -> int | None:
        word = self[name]
        if not word:
            return None
        if not word.isascii() or not word.isdigit() or int(word) < 1:
            raise PipelineError(f"option {name} is {word!r}: give a whole number, 1 or more")
        return int(word)

    def partitions(self) -> frozenset[int] | None:
        words = [word.strip() for word in self["partitions"].split(",")]
        if words == [""]:
            return None
        if not all(word.isascii() and word.isdigit() for word in words):
            raise PipelineError(f"option partitions is {self['partitions']!r}: name them by number, as 0,2")
        return frozenset(map(int, words))

    def place(self, by_offset: str, by_time: str, places: tuple[Place, ...]) -> Offsets | datetime:
        moment = self[by_time]
        if moment:
            if by_offset.lower() in self._given:
                raise PipelineError(f"give {by_offset} or {by_time}, not both")
            return _moment(moment, by_time)
        word = self[by_offset]
        for place in places:
            if word.lower() == place:
                return place
        return _offsets(word, by_offset, places)


def _check_name(name: str, use: Use) -> None:
    """Raises for an unknown option: a misspelt name would otherwise be ignored silently."""
    option = _BY_LOWER.get(name)
    if option is not None and use in option.uses:
        return
    if option is not None:
        raise PipelineError(f"option {option.name} is for {' and '.join(option.uses)}, not for {use}")
    if any(part in name for part in ("secret", "password", "token", "credential", "accesskey", "access_key")):
        raise PipelineError(
            f"there is no option {name}: give the credentials with accessKey and secretKey, or in the environment of "
            "the driver (PENSTOCK_ACCESS_KEY and PENSTOCK_SECRET_KEY)"
        )
    near = difflib.get_close_matches(name, _BY_LOWER, 1)
    names = [option.name for option in OPTIONS if use in option.uses]
    hint = f"did you mean {_BY_LOWER[near[0]].name}?" if near else f"there are {', '.join(names)}"
    raise PipelineError(f"there is no option {name}: {hint}")


def _checked(url: str) -> str:
    if "@" in url:  # never shown: the part before it is meant to be secret
        raise PipelineError(
            "option endpoint contains a user: write HOST:PORT, and give the credentials with accessKey and secretKey"
        )
    try:
        parse_address(url)
    except PenstockError as error:
        raise PipelineError(f"option endpoint: {error.message}") from None
    return url


def _moment(word: str, name: str) -> datetime:
    try:
        moment = datetime.fromisoformat(word)
    except ValueError:
        raise PipelineError(
            f"option {name} is {word!r}: write a time as 2026-05-01T12:00:00Z; without a zone it is UTC"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _offsets(word: str, name: str, places: tuple[Place, ...]) -> dict[int, int]:
    expected = f'use {", ".join(places)}, or a message for each partition: {{"0": 1200, "1": 700}}'
    try:
        given = json.loads(word)
    except ValueError:
        given = None
    if not isinstance(given, dict) or not given:
        raise PipelineError(f"option {name} is {word!r}: {expected}")
    return {int(partition): _offset(partition, number, name, expected) for partition, number in given.items()}


def _offset(partition: str, number: object, name: str, expected: str) -> int:
    """As clients number messages; people may leave the partition's part of the number out."""
    if not partition.isascii() or not partition.isdigit() or type(number) is not int or number < 0:
        raise PipelineError(f"option {name} has {partition!r}: {number!r}: {expected}")
    ordinal = int(partition)
    if number <= LARGEST_NUMBER:
        return number_of(ordinal, max(1, number))
    if partition_of(number) != ordinal:
        raise PipelineError(
            f"option {name}: message {number} is of partition {partition_of(number)}, not {ordinal}"
        )
    return number
