"""Which dead processes of a local cluster are reported and started, by the looks that find them dead."""

from __future__ import annotations

from penstock.cluster.local.restarts import LOOKS_BETWEEN_STARTS, DeadProcess, Restarts


def test_a_process_is_reported_once_and_started_at_once_and_then_after_some_looks() -> None:
    restarts = Restarts(supervise=True)
    found = [restarts.found_dead("node-1", 71) for _ in range(2 + LOOKS_BETWEEN_STARTS)]
    assert found == [
        DeadProcess(True, True),
        *[DeadProcess(False, False)] * LOOKS_BETWEEN_STARTS,
        DeadProcess(False, True),
    ]


def test_the_next_process_of_a_name_is_reported_too() -> None:
    restarts = Restarts(supervise=True)
    restarts.found_dead("node-1", 71)
    assert restarts.found_dead("node-1", 72) == DeadProcess(True, False)
    assert restarts.found_dead("node-2", 73) == DeadProcess(True, True)


def test_without_supervision_none_is_started() -> None:
    restarts = Restarts(supervise=False)
    assert [restarts.found_dead("node-1", 71).start for _ in range(9)] == [False] * 9
