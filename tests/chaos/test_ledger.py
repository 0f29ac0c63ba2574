"""The ledger notices every broken promise, and none where an answer was lost."""

from __future__ import annotations

from tests.chaos.ledger import Ledger


def sent(*messages: str, acknowledged: bool = True) -> Ledger:
    ledger = Ledger(visibility_seconds=10)
    for message in messages:
        ledger.begin(message)
        if acknowledged:
            ledger.acknowledge(message)
    return ledger


def deleted(ledger: Ledger, message: str, answered: float) -> None:
    ledger.ask_to_delete(message)
    ledger.delete(message, answered)


def test_what_was_received_and_deleted_is_well() -> None:
    ledger = sent("a/0")
    ledger.receive("a/0", asked=1, answered=2)
    deleted(ledger, "a/0", 3)
    ledger.close()
    assert (ledger.violations, ledger.missing) == ([], [])


def test_an_acknowledged_message_that_never_comes_is_lost() -> None:
    ledger = sent("a/0")
    ledger.close()
    assert ledger.violations == ["a/0 was acknowledged and is lost"]


def test_what_nobody_deleted_must_not_go() -> None:
    ledger = sent("a/0", "a/1")
    for message in ("a/0", "a/1"):
        ledger.receive(message, asked=1, answered=2)
        ledger.ask_to_delete(message)
    ledger.keep("a/1")
    ledger.close()
    assert ledger.violations == ["a/1 was received, never deleted, and is gone"]
    assert ledger.counts["deleted without an answer"] == 1


def test_a_message_whose_answer_was_lost_may_come_or_not() -> None:
    ledger = sent("a/0", "a/1", acknowledged=False)
    ledger.receive("a/0", asked=1, answered=2)
    deleted(ledger, "a/0", 3)
    ledger.close()
    assert ledger.violations == []


def test_a_deleted_message_stays_away() -> None:
    ledger = sent("a/0")
    ledger.receive("a/0", asked=1, answered=2)
    deleted(ledger, "a/0", 3)
    ledger.receive("a/0", asked=2.5, answered=4)
    assert ledger.violations == []
    ledger.receive("a/0", asked=30, answered=31)
    assert len(ledger.violations) == 1


def test_nobody_gets_a_message_while_another_one_holds_it() -> None:
    ledger = sent("a/0")
    ledger.receive("a/0", asked=1, answered=2)
    ledger.receive("a/0", asked=11, answered=12)
    assert ledger.violations == []
    ledger.receive("a/0", asked=13, answered=14)
    assert "before the end of another one's lease" in ledger.violations[0]


def test_what_nobody_sent_is_noticed() -> None:
    ledger = sent()
    ledger.receive("x/0", asked=1, answered=2)
    assert ledger.violations == ["x/0 was received and never sent"]


def test_a_group_comes_in_the_order_it_was_sent() -> None:
    ledger = sent("g/0", "g/1", "g/2", "g/3", "h/0", "h/1")
    ledger.receive_in_order(["g/0", "h/0", "h/1"])
    deleted(ledger, "g/0", 3)
    assert ledger.violations == []
    ledger.receive_in_order(["g/2"])
    assert ledger.violations == ["g/2 came before g/1, which was acknowledged before it was sent"]
    ledger.receive_in_order(["g/1", "g/2"])
    for message in ("g/1", "g/2"):
        deleted(ledger, message, 4)
    ledger.receive_in_order(["g/3"])
    assert len(ledger.violations) == 1


def test_nothing_overtakes_what_was_received_and_not_deleted() -> None:
    ledger = sent("g/0", "g/1", "g/2")
    ledger.receive_in_order(["g/0"])
    ledger.ask_to_delete("g/0")
    ledger.receive_in_order(["g/1"])
    assert ledger.violations == [], "it may be deleted, nobody knows"
    ledger.keep("g/0")
    deleted(ledger, "g/1", 3)
    ledger.receive_in_order(["g/2"])
    assert len(ledger.violations) == 1, "it was not, so it had to come back first"


def test_a_gap_where_an_answer_was_lost_is_no_gap() -> None:
    ledger = sent("g/0")
    ledger.begin("g/1")
    ledger.begin("g/2")
    ledger.acknowledge("g/2")
    ledger.receive_in_order(["g/0"])
    deleted(ledger, "g/0", 1)
    ledger.receive_in_order(["g/2"])
    assert ledger.violations == []
