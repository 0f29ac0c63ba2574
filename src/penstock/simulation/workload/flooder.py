"""The flooder: sends at its own rate, independent of answers, to overload a stalled disk."""

from __future__ import annotations

from penstock.simulation.tasks import Pause, Steps
from penstock.simulation.workload.producer import Producer
from penstock.simulation.workload.stage import Stage

_PACE_MS = 40
_HURRY_MS = 3
"""Between two batches while answers do not come: the worst that a client can do to a node that cannot keep up."""
_UNANSWERED = 4
_IN_FLIGHT = 600


class Flooder(Producer):
    """A producer that does not wait."""

    def __init__(self, stage: Stage, most: int | None = None) -> None:
        """`most`: after so many batches it is done; None: never."""
        super().__init__(stage, "flooder")
        self._left = most

    def run(self) -> Steps[None]:
        """Sends until the run ends."""
        stage = self._stage
        while not stage.stopping and self._left != 0:
            yield Pause(_HURRY_MS if self._in_flight > _UNANSWERED else stage.random.randint(1, 2 * _PACE_MS))
            plan = stage.random.choice(stage.plans())
            life = stage.queues.get(plan.name)
            if life is not None and self._in_flight < _IN_FLIGHT:
                self._in_flight += 1
                if self._left is not None:
                    self._left -= 1
                stage.tasks.start(self._deliver_aside(self._compose(plan, life, 12), 1))
