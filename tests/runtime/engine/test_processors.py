"""The processors of the process: what was named is used, what cannot be is refused, and threads stay together."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from penstock.runtime.engine import processors
from penstock.runtime.engine.cpu_affinity import Sample
from penstock.runtime.engine.processors import SharedProcessor, use_processors
from penstock.runtime.processes.listening import StartError

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux keeps threads to processors"
)

SECOND_NS = 1_000_000_000


@pytest.fixture(autouse=True)
def _processors_as_before() -> Iterator[None]:
    before = os.sched_getaffinity(0)
    yield
    os.sched_setaffinity(0, before)


@pytest.fixture
def partner() -> Iterator[int]:
    """A thread that waits, by the id the kernel gave it."""
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    assert thread.native_id is not None
    yield thread.native_id
    end.set()
    thread.join()


def test_named_processors_are_used_by_this_thread_and_those_it_starts() -> None:
    one = min(os.sched_getaffinity(0))
    use_processors((one,))
    found: list[set[int]] = []
    thread = threading.Thread(target=lambda: found.append(os.sched_getaffinity(0)))
    thread.start()
    thread.join()
    assert os.sched_getaffinity(0) == {one}
    assert found == [{one}]


@pytest.mark.parametrize("left", ["auto", "all"])
def test_nothing_is_chosen_where_nothing_is_named(left: str) -> None:
    before = os.sched_getaffinity(0)
    use_processors("auto" if left == "auto" else "all")
    assert os.sched_getaffinity(0) == before


def test_a_processor_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(
        StartError, match=r"cannot use only processors 4095: this process may use .*--cpus auto"
    ):
        use_processors((4095,))


def test_a_system_without_affinity_refuses_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_setaffinity")
    with pytest.raises(StartError, match="only Linux can"):
        use_processors((0,))


def several_processors() -> set[int]:
    allowed = os.sched_getaffinity(0)
    if len(allowed) < 2:
        pytest.skip("there is only one processor")
    return allowed


def test_busy_threads_share_a_processor_and_are_let_go_when_it_is_crowded(partner: int) -> None:
    allowed = several_processors()
    chosen = max(allowed)
    shared = SharedProcessor((partner,))
    shared._allowed = allowed
    assert shared.look(Sample(0, 0, 0, 0, chosen))
    assert shared.look(Sample(SECOND_NS, SECOND_NS, 0, 0, chosen))
    assert shared.kept_on == chosen
    assert os.sched_getaffinity(0) == os.sched_getaffinity(partner) == {chosen}
    assert shared.look(Sample(2 * SECOND_NS, SECOND_NS, SECOND_NS, 0, chosen))
    assert os.sched_getaffinity(0) == os.sched_getaffinity(partner) == allowed


def test_who_chooses_from_outside_is_obeyed(partner: int) -> None:
    allowed = several_processors()
    shared = SharedProcessor((partner,))
    shared._allowed = allowed
    os.sched_setaffinity(0, {min(allowed)})
    assert not shared.look(Sample(0, 0, 0, 0, 0))
    assert os.sched_getaffinity(0) == {min(allowed)}


def test_what_the_kernel_says_is_read(partner: int) -> None:
    shared = SharedProcessor((partner,))
    before = shared._sample()
    deadline = time.thread_time_ns() + 20_000_000
    while time.thread_time_ns() < deadline:
        pass
    after = shared._sample()
    assert after.loop_ran_ns - before.loop_ran_ns >= 10_000_000
    assert after.at_ns > before.at_ns
    assert after.processor in os.sched_getaffinity(0)


def test_a_thread_that_is_gone_ends_the_looking_without_noise() -> None:
    several_processors()
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    assert thread.native_id is not None
    deadline = time.monotonic() + 30
    while os.path.exists(f"/proc/self/task/{thread.native_id}") and time.monotonic() < deadline:
        os.sched_yield()  # joined is what Python calls gone; the kernel needs a moment more
    shared = SharedProcessor((thread.native_id,))
    shared._allowed = os.sched_getaffinity(0)
    assert not shared.look()


def test_without_partners_nobody_looks() -> None:
    shared = SharedProcessor(())
    shared.start()  # there is no event loop here to look later on
    assert processors.LOOK_SECONDS > 0
    assert shared.kept_on is None
