"""Settings every test shares: how Hypothesis searches, an etcd for those who ask for one, and which process runs which tests.

On CI the examples are derived from the test itself, so a failure there is the same failure everywhere.
Elsewhere each run searches somewhere new. Neither has a deadline: a slow machine is not a bug.
"""

import os

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from tests import shares
from tests.etcd_servers import _three_members, etcd, etcd_of_its_own, etcd_trio

__all__ = ["_three_members", "etcd", "etcd_of_its_own", "etcd_trio"]

# Health checks on speed fail on a busy machine, never because of the code.
TOO_SLOW = [HealthCheck.too_slow]

settings.register_profile(
    "ci", derandomize=True, deadline=None, print_blob=True, suppress_health_check=TOO_SLOW
)
settings.register_profile("dev", deadline=None, suppress_health_check=TOO_SLOW)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_xdist_auto_num_workers() -> int:
    return shares.processes()


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> shares.Shares | None:
    """Ours, unless another one was asked for."""
    return shares.Shares(config, log) if config.getvalue("dist") == "load" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # this is one process of several
        shares.long_shares_first(items)
