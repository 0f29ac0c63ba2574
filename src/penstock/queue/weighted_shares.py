"""Who is served next when several queues are received from together: each by its weight, none left out.

Every message that a queue gives moves the queue ahead by a step, the smaller the greater its weight, and the
queue that is least far ahead is next. So what queues with messages give follows their weights, and the one that
waits longest is always the next in turn. A queue without messages is not waited for and saves nothing up.

Invariants: no queue is behind (all places are 0 or more); while two queues always have messages, what they have
given, each divided by its weight, differs by no more than one message of each.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from penstock.model import limits

STEP = 1 << 40
"""How far one message moves a queue of weight 1. So fine that rounding a step by a weight plays no role."""

WeightedSet = tuple[tuple[int, int], ...]
"""(queue id, weight), by queue id."""


class WeightedShares:
    """How far each queue of a set is ahead of the one that is least far."""

    __slots__ = ("_ahead", "_steps")

    def __init__(self, weights: Sequence[int]) -> None:
        self._steps = [STEP // weight for weight in weights]
        self._ahead = [0] * len(weights)

    def plan(self, available: Sequence[int], messages: int) -> list[int]:
        """How many of the messages each queue should give, of those it has available; changes nothing."""
        having = [index for index, count in enumerate(available) if count > 0]
        if len(having) < 2 or sum(available) <= messages:
            left = messages
            planned = [0] * len(available)
            for index in having:
                planned[index] = min(left, available[index])
                left -= planned[index]
            return planned
        # Message k of a queue is due at ahead + k steps. All that are due up to a level are given: the highest
        # level that is not too much is found by halving, which costs the same for one message and for thousands.
        low, high = -1, max(self._ahead[i] for i in having) + messages * max(self._steps[i] for i in having)
        while high - low > 1:
            level = (low + high) // 2
            if sum(self._due(i, available[i], level) for i in having) <= messages:
                low = level
            else:
                high = level
        planned = [self._due(i, count, low) if count > 0 else 0 for i, count in enumerate(available)]
        left = messages - sum(planned)
        for index in sorted(
            having, key=self._steps.__getitem__
        ):  # those due at the next level: the weightiest first
            if left and self._due(index, available[index], high) > planned[index]:
                planned[index] += 1
                left -= 1
        return planned

    def _due(self, index: int, available: int, level: int) -> int:
        ahead = self._ahead[index]
        return 0 if level < ahead else min(available, (level - ahead) // self._steps[index] + 1)

    def turn_order(self) -> list[int]:
        """The queues in the order of their turns: where room runs out, those who had least come first."""
        return sorted(range(len(self._ahead)), key=lambda index: (self._ahead[index], self._steps[index]))

    def served(self, given: Sequence[int], more: Sequence[bool]) -> None:
        """So many messages were given by each; `more` says which of them have messages left."""
        ahead = [
            place + count * step for place, count, step in zip(self._ahead, given, self._steps, strict=True)
        ]
        waiting = [place for place, left in zip(ahead, more, strict=True) if left]
        behind = min(waiting) if waiting else max(ahead)
        self._ahead = [max(0, place - behind) for place in ahead]


class SharesInUse:
    """The shares of every set of queues that is received from, whoever receives; the sets unused longest are forgotten."""

    def __init__(self, most: int = limits.RECEIVE_SETS_REMEMBERED) -> None:
        self._most = most
        self._sets: OrderedDict[WeightedSet, WeightedShares] = OrderedDict()

    def __len__(self) -> int:
        return len(self._sets)

    def of(self, queues: WeightedSet) -> WeightedShares:
        """The shares of the set, new ones if it was not used lately."""
        shares = self._sets.get(queues)
        if shares is None:
            shares = self._sets[queues] = WeightedShares([weight for _, weight in queues])
            if len(self._sets) > self._most:
                self._sets.popitem(last=False)
        else:
            self._sets.move_to_end(queues)
        return shares
