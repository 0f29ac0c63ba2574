"""`penstock tail` and `penstock group`."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from tests.cli.conftest import Penstock
from tests.runtime.threaded_server import Running

_numbers = itertools.count(1)


@pytest.fixture
def log(penstock: Penstock) -> str:
    """The name of a new log of 30 messages."""
    name = f"log-{next(_numbers)}"
    assert penstock("queue", "create", name, "--consumption", "log").code == 0
    assert penstock("send", name, stdin="".join(f"{number}\n" for number in range(1, 31))).code == 0
    return name


def bodies(penstock: Penstock, *arguments: str) -> list[int]:
    outcome = penstock("tail", *arguments, "--body")
    assert outcome.code == 0, outcome.errors
    return [int(line) for line in outcome.output.splitlines()]


def test_any_place_can_be_read_from(penstock: Penstock, log: str) -> None:
    assert bodies(penstock, log) == list(range(21, 31))
    assert bodies(penstock, log, "--limit", "3") == [28, 29, 30]
    assert bodies(penstock, log, "--from", "beginning") == list(range(1, 31))
    assert bodies(penstock, log, "--from", "29") == [29, 30]
    assert bodies(penstock, log, "--from", "10m", "--limit", "2") == [1, 2]
    an_hour_ago = datetime.now(UTC) - timedelta(hours=1)
    assert bodies(penstock, log, "--from", an_hour_ago.isoformat(), "--limit", "1") == [1]
    in_an_hour = (datetime.now(UTC) + timedelta(hours=1)).astimezone().replace(tzinfo=None)
    assert bodies(penstock, log, "--from", in_an_hour.isoformat()) == []
    nothing = penstock("tail", log, "--from", "end")
    assert (nothing.code, nothing.output) == (0, "")
    assert nothing.errors == f"no message in the log of {log} from there on\n"


def test_messages_are_counted_where_numbers_are_left_out(
    penstock: Penstock, running: Running, log: str
) -> None:
    assert bodies(penstock, log, "--group", "billing", "--limit", "28") == list(range(1, 29))
    running.leave_out(log, 1 << 24)
    assert bodies(penstock, log, "--limit", "3") == [28, 29, 30], "nothing is there behind the gap yet"
    assert penstock("send", log, stdin="31\n32\n").code == 0
    assert bodies(penstock, log) == list(range(23, 33))
    assert bodies(penstock, log, "--limit", "4") == [29, 30, 31, 32]
    assert bodies(penstock, log, "--partition", "0", "--limit", "3") == [30, 31, 32]
    assert bodies(penstock, log, "--from", "28", "--limit", "4") == [28, 29, 30, 31]
    assert bodies(penstock, log, "--from", "31") == [31, 32], "a number of before a failover"
    (billing,) = penstock("group", "list", log, "--json").objects
    assert (billing["offset"], billing["lag_messages"]) == (29, 4)
    assert bodies(penstock, log, "--group", "billing") == [29, 30, 31, 32]
    moved = penstock("group", "seek", log, "billing", "--to", "1000")
    assert moved.output.endswith("2 messages to read\n")


def test_following_ends_at_the_limit(penstock: Penstock, log: str) -> None:
    assert bodies(penstock, log, "--from", "25", "--follow", "--limit", "4") == [25, 26, 27, 28]


def test_everything_a_message_carries_is_shown(penstock: Penstock) -> None:
    name = f"log-{next(_numbers)}"
    penstock("queue", "create", name, "--consumption", "both")
    penstock("send", name, "body", "-a", "colour=red", "--priority", "7", "--group", "g1")
    penstock("receive", name, "--delete")
    (message,) = penstock("tail", name, "--json").objects
    assert message.pop("sent")
    assert message == {
        "queue": name,
        "sequence": 1,
        "body": "body",
        "attributes": {"colour": "red"},
        "group": "g1",
        "priority": 7,
    }
    shown = penstock("tail", name).output
    for part in ("#1  sent ", "group g1", "priority 7", "colour = red", "body"):
        assert part in shown


def test_groups_go_on_where_they_are(penstock: Penstock, log: str) -> None:
    assert bodies(penstock, log, "--group", "billing", "--limit", "5") == [1, 2, 3, 4, 5]
    assert bodies(penstock, log, "--group", "billing", "--limit", "2") == [6, 7]
    assert bodies(penstock, log, "--group", "audit", "--from", "28") == [28, 29, 30]
    audit, billing = penstock("group", "list", log, "--json").objects
    assert (audit["group"], audit["offset"], audit["lag_messages"], audit["lag_ms"]) == ("audit", 31, 0, 0)
    assert (billing["offset"], billing["lag_messages"], billing["members"]) == (8, 23, [])
    assert billing["queue"] == log
    assert billing["lag_ms"] > 0
    lines = penstock("group", "list", log).output.splitlines()
    assert lines[0].split() == ["group", "next", "behind", "time", "behind", "members", "committed"]
    assert lines[1].split()[:4] == ["audit", "31", "0", "–"]
    assert lines[2].split()[:3] == ["billing", "8", "23"]
    (shown,) = penstock("group", "show", log, "billing", "--json").objects
    assert shown["offset"] == 8
    assert "23 messages" in penstock("group", "show", log, "billing").output


def test_groups_are_moved_and_forgotten(penstock: Penstock, log: str) -> None:
    assert bodies(penstock, log, "--group", "billing") == list(range(1, 31))
    moved = penstock("group", "seek", log, "billing", "--to", "20")
    assert (
        moved.output == f"group billing of {log} continues at message 20 (before: 31): 11 messages to read\n"
    )
    assert bodies(penstock, log, "--group", "billing", "--limit", "1") == [20]
    (again,) = penstock("group", "seek", log, "billing", "--to", "10m", "--json").objects
    assert (again["offset"], again["offset_before"]) == (1, 21)
    (end,) = penstock("group", "seek", log, "billing", "--to", "end", "--json").objects
    assert (end["offset"], end["lag_messages"]) == (31, 0)
    assert penstock("group", "delete", log, "billing").code == 2
    assert penstock("group", "delete", log, "billing", "--yes").code == 0
    assert penstock("group", "list", log).output == f"no group reads the log of {log}\n"
    assert penstock("group", "list", log, "--json").output == ""


def test_what_is_lost_with_a_log_or_a_window_is_counted(penstock: Penstock, log: str) -> None:
    assert f"Delete 30 messages of queue {log}" in penstock("purge", log).errors
    assert f"Delete queue {log} with 30 messages" in penstock("queue", "delete", log).errors
    assert penstock("queue", "delete", log, "--yes").output == f"queue {log} is deleted, with 30 messages\n"
    both, held = f"{log}-both", f"{log}-held"
    penstock("queue", "create", both, "--consumption", "both")
    penstock("send", both, "done")
    assert penstock("receive", both, "--delete", "--body").output == "done\n"
    assert penstock("purge", both, "--yes").output == f"purged 1 message from {both}\n"
    penstock("queue", "create", held, "--ordering", "causal", "--window", "1h")
    penstock("send", held, "waits")
    assert penstock("queue", "delete", held, "--yes").output == f"queue {held} is deleted, with 1 message\n"


def test_a_group_that_fell_behind_the_log_is_told_how_to_go_on(penstock: Penstock, log: str) -> None:
    assert bodies(penstock, log, "--group", "billing", "--limit", "1") == [1]
    assert penstock("purge", log, "--yes").code == 0
    assert penstock("send", log, "31").code == 0
    behind = penstock("tail", log, "--group", "billing")
    assert behind.code == 1
    assert "it begins at 31" in behind.errors
    assert "group seek --to beginning" in " ".join(behind.errors.split())
    assert penstock("group", "seek", log, "billing", "--to", "beginning").code == 0
    assert bodies(penstock, log, "--group", "billing") == [31]


def test_a_group_that_has_read_everything_is_told_so(penstock: Penstock, log: str) -> None:
    assert len(bodies(penstock, log, "--group", "billing")) == 30
    nothing = penstock("tail", log, "--group", "billing", "--from", "3")
    assert (nothing.code, nothing.output) == (0, "")
    assert nothing.errors == f"no message in the log of {log} that group billing has not read\n"


def test_mistakes_are_explained(penstock: Penstock, log: str, queue: str) -> None:
    for arguments, code, part in (
        (("tail", queue), 2, f"penstock peek {queue}"),
        (("tail", queue), 2, "--consumption log"),
        (("group", "list", queue), 2, "--consumption log"),
        (("tail", "missing"), 3, "penstock queue list"),
        (("tail", log, "--from", "yesterday"), 2, "beginning or end"),
        (("tail", log, "--from", "10 parsecs"), 2, "beginning or end"),
        (("tail", log, "--from", "99"), 2, "the next one will be 31"),
        (("group", "show", log, "nobody"), 3, f"penstock group list {log}"),
        (("group", "seek", log, "nobody", "--to", "end"), 3, f"penstock group list {log}"),
        (("group", "seek", log, "billing", "--to", "soon"), 2, "beginning or end"),
        (("group", "delete", log, "nobody", "--yes"), 3, f"penstock group list {log}"),
        (("receive", log), 2, "log"),
    ):
        outcome = penstock(*arguments)
        assert outcome.code == code, (arguments, outcome)
        assert part in " ".join(outcome.errors.replace("│", " ").split()), (arguments, outcome.errors)
    penstock("purge", log, "--yes")
    gone = penstock("tail", log, "--from", "5")
    assert gone.code == 1
    assert "no longer has message 5: it begins at 31" in gone.errors
