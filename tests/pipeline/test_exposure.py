"""Spark shows a lot of what it runs: pages, plans, an event log, the driver's log. None of it shows a key or a secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

import pytest

import penstock
from tests.pipeline.broker import Broker, serving
from tests.pipeline.exposed_driver import MARK, PAGES
from tests.pipeline.test_users import create_user

QUEUE = "clicks"


class Exposed(NamedTuple):
    """What a driver has shown, and what it was not to show."""

    directory: Path
    output: bytes
    hidden: tuple[str, ...]


def everything_shown(directory: Path, broker: Broker) -> Exposed:
    """One driver that reads, writes and streams, with a key of its options and with another one of its environment."""
    data, place = directory / "data", directory / "shown"
    place.mkdir()
    in_options = create_user(data, "ada", "--root")
    in_environment = create_user(data, "bob", "--root")
    with serving(data) as url:
        with penstock.connect_blocking(url, access_key=in_options[0], secret_key=in_options[1]) as client:
            client.create_queue(QUEUE, consumption="log").send_batch(["1", "2", "3"])
        told = {"endpoint": url.removeprefix("penstock://"), "queue": QUEUE}
        told |= {"key": in_options[0], "secret": in_options[1]}
        variables = {"PENSTOCK_ACCESS_KEY": in_environment[0], "PENSTOCK_SECRET_KEY": in_environment[1]}
        done = subprocess.run(
            [sys.executable, "-m", "tests.pipeline.exposed_driver", str(place)],
            input=json.dumps(told).encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=Path(__file__).parents[2],  # other tests may go elsewhere meanwhile
            env=os.environ | variables,
            check=False,
        )
    assert done.returncode == 0, done.stdout.decode()
    return Exposed(place, done.stdout, (*in_options, *in_environment))


@pytest.mark.background(work=everything_shown)
def test_nothing_that_spark_shows_has_a_key_or_a_secret_in_it(background: Future[Exposed]) -> None:
    shown = background.result()
    files = [path for path in shown.directory.rglob("*") if path.is_file()]
    texts = {str(path.relative_to(shown.directory)): path.read_bytes() for path in files}
    texts["the driver's log"] = shown.output
    (events,) = [
        text for name, text in texts.items() if name.startswith("events/") and b"SQLExecutionStart" in text
    ]
    for seen in (events, texts["environment.json"]):  # from which the page is filled
        assert MARK.encode() in seen  # these are what they are taken for
    assert set(PAGES) <= set(texts)
    for plans in ("sql.json", "plan.html"):
        assert b"BatchScan penstock" in texts[plans]
    assert b"nowhere" in shown.output
    assert any(name.startswith("checkpoint-0/offsets/") for name in texts)
    for name, text in texts.items():
        for secret in shown.hidden:
            assert secret.encode() not in text, name
