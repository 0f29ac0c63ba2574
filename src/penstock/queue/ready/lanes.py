"""Lanes: which ready message is next. Each priority has a lane; in a lane, groups take fair turns.

A lane finds plain ready messages by searching for their state byte in the lowest chunk that may have one. So a receive
costs the same for any backlog. Messages with a group wait in their group. Groups and the plain messages take turns, so a
busy group cannot starve the others. Choosing changes nothing: the caller writes a record, and only applying that record
moves messages out of READY.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Mapping
from heapq import heappop, heappush

from penstock.model import limits
from penstock.model.runs import Run, Runs, runs_of
from penstock.model.split_map import NUMBER_BITS, NumberMap
from penstock.queue.decisions.budget import Budget
from penstock.queue.state import states
from penstock.queue.state.chunk import CHUNK_BITS, CHUNK_MASK
from penstock.queue.state.table import MessageTable

_PLAIN = -1
"""The turn of messages without a group."""

_STALE_AT_LEAST = 1_024


Ahead = tuple[int, int, int]
"""(stamp, first, count) of messages that are served before all others."""


class Lane:
    """The ready messages of one priority."""

    def __init__(self, table: MessageTable, priority: int) -> None:
        self._table = table
        self._priority = priority
        self._value = states.READY | priority
        self._value_bytes = bytes([self._value])
        self._chunks: list[int] = []
        self._listed: set[int] = set()
        self._groups: NumberMap[list[int]] = NumberMap()
        """Messages of each group that may be ready; a group is here as long as it has a turn."""
        self._entries = 0
        """Sequence numbers in all groups, those included that are no longer ready."""
        self._turns: deque[int] = deque()
        self._plain_waits = False
        """Whether messages without a group have a turn."""

    def add_run(self, run: Run) -> None:
        """Plain messages of the run became ready."""
        first, count = run
        for number in range(first >> CHUNK_BITS, (first + count - 1 >> CHUNK_BITS) + 1):
            if number not in self._listed:
                self._listed.add(number)
                heappush(self._chunks, number)
                if len(self._chunks) > 2 * len(self._table.chunks) + _STALE_AT_LEAST:
                    self._listed.intersection_update(self._table.chunks)
                    self._chunks = sorted(self._listed)

    def add_grouped(self, group: int, sequence: int) -> None:
        """A message with a group became ready."""
        heap = self._groups.get(group)
        if heap is None:
            heap = []
            self._groups.put(group, heap)
            self._turns.append(group)
        heappush(heap, sequence)
        self._entries += 1
        if self._entries > 2 * self._table.ready_by_priority[self._priority] + _STALE_AT_LEAST:
            self._drop_stale()

    def _drop_stale(self) -> None:
        """Forgets what ended without ever being chosen; without receivers it would pile up."""
        ready, state = self._value | states.GROUPED, self._table.state
        for group, heap in list(self._groups):
            heap[:] = sorted({sequence for sequence in heap if state(sequence) == ready})
            if not heap:
                self._groups.pop(group)
        self._entries = sum(len(heap) for _, heap in self._groups)
        self._turns = deque(turn for turn in self._turns if turn == _PLAIN or turn in self._groups)

    def choose(self, budget: Budget) -> Runs:
        """Ready messages, in the order to deliver them."""
        if not self._turns:
            return self._choose_plain(budget, budget.messages, 1)
        runs: Runs = []
        if self._chunks and not self._plain_waits:
            self._plain_waits = True
            self._turns.append(_PLAIN)
        plain_after = left_in_round = share = 0
        while self._turns and not budget.spent():
            if not left_in_round:
                left_in_round = len(self._turns)
                share = max(1, budget.messages // left_in_round)
            left_in_round -= 1
            turn = self._turns.popleft()
            if turn == _PLAIN:
                chosen = self._choose_plain(budget, share, plain_after)
                plain_after = chosen[-1][0] + chosen[-1][1] if chosen else plain_after
                more = bool(chosen)
            else:
                chosen = self._choose_group(turn, budget, share)
                more = turn in self._groups
            runs += chosen
            if not chosen and budget.spent():  # it was too large for what was left: it is first the next time
                self._turns.appendleft(turn)
            elif more:
                self._turns.append(turn)
            elif turn == _PLAIN:
                self._plain_waits = False
        return runs

    def _choose_plain(self, budget: Budget, most: int, after: int) -> Runs:
        """Runs of plain ready messages from `after` on, lowest first."""
        runs: Runs = []
        chunks, value = self._table.chunks, self._value
        skipped: list[int] = []
        while self._chunks and most > 0 and not budget.spent():
            number = self._chunks[0]
            chunk = chunks.get(number)
            base = number << CHUNK_BITS
            if chunk is None or (found := chunk.states.find(value)) < 0:
                heappop(self._chunks)
                self._listed.discard(number)
                continue
            found = chunk.states.find(value, max(found, after - base)) if after > base else found
            while found >= 0 and most > 0 and not budget.spent():
                part = chunk.states[found : found + min(most, budget.messages)]
                length = (
                    len(part)
                    if part.count(value) == len(part)
                    else len(part) - len(part.lstrip(self._value_bytes))
                )
                count = budget.take(chunk.sizes[found : found + length])
                if not count:
                    break
                runs.append((base + found, count))
                most -= count
                found = chunk.states.find(value, found + count)
            if most > 0 and not budget.spent():
                skipped.append(heappop(self._chunks))
        for number in skipped:  # still listed: the messages leave READY only when the record is applied
            heappush(self._chunks, number)
        return runs

    def _choose_group(self, group: int, budget: Budget, most: int) -> Runs:
        """The lowest ready messages of a group. They leave the group's heap; a release brings them back."""
        heap = self._groups.pages[group >> NUMBER_BITS][group]
        before = len(heap)
        chosen: list[int] = []
        chunks, state = self._table.chunks, self._table.state
        ready = self._value | states.GROUPED
        while heap and len(chosen) < most and not budget.spent():
            sequence = heap[0]
            if state(sequence) == ready:
                if not budget.take_one(chunks[sequence >> CHUNK_BITS].sizes[sequence & CHUNK_MASK]):
                    break
                chosen.append(sequence)
            while heap and heap[0] == sequence:  # once for each time it became ready
                heappop(heap)
        self._entries -= before - len(heap)
        if not heap:
            self._groups.pop(group)
        return runs_of(chosen)


class Lanes:
    """All priorities, served in proportion to their weights."""

    def __init__(self, table: MessageTable) -> None:
        self._table = table
        self._lanes: dict[int, Lane] = {0: Lane(table, 0)}
        self._carry: dict[int, float] = {}
        self._chosen: Runs = []
        self.ahead: list[Ahead] = []
        """Late messages that are served first, oldest first; `late_heads` keeps the list."""

    def add(self, run: Run) -> None:
        """Messages of the run became ready; their state bytes say in which lanes, with or without a group."""
        for chunk, start, stop in self._table.pieces(run):
            part = chunk.states[start:stop]
            base = (chunk.number << CHUNK_BITS) + start
            first = part[0]
            for value in (first,) if part.count(first) == len(part) else set(part):
                if value & states.STATE_BITS != states.READY:
                    continue
                lane = self._lane(value & states.PRIORITY_BITS)
                if not value & states.GROUPED:
                    lane.add_run((base, len(part)))
                    continue
                assert chunk.groups is not None
                index = part.find(value)
                while index >= 0:
                    lane.add_grouped(chunk.groups[start + index], base + index)
                    index = part.find(value, index + 1)

    def sent(self, run: Run, groups: array[int] | None) -> None:
        """New messages, ready or not; those that are not count here from when they are."""
        first, count = run
        chunk, start = self._table.chunks.get(first >> CHUNK_BITS), first & CHUNK_MASK
        if chunk is not None and chunk.states.count(states.READY, start, start + count) == count:
            self._lanes[0].add_run(
                run
            )  # the usual case: one chunk, all of them ready, no priorities, no groups
        else:
            self.add(run)

    def departed(self, departures: Mapping[int, int]) -> None:
        """Nothing to do: no message waits for the end of another."""

    def may_give(self) -> bool:
        """Ready messages can always be chosen: none waits for the end of another."""
        return True

    def choose(self, budget: Budget) -> Runs:
        """The next messages to deliver. If they are not leased after all, the next call may choose them again."""
        for run in self._chosen:
            self.add(run)
        self._chosen = (self._choose_ahead(budget) if self.ahead else []) or self._choose(budget)
        return self._chosen

    def _choose_ahead(self, budget: Budget) -> Runs:
        """The ready ones among the late messages, alone: until they are leased, the lanes would find them a second time."""
        table = self._table
        while self.ahead and not table.is_alive((self.ahead[0][1], self.ahead[0][2])):
            del self.ahead[0]
        runs: Runs = []
        for _, first, count in self.ahead:
            for ready in table.among(states.RUNS_IN[states.READY], [(first, count)]):
                for chunk, start, stop in table.pieces(ready):
                    taken = 0 if budget.spent() else budget.take(chunk.sizes[start:stop])
                    if taken:
                        runs.append(((chunk.number << CHUNK_BITS) + start, taken))
                    if taken < stop - start:
                        return runs
        return runs

    def leased(self, runs: Runs) -> None:
        """Messages are out: those that were chosen, or others where a record says so."""
        self._chosen = []

    def went_out(self, runs: Runs) -> None:
        """Nothing to do: no message waits for the end of another."""

    def _choose(self, budget: Budget) -> Runs:
        """Higher priorities first, each lane by its weight."""
        table = self._table
        if table.ready_by_priority[0] == table.counts[states.READY]:  # the usual case: no priorities
            return self._lanes[0].choose(budget)
        waiting = [priority for priority, count in enumerate(table.ready_by_priority) if count]
        if len(waiting) == 1:
            return self._lane(waiting[0]).choose(budget)
        runs: Runs = []
        quotas = self._quotas(waiting, budget.messages)
        for priority in sorted(waiting, reverse=True):
            quota = quotas[priority]
            if budget.spent() or not quota:
                self._carry[priority] += quota
                continue
            share = Budget(quota, budget.bytes)
            share.taken = budget.taken
            runs += self._lane(priority).choose(share)
            budget.messages -= quota - share.messages
            budget.bytes, budget.taken = share.bytes, share.taken
            self._carry[priority] += share.messages
        return runs

    def _quotas(self, waiting: list[int], messages: int) -> dict[int, int]:
        """The number of messages for each weight; a shortage or excess is balanced the next time."""
        ready = self._table.ready_by_priority
        weights = limits.PRIORITY_WEIGHTS
        total = sum(weights[p] for p in waiting)
        claims = {p: self._carry.get(p, 0.0) + messages * weights[p] / total for p in waiting}
        quotas = {p: min(ready[p], max(0, int(claim))) for p, claim in claims.items()}
        left = min(messages, sum(ready[p] for p in waiting)) - sum(quotas.values())
        while left > 0:  # some claim more than they have: the others share what they leave
            hungry = [p for p in waiting if quotas[p] < ready[p]]
            total = sum(weights[p] for p in hungry)
            more = {p: min(ready[p] - quotas[p], left * weights[p] // total) for p in hungry}
            if not any(more.values()):
                hungry.sort(key=lambda p: quotas[p] - claims[p])
                more = dict.fromkeys(hungry[:left], 1)
            for p, count in more.items():
                quotas[p] += count
                left -= count
        while left < 0:
            fullest = max((p for p in waiting if quotas[p]), key=lambda p: quotas[p] - claims[p])
            quotas[fullest] -= 1
            left += 1
        self._carry = {p: max(-1.0, min(1.0, claims[p] - quotas[p])) for p in waiting}
        return quotas

    def _lane(self, priority: int) -> Lane:
        lane = self._lanes.get(priority)
        if lane is None:
            lane = self._lanes[priority] = Lane(self._table, priority)
        return lane
