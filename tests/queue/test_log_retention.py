"""A retained log is cut by age and by bytes, and what the settings promise stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as some

from penstock.model.batch import encode
from penstock.model.records import LogCut
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import upkeep
from penstock.queue.log import retention as log_retention
from penstock.queue.log.index import LogIndex
from tests.queue.rig import START_MS, Rig


def rig_of(**settings: object) -> Rig:
    return Rig(QueueSettings(consumption="log", **settings))  # type: ignore[arg-type]  # as the caller names them


def log_of(rig: Rig) -> LogIndex:
    assert rig.partition.log is not None
    return rig.partition.log


def cut(rig: Rig, now_ms: int) -> list[str]:
    written = log_retention.cut(rig.partition, now_ms)
    rig.write(written)
    return [record.reason for record, _ in written if isinstance(record, LogCut)]


def test_a_batch_goes_when_it_is_old_enough_and_not_before() -> None:
    rig = rig_of(retention_ms=1_000)
    rig.send_plain(3, START_MS)
    rig.send_plain(2, START_MS + 500)
    assert cut(rig, START_MS + 999) == []
    assert cut(rig, START_MS + 1_000) == ["age"]
    assert (log_of(rig).begin, log_of(rig).messages) == (4, 2)
    due_ms = upkeep.upkeep_due(rig.partition)
    assert due_ms is not None
    assert START_MS + 1_500 <= due_ms <= START_MS + 1_600
    assert cut(rig, START_MS + 1_500) == ["age"]
    assert (log_of(rig).begin, log_of(rig).messages) == (6, 0)
    assert upkeep.upkeep_due(rig.partition) is None


def test_a_batch_goes_when_all_of_it_is_beyond_the_bytes() -> None:
    rig = rig_of(retain_bytes=50)
    rig.send_plain(3, size=10)
    rig.send_plain(3, size=10)
    assert upkeep.upkeep_due(rig.partition) != START_MS, "one byte of the first batch is among the newest 50"
    assert cut(rig, START_MS) == []
    rig.send_plain(2, size=10)
    assert upkeep.upkeep_due(rig.partition) == START_MS
    assert cut(rig, START_MS) == ["bytes"]
    assert (log_of(rig).begin, log_of(rig).bytes) == (4, 50)


def test_a_shorter_retention_counts_at_once() -> None:
    rig = rig_of(retention_ms=100_000)
    rig.send_plain(3)
    rig.partition.settings = QueueSettings(consumption="log", retention_ms=1_000)
    assert cut(rig, START_MS + 2_000) == ["age"]


def test_in_both_the_log_and_the_queue_are_cut_by_themselves() -> None:
    rig = Rig(QueueSettings(consumption="both", retain_bytes=10))
    rig.send_plain(3)
    rig.send_plain(3)
    assert cut(rig, START_MS) == ["bytes"]
    assert log_of(rig).begin == 4
    assert rig.partition.table.messages == 6, "what is to be received stays"


@given(
    some.lists(some.tuples(some.integers(1, 5), some.integers(0, 40), some.integers(0, 400)), max_size=30),
    some.integers(1, 300),
    some.integers(0, 3_000),
)
def test_it_never_cuts_what_the_settings_promise_and_keeps_no_whole_batch_more(
    sends: list[tuple[int, int, int]], retain_bytes: int, later_ms: int
) -> None:
    rig = rig_of(retention_ms=1_000, retain_bytes=retain_bytes)
    messages: list[tuple[int, int, int]] = []  # batch, bytes, time
    now_ms = START_MS
    for batch, (count, size, pause_ms) in enumerate(sends):
        now_ms += pause_ms
        rig.send(encode([bytes(size)] * count), now_ms)
        messages += [(batch, size, now_ms)] * count
        if batch % 3 == 0:
            cut(rig, now_ms)
    now_ms += later_ms
    cut(rig, now_ms)
    newer = 0
    promised: set[int] = set()
    for place in range(len(messages) - 1, -1, -1):
        _, size, sent_ms = messages[place]
        if sent_ms + 1_000 > now_ms and newer < retain_bytes:
            promised.add(place + 1)
        newer += size
    kept = set(range(log_of(rig).begin, len(messages) + 1))
    assert promised <= kept
    # Messages without bytes may keep a batch: nobody can tell on which side of the border they are.
    if all(size for _, size, _ in messages):
        assert {messages[sequence - 1][0] for sequence in kept} == {
            messages[sequence - 1][0] for sequence in promised
        }
