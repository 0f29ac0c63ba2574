"""The office of the cluster's manager: a node stands for election, manages while it holds the office, and stands again.

Events and ticks come in, effects go out; `runtime/cluster/manager.py` and the simulation carry them out. A tick follows
every event. Promises:
- A node decides only while it certainly holds the office (`membership/campaign.py`). So two nodes never decide at the same
  time.
- A decision takes effect on the version of the entry for which it was made, or not at all (`loop.py`). So if a deposed
  manager's write is
  late, it is still right for its entry.
- A node that has received no changes of the store for the time of a lease does not hold the office: it would not see which
  nodes fail.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.cluster.layout.view import ClusterView
from penstock.cluster.manager.decide import DEFAULT_SETTINGS
from penstock.cluster.manager.loop import ManagerLoop, Write
from penstock.cluster.manager.settings import ManagerSettings
from penstock.cluster.membership.campaign import Campaign, Deposed, Elected
from penstock.cluster.membership.campaign import Effect as CampaignEffect
from penstock.cluster.membership.store_requests import Ask, Outcome

MANAGER_ELECTION = "manager"
LEASE_MS = 2_000

Effect = Ask | Elected | Deposed | Write


class ManagerCandidate:
    """A candidate, and the manager once elected."""

    def __init__(
        self,
        node: str,
        now_ms: int,
        settings: ManagerSettings = DEFAULT_SETTINGS,
        lease_ms: int = LEASE_MS,
    ) -> None:
        self.leads = False
        """Whether it is elected, as far as it has noticed."""
        self._campaign = Campaign(MANAGER_ELECTION, node, lease_ms, now_ms)
        self._campaign.wants_to_lead = False  # until the first tick
        self._loop = ManagerLoop(settings)
        self._lease_ms = lease_ms
        self._has_resigned = False
        self._deaf_since_ms: int | None = None
        """Since when no changes of the store have been received; None: they are received."""

    @property
    def view(self) -> ClusterView:
        """The known layout of the cluster."""
        return self._loop.view

    @property
    def epoch(self) -> int:
        """The version of the entry under which it is elected."""
        return self._campaign.epoch

    # -- events ----------------------------------------------------------------------------------------------

    def tick(self, now_ms: int) -> list[Effect]:
        """Time has passed, or an event has happened: the layout is checked only here."""
        is_deaf = self._is_deaf(now_ms)
        self._campaign.wants_to_lead = not self._has_resigned and not is_deaf
        found = self._terms(self._campaign.tick(now_ms), now_ms)
        if self.leads and is_deaf:
            found += self._terms(self._campaign.give_up(now_ms), now_ms)
        elif self.leads and self._campaign.holds(now_ms):
            found += self._loop.look(now_ms)
        return found

    def answered(self, question: int, outcome: Outcome, now_ms: int) -> list[Effect]:
        """The store has answered a question of the campaign, or will not."""
        return self._terms(self._campaign.answered(question, outcome, now_ms), now_ms)

    def written(self, number: int) -> None:
        """The store has answered a write, or will not. The view shows the outcome."""
        self._loop.written(number)

    def heard(self, key: str, value: bytes | None, version: int, now_ms: int) -> list[Effect]:
        """An entry of the store is so now; None: it is gone."""
        self._loop.heard(key, value, version, now_ms)
        if key != self._campaign.key:
            return []
        return self._terms(self._campaign.heard(value, version, now_ms), now_ms)

    def hears(self, now_ms: int, *, hears: bool) -> None:
        """Whether changes of the store are received from now on."""
        if hears:
            self._deaf_since_ms = None
        elif self._deaf_since_ms is None:
            self._deaf_since_ms = now_ms

    def give_up(self, now_ms: int) -> list[Effect]:
        """Gives the office to another node; stands again after a pause."""
        return self._terms(self._campaign.give_up(now_ms), now_ms)

    def resign(self) -> list[Effect]:
        """Gives the office up permanently."""
        self.leads, self._has_resigned = False, True
        self._loop.end()
        return list(self._campaign.resign())

    def next_ms(self) -> int | None:
        """When to tick at the latest."""
        times = [self._campaign.next_ms(), self._loop.next_ms()]
        if self._deaf_since_ms is not None and self._campaign.wants_to_lead:
            times.append(self._deaf_since_ms + self._lease_ms)
        return min((time_ms for time_ms in times if time_ms is not None), default=None)

    # -- what follows from them ------------------------------------------------------------------------------

    def _is_deaf(self, now_ms: int) -> bool:
        return self._deaf_since_ms is not None and now_ms - self._deaf_since_ms >= self._lease_ms

    def _terms(self, effects: Iterable[CampaignEffect], now_ms: int) -> list[Effect]:
        """Terms begin and end with the campaign's effects."""
        found: list[Effect] = []
        for effect in effects:
            found.append(effect)
            if isinstance(effect, Elected):
                self.leads = True
                self._loop.begin(now_ms)
            elif isinstance(effect, Deposed):
                self.leads = False
                self._loop.end()
        return found
