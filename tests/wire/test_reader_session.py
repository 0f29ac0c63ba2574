"""What a node takes of readers with tickets, over bytes; `tests/runtime/cluster/readers` reads over sockets."""

from __future__ import annotations

import pytest

from penstock.wire.frames import encode_frame
from penstock.wire.log_messages import ReadLog
from penstock.wire.messages import ListQueues, Ping, Request, encode_message
from penstock.wire.read_ticket import LIFETIME_MS, TicketError, TicketSeal
from penstock.wire.reader_session import MAX_STRANGERS, ReaderSession, ReaderSessions
from penstock.wire.reader_waits import READS_A_CONNECTION

NOW_MS = 1_700_000_000_000
SEAL = TicketSeal(b"what the processes of this cluster know")
PARTITION = 17


def ready() -> ReaderSession:
    """A session that was shown a ticket."""
    session = ReaderSessions[str](SEAL, 99).begin("127.0.0.1")
    (frame,) = session.feed(b"".join(encode_frame(0, SEAL.issue(PARTITION, NOW_MS))))
    assert session.show(frame, NOW_MS).partition == PARTITION
    return session


def asked(session: ReaderSession, request: Request, *ids: int) -> tuple[list[int], list[int]]:
    """The ids of the requests that are taken, and of those for which there is no room."""
    frames = session.feed(b"".join(b"".join(encode_frame(one, encode_message(request))) for one in ids))
    taken, refused = session.admit(frames)
    return [frame.request_id for frame in taken], refused


def test_reads_of_the_tickets_partition_and_pings_are_taken() -> None:
    session = ready()
    assert asked(session, ReadLog(PARTITION, 0), 1) == ([1], [])
    assert asked(session, Ping(), 2) == ([2], [])


@pytest.mark.parametrize(
    ("request_", "sentence"),
    [
        (ReadLog(PARTITION + 1, 0), "for another partition"),
        (ReadLog(PARTITION, 0, group="mine"), "only front ends"),
        (ListQueues(), "not allowed for readers"),
    ],
)
def test_other_requests_end_the_connection(request_: Request, sentence: str) -> None:
    with pytest.raises(TicketError, match=sentence):
        asked(ready(), request_, 1)


def test_an_ended_ticket_is_not_taken() -> None:
    session = ReaderSessions[str](SEAL, 99).begin("127.0.0.1")
    (frame,) = session.feed(b"".join(encode_frame(0, SEAL.issue(PARTITION, NOW_MS))))
    with pytest.raises(TicketError, match="has ended"):
        session.show(frame, NOW_MS + LIFETIME_MS)
    assert session.ticket is None


def test_reads_beyond_the_bound_are_refused_until_others_are_answered() -> None:
    session = ready()
    taken, refused = asked(session, ReadLog(PARTITION, 0), *range(1, READS_A_CONNECTION + 2))
    assert (len(taken), refused) == (READS_A_CONNECTION, [READS_A_CONNECTION + 1])
    session.answered(encode_frame(1, b"an answer"))
    assert asked(session, ReadLog(PARTITION, 0), 1_000) == ([1_000], [])


def test_readers_are_numbered_downwards_and_strangers_give_way() -> None:
    sessions = ReaderSessions[str](SEAL, 99)
    assert [sessions.connected(name) for name in ("a", "b", "c")] == [None] * 3
    assert [sessions.admitted("a"), sessions.admitted("b")] == [99, 98]
    assert (len(sessions), sorted(sessions), sessions.find(98)) == (2, ["a", "b", "c"], "b")
    assert [sessions.connected(str(number)) for number in range(MAX_STRANGERS)][-1] == "c"
    assert sessions.left("b", 98)
    assert not sessions.left("b", 98)
