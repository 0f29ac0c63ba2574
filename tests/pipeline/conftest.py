"""What tests of the pipeline share: one Spark session, one `penstock serve` that it reads from and writes to, and errands."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock
from penstock.pipeline.session import spark_session
from tests.pipeline import class_archive, errands
from tests.pipeline.broker import Broker, serving
from tests.pipeline.quick_spark import JAVA_OPTIONS, SESSION_OPTIONS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEST_SECONDS = 900
"""Starting a session takes seconds on an idle machine and minutes on a very busy one."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", f"{errands.MARK}(work=...): work is begun with the first test of the pipeline"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of Spark have more time: the first of them waits for the session."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(TEST_SECONDS))
    errands.put_last(items, here)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session; a task that fails is tried once more. It stays within its own directory."""
    place = tmp_path_factory.mktemp("spark")
    java = f"{SESSION_OPTIONS[JAVA_OPTIONS]} {class_archive.recorded()}"
    options = SESSION_OPTIONS | {
        "spark.sql.warehouse.dir": str(place / "warehouse"),
        JAVA_OPTIONS: java.strip(),
    }
    session = spark_session("penstock tests", "local[2, 2]", options)
    yield session
    class_archive.keep(session)
    session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """The server, until the tests are over."""
    directory = tmp_path_factory.mktemp("broker")
    with serving(directory) as url, penstock.connect_blocking(url, timeout=120) as client:
        yield Broker(url, client)


@pytest.fixture(scope="session", autouse=True)
def all_errands(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Future[Any]]]:
    """What tests want to know of other processes; those run meanwhile."""
    wanted = errands.wanted_by(request.session.items)
    if not wanted:
        yield {}
        return
    yield from errands.begun(wanted, request.getfixturevalue("broker"), tmp_path_factory)


@pytest.fixture
def errand(request: pytest.FixtureRequest, all_errands: dict[str, Future[Any]]) -> Future[Any]:
    """Of this test."""
    return all_errands[request.node.nodeid]
