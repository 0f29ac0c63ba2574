"""How the tests are shared among processes: what has to stay together, and what begins first.

The suite waits more than it computes: for processes that start, for leases that end and for clusters that elect. So there are
more processes than processors. A share is a list of tests that one process runs one after the other. Shares are handed out in
order, and the long ones come first: what is begun last decides when the run ends.
"""

from __future__ import annotations

import os

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

WHOLE = ("tests/pipeline/", "tests/clients/python_sdk/")
"""Folders that are one share: their tests have a session of Spark in common, and background work that runs beside them, or servers."""

SINGLE = (
    "tests/simulation/test_planted_bugs.py",
    "tests/simulation/test_seeds.py",
    "tests/simulation/cluster/test_cluster_bugs.py",
    "tests/simulation/cluster/test_cluster_seeds.py",
)
"""Files whose tests have nothing in common and compute for long: each test is a share."""

FIRST = (
    "tests/pipeline/",
    "tests/chaos/",
    "tests/process/",
    "tests/clients/",
    "tests/simulation/",
    "tests/metadata/",
)
"""What begins first, in this order. All else follows as it was collected."""

MOST_PROCESSES = 8


def processes() -> int:
    """How many share the tests where it is left to us: two for each processor, and not too many for the memory."""
    return min(MOST_PROCESSES, 2 * len(os.sched_getaffinity(0)))


def share(nodeid: str) -> str:
    """The share that a test belongs to: its folder, the test itself, or its file."""
    for folder in WHOLE:
        if nodeid.startswith(folder):
            return folder
    file = nodeid.partition("::")[0]
    return nodeid if file in SINGLE else file


def long_shares_first(items: list[pytest.Item]) -> None:
    """Puts the tests in the order in which their shares are handed out."""
    items.sort(key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    return next((rank for rank, start in enumerate(FIRST) if nodeid.startswith(start)), len(FIRST))


class Shares(LoadScopeScheduling):  # type: ignore[misc]  # xdist ships no types
    """Gives each process one share after the other."""

    def __init__(self, config: pytest.Config, log: Producer) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # the order is that of the tests, not of the number of tests

    def _split_scope(self, nodeid: str) -> str:
        return share(nodeid)
