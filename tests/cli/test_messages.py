"""`penstock send`, `receive`, `peek` and `purge`."""

from pathlib import Path

import pytest

from tests.cli.conftest import Penstock


def test_a_message_is_sent_received_and_deleted(penstock: Penstock, queue: str) -> None:
    sent = penstock("send", queue, "hello")
    assert sent.code == 0
    assert sent.output.startswith("sent message ")
    received = penstock("receive", queue, "--delete")
    assert received.code == 0
    assert received.output.splitlines()[-1] == "hello"
    nothing = penstock("receive", queue)
    assert (nothing.code, nothing.output) == (0, "")
    assert nothing.errors == f"no message in {queue}\n"


def test_without_delete_a_message_comes_back(penstock: Penstock, queue: str) -> None:
    penstock("send", queue, "again")
    assert penstock("receive", queue, "--visibility", "1ms", "--json").objects[0]["receive_count"] == 1
    (again,) = penstock("receive", queue, "--wait", "20s", "--json").objects
    assert (again["body"], again["receive_count"]) == ("again", 2)
    assert again["first_received"] is not None


def test_everything_a_message_carries_is_shown(penstock: Penstock, queue: str) -> None:
    (sent,) = penstock(
        "send", queue, "body", "-a", "colour=red", "-a", "size=5", "--priority", "7", "--group", "g1",
        "--deduplication-id", "d1", "--ttl", "1h", "--json",
    ).objects  # fmt: skip
    assert sent["duplicate"] is False
    (again,) = penstock("send", queue, "body", "--deduplication-id", "d1", "--json").objects
    assert (again["duplicate"], again["sequence"]) == (True, sent["sequence"])
    (peeked,) = penstock("peek", queue, "--json").objects
    assert peeked == {
        "queue": queue,
        "sequence": sent["sequence"],
        "body": "body",
        "sent": sent["sent"],
        "receive_count": 0,
        "first_received": None,
        "state": "ready",
        "attributes": {"colour": "red", "size": "5"},
        "group": "g1",
        "priority": 7,
        "deduplication_id": "d1",
    }
    for_people = penstock("peek", queue).output
    for part in ("ready", "group g1", "priority 7", "deduplication id d1", "colour = red", "body"):
        assert part in for_people


def test_a_delayed_message_is_not_received_before(penstock: Penstock, queue: str) -> None:
    penstock("send", queue, "later", "--delay", "1h")
    assert penstock("receive", queue, "--json").output == ""
    (peeked,) = penstock("peek", queue, "--state", "delayed", "--json").objects
    assert peeked["state"] == "delayed"


def test_lines_of_the_input_become_messages(penstock: Penstock, queue: str) -> None:
    sent = penstock("send", queue, "--json", stdin="one\ntwo\r\n\nfour")
    assert sent.objects[0]["sent_messages"] == 4
    received = penstock("receive", queue, "--max", "10", "--body", "--delete")
    assert received.output == "one\ntwo\n\nfour\n"


def test_a_body_can_be_repeated(penstock: Penstock, queue: str) -> None:
    sent = penstock("send", queue, "copy", "--count", "250")
    assert sent.code == 0
    assert sent.output.startswith(f"sent 250 messages to {queue} in ")
    assert len(penstock("receive", queue, "--max", "1000", "--json").objects) == 250


def test_a_file_is_one_body_and_bytes_that_are_no_text_are_marked(
    penstock: Penstock, queue: str, tmp_path: Path
) -> None:
    file = tmp_path / "body"
    file.write_bytes(b"\xff\x00\n\x1b[31m")
    assert penstock("send", queue, "--file", str(file)).code == 0
    (peeked,) = penstock("peek", queue, "--json").objects
    assert peeked["body_base64"] == "/wAKG1szMW0="
    assert "body" not in peeked
    assert "[base64, the body is not UTF-8]\n/wAKG1szMW0=\n" in penstock("peek", queue).output


def test_control_characters_do_not_reach_the_terminal(penstock: Penstock, queue: str) -> None:
    penstock(
        "send",
        queue,
        "red \x1b[31m [bold]kept[/bold] \u202e end",
        "-a",
        "x\x1b=\x07",
        "--group",
        "\x1b]0;t\x07",
    )
    shown = penstock("peek", queue).output
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "\u202e" not in shown
    assert "red \\x1b[31m [bold]kept[/bold] \\u202e end" in shown


def test_peek_filters(penstock: Penstock, queue: str) -> None:
    for number in range(6):
        colour = "red" if number % 2 else "blue"
        penstock("send", queue, f"body {number}", "-a", f"colour={colour}", "--group", f"g{number % 3}")
    penstock("receive", queue, "--visibility", "1h")

    def sequences(*options: str) -> list[str]:
        return [one["body"] for one in penstock("peek", queue, "--json", *options).objects]

    assert len(sequences()) == 6
    assert sequences("--max", "2") == ["body 0", "body 1"]
    assert sequences("--contains", "dy 3") == ["body 3"]
    assert sequences("--attribute", "colour=red") == ["body 1", "body 3", "body 5"]
    assert sequences("--group", "g2") == ["body 2", "body 5"]
    assert sequences("--attribute", "colour=red", "--group", "g2") == ["body 5"]
    assert len(sequences("--state", "leased")) == 1
    assert len(sequences("--state", "ready", "--state", "leased")) == 6
    first = penstock("peek", queue, "--json").objects[0]["sequence"]
    assert sequences("--from", str(first + 4)) == ["body 4", "body 5"]
    nothing = penstock("peek", queue, "--contains", "nowhere")
    assert (nothing.code, nothing.output, nothing.errors) == (0, "", f"no such message in {queue}\n")


def test_purge(penstock: Penstock, queue: str) -> None:
    penstock("send", queue, "x", "--count", "30")
    assert penstock("purge", queue).code == 2
    purged = penstock("purge", queue, "--yes")
    assert (purged.code, purged.output) == (0, f"purged 30 messages from {queue}\n")
    assert penstock("purge", queue, "--yes", "--json").objects == [{"queue": queue, "purged_messages": 0}]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["send", "missing", "x"], 3, "penstock queue list"),
        (["receive", "missing"], 3, "penstock queue list"),
        (["peek", "missing"], 3, "penstock queue list"),
        (["purge", "missing", "--yes"], 3, "penstock queue list"),
        (["send", "missing", "x", "--delay", "tomorrow"], 2, "'tomorrow' is not a duration"),
        (["send", "missing", "x", "--attribute", "colour"], 2, "write name=value"),
        (["send", "missing", "x", "--file", "y"], 2, "not both"),
        (["send", "missing", "--file", "/no/such/file"], 1, "cannot read /no/such/file: No such file"),
        (["send", "missing", "x", "--priority", "10"], 2, "--priority"),
        (["send", "missing", "--count", "2"], 2, "--count repeats one body"),
        (["peek", "missing", "--state", "asleep"], 2, "use ready, leased, delayed, moving"),
        (["receive", "missing", "--max", "0"], 2, "--max"),
    ],
)
def test_mistakes_are_explained(penstock: Penstock, arguments: list[str], code: int, says: str) -> None:
    outcome = penstock(*arguments)
    assert outcome.code == code
    assert says in outcome.errors
    assert "Traceback" not in outcome.errors


def test_a_full_queue_refuses_for_now(penstock: Penstock) -> None:
    penstock("queue", "create", "tiny", "--max-messages", "1")
    assert penstock("send", "tiny", "fits").code == 0
    refused = penstock("send", "tiny", "does not")
    assert refused.code == 4
    assert "raise its limits with `penstock queue alter`" in refused.errors


def test_a_message_that_is_too_large_is_a_mistake(penstock: Penstock) -> None:
    penstock("queue", "create", "small", "--max-message-size", "10B")
    assert penstock("send", "small", "much too large").code == 2
