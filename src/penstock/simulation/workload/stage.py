"""The environment of every simulated client: time, randomness, the network, the history, and the known queues."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from penstock.model.errors import ErrorCode
from penstock.simulation.client import SimulatedClient
from penstock.simulation.message_history import QueueLife
from penstock.simulation.network import Network
from penstock.simulation.queue_plan import QueuePlan
from penstock.simulation.recorder import Recorder
from penstock.simulation.scenario import Scenario
from penstock.simulation.schedule import Schedule
from penstock.simulation.tasks import Ask, Reply, Steps, Tasks
from penstock.simulation.trace import Trace
from penstock.wire.messages import DescribeQueue, Failed, QueueDescription

MOVED_TO = ("dead", ".late")
"""How the names of queues end to which messages are moved."""


@dataclass(slots=True)
class Stage:
    """One run, for its clients."""

    scenario: Scenario
    schedule: Schedule
    random: Random
    trace: Trace
    network: Network
    tasks: Tasks
    recorder: Recorder
    queues: dict[str, QueueLife] = field(default_factory=dict)
    """The incarnation that clients believe is the present one, by name."""
    clients: list[SimulatedClient] = field(default_factory=list)
    stopping: bool = False
    next_message: int = 1

    def client(self, name: str) -> SimulatedClient:
        """A new client."""
        client = SimulatedClient(name, self.network, self.random, self.trace)
        self.clients.append(client)
        return client

    def network_of(self, name: str) -> Network:
        """The network to which a client connects that brings its own link."""
        return self.network

    def plans(self) -> list[QueuePlan]:
        """The queues that producers use."""
        return self.scenario.queues

    def pick_life(self) -> QueueLife | None:
        """Any queue that is believed to exist, dead-letter queues among them."""
        return self.queues[self.random.choice(sorted(self.queues))] if self.queues else None

    def life_of(self, name: str) -> QueueLife | None:
        """The incarnation that a producer sends to; None where it must look."""
        return self.queues.get(name)

    def pick_queue(self) -> QueueLife | None:
        """Any queue whose messages are received."""
        names = [name for name in sorted(self.queues) if self.queues[name].settings[0].has_queue]
        return self.queues[self.random.choice(names)] if names else None

    def pick_log(self) -> QueueLife | None:
        """Any queue that is a log."""
        names = [name for name in sorted(self.queues) if self.queues[name].settings[0].has_log]
        return self.queues[self.random.choice(names)] if names else None

    def look_up_logs(self, client: SimulatedClient) -> Steps[None]:
        """Finds out about the logs of the scenario."""
        for plan in self.plans():
            if plan.settings.has_log:
                yield from self.look_up(client, plan.name)

    def failed(self, life: QueueLife, reply: Reply | None) -> Failed | None:
        """The refusal in a reply, if it is one; takes note of what it says about the queue."""
        if reply is None or not isinstance(reply.answer, Failed):
            return None
        if reply.answer.code == ErrorCode.QUEUE_DAMAGED:
            self.recorder.damage_seen(life)
        return reply.answer

    def look_up(self, client: SimulatedClient, name: str) -> Steps[QueueDescription | None]:
        """Looks a queue up; None if it does not exist or no answer comes."""
        reply = yield Ask(client, DescribeQueue(name))
        if reply is None:
            return None
        if isinstance(reply.answer, QueueDescription):
            life = self.note(reply.answer)
            if reply.answer.damage is not None:
                self.recorder.damage_seen(life)
            return reply.answer
        if isinstance(reply.answer, Failed) and reply.answer.code == ErrorCode.QUEUE_NOT_FOUND:
            self.queues.pop(name, None)
        return None

    def note(self, description: QueueDescription) -> QueueLife:
        """A queue is there."""
        life = self.recorder.queue_seen(description.queue_id, description.name, description.settings)
        life.watermarks_us.add(description.statistics.watermark_us)
        known = self.queues.get(description.name)
        if known is None or known.queue_id < description.queue_id:
            self.queues[description.name] = life
        return life
