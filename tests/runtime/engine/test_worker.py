"""The helper thread: work is done in order, off the loop's thread, and reported on it."""

from __future__ import annotations

import asyncio
import threading

from penstock.runtime.engine.worker import Worker
from tests.runtime.harness import async_test


class Note:
    """Work that remembers where it ran."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.thread: threading.Thread | None = None

    def run(self) -> None:
        self.thread = threading.current_thread()


@async_test
async def test_work_is_done_in_order_elsewhere_and_reported_here() -> None:
    done: list[Note] = []
    everything = asyncio.Event()

    def report(note: Note) -> None:
        assert threading.current_thread() is threading.main_thread()
        done.append(note)
        if note.number == 99:
            everything.set()

    worker: Worker[Note] = Worker("notes", asyncio.get_running_loop(), report)
    for number in range(100):
        worker.put(Note(number))
    await everything.wait()
    assert [note.number for note in done] == list(range(100))
    assert {note.thread.name for note in done if note.thread} == {"notes"}
    worker.stop()
    assert worker.join(10)


@async_test
async def test_what_was_put_before_the_stop_is_still_done() -> None:
    notes = [Note(number) for number in range(10)]
    worker: Worker[Note] = Worker("notes", asyncio.get_running_loop(), lambda note: None)
    for note in notes:
        worker.put(note)
    worker.stop()
    assert worker.join(10)
    assert all(note.thread is not None for note in notes)


def test_a_closed_loop_ends_the_thread_quietly() -> None:
    loop = asyncio.new_event_loop()
    worker: Worker[Note] = Worker("notes", loop, lambda note: None)
    loop.close()
    worker.put(Note(1))
    assert worker.join(10)
