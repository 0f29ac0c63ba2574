"""Front ends in processes of their own: users and limits that change meanwhile, back ends that come and go."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from botocore.exceptions import ClientError

from tests.ports import free_port
from tests.process.programs import (
    Program,
    Raw,
    client,
    create_user,
    front_end,
    penstock,
    post,
    refusal,
    server,
    soon,
)
from tests.process.usage_log import usage_rows


def code_of(call: Callable[[], object]) -> str:
    """The error's code, or nothing."""
    try:
        call()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def works(sqs: Any) -> bool:
    return not code_of(sqs.list_queues)


def answers(url: str) -> bool:
    return post(url, "ListQueues")[0] == 200


def has_tags(sqs: Any, url: str, tags: list[str]) -> bool:
    return sorted(sqs.list_queue_tags(QueueUrl=url).get("Tags", ())) == sorted(tags)


# --- users and limits ---------------------------------------------------------------------------------------


def test_users_keys_and_limits_change_while_the_server_runs(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    program = server(tmp_path)
    try:
        anybody = client(program.url)
        url = anybody.create_queue(QueueName="orders")["QueueUrl"]
        assert post(program.url, "ListQueues")[0] == 200

        admin = create_user(tmp_path / "data", "admin", "--root")
        soon(lambda: post(program.url, "ListQueues")[0] == 403)
        assert code_of(anybody.list_queues) == "InvalidClientTokenId"
        root = client(program.url, admin)
        root.send_message(QueueUrl=url, MessageBody="espresso")

        new = penstock("user", "key", "create", "admin", "--data", data)
        new_key = (new["key_id"], new["secret"])
        soon(lambda: not code_of(client(program.url, new_key).list_queues))
        penstock("user", "key", "disable", admin[0], "--data", data)
        soon(lambda: code_of(root.list_queues) == "InvalidClientTokenId")
        penstock("user", "key", "enable", admin[0], "--data", data)
        soon(lambda: not code_of(root.list_queues))

        penstock("limit", "set", "--user", "admin", "--rate", "5", "--burst", "1", "--data", data)
        soon(lambda: code_of(root.list_queues) == "RequestThrottled")
        patient = client(program.url, admin, attempts=10)
        for _ in range(5):
            patient.send_message(QueueUrl=url, MessageBody="another")
        penstock("limit", "clear", "--user", "admin", "--data", data)
        soon(lambda: not any(code_of(root.list_queues) for _ in range(10)))
        log = program.log()
        assert admin[1] not in log
        assert new_key[1] not in log
        assert "espresso" not in log
        program.stop()
    finally:
        program.kill()


@pytest.mark.parametrize("role", ["serve", "frontend"])
def test_beyond_loopback_there_must_be_users(tmp_path: Path, role: str) -> None:
    options = ("--listen", "127.0.0.1:0") if role == "serve" else ("--backend", f"127.0.0.1:{free_port()}")
    said = refusal(role, *options, "--sqs-listen", "0.0.0.0:0", "--data", str(tmp_path / "data"))
    assert "there are no users yet" in said
    assert "penstock user create NAME --root" in said


@pytest.mark.parametrize("role", ["serve", "frontend"])
def test_another_master_key_than_that_of_the_users_is_refused(tmp_path: Path, role: str) -> None:
    data = tmp_path / "data"
    create_user(data, "ada", "--root")
    (data / "metadata.key").write_text("0" * 64)
    options = ("--listen", "127.0.0.1:0") if role == "serve" else ("--backend", f"127.0.0.1:{free_port()}")
    said = refusal(role, *options, "--sqs-listen", "127.0.0.1:0", "--data", str(data))
    assert "is not the master key that the users' access keys were encrypted and sealed with" in said


# --- what a client leaves behind ----------------------------------------------------------------------------


def test_usage_counts_every_request_once(tmp_path: Path) -> None:
    program = server(tmp_path)
    try:
        sqs = client(program.url)
        url = sqs.create_queue(QueueName="orders")["QueueUrl"]
        for _ in range(20):
            sqs.send_message(QueueUrl=url, MessageBody="x")
        assert code_of(lambda: sqs.send_message(QueueUrl=url + "-no", MessageBody="x"))
        assert code_of(lambda: sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=11))
        sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10)
        native = program.facts["url"]
        soon(lambda: len(usage_rows(native)) == 24)
        events = usage_rows(native)
        with urlopen(str(program.facts["metrics_url"]), timeout=100) as answer:
            figures = answer.read().decode().splitlines()
        program.stop()
    finally:
        program.kill()
    assert [event["number"] for event in events] == list(range(1, 25))
    assert "penstock_usage_recorded_total 24" in figures
    assert "penstock_usage_dropped_total 0" in figures
    assert sum(event["messages"] for event in events if event["action"] == "SendMessage") == 20
    assert [event["outcome"] for event in events].count("ok") == 22
    assert all(0 < event["latency_us"] < 100_000_000 for event in events)


# --- several front ends of one node -------------------------------------------------------------------------


class Cluster:
    """A node and two front ends that share their metadata."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.backend = f"127.0.0.1:{free_port()}"
        self.node: Program | None = None
        self.fronts = [front_end(directory, self.backend) for _ in range(2)]  # before there is a back end

    def start_node(self) -> Program:
        self.node = server(self.directory, listen=self.backend)
        return self.node

    def clients(self) -> tuple[Any, Any]:
        one, two = (client(front.url) for front in self.fronts)
        return one, two

    def kill(self) -> None:
        for program in (*self.fronts, self.node):
            if program is not None:
                program.kill()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    found = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        for front in found.fronts:
            assert front.facts["backend_connected"] is False
            assert post(front.url, "ListQueues")[0] == 503
        found.start_node()
        for front in found.fronts:
            soon(partial(answers, front.url))
        yield found
    finally:
        found.kill()


def test_what_one_front_end_changes_the_other_knows(cluster: Cluster) -> None:
    one, two = cluster.clients()
    url = one.create_queue(QueueName="orders", Attributes={"VisibilityTimeout": "7"})["QueueUrl"]
    sent = two.send_message(QueueUrl=url, MessageBody="espresso")
    assert one.receive_message(QueueUrl=url)["Messages"][0]["MessageId"] == sent["MessageId"]

    def attributes() -> dict[str, str]:
        found: dict[str, str] = two.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        return found

    assert attributes()["VisibilityTimeout"] == "7"
    one.set_queue_attributes(QueueUrl=url, Attributes={"VisibilityTimeout": "9", "KmsMasterKeyId": "k"})
    assert attributes()["VisibilityTimeout"] == "9"
    soon(lambda: attributes().get("KmsMasterKeyId") == "k")
    one.tag_queue(QueueUrl=url, Tags={"place": "bar"})
    soon(lambda: two.list_queue_tags(QueueUrl=url).get("Tags") == {"place": "bar"})


def test_a_queue_that_is_made_anew_is_another(cluster: Cluster) -> None:
    one, two = cluster.clients()
    url = one.create_queue(QueueName="again")["QueueUrl"]
    two.send_message(QueueUrl=url, MessageBody="old")
    one.delete_queue(QueueUrl=url)
    assert code_of(lambda: two.send_message(QueueUrl=url, MessageBody="lost")).endswith("NonExistentQueue")
    one.create_queue(QueueName="again")
    two.send_message(QueueUrl=url, MessageBody="new")
    bodies = [message["Body"] for message in one.receive_message(QueueUrl=url)["Messages"]]
    assert bodies == ["new"]


def test_duplicates_are_found_across_front_ends(cluster: Cluster) -> None:
    one, two = cluster.clients()
    url = one.create_queue(QueueName="orders.fifo", Attributes={"FifoQueue": "true"})["QueueUrl"]
    fifo = {"QueueUrl": url, "MessageGroupId": "g", "MessageDeduplicationId": "d"}
    first = one.send_message(MessageBody="espresso", **fifo)
    second = two.send_message(MessageBody="espresso", **fifo)
    assert (first["MessageId"], first["SequenceNumber"]) == (second["MessageId"], second["SequenceNumber"])
    received = two.receive_message(QueueUrl=url, MaxNumberOfMessages=10)["Messages"]
    assert len(received) == 1


def test_two_administrators_at_once_lose_nothing(cluster: Cluster) -> None:
    clients = cluster.clients()
    url = clients[0].create_queue(QueueName="tagged")["QueueUrl"]
    tags = [f"tag-{number}" for number in range(20)]

    def tag(number: int) -> None:
        clients[number % 2].tag_queue(QueueUrl=url, Tags={tags[number]: "x"})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(tag, range(20)))
    for one in clients:
        soon(partial(has_tags, one, url, tags))


def test_a_message_goes_to_who_waits_at_another_front_end(cluster: Cluster) -> None:
    one, two = cluster.clients()
    url = one.create_queue(QueueName="waiting")["QueueUrl"]
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(one.receive_message, QueueUrl=url, WaitTimeSeconds=20)
        two.send_message(QueueUrl=url, MessageBody="espresso")
        assert waiting.result(15)["Messages"][0]["Body"] == "espresso"


def test_a_back_end_that_dies_is_found_again(cluster: Cluster) -> None:
    one, two = cluster.clients()
    url = one.create_queue(QueueName="survivor")["QueueUrl"]
    one.send_message(QueueUrl=url, MessageBody="kept")
    assert cluster.node is not None
    cluster.node.kill()
    soon(lambda: code_of(lambda: two.send_message(QueueUrl=url, MessageBody="x")) == "ServiceUnavailable")
    assert code_of(one.list_queues) == "ServiceUnavailable"
    cluster.start_node()
    for sqs in (one, two):
        soon(partial(works, sqs))
    bodies = [m["Body"] for m in two.receive_message(QueueUrl=url, WaitTimeSeconds=1)["Messages"]]
    assert bodies == ["kept"]


def test_a_front_end_that_stops_answers_who_waits(cluster: Cluster) -> None:
    extra = front_end(cluster.directory, cluster.backend)
    try:
        assert post(extra.url, "CreateQueue", QueueName="quiet")[0] == 200
        raw = Raw(extra.url)
        raw.ask("ReceiveMessage", QueueUrl="quiet", WaitTimeSeconds=20)
        for _ in range(3):  # once these are answered, that one was read
            assert post(extra.url, "ListQueues")[0] == 200
        extra.stop()
        assert raw.answer() == (200, {})
        assert raw.answer() is None
        raw.close()
    finally:
        extra.kill()


def test_front_ends_agree_on_who_may_do_what(tmp_path: Path) -> None:
    """The server's own front end, and one beside it that shares its metadata."""
    admin = create_user(tmp_path / "data", "admin", "--root")
    till = create_user(tmp_path / "data", "till")
    node = server(tmp_path)
    beside = front_end(tmp_path, f"{node.facts['host']}:{node.facts['port']}", data="data")
    try:
        root = client(node.url, admin)
        url = root.create_queue(QueueName="orders")["QueueUrl"]
        users = [client(program.url, till) for program in (node, beside)]

        def codes() -> set[str]:
            send = {"QueueUrl": url, "MessageBody": "x"}
            return {code_of(partial(user.send_message, **send)) for user in users}

        assert codes() == {"AccessDenied"}
        principal = {"AWS": "arn:aws:iam::000000000000:user/till"}
        allow = {"Effect": "Allow", "Principal": principal, "Action": "sqs:SendMessage", "Resource": "*"}
        root.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps({"Statement": allow})})
        soon(lambda: codes() == {""})
        client(beside.url, admin).set_queue_attributes(QueueUrl=url, Attributes={"Policy": ""})
        soon(lambda: codes() == {"AccessDenied"})
        penstock("user", "delete", "till", "--yes", "--data", str(tmp_path / "data"))
        soon(lambda: codes() == {"InvalidClientTokenId"})
        beside.stop()
        node.stop()
    finally:
        beside.kill()
        node.kill()
