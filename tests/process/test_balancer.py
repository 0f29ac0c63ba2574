"""HAProxy in front of real front ends: one dies and nobody notices, another comes and is used."""

from __future__ import annotations

import csv
import http.client
import io
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
import pytest

import penstock
from penstock.cluster.local.local_plan import ClusterPlan, Planned, plan_cluster
from penstock.runtime.local_cluster import balancer, running
from penstock.runtime.local_cluster.cluster import answers_to_health
from tests.ports import ports_of
from tests.process.programs import Program, client, front_end, server, soon

MESSAGES = 40


class Balanced:
    """A server, front ends of its, and HAProxy before them."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self._stack = stack
        self.server = server(directory)
        stack.callback(self.server.kill)
        self.front_ends = {name: self._front_end(name) for name in ("frontend-1", "frontend-2")}
        program = balancer.find_haproxy()
        file = balancer.write_configuration(self.plan(), directory, program)
        self.haproxy = running.start(
            balancer.balancer_command(file, program), directory / "haproxy.log", directory=directory
        )
        stack.callback(running.kill, self.haproxy)
        soon(lambda: answers_to_health(self.plan().balancer.address("sqs")))

    def _front_end(self, name: str) -> Program:
        program = front_end(self.directory, f"127.0.0.1:{self.server.facts['port']}", f"data-{name}")
        self._stack.callback(program.kill)
        return program

    def add(self, name: str) -> None:
        """Another front end, of which HAProxy is told."""
        self.front_ends[name] = self._front_end(name)
        balancer.write_configuration(self.plan(), self.directory, balancer.find_haproxy())
        assert balancer.reload_balancer(self.haproxy)

    def plan(self) -> ClusterPlan:
        """As if they were a cluster's."""
        if not hasattr(self, "_ports"):
            self._ports = plan_cluster(nodes=1, front_ends=1, ports=ports_of).balancer
        planned = [
            Planned(
                name=name,
                role="frontend",
                ports={"sqs": urlsplit(one.url).port or 0, "native": int(self.server.facts["port"])},
            )
            for name, one in self.front_ends.items()
        ]
        return ClusterPlan(zones=1, base_port=0, etcd_url="", processes=[*planned, self._ports])

    def seen(self) -> dict[str, str]:
        """What HAProxy thinks of each front end that speaks SQS."""
        return {
            row["svname"]: row["status"]
            for row in self._page()
            if row["pxname"] == "sqs" and row["svname"] in self.front_ends
        }

    def native_connections(self) -> int:
        """Those that have a place at the native endpoint."""
        (row,) = [row for row in self._page() if (row["pxname"], row["svname"]) == ("native", "FRONTEND")]
        return int(row["scur"])

    def _page(self) -> list[dict[str, str]]:
        connection = http.client.HTTPConnection(self.plan().balancer.address("page"), timeout=100)
        connection.request("GET", "/;csv")
        rows = list(csv.DictReader(io.StringIO(connection.getresponse().read().decode().lstrip("# "))))
        connection.close()
        return rows


@pytest.fixture(scope="module")
def balanced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Balanced]:
    """For tests that leave it as it is."""
    with ExitStack() as stack:
        yield Balanced(tmp_path_factory.mktemp("balanced"), stack)


@pytest.fixture
def to_be_harmed(tmp_path: Path) -> Iterator[Balanced]:
    """For one test."""
    with ExitStack() as stack:
        yield Balanced(tmp_path, stack)


def test_a_front_end_that_dies_is_taken_out_and_another_one_joins(to_be_harmed: Balanced) -> None:
    balanced = to_be_harmed
    sqs = client(balanced.plan().sqs_url, attempts=5)
    url = sqs.create_queue(QueueName="orders")["QueueUrl"]
    sent = []
    for number in range(MESSAGES):
        if number == MESSAGES // 2:
            balanced.front_ends["frontend-1"].kill()
        sqs.send_message(QueueUrl=url, MessageBody=str(number))
        sent.append(str(number))
    soon(lambda: balanced.seen()["frontend-1"].startswith("DOWN"))
    assert balanced.seen()["frontend-2"].startswith("UP")

    balanced.add("frontend-3")
    soon(lambda: balanced.seen().get("frontend-3", "").startswith("UP"))
    balanced.front_ends["frontend-2"].kill()
    received: set[str] = set()
    while len(received) < MESSAGES:
        found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5).get(
            "Messages", []
        )
        assert found, f"{len(received)} of {MESSAGES} messages"
        received.update(message["Body"] for message in found)
    assert received == set(sent)


def test_the_native_endpoint_leads_to_a_node(balanced: Balanced) -> None:
    with penstock.connect_blocking(balanced.plan().native_url) as native:
        native.create_queue("orders").send(b"hello")
        assert native.queue("orders").describe().statistics.ready == 1


def test_a_client_that_was_refused_keeps_no_place_by_not_closing_its_side(balanced: Balanced) -> None:
    """Else strangers could take all places, also those of SQS, for as long as a native connection may be silent: a day."""
    host, _, port = balanced.plan().balancer.address("native").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=100) as connection:
        connection.sendall(b"this is no frame")
        assert balanced.native_connections()
        while connection.recv(1 << 16):
            pass  # why it is refused, and the end
        soon(lambda: not balanced.native_connections())


def test_a_configuration_that_haproxy_does_not_take_changes_nothing(balanced: Balanced) -> None:
    before = (balanced.directory / "haproxy.cfg").read_text()
    plan = balanced.plan()
    wrong = Planned(name="frontend-9", role="frontend", ports={"sqs": 70_000, "native": 1})
    bad = msgspec.structs.replace(plan, processes=[*plan.processes, wrong])
    with pytest.raises(balancer.BalancerRefusedError, match="frontend-9"):
        balancer.write_configuration(bad, balanced.directory, balancer.find_haproxy())
    assert (balanced.directory / "haproxy.cfg").read_text() == before


HIDDEN = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
HEAD = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
LENGTH = b"Content-Length: %d\r\n" % len(HIDDEN)
AMBIGUOUS = {
    "a length and chunks": HEAD + b"Content-Length: 5\r\n" + CHUNKED + b"\r\n0\r\n\r\n",
    "chunks and a length": HEAD + CHUNKED + LENGTH + b"\r\n0\r\n\r\n",
    "another coding too": HEAD + CHUNKED + b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    "a coding that is none": HEAD + b"Transfer-Encoding: xchunked\r\n" + LENGTH + b"\r\n",
    "a coding after a tab": HEAD + b"Transfer-Encoding:\tchunked\r\n" + LENGTH + b"\r\n",
    "two lengths": HEAD + b"Content-Length: 0\r\n" + LENGTH + b"\r\n",
    "a length with a sign": HEAD + LENGTH.replace(b": ", b": +") + b"\r\n",
    "a space before the colon": HEAD + LENGTH.replace(b":", b" :") + b"\r\n",
    "another protocol": HEAD + b"Connection: Upgrade\r\nUpgrade: h2c\r\n" + LENGTH + b"\r\n",
    "another protocol, in chunks": HEAD
    + b"Connection: Upgrade\r\nUpgrade: websocket\r\n"
    + CHUNKED
    + b"\r\n%x\r\n" % len(HIDDEN),
    "a body of a GET": HEAD.replace(b"POST", b"GET") + LENGTH + b"\r\n",
    "a body of a HEAD": HEAD.replace(b"POST", b"HEAD") + LENGTH + b"\r\n",
}


@pytest.mark.parametrize("head", AMBIGUOUS.values(), ids=AMBIGUOUS)
def test_no_request_hides_in_the_body_of_another(balanced: Balanced, head: bytes) -> None:
    """HAProxy and the front ends must agree where a request ends: else one client gets the answer to another's."""
    host, _, port = balanced.plan().balancer.address("sqs").rpartition(":")
    with socket.create_connection((host, int(port)), timeout=100) as connection:
        connection.sendall(head + HIDDEN)
        connection.shutdown(socket.SHUT_WR)
        heard = b""
        while piece := connection.recv(1 << 16):
            heard += piece
    assert b"\r\n\r\nok\n" not in heard


def test_the_page_is_for_this_machine_and_not_for_pages_of_other_sites(balanced: Balanced) -> None:
    place = balanced.plan().balancer.address("page")
    for host, status in (
        (place, 200),
        ("localhost", 200),
        ("rebound.example:9325", 403),
        ("localhost.evil", 403),
    ):
        connection = http.client.HTTPConnection(place, timeout=100)
        connection.request("GET", "/;csv", headers={"Host": host})
        assert connection.getresponse().status == status, host
        connection.close()
