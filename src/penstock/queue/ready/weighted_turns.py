"""Which queue is served next when several queues are received from together: by weight, without starving any.

Every message that a queue delivers moves the queue ahead by a step; the step is smaller the greater its weight. The queue
that is least far ahead is next. So queues with messages deliver in proportion to their weights, and the queue that waits
longest is always next. A queue without messages is not waited for, and saves nothing up.

Invariants: all positions are 0 or more. While two queues always have messages, the numbers of messages that they have
delivered, each divided by its weight, differ by at most one message of each.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace

from penstock.model import limits

STEP = 1 << 40
"""How far one message moves a queue of weight 1. So fine that rounding a step by a weight plays no role."""

_ONE_BY_ONE = 16
"""So few messages are planned one after the other."""

WeightedSet = tuple[tuple[int, int], ...]
"""(queue id, weight), by queue id."""


class WeightedTurns:
    """How far each queue of a set is ahead of the last one."""

    __slots__ = ("_ahead", "_steps", "_weights")

    def __init__(self, weights: Sequence[int]) -> None:
        self._weights = list(weights)
        self._steps = [STEP // weight for weight in weights]
        self._ahead = [0] * len(weights)

    def plan(self, available: Sequence[int], messages: int) -> list[int]:
        """How many of the messages each queue should give, of those it has available; changes nothing."""
        if sum(available) <= messages:
            return list(available)
        planned = [0] * len(available)
        ahead = list(self._ahead)
        having = [index for index, count in enumerate(available) if count > 0]
        left = messages
        if messages > _ONE_BY_ONE + 2 * len(having):
            left = self._plan_many(having, available, ahead, planned, messages)
        steps = self._steps
        turns = [(ahead[i], steps[i], i) for i in having if planned[i] < available[i]]
        heapify(turns)
        for _ in range(left):
            place, step, index = turns[0]
            planned[index] += 1
            if planned[index] < available[index]:
                heapreplace(turns, (place + step, step, index))
            else:
                heappop(turns)
        return planned

    def _plan_many(
        self,
        having: list[int],
        available: Sequence[int],
        ahead: list[int],
        planned: list[int],
        left: int,
    ) -> int:
        """Plans what is surely in turn, a level at a time rather than a message at a time; returns what is left."""
        steps, weights = self._steps, self._weights
        while having and left > _ONE_BY_ONE + 2 * len(having):
            having.sort(key=ahead.__getitem__)
            # All messages that are due below a level are in turn if they are not too many: up to which level, and
            # which queues reach it? One more message than the proportion may be due in each.
            base, weight, level = ahead[having[0]], 0, 0
            reach = 0
            for count, index in enumerate(having, 1):
                weight += weights[index]
                further = base + (left - count - 1) * STEP // weight
                if further <= ahead[index]:
                    level = min(level, ahead[index])
                    break
                level, reach = further, count
            for index in having[:reach]:
                due = min(available[index] - planned[index], -(-(level - ahead[index]) // steps[index]))
                if due > 0:
                    planned[index] += due
                    ahead[index] += due * steps[index]
                    left -= due
            having = [index for index in having if planned[index] < available[index]]
        return left

    def turn_order(self) -> list[int]:
        """The queues in the order of their turns: if room runs out, the queues that had least come first."""
        return sorted(range(len(self._ahead)), key=lambda index: (self._ahead[index], self._steps[index]))

    def served(self, given: Sequence[int], more: Sequence[bool]) -> None:
        """So many messages were given by each; `more` says which of them have messages left."""
        ahead = [
            place + count * step for place, count, step in zip(self._ahead, given, self._steps, strict=True)
        ]
        waiting = [place for place, left in zip(ahead, more, strict=True) if left]
        behind = min(waiting) if waiting else max(ahead)
        self._ahead = [max(0, place - behind) for place in ahead]


class TurnsInUse:
    """The turns of every set of queues that is received from, shared by all receivers; the longest unused sets are forgotten."""

    def __init__(self, most: int | None = None) -> None:
        self._most = limits.RECEIVE_SETS_REMEMBERED if most is None else most
        self._sets: OrderedDict[WeightedSet, WeightedTurns] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sets)

    def of(self, queues: WeightedSet) -> WeightedTurns:
        """The shares of the set, new ones if it was not used lately."""
        shares = self._sets.get(queues)
        if shares is None:
            shares = self._sets[queues] = WeightedTurns([weight for _, weight in queues])
            if len(self._sets) > self._most:
                self._sets.popitem(last=False)
        else:
            self._sets.move_to_end(queues)
        return shares
