"""Loads of one request at a time, over sockets that block: what is timed is the server, not an event loop."""

from __future__ import annotations

import time

from benchmarks.sqs import answers, bodies
from benchmarks.sqs.bodies import contents
from benchmarks.sqs.connection import BlockingConnection
from benchmarks.sqs.signing import Signer
from benchmarks.sqs.tasks import Endpoint, LongPoll, SendSingly
from benchmarks.sqs.waits import WAIT_SECONDS

PAUSE_SECONDS = 0.005
"""Between a long poll and the send it waits for, so that it waits: nothing else tells."""


def send_singly(task: SendSingly) -> list[int]:
    """The nanoseconds from asking to the whole answer, message by message."""
    signer = Signer(task.endpoint, "SendMessage")
    requests = [
        (signer.request(bodies.send_body(task.endpoint.queue_url, content)), answers.sent_mark(content))
        for content in contents(task.size_bytes)
    ]
    samples: list[int] = []
    with BlockingConnection(task.endpoint) as connection:
        for number in range(task.messages):
            request, expected = requests[number % len(requests)]
            started = time.perf_counter_ns()
            body = connection.ask(request)
            samples.append(time.perf_counter_ns() - started)
            answers.check_sent(body, expected)
    return samples


def long_poll(task: LongPoll) -> list[int]:
    """The nanoseconds from the send's answer to the receiver's, message by message; never less than none."""
    endpoint = task.endpoint
    content = contents(task.size_bytes)[0]
    send = Signer(endpoint, "SendMessage").request(bodies.send_body(endpoint.queue_url, content))
    receive = Signer(endpoint, "ReceiveMessage").request(
        bodies.receive_body(endpoint.queue_url, 1, WAIT_SECONDS)
    )
    deletes = Signer(endpoint, "DeleteMessageBatch")
    mark, checksums = answers.sent_mark(content), {content.text: content.md5}
    samples: list[int] = []
    with BlockingConnection(endpoint) as receiver, BlockingConnection(endpoint) as sender:
        for _ in range(task.messages):
            receiver.send(receive)
            time.sleep(PAUSE_SECONDS)
            answers.check_sent(sender.ask(send), mark)
            acknowledged = time.perf_counter_ns()
            body = receiver.answer()
            samples.append(time.perf_counter_ns() - acknowledged)
            handles = answers.received_handles(body, checksums)
            if len(handles) != 1:
                raise answers.WrongAnswer(f"a long poll did not get its message: {answers.shown(body)}")
            answers.check_deleted(
                sender.ask(deletes.request(bodies.delete_batch_body(endpoint.queue_url, handles))), 1
            )
    return samples


def create_queue(endpoint: Endpoint, name: str, **attributes: str) -> None:
    """Makes the queue of the endpoint's URL."""
    with BlockingConnection(endpoint) as connection:
        body = connection.ask(Signer(endpoint, "CreateQueue").request(bodies.create_body(name, attributes)))
        if f"/{name}".encode() not in body:
            raise answers.WrongAnswer(f"CreateQueue was answered {answers.shown(body)}")
