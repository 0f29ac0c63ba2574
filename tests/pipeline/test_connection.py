"""How tasks reach the queue: any endpoint that answers, and clear words where none does."""

from __future__ import annotations

import socket
import threading

import pytest

from penstock.cli.exits import CommandError
from penstock.cli.pipeline.run import _unread_bytes
from penstock.model.errors import PenstockError
from penstock.pipeline import server_facts
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.server_facts import server_facts_of
from penstock.pipeline.source.connection import Connection
from penstock.pipeline.source.options import Target
from penstock.wire.credentials import Credentials
from penstock.wire.frames import encode_frame
from penstock.wire.handshake import NONCE_BYTES, ServerHandshake
from tests.client.real import served_in_a_thread
from tests.ports import free_port


def test_an_endpoint_that_does_not_answer_is_stood_in_for_by_the_next() -> None:
    with served_in_a_thread() as url:
        silent_url = f"penstock://127.0.0.1:{free_port()}"
        target = Target((silent_url, url), "q", 4.0)
        for turn in (0, 1):
            with Connection(target, turn) as connection:
                connection.client.create_queue("q", consumption="log").send_batch([b"1"])
                assert connection.log().bounds().end > 1


def test_what_jobs_ask_before_and_beside_reading_is_asked_of_any_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with served_in_a_thread() as url:
        unheard = f"127.0.0.1:{free_port()}"
        endpoints = f"{unheard},{url.removeprefix('penstock://')}"
        with Connection(Target((url,), "q", 30.0)) as connection:
            connection.client.create_queue("q", consumption="log")
        around = server_facts_of(endpoints)
        (queue,) = around.queues
        assert queue["name"] == "q"
        assert around.missing_of is not None
        asked = [("q", queue["queue_id"]), ("q", 10**6), ("nowhere", 10**6 + 1)]
        assert around.missing_of(asked) == {10**6, 10**6 + 1}
        monkeypatch.setattr(server_facts, "_SECONDS", 0.5)  # what is not there is waited for
        nothing = server_facts_of(unheard)
        assert (nothing.queues, nothing.missing_of) == ((), None)
        _unread_bytes(endpoints, "q", None)
        with pytest.raises(CommandError, match="no log"):
            _unread_bytes(endpoints, "penstock.lifecycle", None)


def test_where_no_endpoint_lets_spark_in_each_is_quoted() -> None:
    gone = f"127.0.0.1:{free_port()}"
    other = "127.0.0.1:1"
    target = Target((f"penstock://{gone}", f"penstock://{other}"), "q", 1.0, Credentials("AK", "hush"))
    with Connection(target) as connection, pytest.raises(PipelineError) as caught:
        connection.description()
    said = str(caught.value)
    assert f"no Penstock server answers at {gone}, {other}" in said
    assert f"What each endpoint answered: {gone}: [Errno" in said
    assert f"; {other}: [Errno" in said
    assert "hush" not in said
    with pytest.raises(PenstockError, match=f"none of 2 endpoints.*{gone}.*{other}"):
        _unread_bytes(f"{gone},AK:hush@{other}", "q", None)


def test_a_node_that_wants_the_cluster_secret_is_told_from_a_server_that_is_down() -> None:
    handshake = ServerHandshake(b"a secret of the cluster", "node", b"n" * NONCE_BYTES)
    with socket.create_server(("127.0.0.1", 0)) as node:

        def challenge() -> None:
            while True:
                try:
                    stranger, _ = node.accept()
                except OSError:
                    return
                with stranger:
                    stranger.sendall(b"".join(encode_frame(0, handshake.challenge())))
                    stranger.recv(65_536)

        thread = threading.Thread(target=challenge, daemon=True)
        thread.start()
        target = Target((f"penstock://127.0.0.1:{node.getsockname()[1]}",), "q", 1.0)
        with (
            Connection(target) as connection,
            pytest.raises(PipelineError, match="know the cluster's secret") as caught,
        ):
            connection.description()
        assert "a secret of the cluster" not in str(caught.value)
        node.shutdown(socket.SHUT_RDWR)
    thread.join(60)


def test_a_connection_travels_as_its_target() -> None:
    import pickle

    target = Target(("penstock://127.0.0.1:1",), "q", 1.0)
    assert pickle.loads(pickle.dumps(Connection(target, 3))).target == target
