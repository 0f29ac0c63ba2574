"""Work in the background: it begins before the test that needs its result, and goes on beside other tests in two lanes.

A Java that starts, a cluster that comes up and a job that is to be killed mostly wait, or use a processor that is free. They
are begun with the first test of the pipeline:

    def rows_written(directory: Path, broker: Broker) -> int: ...

    @pytest.mark.background(work=rows_written)
    def test_it_wrote_some(background: Future[int]) -> None:
        assert background.result() > 0

A test that keeps the session busy for long, and alters nothing that others see, is background work as a whole:

    @pytest.mark.beside
    def test_long_sums(spark: SparkSession, tmp_path: Path) -> None: ...

It may want the session, the broker, a directory, and background work that it waits for. Tests that alter what others see have the
session for themselves: all that patch something, and those that are marked as `alone`. While one of them runs, none runs beside.
They come first, so that none of them has to wait. Tests with background work come last, and wait where it takes longer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Condition
from typing import TYPE_CHECKING, Any

import pytest

from tests.pipeline.broker import Broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LANES = 2
MARKS = {
    "background(work=...)": "work is begun with the first test of the pipeline",
    "beside": "the test runs beside others in the session",
    "alone": "the test alters what others in the session see, or looks at what they alter",
}
Work = Callable[[Path, Broker], Any]


def in_order(items: list[pytest.Item], directory: Path) -> None:
    """Of the tests below a directory: first those that run alone, last those with background_work. All others stay where they are."""
    places = [place for place, item in enumerate(items) if directory in item.path.parents]
    for place, item in zip(places, sorted((items[place] for place in places), key=_turn), strict=True):
        items[place] = item


def is_alone(item: pytest.Item) -> bool:
    """Whether the test is to have the session for itself."""
    return item.get_closest_marker("alone") is not None or "monkeypatch" in getattr(item, "fixturenames", ())


def is_beside(item: pytest.Item) -> bool:
    """Whether the test as a whole is an background."""
    return item.get_closest_marker("beside") is not None


class Gate:
    """Lets any number of tests run beside each other, or one alone."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._beside = 0
        self._alone = False

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Begins when no test is alone."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._beside += 1
        try:
            yield
        finally:
            with self._changed:
                self._beside -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Begins when those that run beside have ended; those that have not begun wait. There is one at a time."""
        with self._changed:
            self._alone = True
            self._changed.wait_for(lambda: not self._beside)
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._changed.notify_all()


GATE = Gate()
"""Of this process: what a test patches is seen by all its threads."""


class BackgroundWork:
    """What was begun, and what came of it. Each has a directory of its own."""

    def __init__(self, items: list[pytest.Item], directories: pytest.TempPathFactory) -> None:
        self._works = list(dict.fromkeys(work for item in items if (work := _work_of(item)) is not None))
        self._tests = [item for item in items if is_beside(item)]
        self._directories = directories
        self._lanes = ThreadPoolExecutor(LANES, "background")
        self._begun: dict[object, Future[Any]] = {}

    def __bool__(self) -> bool:
        return bool(self._works or self._tests)

    def begin(self, broker: Broker) -> None:
        """Those that use no session."""
        for work in self._works:
            self._begun[work] = self._lanes.submit(work, self._directories.mktemp("background"), broker)

    def begin_beside(self, spark: Callable[[], SparkSession], broker: Broker) -> None:
        """Those that do, unless they were begun before. The session is asked for when there is one of them."""
        waiting, self._tests = self._tests, []
        for test in waiting:
            assert isinstance(test, pytest.Function)
            parameters = test.callspec.params if hasattr(test, "callspec") else {}
            directory = self._directories.mktemp("beside")
            given = {"spark": spark(), "broker": broker, "tmp_path": directory, **parameters}
            if (work := _work_of(test)) is not None:
                given["background"] = self._begun[work]  # which is before it in the lanes
            wanted = {name: given[name] for name in test._fixtureinfo.argnames}
            self._begun[test.nodeid] = self._lanes.submit(_in_session, spark(), test.obj, wanted)

    def of(self, test: pytest.Item) -> Future[Any]:
        """The result of the background work of a test."""
        return self._begun[test.nodeid if is_beside(test) else _work_of(test)]

    def end(self) -> None:
        """What was not begun is not begun any more."""
        self._lanes.shutdown(cancel_futures=True)


def _in_session(spark: SparkSession, test: Callable[..., None], given: dict[str, Any]) -> None:
    spark.createDataFrame([], "nothing string")  # by which a thread has a session: sinks are looked up in it
    with GATE.beside():
        test(**given)


def _turn(item: pytest.Item) -> int:
    if is_alone(item):
        return 0
    return 2 if _work_of(item) is not None else 3 if is_beside(item) else 1


def _work_of(item: pytest.Item) -> Work | None:
    mark = item.get_closest_marker("background")
    return None if mark is None else mark.kwargs["work"]
