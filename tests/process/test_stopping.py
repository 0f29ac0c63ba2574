"""Stopping under load: what was read is answered, and what was acknowledged is there afterwards, and nothing else."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from tests.process.programs import Raw, front_end, post, server

CLIENTS = 16
PIPELINED = 20
ENOUGH = 2_000


class Senders:
    """Clients that send as fast as they can until the connection ends; what they were told was stored."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.acknowledged: set[str] = set()
        self.enough = threading.Event()

    def run(self, name: int) -> None:
        """One client: many requests at once, then their answers."""
        raw = Raw(self._url)
        numbers = count()
        while True:
            bodies = [f"{name}-{next(numbers)}" for _ in range(PIPELINED)]
            try:
                for body in bodies:
                    raw.ask("SendMessage", QueueUrl="orders", MessageBody=body)
            except OSError:
                pass  # the server has gone, but its last answers may be here already
            for body in bodies:
                answer = raw.answer()
                if answer is None:
                    raw.close()
                    return
                assert answer[0] == 200, answer
                self.acknowledged.add(body)
                if len(self.acknowledged) >= ENOUGH:
                    self.enough.set()


@pytest.mark.parametrize("role", ["serve", "frontend"])
def test_what_was_acknowledged_before_the_stop_is_there_after_it(tmp_path: Path, role: str) -> None:
    node = server(tmp_path)
    front = node
    try:
        if role == "frontend":
            front = front_end(tmp_path, f"{node.facts['host']}:{node.facts['port']}")
        assert post(front.url, "CreateQueue", QueueName="orders")[0] == 200
        senders = Senders(front.url)
        with ThreadPoolExecutor(CLIENTS) as pool:
            running = [pool.submit(senders.run, name) for name in range(CLIENTS)]
            assert senders.enough.wait(60)
            front.stop()
            for sender in running:
                sender.result(60)
        assert "dropped" not in front.log()
        node.stop()
    finally:
        front.kill()
        node.kill()
    again = server(tmp_path)
    try:
        found: set[str] = set()
        while messages := receive(again.url):
            found |= messages
        assert not senders.acknowledged - found, "acknowledged messages are gone"
        assert not found - senders.acknowledged, "requests were carried out and never answered"
        again.stop()
    finally:
        again.kill()


def receive(url: str) -> set[str]:
    _, found = post(url, "ReceiveMessage", QueueUrl="orders", MaxNumberOfMessages=10)
    return {message["Body"] for message in found.get("Messages", ())}
