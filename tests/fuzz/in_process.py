"""The whole front end over a real node on a simulated disk, in this process and without a clock of its own."""

from __future__ import annotations

import logging
import random
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path

from penstock.frontend.engine import Answered
from penstock.frontend.front_end import FrontEnd
from penstock.frontend.queues.native_names import DefaultAccount
from penstock.frontend.registry import WriteDone
from penstock.frontend.services import Services
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.seals.master_key import MasterKey
from penstock.metadata.store.interface import VersionConflictError
from penstock.metadata.users.directory import UserDirectory
from penstock.metadata.users.users import KEYS, USERS, User, encode, new_access_key
from penstock.model.batch import Buffer
from penstock.model.errors import ErrorCode, PenstockError
from penstock.runtime.disk.spool_directory import SpoolDirectory
from penstock.sqs.compatibility import EXTENDED
from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer
from penstock.steps.step import Look, Put, Reply, StoreStep
from penstock.usage.collector import UsageCollector
from penstock.wire.messages import Failed, Request
from tests.frontend.harness import World
from tests.fuzz.grammar import ACCOUNT, REGION
from tests.fuzz.signing import Credentials
from tests.fuzz.verdict import Fault

HOST = "127.0.0.1:9324"
WAIT_MS = 21_000
"""The longest long poll, and a little more."""
READER_POLICY = (
    '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["sqs:Receive*","sqs:Send*","sqs:Get*",'
    '"sqs:List*"],"Resource":"*"},{"Effect":"Deny","Action":"sqs:*","Resource":"arn:aws:sqs:*:*:fuzz-7"}]}'
)


class InProcess:
    """A front end and all it stands on; what it logs as its own defect is a fault."""

    def __init__(self, directory: Path) -> None:
        self._world = World()
        self._node = self._world.node
        self._later: deque[Callable[[], None]] = deque()
        self._asked: dict[int, Answered] = {}
        self._cache = MetadataCache()
        dice = random.Random(11)
        master_key = MasterKey(dice.randbytes(32))
        self.signers = [
            self._user("admin", dice, master_key, root=True),
            self._user("reader", dice, master_key, root=False),
        ]
        self._usage = UsageCollector(
            SpoolDirectory(directory), HOST, token=dice.randbytes(16), spool_bytes=1 << 20
        )
        services = Services(
            engine=self,
            registry=self,
            metadata=self._cache,
            users=UserDirectory(self._cache, master_key),
            usage=self._usage,
            home=DefaultAccount(ACCOUNT, REGION),
            compatibility=EXTENDED,
            address=HOST,
            public_url=None,
            open_without_users=True,
            now_ms=lambda: self._node.now_ms,
            timer_us=lambda: self._node.now_ms * 1000,
            token=dice.randbytes,
            later=lambda call: call(),
        )
        self._front = FrontEnd(services)
        self._defects = _Defects()
        logging.getLogger("penstock").addHandler(self._defects)

    def close(self) -> None:
        """Ends the thread of the usage, and no longer listens to the log."""
        self._usage.close()
        logging.getLogger("penstock").removeHandler(self._defects)

    @property
    def now_s(self) -> int:
        """The node's time."""
        return self._node.now_ms // 1000

    def advance(self, milliseconds: int) -> None:
        """Lets time pass."""
        self._node.advance(milliseconds)
        self._pump()

    def answer(self, request: HttpRequest) -> HttpResponse:
        """The answer to a request, waited for in simulated time; raises a fault where there is none."""
        answers: list[HttpResponse] = []
        self._defects.clear()
        try:
            self._front.handle(request, Peer("127.0.0.1", secure=False), answers.append)
            self._pump()
            if not answers:
                self.advance(WAIT_MS)
        except Exception:
            raise Fault(f"an exception: {traceback.format_exc()}") from None
        if self._defects.found:
            raise Fault(f"logged as a defect: {self._defects.found[0]}")
        if len(answers) != 1:
            raise Fault(f"{len(answers)} answers after {WAIT_MS} ms")
        return answers[0]

    def _user(self, name: str, dice: random.Random, master_key: MasterKey, *, root: bool) -> Credentials:
        policies = {} if root else {"default": READER_POLICY}
        user = User(
            name=name, account=ACCOUNT, user_id=f"AIDA{name}", root=root, policies=policies, created_ms=0
        )
        key, secret = new_access_key(user, master_key, dice.randbytes, 0)
        self._cache.apply(self._world.put(USERS + name, encode(user), None))
        self._cache.apply(self._world.put(KEYS + key.key_id, encode(key), None))
        return Credentials(key.key_id, secret)

    # -- the engine, as the front end asks it ----------------------------------------------------------------

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        ticket = self._node.start(request, body)
        self._asked[ticket] = done
        return ticket

    def cancel(self, ticket: int) -> None:
        """Nobody goes away here."""

    # -- the metadata store ----------------------------------------------------------------------------------

    def carry_out(self, step: StoreStep, done: WriteDone) -> None:
        if isinstance(step, Look):  # there is one front end only, which knows everything
            self._later.append(lambda: done(None))
            return
        try:
            if isinstance(step, Put):
                change = self._world.put(step.key, step.value, step.version)
            else:
                change = self._world.delete(step.key, step.version)
        except VersionConflictError as error:
            conflict = error
            self._later.append(lambda: done(conflict))
            return
        self._cache.apply(change)
        self._later.append(lambda: done(change.version if isinstance(step, Put) else None))

    # -- turns -----------------------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Hands over answers until none is left."""
        while True:
            while self._later:
                self._later.popleft()()
            arrived, self._node.arrived[1] = self._node.arrived[1], []
            if not arrived:
                return
            for request_id, answer, body in arrived:
                done = self._asked.pop(request_id, None)
                if done is None:
                    continue
                if isinstance(answer, Failed):
                    done(PenstockError(ErrorCode(answer.code), answer.message))
                else:
                    done(Reply(answer, memoryview(body)))


class _Defects(logging.Handler):
    """Everything that was logged as an error since it was cleared."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        trace = "".join(traceback.format_exception(*record.exc_info)) if record.exc_info else ""
        self.found.append(f"{record.getMessage()}\n{trace}")

    def clear(self) -> None:
        self.found.clear()
