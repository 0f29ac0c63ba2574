"""Messages of a batch that are left out because another partition has them. They keep their positions in the batch.

A front end finds this out before it sends (ADR 20). When the batch is sent again, the answer may differ, because an id was
forgotten or claimed elsewhere meanwhile. So the partition remembers which messages were left out when it stored the batch,
and gives the original answer again.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.model import limits
from penstock.model.batch import Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.partition_numbers import ELSEWHERE

LeftOut = Sequence[tuple[int, int]]
"""(place, number as clients see it), by place; see `Send`."""


def check_left_out(count: int, left_out: LeftOut) -> None:
    """Raises where what was left out cannot be; `count`: how many messages there are beside it."""
    places = [place for place, _ in left_out]
    total = count + len(places)
    if (
        total > limits.BATCH_MESSAGES
        or places != sorted(set(places))
        or not 0 <= places[0] <= places[-1] < total
        or any(not 0 <= number < ELSEWHERE for _, number in left_out)
    ):
        raise PenstockError(ErrorCode.BAD_REQUEST, "the list of left-out messages does not match the batch")


def with_left_out(
    duplicates: list[tuple[int, int]], batch: Batch, left_out: LeftOut
) -> list[tuple[int, int]]:
    """The duplicates of a batch by their places in the whole, those that were left out among them."""
    if not left_out:
        return duplicates
    places = places_of(batch, left_out)
    return sorted([*((places[index], sequence) for index, sequence in duplicates), *elsewhere(left_out)])


def elsewhere(left_out: LeftOut) -> list[tuple[int, int]]:
    """The messages that were left out, in the form in which a partition remembers them."""
    return [(place, number | ELSEWHERE) for place, number in left_out]


def places_of(batch: Batch, left_out: LeftOut) -> Sequence[int]:
    """The places of the messages of a batch in the whole."""
    if not left_out:
        return range(batch.count)
    absent = {place for place, _ in left_out}
    return [place for place in range(batch.count + len(absent)) if place not in absent]
