"""A cluster with an `async` queue, whose primary can be made to acknowledge what no other replica ever gets."""

from __future__ import annotations

from typing import Any

from penstock.model.batch import Batch, encode_parts
from penstock.queue.partition import Partition
from penstock.wire import messages
from tests.replication.primary_secondary.node.cluster import Cluster, Machine


class LooseCluster(Cluster):
    """Leases of nodes never end by themselves; whoever dies is replaced by one in sync."""

    def __init__(self, seed: int = 1, **settings: object) -> None:
        super().__init__(seed)
        chosen: dict[str, Any] = {"replication": "async", "visibility_timeout_ms": 60_000, **settings}
        self.create(**chosen)
        self.settle(1_000)

    def step(self) -> None:
        for machine in self.machines.values():
            if machine.node is not None:
                machine.node.replication.lease_renewed(self.now_ms + 10**7, self.now_ms)
        super().step()

    # -- losing a suffix -------------------------------------------------------------------------------------

    def cut_off(self) -> Machine:
        """The primary reaches no other node; its clients it does."""
        machine = self.leader
        for other in self.machines:
            if other != machine.name:
                self.parted.add(frozenset((machine.name, other)))
                self.cut(machine.name, other)
        return machine

    def alone(self, machine: Machine, request: messages.Request, body: bytes = b"") -> messages.Answer:
        """What a node answers that is cut off."""
        number = machine.request(request, body)
        for _ in range(6):
            self.now_ms += 2
            machine.turn()
        return machine.answers.pop(number)

    def fail_over(self, machine: Machine) -> None:
        """The node loses its power, and another one leads."""
        machine.crash(power=True)
        self.parted.clear()
        self.settle(2_000)
        assert self.leader is not machine

    def partition_at(self, name: str) -> Partition:
        """The state as a node has it."""
        node = self.machines[name].node
        assert node is not None
        return node.replication.state.parts.catalogue.partitions[1]

    # -- clients ---------------------------------------------------------------------------------------------

    def send(self, *bodies: bytes) -> list[int]:
        """The numbers that messages get."""
        return numbers(self.ask(messages.Send(1), bytes(encode_parts(list(bodies)))))

    def receive(self, most: int = 10) -> messages.Delivery:
        answer = self.ask(messages.Receive(1, most))
        assert isinstance(answer, messages.Delivery), answer
        return answer

    def read(self, start: int, most: int = 1_000, **terms: object) -> tuple[list[tuple[int, bytes]], int]:
        """What is read from a number on, and where to go on."""
        machine = self.leader
        request = messages.ReadLog(1, start, most, **terms)  # type: ignore[arg-type]  # as the caller names them
        number = machine.request(request)
        for _ in range(200):
            if number in machine.answers:
                break
            self.now_ms += 1
            self.step()
        answer, body = machine.answers.pop(number), machine.bodies.pop(number)
        assert isinstance(answer, messages.LogSlice), answer
        found: list[tuple[int, bytes]] = []
        for head in answer.batches:
            found += enumerate(map(bytes, Batch(body[: head.size]).bodies()), head.first)
            body = body[head.size :]
        return found, answer.next

    def read_on(self, start: int) -> list[tuple[int, bytes]]:
        """Everything from a number on, slice after slice, as a reader does."""
        found: list[tuple[int, bytes]] = []
        while True:
            more, following = self.read(start)
            if following == start:
                return found
            found += more
            start = following


def numbers(answer: messages.Answer) -> list[int]:
    assert isinstance(answer, messages.SendResult), answer
    return [number for first, count in answer.runs for number in range(first, first + count)]


def runs(delivery: messages.Delivery) -> list[tuple[int, int]]:
    return [(batch.first, batch.count) for batch in delivery.batches]
