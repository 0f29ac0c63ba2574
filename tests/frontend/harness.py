"""Front ends over a real node on a simulated disk and one metadata store: steps in, results out, no sockets.

Time is the node's. Two front ends of one `World` share node and store; what one of them writes the other hears of
at once, unless it is `deaf`.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import msgspec
import pytest

from penstock.frontend.batching.outgoing_batch import deduplication_scope
from penstock.frontend.context import Context
from penstock.frontend.queues.directory import QueueDirectory
from penstock.frontend.queues.native_names import DefaultAccount, native_name
from penstock.frontend.queues.resolved_queue import ResolvedQueue
from penstock.frontend.session import Session
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.store.interface import ABSENT, Change, Entry, VersionConflictError
from penstock.model.batch import encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.sqs.actions import ACTIONS
from penstock.sqs.call import Call
from penstock.sqs.compatibility import EXTENDED, Compatibility
from penstock.sqs.errors import SqsError
from penstock.sqs.model_errors import sqs_error_of
from penstock.sqs.names import DEFAULT_ACCOUNT, DEFAULT_REGION, QueueAddress, QueueArn, parse_queue_url
from penstock.sqs.policies.evaluation import Caller
from penstock.sqs.protocols.json_protocol import decode_parameters
from penstock.sqs.protocols.protocol import Protocol
from penstock.steps.step import Ask, DeleteTogether, Look, Put, Reply, SendUnbound, Step, Steps, StoreStep
from penstock.wire.messages import Delete, Failed, Send, SendResult
from tests.backend.harness import NodeHarness

HOME = DefaultAccount(DEFAULT_ACCOUNT, DEFAULT_REGION)
ENDPOINT = "http://127.0.0.1:9324"

Result = TypeVar("Result")
Action = Callable[[Context], Steps[Result]]


class World:
    """The node and the metadata store that front ends share."""

    def __init__(self) -> None:
        self.node = NodeHarness()
        self.entries: dict[str, Entry] = {}
        self.caches: list[MetadataCache] = []
        self.dice = random.Random(7)
        self._version = 0

    def put(self, key: str, value: bytes, version: int | None) -> Change:
        """Writes, if the version still holds."""
        self._check(key, version)
        self._version += 1
        self.entries[key] = Entry(key, value, self._version)
        return Change(key, value, self._version)

    def delete(self, key: str, version: int | None) -> Change:
        """Removes, if the version still holds."""
        self._check(key, version)
        self._version += 1
        self.entries.pop(key, None)
        return Change(key, None, self._version)

    def _check(self, key: str, version: int | None) -> None:
        entry = self.entries.get(key)
        if version is not None and version != (entry.version if entry is not None else ABSENT):
            raise VersionConflictError(key)


class Running(Generic[Result]):
    """An action under way, a step at a time: tests stop it anywhere, or run two of them by turns."""

    def __init__(self, front: FrontEnd, steps: Steps[Result]) -> None:
        self._front = front
        self._steps = steps
        self._send: Any = None
        self._throw: Exception | None = None
        self._waiting: int | None = None
        self._pending: Step | None = None
        self.finished = False
        self.taken: list[Step] = []
        self._resume()

    @property
    def pending(self) -> Step | None:
        """The step that has been asked for and is not carried out yet."""
        return self._pending

    @property
    def result(self) -> Result:
        """What the action returned."""
        assert self.finished, f"still to do: {self._pending}"
        return self._result

    def step(self) -> None:
        """Carries out one step; one that the engine does not answer yet stays pending."""
        assert self._pending is not None
        pending = self._pending
        try:
            if isinstance(pending, SendUnbound):
                attributes = pending.attributes if any(pending.attributes) else None
                ask = Ask(Send(pending.queue_id), encode_parts(pending.bodies, attributes=attributes))
                reply = self._ask(ask)
                if reply is None:
                    return
                assert isinstance(reply.answer, SendResult)
                ((first, count),) = reply.answer.runs
                self._send = range(first, first + count)
            elif isinstance(pending, Ask | DeleteTogether):
                alone = pending if isinstance(pending, Ask) else Ask(Delete(list(pending.receipts)))
                reply = self._ask(alone)
                if reply is None:
                    return
                self._send = reply
            else:
                assert isinstance(pending, StoreStep)
                self._send = self._front.write(pending)
        except (PenstockError, VersionConflictError) as error:
            self._throw = error
        self.taken.append(pending)
        self._resume()

    def _ask(self, ask: Ask) -> Reply | None:
        node = self._front.world.node
        if self._waiting is None:
            self._waiting = node.start(ask.request, ask.body)
        answers = node.answers(self._waiting)
        if not answers:
            return None
        self._waiting = None
        answer = answers[0].answer
        if isinstance(answer, Failed):
            raise PenstockError(ErrorCode(answer.code), answer.message)
        return Reply(answer, memoryview(answers[0].body))

    def run(self) -> Result:
        """Carries out everything; nothing may have to wait."""
        for _ in range(100_000):
            if self.finished:
                return self.result
            taken = len(self.taken)
            self.step()
            assert len(self.taken) > taken, f"the engine does not answer {self._pending}"
        raise AssertionError("the action never ends")

    def stop(self) -> None:
        """The process ends here."""
        self._steps.close()

    def _resume(self) -> None:
        throw, self._throw, self._pending = self._throw, None, None
        try:
            self._pending = self._steps.throw(throw) if throw is not None else self._steps.send(self._send)
        except StopIteration as ended:
            self.finished = True
            self._result: Result = ended.value
        self._send = None


class FrontEnd:
    """One front end: its cache, its directory, and calls on behalf of an account in a region."""

    def __init__(
        self,
        world: World | None = None,
        *,
        compatibility: Compatibility = EXTENDED,
        account: str = HOME.account,
        region: str = HOME.region,
        deaf: bool = False,
    ) -> None:
        self.world = world if world is not None else World()
        self.node = self.world.node
        self.compatibility = compatibility
        self.account, self.region = account, region
        self.cache = MetadataCache()
        for entry in self.world.entries.values():
            self.cache.apply(Change(*entry))
        if not deaf:
            self.world.caches.append(self.cache)
        self.queues = QueueDirectory(HOME, self.cache)

    def as_caller(self, account: str, region: str = HOME.region) -> FrontEnd:
        """Another front end of the same world, called from elsewhere."""
        return FrontEnd(self.world, compatibility=self.compatibility, account=account, region=region)

    # -- calls -----------------------------------------------------------------------------------------------

    def call(self, action: Action[Result], name: str, /, **members: Any) -> Result:
        """One call of an action, from its JSON members to its result; raises `SqsError` as a caller would see it."""
        try:
            return self.run(action(self.context(name, **members)))
        except PenstockError as error:
            raise sqs_error_of(error) from error

    def refuse(self, action: Action[Any], name: str, /, **members: Any) -> SqsError:
        """A call that must be refused."""
        with pytest.raises(SqsError) as caught:
            self.call(action, name, **members)
        return caught.value

    def begin(self, action: Action[Result], name: str, /, **members: Any) -> Running[Result]:
        """A call to be carried out step by step."""
        return Running(self, action(self.context(name, **members)))

    def begin_steps(self, steps: Steps[Result]) -> Running[Result]:
        """Any steps, to be carried out one by one."""
        return Running(self, steps)

    def run(self, steps: Steps[Result]) -> Result:
        """Carries out steps to their end."""
        return Running(self, steps).run()

    def context(self, name: str, /, **members: Any) -> Context:
        """What the pipeline hands to an action; `QueueUrl` is resolved as the pipeline does."""
        action = ACTIONS[name]
        parameters = decode_parameters(action, msgspec.json.encode(members))
        address = parse_queue_url(members["QueueUrl"]) if action.on_queue else None
        caller = Caller(account=self.account, arn=f"arn:aws:iam::{self.account}:root", root=True)
        resolved = self._resolve(address) if address is not None else None
        return Context(
            call=Call(action, parameters, Protocol.JSON, address),
            session=Session(
                caller=caller, account=self.account, region=self.region, user="test", unrestricted=True
            ),
            resolved=resolved,
            deduplication_scope=deduplication_scope(resolved),
            now_ms=self.node.now_ms,
            endpoint=lambda: ENDPOINT,
            trace_header=None,
            compatibility=self.compatibility,
            home=HOME,
            queues=self.queues,
            metadata=self.cache,
            may=lambda action, arn: True,
            token=self.world.dice.randbytes,
        )

    def _resolve(self, address: QueueAddress) -> ResolvedQueue:
        native = native_name(HOME, self.region, address.account or self.account, address.name)
        return self.run(self.queues.resolve(native, self.node.now_ms))

    # -- names -----------------------------------------------------------------------------------------------

    def url(self, name: str) -> str:
        """The URL of a queue of the caller."""
        return f"{ENDPOINT}/{self.account}/{name}"

    def arn(self, name: str) -> str:
        """The ARN of a queue of the caller."""
        return str(QueueArn(self.region, self.account, name))

    def native(self, name: str) -> str:
        """The engine's name of a queue of the caller."""
        return native_name(HOME, self.region, self.account, name)

    # -- metadata --------------------------------------------------------------------------------------------

    def write(self, step: StoreStep) -> int | None:
        """Carries out a write, and tells every cache that listens."""
        if isinstance(step, Look):
            self._look_again(step.key)
            return None
        try:
            if isinstance(step, Put):
                change = self.world.put(step.key, step.value, step.version)
            else:
                change = self.world.delete(step.key, step.version)
        except VersionConflictError:
            self._look_again(step.key)
            raise
        self.cache.apply(change)
        for cache in self.world.caches:
            cache.apply(change)
        return change.version if isinstance(step, Put) else None

    def _look_again(self, key: str) -> None:
        entry = self.world.entries.get(key)
        if entry is not None:
            self.cache.apply(Change(*entry))
        elif self.cache.get(key) is not None:
            # Whatever version the removal had, it is later than what is known here.
            self.cache.apply(Change(key, None, self.cache.version(key) + 1))
