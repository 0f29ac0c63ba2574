"""Bad connections in the log: one line for each kind and minute, however many clients try."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from penstock.runtime.embedded import running_server
from penstock.runtime.native.bad_connections import SAID_EVERY_SECONDS, BadConnections
from tests.runtime.harness import RawClient, async_test, small_config

LOGGER = logging.getLogger("penstock.test")


def test_one_line_for_each_kind_and_minute(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    bad = BadConnections(LOGGER, lambda: now)
    for number in range(1_000):
        now = number * 0.05
        bad.tell("frames", "closed %(address)s", address=f"10.0.0.{number % 256}")
        bad.tell("silent", "no hello from %(address)s", address="10.0.0.1")
    assert caplog.messages == ["closed 10.0.0.0", "no hello from 10.0.0.1"]
    now = SAID_EVERY_SECONDS
    bad.tell("frames", "closed %(address)s", address="10.0.0.9")
    assert caplog.messages[2:] == ["closed 10.0.0.9 (and 999 similar ones since the last such line)"]
    now *= 2
    bad.tell("frames", "closed %(address)s", address="10.0.0.8")
    assert caplog.messages[3:] == ["closed 10.0.0.8"]


@async_test
async def test_a_client_that_sends_nonsense_on_and_on_does_not_fill_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running_server(tmp_path, small_config()) as server:
        for number in range(30):
            client = await RawClient.connect(server.port, hello=False)
            client.writer.write(b"%032d" % number)
            await client.is_dropped()
    assert len([line for line in caplog.messages if "closed the connection from" in line]) == 1
