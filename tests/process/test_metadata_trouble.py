"""A metadata store that cannot be written: messages go on, and whoever changes something is told to come back."""

from __future__ import annotations

import resource
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.process.programs import client, front_end, post, server
from tests.process.test_front_ends import code_of


def test_messages_flow_while_somebody_locks_the_metadata(tmp_path: Path) -> None:
    program = server(tmp_path)
    try:
        sqs = client(program.url)
        url = sqs.create_queue(QueueName="orders")["QueueUrl"]
        with sqlite3.connect(tmp_path / "data" / "metadata.sqlite", isolation_level=None) as lock:
            lock.execute("BEGIN IMMEDIATE")
            with ThreadPoolExecutor(1) as pool:
                tagging = pool.submit(code_of, lambda: sqs.tag_queue(QueueUrl=url, Tags={"a": "b"}))
                sqs.send_message(QueueUrl=url, MessageBody="espresso")
                (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
                assert not tagging.done()
                assert tagging.result(20) == "ServiceUnavailable"
            lock.execute("ROLLBACK")
        lock.close()
        assert "metadata" in program.log()
        sqs.tag_queue(QueueUrl=url, Tags={"a": "b"})
        program.stop()
    finally:
        program.kill()


def test_messages_flow_while_the_disk_of_a_front_end_is_full(tmp_path: Path) -> None:
    """The system lets no file of the front end grow beyond 4 KiB, as if its disk were full: its log is shorter."""
    node = server(tmp_path)
    front = front_end(tmp_path, f"{node.facts['host']}:{node.facts['port']}")
    process = int(front.facts["process"])
    try:
        sqs = client(front.url)
        url = sqs.create_queue(QueueName="orders")["QueueUrl"]
        before = resource.prlimit(process, resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))
        assert code_of(lambda: sqs.tag_queue(QueueUrl=url, Tags={"a": "b"})) == "ServiceUnavailable"
        assert code_of(lambda: sqs.create_queue(QueueName="others")) == "ServiceUnavailable"
        for number in range(20):
            sqs.send_message(QueueUrl=url, MessageBody=str(number))
        assert len(sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]) == 10
        assert front.log().count("the metadata store is not available") == 2
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)
        sqs.tag_queue(QueueUrl=url, Tags={"a": "b"})
        assert sqs.list_queue_tags(QueueUrl=url)["Tags"] == {"a": "b"}
        assert post(front.url, "CreateQueue", QueueName="others")[0] == 200
        front.stop()
        node.stop()
    finally:
        front.kill()
        node.kill()
