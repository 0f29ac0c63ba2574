"""Form bodies and query strings as a tree: `Attribute.2.Name=x` is the leaf Attribute → 2 → Name.

Only the structure is parsed here, with limits on everything that a sender can make large; `query_protocol` knows the
meaning of the names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote_plus

from penstock.sqs.protocols.http import REQUEST_BYTES
from penstock.sqs.refusals import malformed, request_too_large

PARAMETERS = 2_000
"""A batch of ten messages with ten attributes each is about 400 parameters."""
NAME_PARTS = 8
"""`SendMessageBatchRequestEntry.1.MessageAttribute.1.Value.StringListValue.1` has seven."""
INDEX_DIGITS = 5

_INDEX = re.compile(r"[0-9]+")


class Node:
    """One name: its own value, if one was sent, and the names below it."""

    __slots__ = ("children", "value")

    def __init__(self) -> None:
        self.value: str | None = None
        self.children: dict[str, Node] = {}

    def child(self, name: str) -> Node:
        """The node below, made when it is new."""
        node = self.children.get(name)
        if node is None:
            node = self.children[name] = Node()
        return node

    def text(self, name: str) -> str | None:
        """The value of a name below, or None."""
        node = self.children.get(name)
        return None if node is None else node.value

    def numbered(self) -> Iterator[Node]:
        """The nodes whose names are numbers, in order of the number; gaps are allowed, other names ignored."""
        indexes = [name for name in self.children if _INDEX.fullmatch(name)]
        if any(len(name) > INDEX_DIGITS for name in indexes):
            raise malformed("An index in the parameter names is too large.")
        for name in sorted(indexes, key=int):
            yield self.children[name]


def parse_form(*sources: str) -> Node:
    """The tree of all parameters; a name sent twice has the value sent last."""
    root = Node()
    if sum(map(len, sources)) > REQUEST_BYTES:
        raise request_too_large(REQUEST_BYTES)
    if sum(source.count("&") + 1 for source in sources) > PARAMETERS:
        raise malformed(f"The request has more than {PARAMETERS} parameters.")
    for source in sources:
        for pair in source.split("&"):
            name, _, value = pair.partition("=")
            parts = _unescaped(name).split(".", NAME_PARTS)
            if not name or len(parts) > NAME_PARTS:
                continue  # like every name that no action knows
            node = root
            for part in parts:
                node = node.child(part)
            node.value = _unescaped(value)
    return root


def _unescaped(text: str) -> str:
    if "%" not in text and "+" not in text:
        return text
    try:
        return unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise malformed("A parameter is not valid UTF-8.") from None
