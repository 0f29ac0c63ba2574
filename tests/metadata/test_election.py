"""A leader stops by itself before anybody else can have been elected. (Who is elected is in the contract.)"""

from __future__ import annotations

from penstock.metadata.election import Election
from penstock.metadata.store.interface import StoreUnavailableError
from penstock.metadata.store.memory import MemoryContents, MemoryStore
from tests.metadata.clock import Clock
from tests.runtime.harness import async_test


class LostStore(MemoryStore):
    """Renews so many leases, and then no longer answers."""

    renewals = 2

    async def renew(self, lease: int) -> bool:
        if not self.renewals:
            raise StoreUnavailableError("no route to the store")
        self.renewals -= 1
        return await super().renew(lease)


@async_test
async def test_a_leader_that_cannot_reach_the_store_gives_up_when_its_lease_ends() -> None:
    clock = Clock()
    store = LostStore(MemoryContents(clock))
    leadership = await Election(store, "manager", "one", 6, clock).campaign()
    began = clock.now

    async def pause(seconds: float) -> None:
        assert leadership.holds
        clock.now += seconds

    await leadership.keep(pause)
    assert not leadership.holds
    assert clock.now == began + 2 * 2 + 6  # two renewals, two seconds apart, and the lease of the last


@async_test
async def test_a_leader_whose_lease_has_ended_knows_it() -> None:
    clock = Clock()
    store = MemoryStore(MemoryContents(clock))
    leadership = await Election(store, "manager", "one", 6, clock).campaign()
    clock.now += 7
    assert not leadership.holds
    assert not await leadership.renew()
