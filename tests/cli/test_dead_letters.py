"""`penstock dlq`: list, show, browse, redrive."""

import pytest

from tests.cli.conftest import Penstock

_names = (f"work-{number}" for number in range(1, 1_000))


@pytest.fixture
def work(penstock: Penstock) -> str:
    """A queue with three dead letters, `dead 0` to `dead 2`, in the dead-letter queue of its name and `-dead`."""
    name = next(_names)
    penstock("queue", "create", f"{name}-dead")
    penstock("queue", "create", name, "--max-receives", "1", "--dead-letter-queue", f"{name}-dead")
    for number in range(3):
        penstock("send", name, f"dead {number}", "-a", f"number={number}")
    assert len(penstock("receive", name, "--max", "3", "--visibility", "1ms", "--json").objects) == 3
    # Each is moved when its lease has ended; receiving from the dead-letter queue waits for that.
    for _ in range(3):
        assert penstock("receive", f"{name}-dead", "--wait", "20s", "--visibility", "0s", "--json").objects
    while len(penstock("peek", f"{name}-dead", "--state", "ready", "--json").objects) < 3:
        pass
    return name


def test_dead_letters_are_listed_shown_and_browsed(penstock: Penstock, work: str) -> None:
    listed = {one["queue"]: one for one in penstock("dlq", "list", "--json").objects}
    assert listed[f"{work}-dead"] == {
        "queue": f"{work}-dead",
        "exists": True,
        "ready": 3,
        "dead_letter_queue_of": [work],
    }
    assert f"{work}-dead" in penstock("dlq", "list").output
    (shown,) = penstock("dlq", "show", work, "--json").objects
    assert (shown["dead_letter_queue"], shown["ready"], shown["reasons"]) == (
        f"{work}-dead",
        3,
        {"max-receives": 3},
    )
    assert "max-receives  3" in penstock("dlq", "show", work).output
    browsed = penstock("dlq", "browse", work, "--json").objects
    assert [one["body"] for one in browsed] == ["dead 0", "dead 1", "dead 2"]
    assert browsed == penstock("dlq", "browse", f"{work}-dead", "--json").objects
    origin = browsed[0]["dead_letter"]
    assert (origin["reason"], origin["source"], origin["receive_count"]) == ("max-receives", work, 1)
    assert f"max-receives: came from {work} #" in penstock("dlq", "browse", work).output
    assert [one["body"] for one in penstock("dlq", "browse", work, "--contains", "1", "--json").objects] == [
        "dead 1"
    ]
    assert penstock("dlq", "browse", work, "--reason", "expired", "--json").output == ""


def test_all_are_sent_back(penstock: Penstock, work: str) -> None:
    assert penstock("dlq", "redrive", work, "--yes", "--json").objects == [
        {"dead_letter_queue": f"{work}-dead", "redriven_messages": 3, "target": None}
    ]
    bodies: set[str] = set()
    while len(bodies) < 3:
        for one in penstock("receive", work, "--max", "3", "--wait", "20s", "--delete", "--json").objects:
            bodies.add(one["body"])
    assert bodies == {"dead 0", "dead 1", "dead 2"}


def test_chosen_ones_are_sent_elsewhere(penstock: Penstock, work: str) -> None:
    penstock("queue", "create", f"{work}-repair")
    browsed = penstock("dlq", "browse", work, "--json").objects
    first = browsed[0]["sequence"]
    moved = penstock("dlq", "redrive", work, "--to", f"{work}-repair", "--sequence", f"{first}-{first + 1}")
    assert moved.output == f"sent 2 messages of {work}-dead to {work}-repair\n"
    moved = penstock(
        "dlq", "redrive", work, "--to", f"{work}-repair", "--attribute", "number=2", "--rate", "1000"
    )
    assert moved.output == f"sent 1 message of {work}-dead to {work}-repair\n"
    bodies: list[str] = []
    while len(bodies) < 3:
        received = penstock("receive", f"{work}-repair", "--max", "3", "--wait", "20s", "--delete", "--json")
        bodies += [one["body"] for one in received.objects]
    assert sorted(bodies) == ["dead 0", "dead 1", "dead 2"]


def test_mistakes_are_explained(penstock: Penstock, queue: str, work: str) -> None:
    none = penstock("dlq", "show", queue)
    assert none.code == 3
    assert f"penstock queue alter {queue} --dead-letter-queue NAME" in none.errors
    assert penstock("dlq", "show", "missing").code == 3
    assert "write 7 or 10-20" in penstock("dlq", "redrive", work, "--sequence", "all").errors
    assert penstock("dlq", "redrive", work, "--to", "missing", "--yes").code == 3
