"""`penstock queue`: create, alter, delete, list, show."""

import pytest

from tests.cli.conftest import Penstock


def test_a_queue_is_created_shown_changed_and_deleted(penstock: Penstock) -> None:
    created = penstock("queue", "create", "life", "--visibility-timeout", "1h30m", "--max-bytes", "64KiB")
    assert (created.code, created.output) == (0, "queue life is ready\n")
    shown = penstock("queue", "show", "life")
    assert shown.code == 0
    assert "visibility timeout    1h30m" in shown.output
    assert "max bytes             64KiB" in shown.output
    altered = penstock("queue", "alter", "life", "--max-bytes", "none", "--retention", "1d", "--json")
    assert altered.code == 0
    (described,) = altered.objects
    assert described["settings"]["max_bytes"] is None
    assert described["settings"]["retention_ms"] == 86_400_000
    assert described["settings"]["visibility_timeout_ms"] == 5_400_000
    deleted = penstock("queue", "delete", "life", "--yes")
    assert (deleted.code, deleted.output) == (0, "queue life is deleted, with 0 messages\n")
    assert penstock("queue", "show", "life").code == 3


def test_every_setting_can_be_given(penstock: Penstock) -> None:
    penstock("queue", "create", "every-dead")
    created = penstock(
        "queue", "create", "every", "--fifo", "--max-messages", "10", "--max-groups", "4", "--max-bytes", "1MiB",
        "--max-message-size", "2KiB", "--overflow", "dead-letter", "--visibility-timeout", "5s",
        "--retention", "2h", "--delay", "250ms", "--default-ttl", "1h", "--deduplication-window", "1m",
        "--max-receives", "3", "--dead-letter-queue", "every-dead", "--window", "5ms", "--max-uncertainty", "20ms",
        "--when-uncertain", "hold", "--consumption", "both", "--retain-bytes", "4MiB", "--idle-expiry", "1d", "--lifecycle",
        "--json",
    )  # fmt: skip
    assert created.code == 0, created.errors
    (described,) = created.objects
    assert described["settings"] == {
        "ordering": "fifo",
        "stamps": "server",
        "window_ms": 5,
        "max_uncertainty_ms": 20,
        "when_uncertain": "hold",
        "consumption": "both",
        "retain_bytes": 4 << 20,
        "idle_expiry_ms": 86_400_000,
        "partitions": 1,
        "replicas": 1,
        "replication": "sync",
        "min_in_sync": None,
        "max_messages": 10,
        "max_groups": 4,
        "max_bytes": 1 << 20,
        "max_message_bytes": 2048,
        "overflow": "dead-letter",
        "visibility_timeout_ms": 5_000,
        "retention_ms": 7_200_000,
        "delay_ms": 250,
        "default_ttl_ms": 3_600_000,
        "deduplication_window_ms": 60_000,
        "max_receives": 3,
        "dead_letter_queue": "every-dead",
        "lifecycle": True,
    }


def test_the_settings_of_order_and_of_a_log_are_shown_where_they_apply(penstock: Penstock) -> None:
    ordered = ("queue", "create", "by-clock", "--ordering", "clock", "--stamps", "producer", "--window", "2s")
    assert penstock(*ordered).code == 0
    shown = penstock("queue", "show", "by-clock").output
    assert "stamps                producer" in shown
    assert "window                2s" in shown
    assert penstock("queue", "create", "a-log", "--consumption", "log", "--retain-bytes", "1GiB").code == 0
    shown = penstock("queue", "show", "a-log").output
    assert "consumption           log" in shown
    assert "retain bytes          1GiB" in shown
    assert "uncertain" not in shown


def test_settings_that_contradict_each_other_are_refused(penstock: Penstock) -> None:
    both = penstock("queue", "create", "contradiction", "--fifo", "--ordering", "clock")
    assert both.code == 2
    assert "contradict" in both.errors
    sorted_log = penstock("queue", "create", "contradiction", "--ordering", "causal", "--consumption", "log")
    assert sorted_log.code != 0
    assert "order of arrival" in sorted_log.errors
    limited = penstock("queue", "create", "contradiction", "--consumption", "log", "--max-messages", "5")
    assert limited.code != 0
    assert "retain_bytes" in limited.errors


def test_without_a_cluster_copies_are_refused(penstock: Penstock) -> None:
    for option in (
        ("--replicas", "3"),
        ("--partitions", "4"),
        ("--replication", "async"),
        ("--min-in-sync", "2"),
    ):
        refused = penstock("queue", "create", "copied", *option)
        assert refused.code != 0
        assert "need a cluster" in refused.errors
    assert penstock("queue", "show", "copied").code == 3
    assert penstock("queue", "create", "alone").code == 0
    altered = penstock("queue", "alter", "alone", "--replicas", "3")
    assert (altered.code, "need a cluster" in altered.errors) == (2, True)


def test_creating_twice_finds_the_queue_unless_the_settings_differ(penstock: Penstock) -> None:
    assert penstock("queue", "create", "twice").code == 0
    assert penstock("queue", "create", "twice").code == 0
    differs = penstock("queue", "create", "twice", "--delay", "1s")
    assert differs.code == 1
    assert "penstock queue alter" in differs.errors


def test_queues_are_listed_by_prefix(penstock: Penstock) -> None:
    for name in ("list-a", "list-b", "other"):
        penstock("queue", "create", name)
    assert [one["name"] for one in penstock("queue", "list", "list-", "--json").objects] == [
        "list-a",
        "list-b",
    ]
    table = penstock("queue", "list", "list-").output.splitlines()
    assert table[0].split()[:2] == ["queue", "ready"]
    assert [line.split()[0] for line in table[1:]] == ["list-a", "list-b"]
    nothing = penstock("queue", "list", "no-such-prefix")
    assert (nothing.code, nothing.output) == (0, "no queue begins with no-such-prefix\n")
    assert penstock("queue", "list", "no-such-prefix", "--json").output == ""


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["create", "not a name"], 2, "is not a queue name"),
        (["create", "bad", "--delay", "soon"], 2, "'soon' is not a duration; write 250ms, 30s"),
        (["create", "bad", "--max-bytes", "1XB"], 2, "unknown unit"),
        (["create", "bad", "--max-messages", "many"], 2, "'many' is not a whole number"),
        (["create", "bad", "--max-receives", "3"], 2, "needs a dead_letter_queue"),
        (["create", "bad", "--overflow", "explode"], 2, "is none of reject, drop-oldest"),
        (["alter", "missing", "--delay", "1s"], 3, "penstock queue list"),
        (["alter", "missing"], 2, "nothing to change"),
        (["delete", "missing", "--yes"], 3, "penstock queue list"),
        (["show", "missing"], 3, "penstock queue list"),
        (["creat", "x"], 2, "Did you mean 'create'"),
    ],
)
def test_mistakes_are_explained(penstock: Penstock, arguments: list[str], code: int, says: str) -> None:
    outcome = penstock("queue", *arguments)
    assert outcome.code == code
    assert says in outcome.errors
    assert "Traceback" not in outcome.errors


def test_deleting_asks_first(penstock: Penstock, queue: str) -> None:
    outcome = penstock("queue", "delete", queue)
    assert outcome.code == 2
    assert "--yes" in outcome.errors
    assert penstock("queue", "show", queue).code == 0


def test_logs_of_penstock_itself_are_listed_on_demand_only(penstock: Penstock) -> None:
    assert penstock("queue", "create", "followed", "--lifecycle").code == 0
    penstock("send", "followed", "hello")
    shown = penstock("queue", "show", "followed").output
    assert "rows dropped" in shown
    assert penstock("queue", "alter", "followed", "--no-lifecycle").code == 0
    penstock("queue", "create", "penstock.usage", "--consumption", "log")  # if requests have not made it yet
    assert "penstock.usage" not in penstock("queue", "list").output
    (line,) = [
        line
        for line in penstock("queue", "list", "--internal").output.splitlines()
        if "penstock.usage" in line
    ]
    assert line.endswith("internal")
    refused = penstock("queue", "delete", "penstock.usage", "--yes")
    assert refused.code != 0
    assert "written by Penstock itself" in " ".join(refused.errors.split())
