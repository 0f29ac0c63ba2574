"""Whole front ends over a real node on a simulated disk: HTTP requests in, HTTP answers out, no sockets.

Requests are signed by hand here, so that a mistake in the verification is not made twice. Time is the node's.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import random
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from penstock.frontend.engine import Answered
from penstock.frontend.front_end import FrontEnd
from penstock.frontend.queues.native_names import DefaultAccount
from penstock.frontend.registry import WriteDone
from penstock.frontend.services import Services
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.request_limits import RequestLimit
from penstock.metadata.seals.master_key import MasterKey
from penstock.metadata.store.interface import Change, VersionConflictError
from penstock.metadata.users.directory import UserDirectory
from penstock.metadata.users.users import KEYS, USERS, AccessKey, User, encode, new_access_key
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.disk.spool_directory import SpoolDirectory
from penstock.sqs.compatibility import EXTENDED
from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer
from penstock.steps.step import Look, Put, Reply, StoreStep
from penstock.usage.collector import UsageCollector
from penstock.wire.messages import Failed, Request, Unsubscribe
from tests.frontend.harness import HOME, World

HOST = "127.0.0.1:9324"
LOCAL = Peer("127.0.0.1", secure=False)


class Key(NamedTuple):
    """An access key and the region that its owner works in."""

    key_id: str
    secret: str
    region: str = HOME.region

    def scope(self, now_ms: int) -> tuple[str, str]:
        """The moment as signatures write it, and what they are good for."""
        moment = datetime.fromtimestamp(now_ms / 1000, UTC).strftime("%Y%m%dT%H%M%SZ")
        return moment, f"{moment[:8]}/{self.region}/sqs/aws4_request"

    def signature(self, moment: str, scope: str, canonical: str) -> str:
        """Signature Version 4 of a canonical request."""
        secret = ("AWS4" + self.secret).encode()
        for part in scope.split("/"):
            secret = hmac.digest(secret, part.encode(), "sha256")
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{digest}"
        return hmac.digest(secret, text.encode(), "sha256").hex()


def json_request(action: str, members: dict[str, Any], **headers: str) -> HttpRequest:
    """A call in AWS JSON 1.0, not signed."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    fixed = {
        "host": HOST,
        "content-type": "application/x-amz-json-1.0",
        "x-amz-target": f"AmazonSQS.{action}",
    }
    return HttpRequest("POST", "/", "", fixed | given, json.dumps(members).encode())


def query_request(action: str, method: str = "POST", **parameters: str) -> HttpRequest:
    """A call in the Query protocol, not signed."""
    pairs = {"Action": action, "Version": "2012-11-05"} | parameters
    form = "&".join(f"{name}={quote(pairs[name], safe='-_.~')}" for name in sorted(pairs))
    if method == "GET":
        return HttpRequest("GET", "/", form, {"host": HOST})
    headers = {"host": HOST, "content-type": "application/x-www-form-urlencoded"}
    return HttpRequest("POST", "/", "", headers, form.encode())


def signed(request: HttpRequest, key: Key, now_ms: int) -> HttpRequest:
    """The request with an `Authorization` header over every header that it has."""
    moment, scope = key.scope(now_ms)
    headers = request.headers | {"x-amz-date": moment}
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    digest = hashlib.sha256(request.body).hexdigest()
    canonical = f"{request.method}\n{request.path}\n{request.query}\n{lines}\n{names}\n{digest}"
    signature = key.signature(moment, scope, canonical)
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={key.key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return msgspec.structs.replace(request, headers=headers)


def presigned(request: HttpRequest, key: Key, now_ms: int, expires_s: int = 900) -> HttpRequest:
    """The request with its signature among the parameters."""
    moment, scope = key.scope(now_ms)
    pairs = [pair for pair in request.query.split("&") if pair] + [
        "X-Amz-Algorithm=AWS4-HMAC-SHA256",
        f"X-Amz-Credential={quote(f'{key.key_id}/{scope}', safe='')}",
        f"X-Amz-Date={moment}",
        f"X-Amz-Expires={expires_s}",
        "X-Amz-SignedHeaders=host",
    ]
    query = "&".join(sorted(pairs))
    digest = hashlib.sha256(request.body).hexdigest()
    canonical = f"{request.method}\n{request.path}\n{query}\nhost:{request.headers['host']}\n\nhost\n{digest}"
    signature = key.signature(moment, scope, canonical)
    return msgspec.structs.replace(request, query=f"{query}&X-Amz-Signature={signature}")


class Answer(NamedTuple):
    """What a caller makes of an HTTP answer in JSON."""

    status: int
    members: dict[str, Any]
    headers: dict[str, str]

    @property
    def error(self) -> str:
        """The error's code, without its namespace; empty for a success."""
        return str(self.members["__type"]).rpartition("#")[2] if self.status != 200 else ""


def read(response: HttpResponse) -> Answer:
    """An answer in AWS JSON 1.0."""
    headers = {name.lower(): value for name, value in response.headers}
    return Answer(response.status, json.loads(response.body) if response.body else {}, headers)


class Waiting:
    """A request under way."""

    def __init__(self) -> None:
        self.answers: list[HttpResponse] = []
        self.cancel: Callable[[], None] | None = None

    @property
    def answer(self) -> Answer:
        """The only answer."""
        assert len(self.answers) == 1, f"{len(self.answers)} answers"
        return read(self.answers[0])


class Pipeline:
    """One front end of a world, with its own connection to the node and its own cache of the metadata."""

    def __init__(
        self,
        directory: Path,
        world: World | None = None,
        *,
        open_without_users: bool = True,
        failed_signatures: RequestLimit | None = None,
        home: DefaultAccount = HOME,
    ) -> None:
        self.directory = directory
        self.world = world if world is not None else World()
        self.node = self.world.node
        self.cache = MetadataCache()
        for entry in self.world.entries.values():
            self.cache.apply(Change(*entry))
        self.world.caches.append(self.cache)
        self.failing: Exception | None = None
        """What every write of metadata fails with."""
        self.wall_shift_ms = 0
        """By how much the system's clock is ahead of the node's, which never steps back."""
        self.master_key = MasterKey(b"m" * 32)
        self._connection = self.node.connect()
        self._asked: dict[int, Answered] = {}
        self._later: deque[Callable[[], None]] = deque()
        self._dice = random.Random(self._connection)
        self.usage = UsageCollector(
            SpoolDirectory(directory), HOST, token=self._dice.randbytes(16), spool_bytes=1 << 20
        )
        self.services = Services(
            engine=self,
            registry=self,
            metadata=self.cache,
            users=UserDirectory(self.cache, self.master_key),
            usage=self.usage,
            home=home,
            compatibility=EXTENDED,
            address=HOST,
            public_url=None,
            open_without_users=open_without_users,
            now_ms=lambda: self.node.now_ms,
            timer_us=lambda: self.node.now_ms * 1000,
            token=self._dice.randbytes,
            later=self._later.append,
            wall_ms=lambda: self.node.now_ms + self.wall_shift_ms,
            failed_signatures=failed_signatures,
        )
        self.front = FrontEnd(self.services)

    # -- requests --------------------------------------------------------------------------------------------

    def begin(self, request: HttpRequest, peer: Peer = LOCAL) -> Waiting:
        """Hands a request over; its answer may come later."""
        waiting = Waiting()
        waiting.cancel = self.front.handle(request, peer, waiting.answers.append)
        self.pump()
        return waiting

    def send(self, request: HttpRequest, peer: Peer = LOCAL) -> HttpResponse:
        """A request that is answered without waiting."""
        waiting = self.begin(request, peer)
        assert len(waiting.answers) == 1, f"{len(waiting.answers)} answers"
        return waiting.answers[0]

    def call(self, action: str, key: Key | None = None, peer: Peer = LOCAL, /, **members: Any) -> Answer:
        """A call in JSON, signed if there is a key."""
        return read(self.send(self.request(action, key, **members), peer))

    def request(self, action: str, key: Key | None = None, /, **members: Any) -> HttpRequest:
        """The same, not sent."""
        request = json_request(action, members)
        return signed(request, key, self.node.now_ms) if key is not None else request

    def must(self, action: str, key: Key | None = None, /, **members: Any) -> dict[str, Any]:
        """A call that must succeed."""
        answer = self.call(action, key, **members)
        assert answer.status == 200, answer
        return answer.members

    def advance(self, milliseconds: int) -> None:
        """Lets time pass."""
        self.node.advance(milliseconds)
        self.pump()

    def recorded(self) -> list[dict[str, Any]]:
        """Ends the record of usage, and reads it: every event of it."""
        events: list[dict[str, Any]] = []
        while (batch := self.usage.next_batch()) is not None:
            events += [msgspec.structs.asdict(event) for event in batch.events]
            self.usage.reported(batch)
        self.usage.close()
        return events

    # -- users -----------------------------------------------------------------------------------------------

    def add_user(
        self, name: str, *policies: dict[str, Any], account: str = HOME.account, root: bool = False
    ) -> Key:
        """A user with one key."""
        texts = {f"policy-{number}": json.dumps(policy) for number, policy in enumerate(policies)}
        user = User(
            name=name, account=account, user_id=f"AIDA{name.upper()}", root=root, policies=texts, created_ms=0
        )
        self.store(USERS + name, encode(user))
        return self.add_key(user)

    def add_key(self, user: User) -> Key:
        """One more key of a user."""
        key, secret = new_access_key(user, self.master_key, self._dice.randbytes, 0)
        self.store(KEYS + key.key_id, encode(key))
        return Key(key.key_id, secret)

    def change_user(self, name: str, **changes: Any) -> User:
        """Alters a user, as the command line does."""
        user = msgspec.structs.replace(
            msgspec.json.decode(self.world.entries[USERS + name].value, type=User), **changes
        )
        self.store(USERS + name, encode(user))
        return user

    def change_key(self, key: Key, **changes: Any) -> None:
        """Alters a key, as the command line does."""
        stored = msgspec.json.decode(self.world.entries[KEYS + key.key_id].value, type=AccessKey)
        self.store(KEYS + key.key_id, encode(msgspec.structs.replace(stored, **changes)))

    def store(self, key: str, value: bytes | None) -> None:
        """Writes metadata behind the front end's back; every front end hears of it."""
        change = self.world.put(key, value, None) if value is not None else self.world.delete(key, None)
        for cache in self.world.caches:
            cache.apply(change)

    # -- the engine, as the front end asks it ----------------------------------------------------------------

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        ticket = self.node.start(request, body, self._connection)
        self._asked[ticket] = done
        return ticket

    def cancel(self, ticket: int) -> None:
        if ticket in self._asked:
            self.node.start(Unsubscribe(ticket), b"", self._connection)

    # -- the metadata store ----------------------------------------------------------------------------------

    def carry_out(self, step: StoreStep, done: WriteDone) -> None:
        outcome: int | Exception | None
        try:
            if self.failing is not None:
                raise self.failing
            if isinstance(step, Look):
                entry = self.world.entries.get(step.key)
                if entry is not None:
                    self.cache.apply(Change(*entry))
                self._later.append(lambda: done(None))
                return
            if isinstance(step, Put):
                change = self.world.put(step.key, step.value, step.version)
            else:
                change = self.world.delete(step.key, step.version)
        except VersionConflictError as error:
            entry = self.world.entries.get(step.key)
            if entry is not None:
                self.cache.apply(Change(*entry))
            outcome = error
        except Exception as error:
            outcome = error
        else:
            for cache in self.world.caches:
                cache.apply(change)
            outcome = change.version if isinstance(step, Put) else None
        self._later.append(lambda: done(outcome))

    # -- turns -----------------------------------------------------------------------------------------------

    def send_gathered(self) -> None:
        """Lets the engine have what was gathered; its answers are not handed over yet."""
        while self._later:
            self._later.popleft()()

    def pump(self) -> None:
        """Hands over answers until none is left."""
        while True:
            self.send_gathered()
            arrived = self.node.arrived[self._connection]
            if not arrived:
                return
            self.node.arrived[self._connection] = []
            for request_id, answer, body in arrived:
                done = self._asked.pop(request_id, None)
                if done is not None and isinstance(answer, Failed):
                    done(PenstockError(ErrorCode(answer.code), answer.message))
                elif done is not None:
                    done(Reply(answer, memoryview(body)))


@contextmanager
def logged() -> Iterator[list[str]]:
    """Everything that Penstock logs meanwhile, traces included."""
    lines: list[str] = []

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(self.format(record))

    handler, logger = Collect(), logging.getLogger("penstock")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
