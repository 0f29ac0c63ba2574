"""Clients of an `async` queue that is also a log, which keep what they got: receipts for later use, and offsets forever.

They settle old receipts from before failovers, continue to read at their offsets, and use old memberships of groups. Their
observations go to `kept_numbers.py`. The queue has one partition; an operator may change it between `async` and `sync`
meanwhile.
"""

from __future__ import annotations

from collections import Counter
from random import Random

from penstock.model.batch import encode_parts
from penstock.model.runs import runs_of
from penstock.model.settings import QueueSettings
from penstock.simulation.client import SimulatedClient
from penstock.simulation.cluster.kept_numbers import KeptNumbers, KeptOffset
from penstock.simulation.recorder import sequences_of, slices
from penstock.simulation.tasks import Ask, Pause, Reply, Steps
from penstock.simulation.workload.stage import Stage
from penstock.wire.log_messages import (
    CommitOffset,
    GroupList,
    GroupMembership,
    JoinGroup,
    LeaveGroup,
    ListGroups,
    LogSlice,
    ReadLog,
)
from penstock.wire.messages import (
    AlterQueue,
    CreateQueue,
    Delete,
    DeleteQueue,
    Delivery,
    Done,
    Extend,
    QueueDescription,
    Receipt,
    Receive,
    Release,
    Send,
    SendResult,
)

QUEUE = "kept"
GROUP = "keepers"
_VISIBILITY_MS = (300, 800, 2_000)
_LEASE_MS = 1_000
_DRAIN_MS = 6_000
"""Longer than any lease: messages that have not come out by then, and not one by one, never do."""


class NumberKeepers:
    """All of them."""

    def __init__(
        self, stage: Stage, random: Random, replicas: int, counts: Counter[str], *, alters: bool
    ) -> None:
        self.kept = KeptNumbers()
        self._stage = stage
        self._random = random
        self._replicas = replicas
        self._counts = counts
        self._alters = alters
        self._queue_id = 0
        self._sent = 0
        self._memberships: list[tuple[str, int, int]] = []
        """All (member, generation, offset) that were ever received."""

    def create(self) -> Steps[None]:
        """Makes the queue."""
        settings = QueueSettings(
            replication="async", consumption="both", replicas=self._replicas, partitions=1
        )
        client = self._stage.client("keeper")
        while not self._stage.stopping and not self._queue_id:
            reply = yield Ask(client, CreateQueue(QUEUE, settings))
            if reply is not None and isinstance(reply.answer, QueueDescription):
                self._queue_id = reply.answer.queue_id
            yield Pause(100)

    def start(self) -> None:
        """Starts all of them."""
        tasks, random = self._stage.tasks, self._random
        for number in range(random.randint(1, 2)):
            tasks.start(self._produce(f"kept-producer-{number}"))
            tasks.start(self._consume(f"kept-consumer-{number}"))
        for number in range(random.randint(1, 2)):
            self.kept.readers.append(KeptOffset(f"kept-reader-{number}"))
            tasks.start(self._follow(self.kept.readers[-1]))
        for number in range(3):
            tasks.start(self._be_member(f"kept-member-{number}"))
        if self._alters:
            tasks.start(self._alter())

    # -- sending ---------------------------------------------------------------------------------------------

    def _produce(self, name: str) -> Steps[None]:
        stage, random, client = self._stage, self._random, self._stage.client(name)
        while not stage.stopping:
            yield Pause(random.choice((0, 20, 100, 400)))
            bodies = [self._body() for _ in range(random.choice((1, 1, 3, 10)))]
            reply = yield Ask(client, Send(self._queue_id), encode_parts(bodies))
            if reply is not None and isinstance(reply.answer, SendResult):
                for number, body in zip(sequences_of(reply.answer.runs), bodies, strict=True):
                    self.kept.told(number, body, "was acknowledged", stage.schedule.now_ms)
                stage.trace.add(name, f"sent {reply.answer.runs}")
            else:
                yield Pause(random.randint(10, 200))

    def _body(self) -> bytes:
        self._sent += 1
        return b"%d" % self._sent

    def _alter(self) -> Steps[None]:
        stage, random, client = self._stage, self._random, self._stage.client("kept-operator")
        while not stage.stopping:
            yield Pause(random.randint(300, 3_000))
            replication = random.choice(("sync", "async"))
            reply = yield Ask(client, AlterQueue(QUEUE, {"replication": replication}))
            if reply is not None and isinstance(reply.answer, QueueDescription):
                self._counts["replication altered"] += 1
                stage.trace.add("kept-operator", f"{QUEUE} is {replication}")

    # -- receiving -------------------------------------------------------------------------------------------

    def _consume(self, name: str) -> Steps[None]:
        """Holds on to receipts, and uses them much later, of whichever consumer they are."""
        stage, random, client = self._stage, self._random, self._stage.client(name)
        while not stage.stopping:
            yield Pause(random.choice((5, 50, 300)))
            request = Receive(
                self._queue_id,
                random.choice((1, 3, 8)),
                random.choice((0, 500)),
                random.choice(_VISIBILITY_MS),
            )
            reply = yield Ask(client, request)
            if reply is not None and isinstance(reply.answer, Delivery) and reply.answer.batches:
                self._note(reply.answer, reply)
            if self.kept.deliveries and random.random() < 0.7:
                yield from self._settle(client, random.choice(list(self.kept.deliveries)))

    def _note(self, delivery: Delivery, reply: Reply) -> dict[int, bytes]:
        messages = {
            head.first + index: bytes(batch.body(index))
            for head, batch, _ in slices(delivery.batches, reply.body)
            if batch is not None
            for index in range(head.count)
        }
        self.kept.delivered(delivery.token, messages, self._stage.schedule.now_ms)
        self._stage.trace.add("keeper", f"received {sorted(messages)}")
        return messages

    def _settle(self, client: SimulatedClient, token: bytes) -> Steps[None]:
        """Does something with a receipt, new or old."""
        random, messages = self._random, self.kept.deliveries[token]
        chosen = {number: body for number, body in messages.items() if random.random() < 0.7}
        if not chosen:
            return
        receipts = [Receipt(token, runs_of(sorted(chosen)), random.choice((None, 1, 2)))]
        how = random.random()
        request: Delete | Release | Extend
        if how < 0.6:
            self.kept.settled.update(chosen.values())
            request = Delete(receipts)
        elif how < 0.8:
            request = Release(receipts, random.choice((0, 200)))
        else:
            request = Extend(receipts, random.choice((100, 1_000)))
        yield Ask(client, request)
        self._stage.trace.add("keeper", f"{type(request).__name__} {sorted(chosen)}")

    # -- reading ---------------------------------------------------------------------------------------------

    def _follow(self, reader: KeptOffset) -> Steps[None]:
        stage, random, client = self._stage, self._random, self._stage.client(reader.name)
        while not stage.stopping:
            yield Pause(random.choice((0, 20, 200)))
            yield from self._read(client, reader, random.choice((0, 300, 1_000)))

    def _read(self, client: SimulatedClient, reader: KeptOffset, wait_ms: int) -> Steps[int]:
        """One read; returns the number of messages."""
        request = ReadLog(self._queue_id, reader.position, self._random.choice((1, 5, 50)), None, wait_ms)
        reply = yield Ask(client, request)
        if reply is None or not isinstance(reply.answer, LogSlice):
            return 0
        messages = _read_of(reply.answer, reply)
        self.kept.read(reader, messages, reply.answer.next, self._stage.schedule.now_ms)
        return len(messages)

    def _be_member(self, name: str) -> Steps[None]:
        """Joins, reads, commits, leaves; and uses old memberships."""
        stage, random, client = self._stage, self._random, self._stage.client(name)
        while not stage.stopping:
            yield Pause(random.choice((10, 50, 200, 1_200)))
            reply = yield Ask(client, JoinGroup(self._queue_id, GROUP, name, _LEASE_MS))
            if reply is None or not isinstance(reply.answer, GroupMembership):
                continue
            given = reply.answer
            self.kept.joined(
                given.generation, name if given.shares else "", given.members, stage.schedule.now_ms
            )
            if given.shares:
                self._memberships.append((name, given.generation, given.shares[0][1]))
                yield from self._read_as_member(client, name, given.generation, given.shares[0][1])
            if self._memberships and random.random() < 0.3:
                old = random.choice(self._memberships)
                yield from self._read_as_member(client, *old)
            if random.random() < 0.6:
                yield Ask(client, LeaveGroup(self._queue_id, GROUP, name))

    def _read_as_member(
        self, client: SimulatedClient, member: str, generation: int, offset: int
    ) -> Steps[None]:
        """Reads a little and commits; a refusal means that another member has the assignment."""
        for _ in range(self._random.randint(1, 3)):
            request = ReadLog(
                self._queue_id, offset, 50, None, self._random.choice((0, 100)), GROUP, member, generation
            )
            reply = yield Ask(client, request)
            if reply is None or not isinstance(reply.answer, LogSlice):
                return
            messages = _read_of(reply.answer, reply)
            for number, body in messages.items():
                self.kept.told(number, body, "was read for the group", self._stage.schedule.now_ms)
            self.kept.group_read.update(messages.values())
            offset = reply.answer.next
            commit = CommitOffset(self._queue_id, GROUP, offset, member, generation)
            reply = yield Ask(client, commit)
            if reply is None or not isinstance(reply.answer, Done):
                return

    # -- in the end ------------------------------------------------------------------------------------------

    def take_stock(self) -> Steps[None]:
        """Everything is well: readers read to the end, and what waits is taken out."""
        client = self._stage.client("kept-auditor")
        for reader in self.kept.readers:
            while (yield from self._read(client, reader, 0)):
                pass
        reply = yield Ask(client, ListGroups(self._queue_id))
        if reply is not None and isinstance(reply.answer, GroupList):
            self.kept.group_offset = max([1, *(group.offset for group in reply.answer.groups)])
        until_ms = self._stage.schedule.elapsed_ms + _DRAIN_MS
        comes = True
        while comes or self._stage.schedule.elapsed_ms < until_ms:
            reply = yield Ask(client, Receive(self._queue_id, 500, 500, 60_000))
            comes = reply is not None and isinstance(reply.answer, Delivery) and bool(reply.answer.batches)
            if reply is not None and isinstance(reply.answer, Delivery) and reply.answer.batches:
                self.kept.drained.update(self._note(reply.answer, reply).values())

    def delete(self) -> Steps[None]:
        """Deletes messages of a queue that no other client uses."""
        client = self._stage.client("kept-auditor")
        for _ in range(100):
            reply = yield Ask(client, DeleteQueue(QUEUE))
            if reply is not None and isinstance(reply.answer, Done):
                return
            yield Pause(100)


def _read_of(answer: LogSlice, reply: Reply) -> dict[int, bytes]:
    return {
        head.first + index: bytes(batch.body(index))
        for head, batch, _ in slices(answer.batches, reply.body)
        if batch is not None
        for index in range(head.count)
    }
