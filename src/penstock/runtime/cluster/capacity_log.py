"""The manager's log messages about queues that fill up or need more partitions: once, and again when a fact changes."""

from __future__ import annotations

import logging

from penstock.cluster.layout.capacity import subject, warning
from penstock.cluster.layout.view import ClusterView

_logger = logging.getLogger(__name__)


class CapacityLog:
    """Remembers what was logged about which queue, as long as there is a warning."""

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._said: dict[str, tuple[str, bool, int]] = {}

    def look_at_all(self) -> None:
        """A new manager logs all present warnings."""
        self._said.clear()
        for name in list(self._view.capacity):
            self.look_at(name)

    def look_at(self, name: str) -> None:
        """The pipeline has written something new about a queue, or took it back."""
        entry = self._view.capacity.get(name)
        sentence = warning(entry) if entry is not None and name in self._view.queues else ""
        if entry is None or not sentence:
            self._said.pop(name, None)
        elif self._said.get(name) != subject(entry):
            self._said[name] = subject(entry)
            _logger.warning("%(sentence)s", {"sentence": sentence, "queue": name})

    def __len__(self) -> int:
        return len(self._said)
