"""Errands: what happens in processes of its own, begun before the test that wants to know what came of it.

A Java that starts, a cluster that comes up and a job that is to be killed mostly wait, or use the processor that the session
of the tests leaves free. So they are begun with the first test of the pipeline and gone through in two lanes, while other
tests run; the tests they are for come last, and wait where it takes longer.

    def rows_written(directory: Path, broker: Broker) -> int: ...

    @pytest.mark.errand(work=rows_written)
    def test_it_wrote_some(errand: Future[int]) -> None:
        assert errand.result() > 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.broker import Broker

MARK = "errand"
LANES = 2
Work = Callable[[Path, Broker], Any]


def put_last(items: list[pytest.Item], directory: Path) -> None:
    """Of the tests below a directory those with an errand come last; all others stay where they are."""
    places = [place for place, item in enumerate(items) if directory in item.path.parents]
    ours = sorted((items[place] for place in places), key=lambda item: _work_of(item) is not None)
    for place, item in zip(places, ours, strict=True):
        items[place] = item


def wanted_by(items: list[pytest.Item]) -> dict[str, Work]:
    """What is to be done, by the id of the test it is for, in the order of the tests."""
    return {item.nodeid: work for item in items if (work := _work_of(item)) is not None}


def begun(
    wanted: dict[str, Work], broker: Broker, directories: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Any]]]:
    """Until the tests are over: what will come of it. Each has a directory of its own."""
    lanes = ThreadPoolExecutor(LANES, "errands")
    yield {test: lanes.submit(work, directories.mktemp("errand"), broker) for test, work in wanted.items()}
    lanes.shutdown(cancel_futures=True)


def _work_of(item: pytest.Item) -> Work | None:
    mark = item.get_closest_marker(MARK)
    return None if mark is None else mark.kwargs["work"]
