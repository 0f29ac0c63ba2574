"""The sum of usage equals the calls that were answered (I12), also where front ends are killed on the way."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

import penstock
from penstock.model.errors import PenstockError
from tests.process.programs import Program, client, create_user, front_end, server, soon
from tests.process.usage_log import usage_rows

CLIENTS = 4
KILLS = 3
CALLS_BETWEEN_KILLS = 150


class Load:
    """Clients that send without retries, and count what they were told."""

    def __init__(self, url: str) -> None:
        self.answered = 0
        self.asked = 0
        self._clients = [client(url) for _ in range(CLIENTS)]

    def run(self) -> None:
        """Until the front end is gone."""
        with ThreadPoolExecutor(CLIENTS) as threads:
            results = list(threads.map(self._send, self._clients))
        self.asked = sum(asked for asked, _ in results)
        self.answered = sum(answered for _, answered in results)

    def _send(self, sqs: Any) -> tuple[int, int]:
        asked = answered = 0
        try:
            while True:
                asked += 1
                sqs.send_message(QueueUrl="orders", MessageBody="x")
                answered += 1
        except (BotoCoreError, ClientError):
            return asked, answered
        finally:
            sqs.close()


def test_usage_equals_the_answered_calls_though_front_ends_are_killed(tmp_path: Path) -> None:
    node = server(tmp_path)
    native = str(node.facts["url"])
    asked = answered = 0
    try:
        client(node.url).create_queue(QueueName="orders")
        for _ in range(KILLS):
            front = front_end(tmp_path, native.removeprefix("penstock://"))
            load = Load(front.url)
            with ThreadPoolExecutor(1) as thread:
                running = thread.submit(load.run)
                soon(partial(enough, front, native))
                front.kill()
                running.result()
            asked += load.asked
            answered += load.answered
        front_end(tmp_path, native.removeprefix("penstock://")).stop()  # hands on what the last one has left
        rows = [
            row for row in usage_rows(native) if row["action"] == "SendMessage" and row["outcome"] == "ok"
        ]
        # A call whose answer was cut off by the kill is recorded, and its client cannot know.
        assert answered <= len(rows) <= asked
        assert len({row["request_id"] for row in rows}) == len(rows)
        numbers = Counter((row["front_end"], row["number"]) for row in usage_rows(native))
        assert set(numbers.values()) == {1}, "a request is in the log once"
        for name in {front_end_name for front_end_name, _ in numbers}:
            of_one = sorted(number for front_end_name, number in numbers if front_end_name == name)
            assert of_one == list(range(1, len(of_one) + 1)), "none is missing"
        node.stop()
    finally:
        node.kill()


class NativeLoad:
    """Native clients that send one message at a time, and count what they were told."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.asked = self.answered = 0

    def run(self) -> None:
        """Until the server is gone."""
        with ThreadPoolExecutor(CLIENTS) as threads:
            results = list(threads.map(self._send, range(CLIENTS)))
        self.asked = sum(asked for asked, _ in results)
        self.answered = sum(answered for _, answered in results)

    def _send(self, _: int) -> tuple[int, int]:
        asked = answered = 0
        with penstock.connect_blocking(self._url, timeout=2) as native:
            queue = native.queue("orders")
            try:
                while True:
                    asked += 1
                    queue.send(b"x")
                    answered += 1
            except PenstockError:
                return asked, answered


def test_usage_equals_the_answered_native_calls_though_the_server_is_killed(tmp_path: Path) -> None:
    asked = answered = 0
    node = server(tmp_path)
    try:
        with penstock.connect_blocking(str(node.facts["url"])) as native:
            native.create_queue("orders")
        for _ in range(KILLS):
            load = NativeLoad(str(node.facts["url"]))
            with ThreadPoolExecutor(1) as thread:
                running = thread.submit(load.run)
                soon(partial(enough, node, str(node.facts["url"])))
                node.kill()
                running.result()
            asked += load.asked
            answered += load.answered
            node = server(tmp_path)
        node.stop()  # hands on what the killed ones have left
        node = server(tmp_path)
        rows = usage_rows(str(node.facts["url"]))
        sends = [row for row in rows if row["action"] == "SendMessage" and row["outcome"] == "ok"]
        # A call whose answer was cut off by the kill may be recorded, and its client cannot know.
        assert answered <= len(sends) <= asked
        assert sum(row["messages"] for row in sends) == len(sends)
        assert {row["queue"].rpartition(":")[2] for row in sends} == {"orders"}
        numbers = Counter((row["front_end"], row["number"]) for row in rows)
        assert set(numbers.values()) == {1}, "a request is in the log once"
        for name in {front_end_name for front_end_name, _ in numbers}:
            of_one = sorted(number for front_end_name, number in numbers if front_end_name == name)
            assert of_one == list(range(1, len(of_one) + 1)), "none is missing"
        node.stop()
    finally:
        node.kill()


def test_a_front_end_of_a_server_with_users_is_no_user_and_its_calls_count_once(tmp_path: Path) -> None:
    key, secret = create_user(tmp_path / "data", "ada", "--root")
    node = server(tmp_path)
    native = str(node.facts["url"])
    front = front_end(tmp_path, native.removeprefix("penstock://"), data="data")
    try:
        sqs = client(front.url, (key, secret))
        sqs.create_queue(QueueName="orders")
        for _ in range(5):
            sqs.send_message(QueueUrl="orders", MessageBody="x")
        front.stop()
        with penstock.connect_blocking(native, access_key=key, secret_key=secret) as owner:
            assert owner.describe_queue("orders").statistics.ready == 5
        rows = usage_rows(native, key, secret)
        sends = [row for row in rows if row["action"] == "SendMessage"]
        assert [(row["user"], row["outcome"]) for row in sends] == [("ada", "ok")] * 5
        node.stop()
    finally:
        front.kill()
        node.kill()


def enough(front: Program, native: str) -> bool:
    """Whether the log knows of many sends through this life of the front end."""
    begin = front.url.removeprefix("http://") + "/"
    mine = [row for row in usage_rows(native) if str(row["front_end"]).startswith(begin)]
    return len(mine) >= CALLS_BETWEEN_KILLS
