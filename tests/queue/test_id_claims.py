"""Ids over several partitions: claims at their home, bars where a claim came to nothing, all of it on record."""

from __future__ import annotations

import pytest

from penstock.model.batch import Batch, encode_parts
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.queue.decisions import settle as settling
from penstock.queue.decisions.send import admit
from penstock.queue.snapshot import snapshot
from penstock.queue.state import id_claims
from penstock.queue.state.id_claims import Claims
from tests.queue.rig import START_MS, Rig

WINDOW_MS = QueueSettings().deduplication_window_ms


def claim(rig: Rig, identifier: bytes, owner: int, instead_of: int = 0, now_ms: int = START_MS) -> Claims:
    return rig.carry_out(id_claims.claim(rig.partition, [identifier], [owner], [instead_of], now_ms))


def find(rig: Rig, identifier: bytes, version: int, *, lift: bool = False, now_ms: int = START_MS) -> int:
    (found,) = rig.carry_out(id_claims.find(rig.partition, [identifier], [version], now_ms, lift=lift))
    return found


def send(rig: Rig, identifier: bytes, now_ms: int = START_MS) -> int:
    batch = Batch(encode_parts([b"a"], deduplication_ids=[identifier]))
    return rig.carry_out(admit(rig.partition, batch, 0, 0, now_ms)).runs[0][0]


def again(rig: Rig) -> Rig:
    """The same after a crash, or at another replica that got everything."""
    rig.partition = snapshot.load(snapshot.dump(rig.partition))
    return rig


def test_who_comes_first_has_the_id_for_longer_than_the_window() -> None:
    rig = Rig(QueueSettings())
    first = claim(rig, b"x", 2)
    assert first.owners == [2]
    assert claim(again(rig), b"x", 1).owners == [2]
    assert claim(rig, b"x", 1).versions == first.versions
    renewed = claim(rig, b"x", 2)
    assert renewed.versions[0] > first.versions[0]
    assert claim(rig, b"x", 1, now_ms=START_MS + 2 * WINDOW_MS - 1).owners == [2]
    assert claim(rig, b"x", 1, now_ms=START_MS + 2 * WINDOW_MS).owners == [1]
    assert len(rig.partition.window.claims.rows) == 1


def test_a_claim_is_replaced_only_by_who_knows_it() -> None:
    rig = Rig(QueueSettings())
    (version,) = claim(rig, b"x", 2).versions
    assert claim(rig, b"x", 1, instead_of=version + 5).owners == [2]
    assert claim(rig, b"x", 1, instead_of=version).owners == [1]
    assert claim(rig, b"x", 3, instead_of=version).owners == [1], "that claim is no more"


def test_what_was_stored_is_found_and_what_was_not_is_barred() -> None:
    rig = Rig(QueueSettings(ordering="fifo"))
    assert find(rig, b"x", 5) == 0
    with pytest.raises(PenstockError) as refused:
        send(again(rig), b"x")
    assert refused.value.code is ErrorCode.OVERLOADED
    assert send(rig, b"y") == 1
    assert find(rig, b"y", 5) == 1
    assert send(rig, b"y") == 1
    assert send(rig, b"x", START_MS + WINDOW_MS) == 2, "nothing is deduplicated for longer than the window"


def test_a_bar_outlasts_a_send_that_was_held_up_for_longer_than_a_short_window() -> None:
    rig = Rig(QueueSettings(ordering="fifo", deduplication_window_ms=1_000))
    (version,) = claim(rig, b"x", 1).versions
    find(rig, b"x", version)
    with pytest.raises(PenstockError):
        send(again(rig), b"x", START_MS + id_claims.HELD_MS - 1)
    assert send(rig, b"x", START_MS + id_claims.HELD_MS) == 1
    home = Rig(QueueSettings(ordering="fifo", deduplication_window_ms=1_000))
    claim(home, b"x", 1)
    assert claim(home, b"x", 2, now_ms=START_MS + id_claims.HELD_MS + 999).owners == [1]


def test_a_bar_is_lifted_by_a_younger_claim_only() -> None:
    rig = Rig(QueueSettings(ordering="fifo"))
    find(rig, b"x", 5)
    find(rig, b"x", 5, lift=True)
    with pytest.raises(PenstockError):
        send(rig, b"x")
    find(rig, b"x", 6, lift=True)
    assert send(again(rig), b"x") == 1
    assert find(rig, b"x", 7) == 1


@pytest.mark.parametrize("restarts", [False, True])
def test_a_purge_forgets_what_was_stored_and_neither_claims_nor_bars(restarts: bool) -> None:
    rig = Rig(QueueSettings(ordering="fifo"))
    (version,) = claim(rig, b"x", 2).versions
    assert send(rig, b"stored") == 1
    find(rig, b"barred", 5)
    for _ in range(2):
        if restarts:
            again(rig)
        rig.carry_out(settling.purge(rig.partition, START_MS))
    assert claim(rig, b"x", 1) == ([2], [version]), "a send under this claim may be under way"
    with pytest.raises(PenstockError):
        send(rig, b"barred")
    assert send(rig, b"stored") == 2
    assert send(rig, b"barred", START_MS + WINDOW_MS) == 3


def test_nonsense_is_refused() -> None:
    rig = Rig(QueueSettings())
    with pytest.raises(PenstockError, match="do not match"):
        id_claims.claim(rig.partition, [b"x"], [1, 2], [0], START_MS)
