"""Commands as a person sees them, on a terminal: colours, tables, hints, questions and progress bars."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from tests.cli.conftest import Outcome, Penstock


def at_terminal(url: str, *arguments: str, typed: str = "") -> Outcome:
    """Runs a command on a terminal of its own; the outcome's output is everything the screen was sent."""
    master, slave = pty.openpty()
    os.write(master, typed.encode())
    environment = {**os.environ, "PENSTOCK_URL": url, "TERM": "xterm-256color", "COLUMNS": "100"}
    with subprocess.Popen(
        [sys.executable, "-m", "penstock.cli.main", *arguments],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=environment,
    ) as process:
        os.close(slave)
        screen = b""
        while True:
            try:
                data = os.read(master, 65536)
            except OSError:  # how Linux says that the other end is closed
                break
            if not data:
                break
            screen += data
        code = process.wait(60)
    os.close(master)
    return Outcome(code, screen.decode().replace("\r\n", "\n"), "")


def test_a_list_is_a_table_in_colour(server_url: str, penstock: Penstock, queue: str) -> None:
    screen = at_terminal(server_url, "queue", "list", queue).output
    assert "\x1b[1mqueue" in screen
    assert "─────" in screen
    assert queue in screen


def test_a_page_and_a_message_are_shown(server_url: str, penstock: Penstock, queue: str) -> None:
    penstock("send", queue, "hello [bold]x[/bold]")
    assert "visibility timeout" in at_terminal(server_url, "queue", "show", queue).output
    received = at_terminal(server_url, "receive", queue).output
    assert "hello [bold]x[/bold]" in received
    assert "Add --delete to delete them." in received


def test_a_long_body_is_cut(server_url: str, penstock: Penstock, queue: str) -> None:
    penstock("send", queue, "x" * 5_000)
    shown = at_terminal(server_url, "peek", queue).output.replace("\n", "")
    assert "(5,000 bytes; --json shows all)" in shown
    assert shown.count("x") < 3_000


def test_a_person_is_asked_before_anything_is_lost(server_url: str, penstock: Penstock, queue: str) -> None:
    penstock("send", queue, "precious")
    kept = at_terminal(server_url, "queue", "delete", queue, typed="n\n")
    assert kept.code == 1
    assert f"Delete queue {queue} with 1 message? [y/N]" in kept.output
    assert "nothing was done" in kept.output
    purged = at_terminal(server_url, "purge", queue, typed="y\n")
    assert purged.code == 0
    assert f"purged 1 message from {queue}" in purged.output


def test_long_work_shows_how_far_it_is(server_url: str, penstock: Penstock, queue: str) -> None:
    sent = at_terminal(server_url, "send", queue, "x", "--count", "5000")
    assert sent.code == 0
    assert f"sending to {queue}" in sent.output
    assert "5000/5000" in sent.output
    assert f"sent 5,000 messages to {queue}" in sent.output
