"""Whether a server still works after all that: a queue is made, a message goes in, comes out and is deleted."""

from __future__ import annotations

import json
from collections.abc import Callable

from benchmarks.sqs.connection import BlockingConnection
from benchmarks.sqs.signing import Signer
from benchmarks.sqs.tasks import Endpoint
from penstock.sqs.protocols.http import HttpRequest, HttpResponse
from tests.fuzz.mutations import Headers
from tests.fuzz.signing import Credentials, signed

_QUEUE = "after-the-fuzz"
_BODY = "still here"


def round_trip(ask: Callable[[str, bytes], bytes]) -> None:
    """`ask` takes an action and its JSON parameters, and returns the body of a success."""
    url = json.loads(ask("CreateQueue", json.dumps({"QueueName": _QUEUE}).encode()))["QueueUrl"]
    ask("SendMessage", json.dumps({"QueueUrl": url, "MessageBody": _BODY}).encode())
    received = json.loads(ask("ReceiveMessage", json.dumps({"QueueUrl": url, "WaitTimeSeconds": 1}).encode()))
    (message,) = received["Messages"]
    assert message["Body"] == _BODY
    ask("DeleteMessage", json.dumps({"QueueUrl": url, "ReceiptHandle": message["ReceiptHandle"]}).encode())
    ask("DeleteQueue", json.dumps({"QueueUrl": url}).encode())


def over_sockets(host: str, port: int, credentials: Credentials) -> Callable[[str, bytes], bytes]:
    """Asks a server."""
    endpoint = Endpoint(
        host=host, port=port, access_key=credentials.access_key, secret=credentials.secret, queue_url=""
    )

    def ask(action: str, body: bytes) -> bytes:
        with BlockingConnection(endpoint) as connection:
            return connection.ask(Signer(endpoint, action).request(body))

    return ask


def in_process(
    answer: Callable[[HttpRequest], HttpResponse], credentials: Credentials, now_s: Callable[[], int]
) -> Callable[[str, bytes], bytes]:
    """Asks a front end of this process."""

    def ask(action: str, body: bytes) -> bytes:
        headers: Headers = [
            ("host", "127.0.0.1"),
            ("content-type", "application/x-amz-json-1.0"),
            ("x-amz-target", f"AmazonSQS.{action}"),
        ]
        signed_headers = dict(signed("POST", "/", headers, body, credentials, now_s()))
        response = answer(HttpRequest("POST", "/", "", signed_headers, body))
        assert response.status == 200, response
        return response.body

    return ask
