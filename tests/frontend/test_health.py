"""A load balancer asks how a front end is: without a signature, without a trace in the record of usage."""

from __future__ import annotations

from pathlib import Path

from penstock.cluster.local.haproxy import HEALTH_PATH
from penstock.sqs.protocols.http import HttpRequest
from tests.frontend.pipeline import Pipeline


def test_anybody_may_ask_and_nothing_is_recorded(tmp_path: Path) -> None:
    server = Pipeline(tmp_path)
    try:
        server.add_user("root", root=True)
        for method in ("GET", "HEAD"):
            answer = server.send(HttpRequest(method, HEALTH_PATH, "", {"host": "balancer"}))
            assert (answer.status, answer.body) == (200, b"ok\n")
        assert server.recorded() == []
        refused = server.send(HttpRequest("POST", HEALTH_PATH, "", {"host": "balancer"}))
        assert refused.status != 200
    finally:
        server.usage.close()
