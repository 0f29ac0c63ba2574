"""Clients that hang up, half-close or are cut off, against a real server; and what is left when it stops."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from tests.process.programs import Program, Raw, client, create_user, post, server, soon
from tests.process.usage_log import usage_rows


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    found = server(tmp_path)
    try:
        assert post(found.url, "CreateQueue", QueueName="orders")[0] == 200
        yield found
    finally:
        found.kill()


def seen(program: Program) -> None:
    """Returns when the server has read whatever was sent to it before."""
    for _ in range(3):
        assert post(program.url, "ListQueues")[0] == 200


def test_a_client_that_half_closes_is_still_answered(program: Program) -> None:
    raw = Raw(program.url)
    raw.ask("SendMessage", QueueUrl="orders", MessageBody="espresso")
    raw.socket.shutdown(socket.SHUT_WR)
    answer = raw.answer()
    assert answer is not None
    assert answer[0] == 200
    assert raw.answer() is None
    raw.close()


def test_a_client_that_hangs_up_while_it_waits_takes_nothing_along(program: Program, tmp_path: Path) -> None:
    gone = [Raw(program.url) for _ in range(20)]
    for raw in gone:
        raw.ask("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=20, VisibilityTimeout=600)
    seen(program)
    for raw in gone:
        raw.close()
    for number in range(20):
        assert post(program.url, "SendMessage", QueueUrl="orders", MessageBody=str(number))[0] == 200
    bodies: set[str] = set()

    def all_there() -> bool:
        _, found = post(program.url, "ReceiveMessage", QueueUrl="orders", MaxNumberOfMessages=10)
        bodies.update(message["Body"] for message in found.get("Messages", ()))
        return len(bodies) == 20

    soon(all_there)

    def cancelled() -> int:
        rows = usage_rows(program.facts["url"])
        return sum(row["action"] == "ReceiveMessage" and row["outcome"] == "cancelled" for row in rows)

    soon(lambda: cancelled() == 20)


def test_what_was_read_before_the_stop_is_answered(program: Program) -> None:
    waiting = [Raw(program.url) for _ in range(20)]
    for raw in waiting:
        raw.ask("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=20)
        raw.ask("ListQueues")  # its answer has to wait for the other's
        raw.ask("ReceiveMessage", QueueUrl="orders", WaitTimeSeconds=20)
    seen(program)
    program.ask_to_stop()
    for raw in waiting:
        answers = [raw.answer() for _ in range(3)]
        assert [answer[0] if answer else None for answer in answers] == [200, 200, 200]
        assert raw.answer() is None
        raw.close()
    program.stop()
    assert "dropped" not in program.log()


def test_a_request_that_is_cut_off_is_none(program: Program) -> None:
    raw = Raw(program.url)
    raw.socket.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    seen(program)
    raw.close()
    idle = Raw(program.url)
    program.stop()
    assert idle.answer() is None
    idle.close()


def test_a_presigned_url_of_botocore_is_all_a_browser_needs(tmp_path: Path) -> None:
    key = create_user(tmp_path / "data", "admin", "--root")
    program = server(tmp_path)
    try:
        url = client(program.url, key).create_queue(QueueName="orders")["QueueUrl"]
        parameters = {"Action": "SendMessage", "MessageBody": "one espresso & more", "Version": "2012-11-05"}
        request = AWSRequest("GET", url, params=parameters)
        SigV4QueryAuth(Credentials(*key), "sqs", "us-east-1", 60).add_auth(request)
        parts = urlsplit(request.prepare().url)
        for query, status in ((parts.query, 200), (parts.query.replace("one", "two"), 403)):
            connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=100)
            connection.request("GET", f"{parts.path}?{query}")
            answer = connection.getresponse()
            assert answer.status == status, answer.read()
            connection.close()
        (message,) = client(program.url, key).receive_message(QueueUrl=url)["Messages"]
        assert message["Body"] == "one espresso & more"
        program.stop()
    finally:
        program.kill()
