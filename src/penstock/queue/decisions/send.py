"""Decides a send: whether it is a repeat, which messages are duplicates, and whether there is room for them."""

from __future__ import annotations

from typing import Literal

from penstock.model import limits
from penstock.model.batch import DEDUPLICATION, DELAYS, PRIORITIES, STAMPS, UNSET, Batch
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.records import DuplicatesSent, Sent
from penstock.model.runs import runs_in_order
from penstock.ordering.clock_interval import ClockInterval
from penstock.queue.decisions.consumption import check_fits_log
from penstock.queue.decisions.decision import Admitted, Decision, PendingRecord
from penstock.queue.decisions.left_out import LeftOut, check_left_out, elsewhere, with_left_out
from penstock.queue.decisions.room import make_room
from penstock.queue.decisions.sent_again import check_count, check_same
from penstock.queue.decisions.stamping import NO_STAMPS, NOT_STAMPED, ProducerStamps, late_move, stamp
from penstock.queue.partition import Partition
from penstock.queue.state.id_claims import refuse_barred
from penstock.queue.state.stored_batch import StoredBatch

BY_TIME = frozenset({"causal", "clock"})


def admit(
    partition: Partition,
    batch: Batch,
    producer: int,
    number: int,
    now_ms: int,
    *,
    may_move: bool = True,
    said: ProducerStamps = NOT_STAMPED,
    now: ClockInterval | None = None,
    left_out: LeftOut = (),
) -> Decision[Admitted]:
    """Accepts a batch, or raises with the reason.

    `may_move`: the dead-letter queue exists. `said`: the stamps of the producer. `now`: the clock interval, for a queue
    ordered by the clock. `left_out`: see `Send`.
    """
    if left_out:
        check_left_out(batch.count, left_out)
    sent_ms = max(now_ms, partition.last_sent_ms)
    stored = _stored(partition, producer, number, sent_ms) if producer else None
    if isinstance(stored, StoredBatch):
        check_same(partition, stored, batch, left_out, producer, number, sent_ms)
        return Decision((), _answer(stored))
    _check(partition, batch)
    whole = batch
    duplicates = _duplicates(partition, batch, now_ms) if batch.columns & DEDUPLICATION else []
    if duplicates:
        known = {index for index, _ in duplicates}
        fresh = [index for index in range(batch.count) if index not in known]
        if not fresh:
            return _nothing_new(producer, number, with_left_out(duplicates, batch, left_out), sent_ms)
        batch = batch.select(fresh)
    if stored == "nothing":
        raise _forgotten(producer, number)
    settings = partition.settings
    if batch.columns & STAMPS and settings.server_stamped:
        batch = batch.without_stamps()  # else readers would take them for the stamps that the queue goes by
    stamps = NO_STAMPS
    if settings.ordering in BY_TIME or batch.columns & STAMPS or said.time_us:
        skipped = fresh[0] if duplicates else 0
        stamps = stamp(partition, batch, said, skipped, now_ms, now)
    room: list[PendingRecord] = []
    if stamps.lateness is None or stamps.late < batch.count:  # late ones do not stay
        room = make_room(partition, batch, now_ms, may_move=may_move)
    first = partition.table.next
    # A duplicate of a message in the same batch was given as an index; now its number is known.
    duplicates = [
        (index, sequence if sequence > 0 else first - sequence - 1) for index, sequence in duplicates
    ]
    if left_out:
        duplicates = with_left_out(duplicates, whole, left_out)
    record = Sent(
        first=first,
        count=batch.count,
        sent_ms=sent_ms,
        delay_ms=settings.delay_ms,
        ttl_ms=settings.default_ttl_ms or 0,
        producer=producer,
        number=number,
        duplicates=duplicates or None,
        stamp_us=stamps.stamp_us,
        process=stamps.process,
        counter=stamps.counter,
        late=stamps.late,
    )
    by_server_us = stamps.stamp_us if stamps.by_server else 0
    if duplicates:
        answer = _answer(StoredBatch(first, batch.count, sent_ms, duplicates, by_server_us))
    else:
        answer = Admitted([(first, batch.count)], [], sent_ms, by_server_us)
    if stamps.lateness is not None:
        return Decision(
            (PendingRecord(record, batch), *room, late_move(partition, record, batch, stamps)), answer
        )
    # The records that make room follow the batch: if the journal has no room for the batch, no message is dropped for it.
    return Decision((PendingRecord(record, batch), *room), answer)


def remember(
    partition: Partition, producer: int, number: int, now_ms: int, left_out: LeftOut
) -> Decision[Admitted]:
    """Remembers a batch of which everything was left out, see `_nothing_new`; or answers with what was stored under its number."""
    check_left_out(0, left_out)
    sent_ms = max(now_ms, partition.last_sent_ms)
    stored = _stored(partition, producer, number, sent_ms) if producer else None
    if isinstance(stored, StoredBatch):
        check_count(stored, len(left_out), producer, number)
        return Decision((), _answer(stored))
    return _nothing_new(producer, number, elsewhere(left_out), sent_ms)


def _nothing_new(
    producer: int, number: int, duplicates: list[tuple[int, int]], sent_ms: int
) -> Decision[Admitted]:
    """Records a batch whose messages were all sent before.

    Otherwise, if it comes again after the ids are forgotten, it would be stored after later batches of its producer.
    """
    originals = runs_in_order([sequence for _, sequence in duplicates])
    answer = Admitted(originals, [index for index, _ in duplicates], sent_ms)
    if not producer:
        return Decision((), answer)
    return Decision((PendingRecord(DuplicatesSent(producer, number, originals, sent_ms)),), answer)


def _stored(
    partition: Partition, producer: int, number: int, sent_ms: int
) -> StoredBatch | Literal["nothing"] | None:
    """The batch if it is already stored; raises if that cannot be known, or the batch cannot be remembered.

    `nothing`: every message of it had been sent before. The deduplication ids show this as long as they are remembered.
    """
    producers = partition.producers
    found = producers.find(producer, number)
    if found == "new":
        if len(producers) >= limits.PRODUCERS_PER_QUEUE and not producers.has_room(producer, sent_ms):
            raise PenstockError(
                ErrorCode.OVERLOADED,
                f"queue {partition.name!r} has {len(producers)} producers that sent lately, the maximum; try again later, "
                "or send with fewer producers",
            )
        if not (0 < producer < 2**64 and 0 <= number < 2**63):
            raise PenstockError(
                ErrorCode.BAD_REQUEST,
                f"producer {producer}, batch {number}: a producer is a number below 2^64, a batch one below 2^63",
            )
        return None
    if found == "unknown":
        raise _forgotten(producer, number)
    return found


def _forgotten(producer: int, number: int) -> PenstockError:
    return PenstockError(
        ErrorCode.BAD_REQUEST,
        f"batch {number} of producer {producer} is older than the remembered ones "
        f"({limits.PRODUCER_BATCHES_REMEMBERED} at most, fewer where there are many producers), so the server cannot "
        "tell whether it was stored",
    )


def _check(partition: Partition, batch: Batch) -> None:
    settings = partition.settings
    if batch.columns:
        batch.check()
        check_fits_log(partition, batch)
        if batch.columns & PRIORITIES and settings.strict and any(batch.priorities()):
            raise PenstockError(
                ErrorCode.UNSUPPORTED,
                f"queue {partition.name!r} is {settings.ordering}: priorities are not possible",
            )
        delays = batch.integers(DELAYS)
        if delays is not None and settings.sorted and any(delay not in (0, UNSET) for delay in delays):
            raise PenstockError(
                ErrorCode.UNSUPPORTED,
                f"queue {partition.name!r} is ordered by its producers' stamps: delays are not possible",
            )
        longest = max((delay for delay in delays if delay != UNSET), default=0) if delays is not None else 0
        if longest > settings.retention_ms:
            raise PenstockError(
                ErrorCode.BAD_REQUEST,
                f"a delay of {longest} ms is longer than the retention of queue "
                f"{partition.name!r} (retention_ms {settings.retention_ms})",
            )
    if batch.message_bytes() <= settings.max_message_bytes:
        return  # all of them together are no larger than one may be
    largest = max(batch.message_sizes())
    if largest > settings.max_message_bytes:
        raise PenstockError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"a message of {largest} bytes is over the {settings.max_message_bytes} that queue "
            f"{partition.name!r} accepts (max_message_bytes)",
        )


def _duplicates(partition: Partition, batch: Batch, now_ms: int) -> list[tuple[int, int]]:
    """(index, original) of messages already sent; an original in this batch is -(its place among the fresh) - 1."""
    names = batch.names(DEDUPLICATION) or ()
    if not partition.window.rows.has_any(names) and len(set(names)) == len(names):
        return []  # the usual case, in a tenth of the time
    found: list[tuple[int, int]] = []
    here: dict[bytes, int] = {}
    fresh = 0
    for index, identifier in enumerate(names):
        original = partition.window.original(identifier, now_ms) if identifier else None
        if original is not None:
            if original < 0:
                raise refuse_barred(partition.name)
            found.append((index, original))
        elif identifier in here:
            found.append((index, -here[identifier] - 1))
        else:
            if identifier:
                here[identifier] = fresh
            fresh += 1
    return found


def _answer(stored: StoredBatch) -> Admitted:
    """The sequence numbers of a batch in its order, duplicates among them."""
    if not stored.duplicates:
        return Admitted([(stored.first, stored.count)], [], stored.sent_ms, stored.stamp_us)
    originals = dict(stored.duplicates)
    fresh = iter(range(stored.first, stored.first + stored.count))
    total = stored.count + len(originals)
    sequences = [originals[index] if index in originals else next(fresh) for index in range(total)]
    return Admitted(runs_in_order(sequences), sorted(originals), stored.sent_ms, stored.stamp_us)
