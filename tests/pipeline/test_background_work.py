"""Tests that run beside others, and tests that are alone: the two never at the same time."""

from __future__ import annotations

from threading import Event, Thread

from tests.pipeline.background_work import Gate


def test_who_is_alone_waits_for_those_beside_and_they_wait_for_it() -> None:
    gate = Gate()
    order: list[str] = []
    inside, may_end, is_alone, may_end_alone = Event(), Event(), Event(), Event()

    def beside() -> None:
        with gate.beside():
            inside.set()
            may_end.wait()
            order.append("the one beside ends")

    def alone() -> None:
        with gate.alone():
            order.append("the one alone begins")
            is_alone.set()
            may_end_alone.wait()
            order.append("the one alone ends")

    def later() -> None:
        with gate.beside():
            order.append("the next one beside begins")

    threads = [Thread(target=work) for work in (beside, alone, later)]
    threads[0].start()
    inside.wait()
    threads[1].start()
    may_end.set()
    is_alone.wait()
    threads[2].start()
    may_end_alone.set()
    for thread in threads:
        thread.join()
    assert order == [
        "the one beside ends",
        "the one alone begins",
        "the one alone ends",
        "the next one beside begins",
    ]
