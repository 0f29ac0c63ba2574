"""Who reads which partition: a pure function of the members and of what each had before.

Balanced: no member has two partitions more than another. Sticky: among all balanced answers it is one in which the
fewest partitions change hands.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence


def share_out(
    partitions: int, members: Sequence[str], held: Mapping[str, Collection[int]]
) -> dict[str, list[int]]:
    """The partitions [0, partitions) among the members, who stand in the order in which they joined."""
    if not members:
        return {}
    free = set(range(partitions))
    kept: dict[str, list[int]] = {}
    for member in members:
        kept[member] = sorted(free.intersection(held.get(member, ())))
        free.difference_update(kept[member])
    fewest, larger_shares = divmod(partitions, len(members))
    # The larger shares go to who held most: everybody else would have to give up one more.
    by_holding = sorted(members, key=lambda member: -len(kept[member]))
    quota = {member: fewest + (place < larger_shares) for place, member in enumerate(by_holding)}
    for member in members:
        free.update(kept[member][quota[member] :])
        del kept[member][quota[member] :]
    waiting = iter(sorted(free))
    for member in members:
        kept[member] = sorted(
            [*kept[member], *(next(waiting) for _ in range(quota[member] - len(kept[member])))]
        )
    return kept
