"""What tests of the pipeline share: one Spark session, one `penstock serve` that it reads from and writes to, and background_work."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.pipeline.session import spark_session
from tests.pipeline import background_work
from tests.pipeline.background_work import BackgroundWork
from tests.pipeline.broker import Broker, serving
from tests.pipeline.quick_spark import SESSION_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEST_SECONDS = 900
"""Starting a session takes seconds on an idle machine and minutes on a very busy one."""


def pytest_configure(config: pytest.Config) -> None:
    for mark, meaning in background_work.MARKS.items():
        config.addinivalue_line("markers", f"{mark}: {meaning}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of Spark have more time: the first of them waits for the session."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))
    background_work.in_order(items, here)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session; a task that fails is tried once more. It stays within its own directory."""
    place = tmp_path_factory.mktemp("spark")
    options = SESSION_OPTIONS | {"spark.sql.warehouse.dir": str(place / "warehouse")}
    session = spark_session("penstock tests", "local[2, 2]", options)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The server, until the tests are over."""
    directory = tmp_path_factory.mktemp("broker")
    with serving(directory) as url, penstock.connect_blocking(url, timeout=120) as client:
        yield Broker(url, client)


@pytest.fixture(scope="session", autouse=True)
def all_background(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BackgroundWork]:
    """What goes on beside the tests, from the first of them on."""
    all_of_them = BackgroundWork(request.session.items, tmp_path_factory)
    if all_of_them:
        all_of_them.begin(request.getfixturevalue("broker"))
    yield all_of_them
    all_of_them.end()


@pytest.fixture(autouse=True)
def begun_beside(request: pytest.FixtureRequest, all_background: BackgroundWork) -> None:
    """Once the tests are over that are to be alone, others may run beside."""
    if all_background and not background_work.is_alone(request.node):
        all_background.begin_beside(
            lambda: request.getfixturevalue("spark"), request.getfixturevalue("broker")
        )


@pytest.fixture
def background(request: pytest.FixtureRequest, all_background: BackgroundWork) -> Future[Any]:
    """Of this test."""
    return all_background.of(request.node)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """From its first fixture to its last, a test that is to be alone is."""
    if background_work.is_alone(item):
        with background_work.GATE.alone():
            return (yield)
    return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test that ran beside others is over, or is waited for."""
    if not background_work.is_beside(pyfuncitem):
        return None
    running = pyfuncitem.funcargs["all_background"]
    assert isinstance(running, BackgroundWork)
    running.of(pyfuncitem).result()
    return True
