"""When the manager checks the layout, and how it writes the changes of `decide`.

It writes each change on condition that the entry still has the version that was read. So a decision takes effect only on
the entry for which it was made, however late the store carries it out, and even if another manager is elected by then.
Only decisions of the present term of office are written; unwritten changes are dropped at the next check, because that
decides again.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from penstock.cluster.layout.changes import Change
from penstock.cluster.layout.decoder import capacity_of_key, node_of_key
from penstock.cluster.layout.entries import NODES, POSITIONS, UNCLEAN
from penstock.cluster.layout.view import PREFIX, ClusterView
from penstock.cluster.manager.decide import DEFAULT_SETTINGS, decide, unsettled
from penstock.cluster.manager.settings import ManagerSettings

SOON_MS = 100
"""Until the next look while something waits for time to pass; twice as long each time that nothing was to be done."""
LATER_MS = 5_000
GATHER_MS = 500
"""Looks for changes that are not urgent are so far apart: a thousand new queues are not a thousand looks."""
WRITES_AT_ONCE = 64
URGENT = (NODES, POSITIONS, UNCLEAN)
"""Changes under these keys may mean that a partition is not served, or how that can end."""


class Write(NamedTuple):
    """An effect: write this, and report the outcome to the loop under this number."""

    number: int
    change: Change


class ManagerLoop:
    """The known layout of the cluster, and the changes in progress."""

    def __init__(self, settings: ManagerSettings = DEFAULT_SETTINGS) -> None:
        self.view = ClusterView()
        """The known layout, also while another node is the manager."""
        self._settings = settings
        self._look_ms: int | None = None
        """When to look next; None: another node manages the cluster."""
        self._pause_ms = SOON_MS
        self._has_news = self._has_changed = False
        self._waiting: deque[Change] = deque()
        self._under_way: dict[int, Change] = {}
        self._last_number = 0

    def begin(self, now_ms: int) -> None:
        """A term begins."""
        self._look_ms, self._pause_ms, self._has_news = now_ms, SOON_MS, True

    def end(self) -> None:
        """The term of office is over; requests to the store may still be carried out."""
        self._look_ms = None
        self._waiting.clear()

    def next_ms(self) -> int | None:
        """The latest time of the next check."""
        return self._look_ms

    def heard(self, key: str, value: bytes | None, version: int, now_ms: int) -> None:
        """An entry of the store is so now; None: it is gone."""
        if not key.startswith(PREFIX):
            return
        lives = self.view.members.lives
        self.view.apply(key, value, version, now_ms)
        if capacity_of_key(key) is not None:
            return
        if node_of_key(key) is not None and self.view.members.lives == lives:
            return  # a node only says how busy it is, which can wait for the next look
        self._has_news = True
        if self._look_ms is not None:
            self._look_ms = min(self._look_ms, now_ms if key.startswith(URGENT) else now_ms + GATHER_MS)

    def look(self, now_ms: int) -> list[Write]:
        """Decides where it is time to, and writes. To be called only while the node is certainly elected."""
        if self._look_ms is not None and now_ms >= self._look_ms:
            changes = decide(self.view, now_ms, self._settings)
            is_calm = not self._has_news and not self._has_changed
            self._pause_ms = min(self._pause_ms * 2, LATER_MS) if is_calm else SOON_MS
            self._has_news, self._has_changed = False, bool(changes)
            waits_ms = self._pause_ms if changes or unsettled(self.view) else LATER_MS
            self._look_ms = now_ms + waits_ms
            busy = {change.key for change in self._under_way.values()}
            self._waiting = deque(change for change in changes if change.key not in busy)
        writes: list[Write] = []
        while self._waiting and len(self._under_way) < WRITES_AT_ONCE:
            self._last_number += 1
            change = self._under_way[self._last_number] = self._waiting.popleft()
            writes.append(Write(self._last_number, change))
        return writes

    def written(self, number: int) -> None:
        """The store has answered a write, or will not. The view shows the outcome."""
        self._under_way.pop(number, None)
