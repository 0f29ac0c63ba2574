"""What the checkers of logs and of groups of readers see, in histories made by hand."""

from __future__ import annotations

from penstock.model.batch import encode
from penstock.model.records import Sent, encode_record
from penstock.model.settings import QueueSettings
from penstock.simulation.checkers import log_prefix, log_retention, reader_groups
from penstock.simulation.history import History
from penstock.simulation.log_history import (
    BoundsSeen,
    GroupSeek,
    Joined,
    LoggedMessage,
    LogRead,
    OffsetCommit,
    ReaderIdentity,
)
from penstock.simulation.message_history import QueueLife, SentMessage
from penstock.simulation.observed_store import AppendedRecord


class _Log:
    """A log of five acknowledged messages, and what is done with it."""

    def __init__(self, **settings: int) -> None:
        kept = QueueSettings(consumption="log", **settings)  # type: ignore[arg-type]  # whichever a test is about
        self.life = QueueLife(1, "log", [kept], 0)
        self.history = History(lives={1: self.life}, ended_ms=10_000)
        for number in range(1, 6):
            body = b"%d|xxxxxxxx" % number
            message = SentMessage(number, self.life, body, b"", b"", 0, None, None, b"", 10, 10_000)
            message.fate, message.sequence, message.sent_ms, message.answered_ms = "stored", number, 10, 20
            self.history.messages[number] = message
        bodies = [message.body for message in self.history.messages.values()]
        record = encode_record(Sent(1, 5, 10, 0, 0, 0, 0))
        self.history.records[1] = [AppendedRecord(0, 1, 1, record, bytes(encode(bodies).data))]

    def read(self, start: int, numbers: list[int], end: int = 6, asked_ms: int = 100) -> None:
        messages = [
            LoggedMessage(start + place, self.history.messages[number], None, 10)
            for place, number in enumerate(numbers)
        ]
        self.history.log.reads.append(
            LogRead(
                self.life, start, 100, 0, messages, start + len(messages), end, asked_ms, asked_ms + 1, None
            )
        )

    def begins(self, offset: int, at_ms: int) -> None:
        self.history.log.bounds.append(BoundsSeen(self.life, offset, 6, None, 6, at_ms, at_ms))

    def problems(self) -> list[str]:
        return [violation.sentence for violation in log_prefix.check(self.history)]


def test_a_prefix_read_in_pieces_is_a_log() -> None:
    log = _Log()
    log.read(1, [1, 2])
    log.read(3, [3, 4, 5])
    log.read(6, [])
    assert log.problems() == []


def test_other_bytes_at_an_offset_are_noticed() -> None:
    log = _Log()
    log.read(1, [1, 3])
    assert "2 of the log 'log' is message 2 and was read as message 3" in log.problems()


def test_what_a_crash_took_away_should_not_have_been_seen() -> None:
    log = _Log()
    log.read(1, [1, 2])
    log.history.records[1] = []
    assert log.problems() == ["1 of the log 'log' was read as message 1, which was lost"]


def test_an_empty_read_before_the_end_is_noticed() -> None:
    log = _Log()
    log.read(3, [])
    assert len(log.problems()) == 1


def test_a_read_may_go_on_behind_numbers_that_nobody_has_and_pass_over_no_message() -> None:
    """As in a cluster, after a failover that may have lost messages."""
    log = _Log()
    life, history = log.life, log.history
    late = SentMessage(6, life, b"6|xxxxxxxx", b"", b"", 0, None, None, b"", 10, 10_000)
    late.fate, late.sequence, late.sent_ms, late.answered_ms = "stored", 1_000, 10, 20
    history.messages[6] = late
    record = encode_record(Sent(1_000, 1, 10, 0, 0, 0, 0))
    history.records[1].append(AppendedRecord(0, 1, 2, record, bytes(encode([late.body]).data)))
    behind = [LoggedMessage(1_000, late, None, 10)]
    history.log.reads.append(LogRead(life, 6, 100, 0, behind, 1_001, 1_001, 100, 101, None))
    history.log.reads.append(LogRead(life, 30, 100, 0, behind, 1_001, 1_001, 100, 101, None))
    history.log.reads.append(LogRead(life, 30, 100, 0, [], 1_000, 1_001, 100, 101, None))
    assert log.problems() == ["a read of queue 'log' from 30 gave nothing, and the end is 1001"]
    history.log.reads[-1] = LogRead(life, 4, 100, 0, behind, 1_001, 1_001, 100, 101, None)
    assert log.problems() == ["a read of queue 'log' from 4 went on at 1000 and passed over [4, 5]"]


def test_an_end_that_goes_back_is_noticed() -> None:
    log = _Log()
    log.read(1, [1, 2], end=4)
    assert log.problems() == ["the log 'log' ended at 6, and afterwards at 4"]


def test_what_is_cut_must_be_old_enough() -> None:
    for at_ms, problems in ((5_300, 0), (4_900, 1)):
        log = _Log(retention_ms=5_000)
        log.begins(3, at_ms)
        assert len(list(log_retention.check(log.history))) == problems


def test_what_is_cut_must_be_beyond_the_bytes_that_are_kept() -> None:
    for retain_bytes, problems in ((30, 0), (40, 1), (39, 0)):  # 2 is gone, and there are 40 bytes from it on
        log = _Log(retain_bytes=retain_bytes)
        log.begins(3, 100)
        assert len(list(log_retention.check(log.history))) == problems


def test_what_nothing_promises_must_go_in_time() -> None:
    log = _Log(retention_ms=5_000)
    log.begins(1, 9_000)
    assert len(list(log_retention.check(log.history))) == 1


def _group(*rows: Joined | OffsetCommit | GroupSeek) -> list[str]:
    log = _Log()
    for row in rows:
        row_life = row._replace(life=log.life) if isinstance(row, Joined) else row
        match row_life:
            case Joined():
                log.history.log.joined.append(row_life)
            case OffsetCommit():
                row_life.life = log.life
                log.history.log.commits.append(row_life)
            case GroupSeek():
                row_life.life = log.life
                log.history.log.seeks.append(row_life)
    return [violation.sentence for violation in reader_groups.check(log.history)]


_LIFE = QueueLife(1, "log", [QueueSettings(consumption="log")], 0)


def _joined(member: str, generation: int, offset: int | None, at_ms: int) -> Joined:
    return Joined(_LIFE, ReaderIdentity("g", member, generation), offset, at_ms, at_ms + 1)


def _committed(member: str, generation: int, offset: int, at_ms: int) -> OffsetCommit:
    return OffsetCommit(_LIFE, ReaderIdentity("g", member, generation), offset, at_ms, at_ms + 1, "done")


def test_a_group_that_hands_over_is_well() -> None:
    assert (
        _group(
            _joined("a", 2, 1, 10),
            _committed("a", 2, 4, 20),
            _joined("b", 3, None, 30),
            _joined("b", 4, 4, 40),
            _committed("b", 4, 5, 50),
        )
        == []
    )


def test_two_owners_of_one_generation_are_noticed() -> None:
    assert len(_group(_joined("a", 2, 1, 10), _joined("b", 2, 1, 20))) == 1


def test_a_commit_of_an_older_generation_is_noticed() -> None:
    found = _group(_joined("a", 2, 1, 10), _joined("b", 3, 1, 20), _committed("a", 2, 4, 30))
    assert len(found) == 1


def test_an_offset_that_goes_back_is_noticed_unless_somebody_sought() -> None:
    back = (_joined("a", 2, 1, 10), _committed("a", 2, 4, 20), _joined("b", 3, 2, 60))
    assert len(_group(*back)) == 1
    assert _group(*back, GroupSeek(_LIFE, "g", 30, 31, 2, "done")) == []


def test_an_offset_that_nobody_committed_is_noticed() -> None:
    assert len(_group(_joined("a", 2, 1, 10), _joined("a", 3, 5, 60))) == 1
