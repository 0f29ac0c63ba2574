"""Clients behind HAProxy: whoever fails to sign is held back alone, and nobody can pass for somebody else."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

import pytest

from penstock.cluster.local.local_plan import ClusterPlan, Planned, plan_cluster
from penstock.model.settings import QueueSettings
from penstock.runtime.local_cluster import balancer, running
from penstock.runtime.local_cluster.cluster import answers_to_health
from penstock.wire.credentials import client_proof, encode_proof
from penstock.wire.frames import FrameReader, encode_frame
from penstock.wire.messages import (
    Answer,
    Challenge,
    CreateQueue,
    DescribeQueue,
    Failed,
    Hello,
    QueueDescription,
    Welcome,
    decode_answer,
    encode_message,
)
from tests.ports import ports_of
from tests.process.programs import Program, create_user, server, soon

AT_ONCE = 10
"""So many failures at once are forgiven where one a second is."""
ONE, OTHER = "127.0.0.9", "127.0.0.10"
NONCE = b"n" * 32


def asked(connection: socket.socket, head: bytes) -> Answer:
    """The answer to one request of the native protocol."""
    connection.sendall(b"".join(encode_frame(7, head)))
    reader = FrameReader()
    while True:
        data = connection.recv(65536)
        assert data, "the server closed the connection"
        for frame in reader.feed(data):
            return decode_answer(frame.head)


class Behind:
    """A server with a user or without, and HAProxy before it."""

    def __init__(self, directory: Path, stack: ExitStack, proxies: str, *, has_user: bool = True) -> None:
        self.admin = create_user(directory / "data", "admin", "--root") if has_user else ("", "")
        self.data = directory / "data"
        settings = {
            "PENSTOCK_SQS_FAILED_SIGNATURES": "1",
            "PENSTOCK_SQS_TRUSTED_PROXIES": proxies,
            "PENSTOCK_NATIVE_TRUSTED_PROXIES": proxies,
        }
        self.server: Program = server(directory, **settings)
        stack.callback(self.server.kill)
        self.direct = urlsplit(self.server.url)
        ports = {"sqs": self.direct.port or 0, "native": int(self.server.facts["port"])}
        plan = ClusterPlan(
            zones=1,
            base_port=0,
            etcd_url="",
            passes_clients_on=True,
            processes=[
                Planned(name="frontend-1", role="frontend", ports=ports),
                plan_cluster(nodes=1, front_ends=1, ports=ports_of).balancer,
            ],
        )
        program = balancer.find_haproxy()
        file = balancer.write_configuration(plan, directory, program)
        haproxy = running.start(
            balancer.balancer_command(file, program), directory / "haproxy.log", directory=directory
        )
        stack.callback(running.kill, haproxy)
        self.balanced = urlsplit(plan.sqs_url)
        self.native = urlsplit(plan.native_url)
        soon(lambda: answers_to_health(plan.balancer.address("sqs")), 60)

    def throttled(self, source: str, *, direct: bool = False, said: str | None = None) -> bool:
        """One request with a key that nobody has, from an address; whether it is held back for failing too often."""
        place = self.direct if direct else self.balanced
        connection = http.client.HTTPConnection(
            place.hostname or "", place.port, timeout=300, source_address=(source, 0)
        )
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": "AmazonSQS.ListQueues",
            "X-Amz-Date": "20260101T000000Z",
            "Authorization": "AWS4-HMAC-SHA256 Credential=AKIANOBODY/20260101/us-east-1/sqs/aws4_request, "
            f"SignedHeaders=host;x-amz-date, Signature={'0' * 64}",
        }
        if said is not None:
            headers["X-Forwarded-For"] = said
        try:
            connection.request("POST", "/", "{}", headers)
            answer = connection.getresponse()
            body = answer.read()
            assert answer.status in (400, 403, 429), body
            return b"RequestThrottled" in body
        finally:
            connection.close()

    def greeted(self, source: str, key: str, secret: str) -> socket.socket | Failed:
        """A native connection through HAProxy, from an address, with somebody's key; or why there is none."""
        place = (self.native.hostname or "", self.native.port or 0)
        connection = socket.create_connection(place, timeout=300, source_address=(source, 0))
        challenge = asked(connection, encode_message(Hello([1], "me", key, NONCE)))
        assert isinstance(challenge, Challenge), challenge
        answer = asked(connection, encode_proof(client_proof(secret, key, challenge.nonce, NONCE)))
        if isinstance(answer, Failed):
            connection.close()
            return answer
        assert isinstance(answer, Welcome)
        return connection

    def use_up(self, source: str, *, direct: bool = False) -> None:
        """Fails until it is held back."""
        assert any(self.throttled(source, direct=direct) for _ in range(20 * AT_ONCE))


@pytest.fixture
def behind(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Behind]:
    with ExitStack() as stack:
        yield Behind(tmp_path, stack, getattr(request, "param", "127.0.0.1"))


def test_one_client_that_fails_does_not_hold_up_another(behind: Behind) -> None:
    behind.use_up(ONE)
    assert not behind.throttled(OTHER)


def test_nobody_passes_for_another_client(behind: Behind) -> None:
    behind.use_up(ONE)
    # Through HAProxy, and past it: what a client says of itself is not believed.
    assert not behind.throttled(OTHER, said=ONE)
    behind.use_up("127.0.0.11", direct=True)
    others = (f"203.0.113.{number}" for number in range(1, 20 * AT_ONCE))
    assert any(behind.throttled("127.0.0.11", direct=True, said=other) for other in others)


@pytest.mark.parametrize("behind", ["192.0.2.1"], indirect=True)
def test_a_proxy_that_is_not_trusted_is_taken_for_the_client(behind: Behind) -> None:
    behind.use_up(ONE)
    assert any(behind.throttled(OTHER) for _ in range(2 * AT_ONCE))
    # What it says before a native connection is no frame, and is refused.
    place = (behind.native.hostname or "", behind.native.port or 0)
    with socket.create_connection(place, timeout=300) as connection:
        refused = asked(connection, encode_message(Hello([1], "me")))
    assert isinstance(refused, Failed)
    assert "native.trusted_proxies" in refused.message


def test_a_native_client_that_fails_does_not_hold_up_another(behind: Behind) -> None:
    """320 wrong proofs from one client, through a real HAProxy: the others are let in."""
    told = [behind.greeted(ONE, "AKIAGUESS", "guess") for _ in range(320)]
    assert isinstance(told[-1], Failed)
    assert told[-1].code == "overloaded"
    let_in = behind.greeted(OTHER, *behind.admin)
    assert isinstance(let_in, socket.socket)
    let_in.close()


def test_the_address_in_policies_is_that_of_a_native_client(behind: Behind, tmp_path: Path) -> None:
    condition = {"IpAddress": {"aws:SourceIp": ONE}}
    statement = {"Effect": "Allow", "Action": "sqs:*", "Resource": "*", "Condition": condition}
    policy = tmp_path / "policy.json"
    policy.write_text(json.dumps({"Version": "2012-10-17", "Statement": statement}))
    sam = create_user(behind.data, "sam", "--policy", str(policy))
    soon(lambda: isinstance(behind.greeted(ONE, *sam), socket.socket), 60)
    admin = behind.greeted(OTHER, *behind.admin)
    assert isinstance(admin, socket.socket)
    asked(admin, encode_message(CreateQueue("orders", QueueSettings())))
    describe = encode_message(DescribeQueue("orders"))
    one, other = behind.greeted(ONE, *sam), behind.greeted(OTHER, *sam)
    assert isinstance(one, socket.socket)
    assert isinstance(other, socket.socket)
    assert isinstance(asked(one, describe), QueueDescription)
    assert isinstance(asked(other, describe), Failed)


def status_at(place: SplitResult, **headers: str) -> int:
    """What an unsigned request is answered there."""
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=300)
    usual = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "AmazonSQS.ListQueues"}
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        connection.request("POST", "/", "{}", usual | given)
        return connection.getresponse().status
    finally:
        connection.close()


def test_without_users_a_tunnel_to_the_balancer_serves_nobody_from_elsewhere(tmp_path: Path) -> None:
    with ExitStack() as stack:
        behind = Behind(tmp_path, stack, "127.0.0.1", has_user=False)
        assert status_at(behind.balanced) == 200
        assert status_at(behind.balanced, X_Forwarded_For="127.0.0.1") == 200
        assert status_at(behind.balanced, X_Forwarded_For="203.0.113.9") == 403
        assert status_at(behind.balanced, X_Forwarded_For="203.0.113.9, 127.0.0.1") == 403


def test_without_users_only_this_machine_is_served_behind_a_proxy_too(tmp_path: Path) -> None:
    with ExitStack() as stack:
        program = server(tmp_path, PENSTOCK_SQS_TRUSTED_PROXIES="127.0.0.1")
        stack.callback(program.kill)
        place = urlsplit(program.url)

        def status(**headers: str) -> int:
            return status_at(place, **headers)

        assert status() == 200
        assert status(X_Forwarded_For="127.0.0.1") == 200
        assert status(X_Forwarded_For="203.0.113.9") == 403
        assert status(X_Forwarded_For="127.0.0.1, 203.0.113.9") == 403
        assert status(Host="rebound.example", Sec_Fetch_Site="same-origin", User_Agent="Boto3") == 403
        assert status(Host="localhost:1") == 200
