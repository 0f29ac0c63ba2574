"""Readers of a log as processes of their own: one is killed, and another takes over what it had."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from tests.process.programs import PENSTOCK, Program, environment, server

LEASE_SECONDS = 1
MESSAGES = 1_000
SECONDS = 300

READER = """
import sys
import penstock
with penstock.connect_blocking(sys.argv[1]) as client:
    with client.queue("events").log().join("billing", lease=int(sys.argv[2]), auto_commit=None) as reader:
        print("joined", flush=True)
        for message in reader:
            print(message.sequence, flush=True)
            if message.sequence % 10 == 0:
                reader.commit()
                print("committed", flush=True)
            if message.sequence == int(sys.argv[3]):
                sys.stdin.readline()  # busy with it for ever
"""


class Reader:
    """A member of the group `billing` in a process of its own."""

    def __init__(self, url: str, busy_at: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", READER, url, str(LEASE_SECONDS), str(busy_at)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        self.line()

    def line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def read_until(self, line: str) -> list[int]:
        """The messages that it has read when it says so."""
        seen: list[int] = []
        while (said := self.line()) != line:
            assert said, "the reader has ended"
            seen += [int(said)] if said.isdigit() else []
        return seen

    def kill(self) -> None:
        """Ends it without last words."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Program]:
    program = server(tmp_path)
    try:
        yield program
        program.stop()
    finally:
        program.kill()


def test_the_share_of_a_dead_member_moves_on(running: Program) -> None:
    url = running.facts["url"]
    with penstock.connect_blocking(url) as client:
        queue = client.create_queue("events", consumption="log")
        queue.send_batch([b"%d" % number for number in range(1, MESSAGES + 1)])
        log = queue.log()
        first = Reader(url, busy_at=15)
        second = Reader(url)
        try:
            assert first.read_until("15") == list(range(1, 15))
            assert len(log.describe_group("billing").members) == 2
            first.kill()
            # From where the dead one had committed to, everything, in order.
            assert second.read_until(str(MESSAGES)) == list(range(11, MESSAGES))
            assert second.read_until("committed") == []
        finally:
            first.kill()
            second.kill()
        while log.describe_group("billing").members:
            pass  # the second's lease ends too
        assert log.describe_group("billing").lag_messages == 0


def test_followers_and_groups_survive_a_killed_server(tmp_path: Path) -> None:
    program = server(tmp_path)
    listen = program.facts["url"].removeprefix("penstock://")
    try:
        with penstock.connect_blocking(program.facts["url"]) as client:
            queue = client.create_queue("events", consumption="log")
            queue.send_batch([b"%d" % number for number in range(1, 101)])
            with queue.log().join("billing", auto_commit=None) as reader:
                messages = reader.messages()
                seen = [next(messages).sequence for _ in range(50)]
                assert reader.commit()
                program.kill()
                program = server(tmp_path, listen=listen)
                queue.send(b"101")
                seen += [next(messages).sequence for _ in range(51)]
                assert seen == list(range(1, 102))
                assert reader.commit()
            assert queue.log().describe_group("billing").offset == 102
            assert [int(message.body) for message in queue.log().messages()] == list(range(1, 102))
        program.stop()
    finally:
        program.kill()


def test_ctrl_c_ends_tail_and_commits_what_was_shown(running: Program) -> None:
    url = running.facts["url"]
    with penstock.connect_blocking(url) as client:
        queue = client.create_queue("events", consumption="log")
        queue.send_batch([b"%d" % number for number in range(1, 6)])
        # A shell that runs the tests in the background has them ignore Ctrl-C, and what they start inherits that.
        command = ["env", "--default-signal=INT", *PENSTOCK, "tail", "events", "--group", "billing"]
        command += ["--follow", "--body", "--url", url]
        tail = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
        try:
            assert tail.stdout is not None
            assert tail.stderr is not None
            assert [tail.stdout.readline() for _ in range(5)] == [b"1\n", b"2\n", b"3\n", b"4\n", b"5\n"]
            queue.send(b"6")
            assert tail.stdout.readline() == b"6\n"
            while queue.log().describe_group("billing").offset != 7:
                pass  # it waits for the next message by now
            tail.send_signal(signal.SIGINT)
            assert tail.wait(SECONDS) == 130
            assert tail.stderr.read() == b""
        finally:
            tail.kill()
            tail.communicate()
        group = queue.log().describe_group("billing")
        assert (group.offset, group.members) == (7, [])
