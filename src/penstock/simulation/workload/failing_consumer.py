"""A consumer that releases everything that it receives: messages that are released too often become dead letters."""

from __future__ import annotations

from penstock.simulation.message_history import QueueLife
from penstock.simulation.tasks import Pause, Steps
from penstock.simulation.workload.consumer import Consumer
from penstock.simulation.workload.stage import Stage


class FailingConsumer:
    """Receives from queues with a limit of receives, and releases everything."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._consumer = Consumer(stage, name)

    def run(self) -> Steps[None]:
        """Runs until all clients stop."""
        stage, random = self._stage, self._stage.random
        while not stage.stopping:
            yield Pause(random.randint(50, 500))
            queues = [stage.queues[name] for name in sorted(stage.queues) if _counts(stage.queues[name])]
            if queues:
                life = random.choice(queues)
                messages = yield from self._consumer.receive(life, random.choice((1, 5, 20)), 200, 2_000)
                yield from self._consumer.settler.settle("release", messages)


def _counts(life: QueueLife) -> bool:
    return life.settings[-1].max_receives is not None
