"""Tickets to read a log: only those of the cluster, unchanged and in time, are taken."""

from __future__ import annotations

import pytest

from penstock.wire.read_ticket import (
    HOLDER_BYTES,
    LIFETIME_MS,
    TICKET_BYTES,
    Holder,
    ReadTicket,
    TicketError,
    TicketSeal,
    encode_holder,
)

NOW_MS = 1_700_000_000_000
SEAL = TicketSeal(b"what the processes of this cluster know")


def test_a_ticket_says_which_partition_and_until_when() -> None:
    ticket = SEAL.issue(17, NOW_MS)
    assert len(ticket) == TICKET_BYTES
    expected = ReadTicket(17, NOW_MS + LIFETIME_MS)
    assert SEAL.check(ticket, NOW_MS) == expected
    assert SEAL.check(memoryview(ticket), NOW_MS + LIFETIME_MS - 1) == expected


def test_a_ticket_says_who_reads_what() -> None:
    holder = Holder("000000000000", "ada", "arn:aws:sqs:us-east-1:000000000000:clicks")
    ticket = SEAL.issue(17, NOW_MS, encode_holder(holder))
    assert SEAL.check(ticket, NOW_MS) == ReadTicket(17, NOW_MS + LIFETIME_MS, holder)
    for place in range(len(ticket)):
        changed = bytearray(ticket)
        changed[place] ^= 1
        with pytest.raises(TicketError, match="not one of this cluster's"):
            SEAL.check(changed, NOW_MS)


def test_names_that_are_too_long_are_shortened() -> None:
    holder = Holder("0" * 200, "ö" * 200, "q" * 1_000)
    encoded = encode_holder(holder)
    assert len(encoded) <= HOLDER_BYTES
    found = SEAL.check(SEAL.issue(17, NOW_MS, encoded), NOW_MS).holder
    assert found is not None
    assert found.user == "ö" * 64


def test_a_ticket_ends() -> None:
    with pytest.raises(TicketError, match="has ended"):
        SEAL.check(SEAL.issue(17, NOW_MS), NOW_MS + LIFETIME_MS)


@pytest.mark.parametrize("place", range(TICKET_BYTES))
def test_no_byte_of_it_can_be_changed(place: int) -> None:
    ticket = bytearray(SEAL.issue(17, NOW_MS))
    ticket[place] ^= 1
    with pytest.raises(TicketError, match="not one of this cluster's"):
        SEAL.check(ticket, NOW_MS)


@pytest.mark.parametrize(
    "given", [b"", b"GET / HTTP/1.1", bytes(TICKET_BYTES - 1), bytes(TICKET_BYTES + HOLDER_BYTES + 1)]
)
def test_what_has_another_length_is_no_ticket(given: bytes) -> None:
    with pytest.raises(TicketError, match="not a ticket"):
        SEAL.check(given, NOW_MS)


def test_tickets_of_another_cluster_are_refused() -> None:
    with pytest.raises(TicketError, match="not one of this cluster's"):
        SEAL.check(TicketSeal(b"what another cluster's know").issue(17, NOW_MS), NOW_MS)


def test_what_is_raised_does_not_repeat_the_ticket() -> None:
    ticket = SEAL.issue(17, NOW_MS)
    with pytest.raises(TicketError) as caught:
        SEAL.check(ticket, NOW_MS + LIFETIME_MS)
    assert ticket.hex() not in str(caught.value)
    assert repr(ticket) not in str(caught.value)
