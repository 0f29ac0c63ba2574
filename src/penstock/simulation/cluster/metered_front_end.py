"""One process of a front end that records usage: the real SQS front end, collector, spool and sender.

All decisions are real, from an HTTP request to its answer and to the batch in the log `penstock.usage`. Simulated are the
sockets, the clock, and the files of the spool.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from random import Random
from typing import NamedTuple

from penstock.columnar.usage import USAGE_QUEUE
from penstock.frontend.engine import Answered
from penstock.frontend.front_end import FrontEnd
from penstock.frontend.queues.native_names import DefaultAccount
from penstock.frontend.registry import WriteDone
from penstock.frontend.services import Services
from penstock.frontend.usage.handing_on import Rest, UsageHandingOn
from penstock.frontend.usage.internal_log import InternalLog
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.seals.master_key import MasterKey
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.metadata.users.directory import UserDirectory
from penstock.model.batch import Buffer
from penstock.model.errors import PenstockError
from penstock.simulation.cluster.partition_calls import unreachable
from penstock.simulation.cluster.router import ClusterStage
from penstock.simulation.spool_files import SimulatedSpoolFiles, SpoolHost
from penstock.sqs.compatibility import EXTENDED
from penstock.sqs.protocols.http import HttpRequest, HttpResponse, Peer
from penstock.steps.step import Ask, Look, Outcome, Reply, StoreStep
from penstock.usage.collector import UsageCollector
from penstock.wire.messages import Request, Send, Unsubscribe

HOME = DefaultAccount("000000000000", "us-east-1")
_LOST_SHARE = 0.15
"""How often the answer of the log gets lost, though it has the batch."""
_SILENT_MS = (10, 3_000)


class ProcessKilled(BaseException):
    """The process ends here. Not an `Exception`, so that no code under test can survive it."""


class Life(NamedTuple):
    """The counters of a process's collector at its end."""

    front_end: str
    recorded: int
    dropped: int


class MeteredFrontEnd:
    """One process; `kill` or `close` ends it."""

    def __init__(
        self, name: str, stage: ClusterStage, host: SpoolHost, replicas: int, spool_bytes: int, random: Random
    ) -> None:
        self.lives = True
        self.is_done = False
        """Whether it was asked to close, and has done what it could."""
        self.resent = 0
        """Batches that were sent and whose answer was lost."""
        self._stage = stage
        self._schedule = stage.schedule
        self._random = random
        self._router = stage.front_end(name, random)
        self._files = SimulatedSpoolFiles(host)
        self.collector = UsageCollector(
            self._files, name, token=random.randbytes(16), spool_bytes=spool_bytes
        )
        metadata = MetadataCache()
        services = Services(
            engine=self,
            registry=self,
            metadata=metadata,
            users=UserDirectory(metadata, MasterKey(bytes(32))),
            usage=self.collector,
            home=HOME,
            compatibility=EXTENDED,
            address="127.0.0.1:9324",
            public_url=None,
            open_without_users=True,
            now_ms=lambda: self._schedule.now_ms,
            timer_us=lambda: self._schedule.elapsed_ms * 1_000,
            token=random.randbytes,
            later=lambda call: self._after(0, call),
        )
        self._front = FrontEnd(services)
        usage_log = InternalLog(USAGE_QUEUE, "records of requests", lambda: replicas)
        self._handing_on = UsageHandingOn(self.collector, usage_log, lambda: self._schedule.now_ms)
        self._steps = self._handing_on.run()
        self._rest: Rest | None = None
        self.collector.many = self._many
        self._after(0, lambda: self._hand_on(None))

    @property
    def life(self) -> Life:
        """Its counters."""
        totals = self.collector.totals()
        return Life(self.collector.front_end, totals.recorded, totals.dropped)

    def handle(
        self, request: HttpRequest, address: str, reply: Callable[[HttpResponse], None]
    ) -> Callable[[], None]:
        """A request arrives; returns what happens when its client goes away."""
        cancel: list[Callable[[], None] | None] = []
        self._enter(lambda: cancel.append(self._front.handle(request, Peer(address, secure=False), reply)))
        gone = cancel[0] if cancel else None
        return lambda: self._enter(gone) if gone is not None else None

    def can_cancel(self) -> bool:
        """Whether it can still notice that a client left."""
        return self.lives and not self.is_done

    def stop_waiting(self) -> None:
        """Receives that wait are answered: it is about to close."""
        self._enter(self._front.end_waiting)

    def close(self) -> None:
        """Hands on what waits; `is_done` when that is over."""
        self._handing_on.closing = True
        self._wake()

    def kill(self) -> None:
        """The process ends; what it has written remains."""
        if self.lives:
            self.lives = False
            self._router.stop()
            self._files.kill()

    # -- what runs in the process ----------------------------------------------------------------------------

    def _enter(self, call: Callable[[], object]) -> None:
        """Everything that the process does begins here."""
        if not self.lives or self.is_done:
            return
        try:
            call()
        except ProcessKilled:
            self.kill()

    def _after(self, delay_ms: int, call: Callable[[], object]) -> None:
        self._schedule.after(delay_ms, lambda: self._enter(call))

    def _hand_on(self, outcome: Reply | PenstockError | None) -> None:
        try:
            if isinstance(outcome, PenstockError):
                step = self._steps.throw(outcome)
            else:
                step = self._steps.send(outcome)
        except StopIteration:
            self._end()
            return
        if isinstance(step, Rest):
            self._rest = step
            self._after(ceil(1_000 * step.seconds), lambda: self._rested(step))
        else:
            assert isinstance(step, Ask)
            self.ask(step.request, step.body, self._hand_on)

    def _rested(self, rest: Rest) -> None:
        if self._rest is rest:
            self._rest = None
            self._hand_on(None)

    def _many(self) -> None:
        if self._rest is not None and self._rest.until_many:
            self._wake()

    def _wake(self) -> None:
        rest = self._rest
        if rest is not None:
            self._after(0, lambda: self._rested(rest))

    def _end(self) -> None:
        self.collector.close()
        self.is_done = True
        self._router.stop()

    # -- the engine, as the front end asks it ----------------------------------------------------------------

    def ask(self, request: Request, body: Buffer, done: Answered, stands_for: int = 1) -> int:
        """See `EngineLink`."""
        is_usage = isinstance(request, Send) and request.internal
        is_lost = is_usage and not self._stage.stopping and self._random.random() < _LOST_SHARE

        def ended(outcome: Outcome, *, again: bool) -> None:
            if is_lost:
                self.resent += not isinstance(outcome, PenstockError)
                silent_ms = self._random.randint(*_SILENT_MS)
                self._after(silent_ms, lambda: done(unreachable("the answer was lost")))
            elif isinstance(outcome, PenstockError):
                self._after(0, lambda: done(outcome))
            else:
                self._after(0, lambda: done(Reply(outcome.answer, memoryview(outcome.body))))

        self._router.carry_out(request, bytes(body), ended)
        return self._router.last_request

    def cancel(self, ticket: int) -> None:
        """See `EngineLink`."""
        self._router.tell(Unsubscribe(ticket))

    # -- the metadata store ----------------------------------------------------------------------------------

    def carry_out(self, step: StoreStep, done: WriteDone) -> None:
        """See `Registry`: nothing that is asked for here is written down there."""
        outcome = None if isinstance(step, Look) else StoreUnavailableError("it is not simulated")
        self._after(0, lambda: done(outcome))
