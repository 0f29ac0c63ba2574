"""One mutated request after the other. A seed and a number always give the same dice."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from urllib.parse import quote

from penstock.sqs.protocols.http import HttpRequest, request_of
from tests.fuzz.encoding import form_body, json_body
from tests.fuzz.grammar import Grammar, Known
from tests.fuzz.mutations import (
    FRAMING_HEADERS,
    METHODS,
    PATHS,
    VERSIONS,
    Headers,
    mutated_bytes,
    mutated_headers,
    mutated_signature,
    mutated_text,
    mutated_values,
)
from tests.fuzz.signing import Credentials, presigned, signed

_FORM = "application/x-www-form-urlencoded; charset=utf-8"
_CONTROL = re.compile("[\0\r\n]")


@dataclass(frozen=True)
class Case:
    """A request, and how its bytes are put on the wire."""

    action: str
    kinds: tuple[str, ...]
    """What was done to it."""
    method: str
    target: str
    headers: Headers
    body: bytes
    chunks: int = 0
    """0: the body has a length; else it is sent in chunks of this size."""
    wire_seed: int | None = None
    """Not None: the bytes on the wire are mutated too, with these dice."""
    queue_url: str = ""
    """The queue, if it is an action on one."""
    version: str = "HTTP/1.1"
    framing: Headers = field(default_factory=list)
    """Headers that say how the body is framed, over and above what is right."""

    @property
    def whole(self) -> bool:
        """Whether an HTTP parser must find one complete request in it."""
        return self.wire_seed is None and not self.framing and self.version == "HTTP/1.1"

    def request(self) -> HttpRequest:
        """What a parser would hand over."""
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in self.headers]
        return request_of(self.method, self.target, headers, self.body)

    def wire(self) -> bytes:
        """The bytes that are sent."""
        headers = (*self.headers, *self.framing)
        lines = [
            f"{self.method} {self.target} {self.version}",
            *(f"{name}: {value}" for name, value in headers),
        ]
        body = self.body
        if self.chunks:
            lines.append("transfer-encoding: chunked")
            pieces = [body[at : at + self.chunks] for at in range(0, len(body), self.chunks)]
            body = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
        elif body or self.method == "POST":
            lines.append(f"content-length: {len(body)}")
        raw = "\r\n".join([*lines, "", ""]).encode("latin-1") + body
        return raw if self.wire_seed is None else mutated_bytes(raw, random.Random(self.wire_seed))


class Cases:
    """Makes cases for one server."""

    def __init__(self, seed: int, host: str, signers: list[Credentials]) -> None:
        self.known = Known()
        self._seed = seed
        self._host = host
        self._signers = signers
        self._grammar = Grammar(self.known, host)

    def case(self, number: int, now_s: int) -> Case:
        """The case of a number; the time is what it is signed for."""
        dice = random.Random(f"{self._seed}/{number}")
        action, parameters = self._grammar.call(dice)
        queue_url = str(parameters.get("QueueUrl", ""))
        kinds: list[str] = []
        is_valid = dice.random() < 0.15

        def choose(kind: str, share: float) -> bool:
            if is_valid or dice.random() >= share:
                return False
            kinds.append(kind)
            return True

        if choose("values", 0.5):
            parameters = mutated_values(parameters, dice)
        method, target, headers, body = self._encoded(action, parameters, dice)
        if choose("body", 0.35):
            if method == "GET":
                target = mutated_text(target, dice)
            else:
                body = mutated_bytes(body, dice)
        if choose("twice", 0.03):
            body = quote(body).encode()
        if choose("address", 0.08):
            query = target.partition("?")[2]
            target = dice.choice(PATHS) + (f"?{query}" if query else "")
        if choose("method", 0.04):
            method = dice.choice(METHODS)
        if choose("headers", 0.2):
            headers = mutated_headers(headers, dice)
        target, headers = _sendable(target, headers)
        target, headers = self._signed(method, target, headers, body, dice, now_s)
        if choose("signature", 0.2):
            if any(name == "authorization" for name, _ in headers):
                headers = mutated_signature(headers, dice)
            else:
                target = mutated_text(target, dice)
            target, headers = _sendable(target, headers)
        chunks = dice.choice((1, 7, 1000)) if body and len(body) < 5_000 and choose("chunked", 0.08) else 0
        wire_seed = dice.getrandbits(32) if choose("wire", 0.08) else None
        version, framing = "HTTP/1.1", Headers()
        if choose("framing", 0.05):
            version = dice.choice(VERSIONS)
            framing = dice.sample(FRAMING_HEADERS, dice.randint(0, 2))
        return Case(
            action,
            tuple(kinds),
            method,
            target,
            headers,
            body,
            chunks=chunks,
            wire_seed=wire_seed,
            queue_url=queue_url,
            version=version,
            framing=framing,
        )

    def _encoded(
        self, action: str, parameters: object, dice: random.Random
    ) -> tuple[str, str, Headers, bytes]:
        headers: Headers = [("host", self._host), ("user-agent", "fuzz")]
        share = dice.random()
        if share < 0.5:
            headers += [
                ("content-type", "application/x-amz-json-1.0"),
                ("x-amz-target", f"AmazonSQS.{action}"),
            ]
            return "POST", "/", headers, json_body(parameters, ascii_only=dice.random() < 0.7)
        form = form_body(action, parameters)
        if share < 0.85 or len(form) > 8_000:
            headers.append(("content-type", _FORM))
            return "POST", "/", headers, form.encode("latin-1")
        if dice.random() < 0.5:
            headers.append(("accept", "application/json"))
        return "GET", f"/?{form}", headers, b""

    def _signed(
        self, method: str, target: str, headers: Headers, body: bytes, dice: random.Random, now_s: int
    ) -> tuple[str, Headers]:
        credentials = dice.choices(self._signers, (5, 1)[: len(self._signers)])[0]
        share = dice.random()
        if share < 0.04:
            return target, headers
        if share < 0.12 and not body:
            return presigned(method, target, headers, credentials, now_s), headers
        return target, signed(method, target, headers, body, credentials, now_s)


def _sendable(target: str, headers: Headers) -> tuple[str, Headers]:
    """No line ends and NULs where no HTTP parser lets them through; mutations of the wire put them there."""
    return (
        _CONTROL.sub("", target).replace(" ", "%20")[:15_000] or "/",
        [(name, _CONTROL.sub("", value)) for name, value in headers],
    )
