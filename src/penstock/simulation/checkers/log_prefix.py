"""The log: a reader sees exactly the committed prefix, never skips, and never sees an offset twice with other bytes."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.model.batch import Batch
from penstock.model.records import Sent, decode_record
from penstock.simulation.history import History
from penstock.simulation.log_history import BoundsSeen, LogRead
from penstock.simulation.message_history import QueueLife, SentMessage
from penstock.simulation.violation import Violation

NAME = "log"


def check(history: History) -> Iterator[Violation]:
    """Gaps, wrong bytes, ends that went back, and what was acknowledged and is not there."""
    reads: dict[int, list[LogRead]] = {}
    bounds: dict[int, list[BoundsSeen]] = {}
    stored: dict[int, list[SentMessage]] = {}
    for read in history.log.reads:
        reads.setdefault(read.life.queue_id, []).append(read)
    for seen in history.log.bounds:
        bounds.setdefault(seen.life.queue_id, []).append(seen)
    for message in history.messages.values():
        if message.fate == "stored" and message.life.settings[0].has_log:
            stored.setdefault(message.life.queue_id, []).append(message)
    for life in history.lives.values():
        if life.damaged_ms is not None or not life.settings[0].has_log:
            continue
        mine, messages = reads.get(life.queue_id, []), stored.get(life.queue_id, [])
        kept = _kept(life, history)
        readable = [offset for offset in kept if (life.queue_id, offset) not in history.returned]
        for read in mine:
            yield from _without_gaps(read, readable)
        yield from _same_bytes(life, mine, messages)
        yield from _committed(life, mine, kept)
        yield from _ends(life, mine, bounds.get(life.queue_id, []), messages)
        yield from _purged(life, mine)
        yield from _times(life, bounds.get(life.queue_id, []), messages)


def _without_gaps(read: LogRead, kept: list[int]) -> Iterator[Violation]:
    """From the start of the request to `next`, one after the other; empty only at the end.

    In a cluster numbers may be left out before the first one: then nothing may be there that was passed over.
    A wait that is over in the same turn in which something arrives may end with nothing all the same.
    """
    where = f"a read of queue {read.life.name!r} from {read.start}"
    offsets = [message.offset for message in read.messages]
    first = offsets[0] if offsets else read.next
    if first < read.start or offsets != list(range(first, read.next)):
        yield Violation(NAME, read.answered_ms, f"{where} to {read.next} gave {offsets}")
    passed = sorted(offset for offset in kept if read.start <= offset < first) if first > read.start else []
    if passed:
        yield Violation(NAME, read.answered_ms, f"{where} went on at {first} and passed over {passed}")
    if read.next > read.end:
        yield Violation(NAME, read.answered_ms, f"{where} went to {read.next}, past the end {read.end}")
    if not offsets and read.next < read.end and not read.waited_ms:
        yield Violation(NAME, read.answered_ms, f"{where} gave nothing, and the end is {read.end}")
    if len(offsets) > read.most:
        yield Violation(
            NAME, read.answered_ms, f"{where} gave {len(offsets)} messages instead of {read.most}"
        )


def _same_bytes(life: QueueLife, reads: list[LogRead], stored: list[SentMessage]) -> Iterator[Violation]:
    known = {message.sequence: message.number for message in stored}
    places = {number: offset for offset, number in known.items()}
    for read in reads:
        for offset, message, problem, _ in read.messages:
            where = f"{offset} of the log {life.name!r}"
            if message is None or problem is not None:
                yield Violation(NAME, read.answered_ms, f"{where} was read with {problem}")
                continue
            if message.fate == "refused" or message.life is not life:
                yield Violation(
                    NAME,
                    read.answered_ms,
                    f"{where} is message {message.number}, which was never stored there",
                )
            if known.setdefault(offset, message.number) != message.number:
                yield Violation(
                    NAME,
                    read.answered_ms,
                    f"{where} is message {known[offset]} and was read as message {message.number}",
                )
            elif places.setdefault(message.number, offset) != offset:
                yield Violation(
                    NAME,
                    read.answered_ms,
                    f"{where} is message {message.number}, which is {places[message.number]} too",
                )


def _kept(life: QueueLife, history: History) -> dict[int, bytes]:
    """What no crash removed, by offset; including what was cut or purged since."""
    kept: dict[int, bytes] = {}
    for entry in history.records.get(life.queue_id, []):
        record = decode_record(entry.head)
        if isinstance(record, Sent):
            kept.update(enumerate(Batch(entry.payload).bodies(), record.first))
    return kept


def _committed(life: QueueLife, reads: list[LogRead], kept: dict[int, bytes]) -> Iterator[Violation]:
    """Everything that was read survived: no reader saw it before it was on disk."""
    for read in reads:
        for offset, message, _, _ in read.messages:
            if message is not None and kept.get(offset) != message.body:
                yield Violation(
                    NAME,
                    read.answered_ms,
                    f"{offset} of the log {life.name!r} was read as message {message.number}, which was lost",
                )
                break


def _ends(
    life: QueueLife, reads: list[LogRead], bounds: list[BoundsSeen], stored: list[SentMessage]
) -> Iterator[Violation]:
    """The end of the log never goes back, and is behind everything that was acknowledged."""
    known = [(read.answered_ms, max(read.next, read.end)) for read in reads]
    known += [(seen.answered_ms, seen.end) for seen in bounds]
    known += [(message.answered_ms, message.sequence + 1) for message in stored]
    known.sort()
    looks = [(read.asked_ms, read.answered_ms, read.end) for read in reads]
    looks += [(seen.asked_ms, seen.answered_ms, seen.end) for seen in bounds]
    place = highest = 0
    for asked_ms, answered_ms, end in sorted(looks):
        while place < len(known) and known[place][0] < asked_ms:
            highest = max(highest, known[place][1])
            place += 1
        if end < highest:
            yield Violation(
                NAME, answered_ms, f"the log {life.name!r} ended at {highest}, and afterwards at {end}"
            )


def _purged(life: QueueLife, reads: list[LogRead]) -> Iterator[Violation]:
    for purge in life.purges:
        if purge.answered_ms is None or purge.undone:  # a log has one partition
            continue
        for read in reads:
            if read.asked_ms <= purge.answered_ms:
                continue
            for offset, message, _, _ in read.messages:
                if message is not None and message.fate == "stored" and message.answered_ms < purge.asked_ms:
                    yield Violation(
                        NAME,
                        read.answered_ms,
                        f"{offset} of the log {life.name!r} was read after it was purged",
                    )
                    break


def _times(life: QueueLife, bounds: list[BoundsSeen], stored: list[SentMessage]) -> Iterator[Violation]:
    """The result for a time is the first message sent then or later."""
    sent_ms = {message.sequence: message.sent_ms for message in stored}
    for seen in bounds:
        if seen.time_ms is None:
            continue
        if not seen.begin <= seen.found <= seen.end:
            yield Violation(
                NAME, seen.answered_ms, f"{seen.found} was found outside of the log {life.name!r}"
            )
        for offset, at_ms in sent_ms.items():
            if seen.begin <= offset < seen.end and (at_ms >= seen.time_ms) != (offset >= seen.found):
                yield Violation(
                    NAME,
                    seen.answered_ms,
                    f"{seen.found} of the log {life.name!r} was found for {seen.time_ms}, and {offset} was sent at "
                    f"{at_ms}",
                )
                break
