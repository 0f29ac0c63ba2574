"""The primary of a partition: which records each replica has, what is committed, and which replicas leave or join the in-sync
set.

A record is committed when every replica in sync has it on disk (`sync`), or when the primary has (`async`). The metadata
store defines the in-sync set, because an election reads it there. While a change of it is in progress, a record must be at
the members of both sets: so the members of either set, whichever an election sees, have everything that is committed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from penstock.replication.primary_secondary.core.replica_progress import LAG_MS, LAST_LAG_MS, Follower


class Primary:
    """The knowledge of the primary of one epoch; dropped with the epoch."""

    def __init__(
        self,
        node: str,
        *,
        last: int,
        replicas: Iterable[str],
        in_sync: Iterable[str],
        synchronous: bool,
        least_in_sync: int,
        now_ms: int,
    ) -> None:
        self._node = node
        self._last = last
        self._begun = last
        """The record that began the epoch. Any before it may have been committed under an earlier primary."""
        self._flushed = 0
        self._committed = 0
        self._copied = 0
        self._relied = 0
        self.synchronous = synchronous
        self.least_in_sync = least_in_sync
        self.in_sync = frozenset(in_sync)
        self._proposed: frozenset[str] | None = None
        self.followers: dict[str, Follower] = {}
        self.set_replicas(replicas, {}, now_ms)

    # --- what is where --------------------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The index of the last record."""
        return self._last

    @property
    def committed(self) -> int:
        """Up to which record the log is committed; it never falls."""
        return self._committed

    @property
    def copied(self) -> int:
        """Up to which record that is on at least `least_in_sync` disks, so that a send may be acknowledged.

        What was under way when replicas left is committed by fewer than a send is promised, and only the sender need know.
        """
        return self._copied

    def everywhere(self) -> int:
        """Up to which record every replica that may be elected next has the log, so that no failover loses it.

        With `async` less than what is committed. A caller that acts on it says so (`rely`): no replica comes in sync without that. A
        replica that is about to come in counts already, for a moment: otherwise it would always lack the newest of it.
        """
        return self._confirmed_by_all(self._committed)

    def rely(self, index: int) -> None:
        """Registers that no failover may lose the log up to here."""
        self._relied = max(self._relied, index)

    def appended(self, last: int, now_ms: int) -> None:
        """The log has grown up to `last`."""
        self._last = last
        for follower in self.followers.values():
            if follower.waiting_since_ms is None and follower.confirmed < last:
                follower.waiting_since_ms = now_ms

    def flushed(self, index: int) -> None:
        """The primary's own disk has the log up to here."""
        self._flushed = max(self._flushed, index)
        self._commit()

    def confirmed(self, node: str, index: int, now_ms: int) -> None:
        """A follower's disk has the log up to here; every report of progress extends its deadline."""
        follower = self.followers.get(node)
        if follower is None or index < follower.confirmed:
            return
        if index > follower.confirmed or index >= self._last:
            follower.waiting_since_ms = None if index >= self._last else now_ms
        follower.confirmed = index
        if node not in self.in_sync:
            follower.heard(self._last, now_ms)
            if index >= self._begun and self._proposed is None:
                follower.await_if_close(now_ms)
        self._commit()

    def vouched(self, node: str, sent_ms: int) -> None:
        """A follower confirmed what it was sent at that time, as one that follows this primary."""
        follower = self.followers.get(node)
        if follower is not None:
            follower.vouched_ms = max(follower.vouched_ms, sent_ms)

    def leads_since(self, since_ms: int) -> bool:
        """Whether this was the only primary at `since_ms` or later. An `async` primary has its lease for that.

        Only replicas in sync can be elected. A replica that followed this primary at a moment had not been elected then.
        If the primary is alone in sync, no other replica can be elected.
        """
        return not self.synchronous or not self.unvouched(since_ms)

    def unvouched(self, since_ms: int) -> list[str]:
        """The replicas in sync without a message since then."""
        counts = self.in_sync | (self._proposed or frozenset())
        return [
            node
            for node in counts
            if node != self._node
            and (node not in self.followers or self.followers[node].vouched_ms < since_ms)
        ]

    def asked(self, node: str, now_ms: int) -> None:
        """A follower was sent a question: one that does not confirm it in time lags."""
        follower = self.followers.get(node)
        if follower is not None and follower.waiting_since_ms is None:
            follower.waiting_since_ms = now_ms

    def lost(self, node: str) -> None:
        """A follower starts again: its earlier confirmations no longer count."""
        follower = self.followers.get(node)
        if follower is not None:
            follower.lost()
            self._commit()

    def stalled(self, duration_ms: int, now_ms: int) -> None:
        """This node itself was paused and could not receive messages, so its followers are not blamed for the silence."""
        for follower in self.followers.values():
            follower.spared(duration_ms, now_ms)

    def _confirmed_by_all(self, index: int) -> int:
        """Up to which record, at most `index`, every replica has confirmed that is in sync, or may be soon."""
        for node in self.in_sync | (self._proposed or frozenset()):
            if node != self._node:
                follower = self.followers.get(node)
                index = min(index, follower.confirmed if follower is not None else 0)
        for follower in self.followers.values():
            if follower.awaited_until_ms is not None:
                index = min(index, follower.confirmed)
        return index

    def _commit(self) -> None:
        index = self._confirmed_by_all(self._flushed) if self.synchronous else self._flushed
        self._committed = max(self._committed, index)
        if self.takes_sends:
            self._copied = self._committed

    # --- who is in sync -------------------------------------------------------------------------------------

    @property
    def takes_sends(self) -> bool:
        """Whether enough replicas are in sync."""
        return not self.synchronous or len(self.in_sync) >= self.least_in_sync

    def wanted_in_sync(self, now_ms: int, living: Collection[str]) -> frozenset[str] | None:
        """The in-sync set as it should be, if it should change and no change is in progress.

        Replicas that lag or are unreachable leave. A replica joins when it has everything that is committed, and
        everything that was there when the epoch began, because the previous primary may have committed all of that. If the
        primary's own disk is enough for a commit (`async`), a replica joins when it is close. A replica also leaves if too
        few remain, but only after a longer time: nothing is acknowledged while a replica in sync does not confirm, and
        sends are refused below the minimum.
        """
        if self._proposed is not None:
            return None
        wanted = {self._node}
        late = set()
        for node, follower in self.followers.items():
            if node not in living:
                continue
            if node not in self.in_sync:
                if self._has_come_close(follower, now_ms):
                    wanted.add(node)
            elif not follower.lags(now_ms, LAG_MS):
                wanted.add(node)
            elif not follower.lags(now_ms, LAST_LAG_MS):
                late.add(node)
        if self.synchronous and len(wanted) < self.least_in_sync:
            wanted |= late
        return frozenset(wanted) if wanted != self.in_sync else None

    def _has_come_close(self, follower: Follower, now_ms: int) -> bool:
        if follower.confirmed < max(self._begun, self._relied) or follower.lags(now_ms, LAG_MS):
            return False
        return follower.confirmed >= self._committed or (
            not self.synchronous and follower.trails_by(LAG_MS, now_ms)
        )

    def awaited_until_ms(self) -> int | None:
        """Until when the primary waits for a replica that joins; None: there is none."""
        times = [follower.awaited_until_ms for follower in self.followers.values()]
        return min((time for time in times if time is not None), default=None)

    def end_waits(self, now_ms: int) -> None:
        """Ends the waiting for replicas that have joined, or are about to, and gives up the others."""
        counts = self.in_sync | (self._proposed or frozenset())
        for node, follower in self.followers.items():
            if follower.awaited_until_ms is None:
                continue
            if node in counts:
                follower.awaited_until_ms = None
            elif now_ms >= follower.awaited_until_ms:
                follower.disappointed(now_ms)
        self._commit()

    def next_lag_ms(self) -> int | None:
        """When a follower in sync will have lagged for too long, if it says nothing until then."""
        times = [
            follower.waiting_since_ms + LAG_MS
            for node, follower in self.followers.items()
            if node in self.in_sync and follower.waiting_since_ms is not None
        ]
        return min(times, default=None)

    def propose(self, in_sync: Iterable[str]) -> None:
        """A change of the in-sync set is on its way to the store; until it is known, both sets count."""
        self._proposed = frozenset(in_sync)

    def decided(self, in_sync: Iterable[str]) -> None:
        """The store's current in-sync set, whatever was proposed."""
        self._proposed = None
        self.in_sync = frozenset(in_sync)
        self._commit()

    def set_replicas(self, replicas: Iterable[str], joined: Mapping[str, int], now_ms: int) -> set[str]:
        """The replicas of the partition and their start; returns those about which nothing is known.

        A new replica has confirmed nothing. The same holds for a replica that was removed and added again, even if this
        primary did not receive both changes: the replica dropped everything that it had confirmed.
        """
        others = {node for node in replicas if node != self._node}
        for node in self.followers.keys() - others:
            del self.followers[node]
        unknown = set()
        for node in others:
            follower, membership = self.followers.get(node), joined.get(node, 0)
            if follower is None or follower.joined != membership:
                self.followers[node] = Follower(membership, waiting_since_ms=now_ms)
                unknown.add(node)
        return unknown
