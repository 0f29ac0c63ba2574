"""How tasks reach the queue: any endpoint that answers, and clear words where none does."""

from __future__ import annotations

import socket
import threading

import pytest

from penstock.cli.exits import CommandError
from penstock.cli.pipeline_run import _check_queue
from penstock.pipeline import surroundings
from penstock.pipeline.source.connection import Connection
from penstock.pipeline.source.options import Target
from penstock.pipeline.surroundings import surroundings_of
from penstock.pipeline.trouble import PipelineError
from penstock.wire.frames import encode_frame
from penstock.wire.handshake import NONCE_BYTES, ServerHandshake
from tests.client.real import served_in_a_thread


def test_an_endpoint_that_does_not_answer_is_stood_in_for_by_the_next() -> None:
    with served_in_a_thread() as url, socket.create_server(("127.0.0.1", 0)) as silent:
        silent_url = f"penstock://127.0.0.1:{silent.getsockname()[1]}"
        silent.close()
        target = Target((silent_url, url), "q", 4.0)
        for turn in (0, 1):
            with Connection(target, turn) as connection:
                connection.client.create_queue("q", consumption="log").send_batch([b"1"])
                assert connection.log().bounds().end > 1


def test_what_jobs_ask_before_and_beside_reading_is_asked_of_any_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(surroundings, "_SECONDS", 4.0)  # what is not there is waited for
    with served_in_a_thread() as url, socket.create_server(("127.0.0.1", 0)) as silent:
        unheard = f"127.0.0.1:{silent.getsockname()[1]}"
        silent.close()
        endpoints = f"{unheard},{url.removeprefix('penstock://')}"
        with Connection(Target((url,), "q", 30.0)) as connection:
            connection.client.create_queue("q", consumption="log")
        assert [one["name"] for one in surroundings_of(endpoints).queues] == ["q"]
        assert surroundings_of(unheard).queues == ()
        _check_queue(endpoints, "q")
        with pytest.raises(CommandError, match="no log"):
            _check_queue(endpoints, "penstock.lifecycle")


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
