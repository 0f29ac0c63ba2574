"""`penstock request`, replying with `penstock receive`, and receiving from several queues by weight."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

import penstock as client_library
from tests.cli.conftest import Outcome, Penstock


def test_several_queues_are_received_by_weight(penstock: Penstock, queue: str) -> None:
    low = f"{queue}-low"
    penstock("queue", "create", low)
    penstock("send", queue, "important", "--count", "20")
    penstock("send", low, "can wait", "--count", "20")
    taken = penstock("receive", f"{queue}:8", f"{low}:1", "-n", "9", "--delete", "--json").objects
    assert [one["queue"] for one in taken] == [queue] * 8 + [low]
    shown = penstock("receive", f"{queue}:8", low, "-n", "9", "--delete")
    assert f"{low} #2  sent" in shown.output
    assert len(penstock("receive", f"{queue}:8", low, "-n", "100", "--delete", "--json").objects) == 22
    nothing = penstock("receive", f"{queue}:8", low)
    assert nothing.errors == f"no message in {queue}, {low}\n"


@pytest.mark.parametrize("names", [["a:0"], ["a:x"], ["a:"], ["a:1", "a:2"]])
def test_weights_that_are_none_are_refused(penstock: Penstock, names: list[str]) -> None:
    assert penstock("receive", *names).code == 2


def served(url: str, queue: str, replies: list[dict[str, str]]) -> None:
    """Replies to the next requests."""
    with client_library.connect_blocking(url) as client:
        for reply in replies:
            (message,) = client.queue(queue).receive(1, wait=20)
            message.reply(**reply)  # type: ignore[arg-type]  # as the caller names them


def asked(penstock: Penstock, url: str, queue: str, *arguments: str, **reply: str) -> Outcome:
    with ThreadPoolExecutor(1) as others:
        serving = others.submit(served, url, queue, [reply])
        outcome = penstock("request", queue, *arguments)
        serving.result()
        return outcome


def test_a_request_prints_the_reply(penstock: Penstock, queue: str, server_url: str) -> None:
    outcome = asked(penstock, server_url, queue, "question", body="answer")
    assert (outcome.code, outcome.output) == (0, "answer\n")
    outcome = asked(penstock, server_url, queue, "question", "--json", "-a", "user=ada", body="answer")
    (shown,) = outcome.objects
    assert (shown["outcome"], shown["body"], shown["error"], shown["queue"]) == (
        "succeeded",
        "answer",
        None,
        queue,
    )


def test_a_request_that_failed_says_why(penstock: Penstock, queue: str, server_url: str) -> None:
    outcome = asked(penstock, server_url, queue, "question", outcome="failed", error="no idea")
    assert (outcome.code, outcome.output) == (1, "")
    assert "no idea" in outcome.errors


def test_a_request_that_nobody_replies_to_ends_in_time(penstock: Penstock, queue: str) -> None:
    outcome = penstock("request", queue, "-", "--timeout", "50ms", stdin="anybody?")
    assert outcome.code == 1
    assert "no reply to request" in outcome.errors
    (shown,) = penstock("receive", queue, "--json").objects
    assert shown["body"] == "anybody?"
    assert shown["attributes"]["penstock.correlation-id"] in outcome.errors


@pytest.mark.parametrize(
    ("option", "text", "body", "error"),
    [("--reply", "yes", "yes", None), ("--reply-failed", "no such order", "", "no such order")],
)
def test_receive_may_reply(
    penstock: Penstock, queue: str, server_url: str, option: str, text: str, body: str, error: str | None
) -> None:
    def ask() -> tuple[str, str | None]:
        with client_library.connect_blocking(server_url) as client:
            reply = client.queue(queue).request("is it there?", timeout=20)
            return reply.text(), reply.error

    with ThreadPoolExecutor(1) as others:
        asking = others.submit(ask)
        received = penstock("receive", queue, "--wait", "20s", option, text)
        assert received.code == 0
        assert asking.result() == (body, error)
    assert penstock("receive", queue).errors == f"no message in {queue}\n"


def test_a_message_that_asks_for_no_reply_stays(penstock: Penstock, queue: str) -> None:
    penstock("send", queue, "just so")
    received = penstock("receive", queue, "--reply", "thanks")
    assert received.code == 0
    assert "asks for no reply" in received.errors
    assert penstock("receive", queue, "--reply", "a", "--reply-failed", "b").code == 2


def test_the_idle_expiry_of_a_queue_is_shown(penstock: Penstock, queue: str) -> None:
    penstock("queue", "alter", queue, "--idle-expiry", "10m")
    assert "idle expiry" in penstock("queue", "show", queue).output
