"""What the checker of kept numbers sees, in histories made by hand; and that runs meet what it is about."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from penstock.simulation.campaign import run_seed
from penstock.simulation.cluster.kept_numbers import KeptNumbers, KeptOffset
from penstock.simulation.cluster.scenario import draw_cluster_scenario

LOG = {1: b"one", 2: b"two", 1_000: b"three"}
"""That won: messages 3 to 5 were lost, and their numbers left out."""


def kept() -> KeptNumbers:
    """Everybody did everything right."""
    found = KeptNumbers()
    reader = KeptOffset("reader")
    found.readers.append(reader)
    found.read(reader, {1: b"one", 2: b"two", 3: b"lost"}, 4, 10)
    found.delivered(b"first", {3: b"lost"}, 20)
    found.settled.add(b"lost")
    found.read(reader, {1_000: b"three"}, 1_001, 30)
    found.delivered(b"second", {1: b"one"}, 40)
    found.settled.add(b"one")
    found.joined(7, "", 2, 50)
    found.joined(7, "me", 2, 51)
    found.group_read.update(LOG.values())
    found.group_offset = 1_001
    found.drained.update({b"two", b"three"})
    return found


def problems(found: KeptNumbers, readable_from: int = 1) -> list[str]:
    return [violation.sentence for violation in found.check(LOG, readable_from, 100)]


def test_what_is_lost_is_no_violation() -> None:
    assert problems(kept()) == []


def test_a_number_for_two_messages_is_noticed() -> None:
    found = kept()
    found.told(3, b"other", "was acknowledged", 60)
    assert problems(found) == ["number 3 is message lost and was acknowledged as message other"]
    found = kept()
    found.told(1_000, b"lost", "was delivered", 60)
    assert problems(found) == [
        "number 1000 is message three and was delivered as message lost",
    ]


def test_a_token_or_a_generation_for_two_things_is_noticed() -> None:
    found = kept()
    found.delivered(b"first", {2: b"two"}, 60)
    assert problems(found) == ["one token was given for messages [3] and for [2]"]
    found = kept()
    found.joined(7, "other", 2, 60)
    assert "generation 7 is one of 2 members read by 'me'" in problems(found)[0]
    found = kept()
    found.joined(7, "", 3, 60)
    assert len(problems(found)) == 1


def test_a_message_that_nobody_deleted_and_that_is_gone_is_noticed() -> None:
    found = kept()
    found.drained.discard(b"three")
    assert problems(found) == [
        "messages [1000] are gone, though nobody deleted them: receipts of others must have"
    ]


def test_a_reader_that_missed_or_repeated_something_is_noticed() -> None:
    found = kept()
    del found.readers[0].read[2]
    assert problems(found) == ["reader never read [2], and went on to 1001"]
    assert problems(found, readable_from=3) == [], "it came back with an unclean election"
    found = kept()
    found.read(found.readers[0], {1: b"one"}, 1_001, 60)
    assert problems(found) == ["reader asked for 1001 and was given 1"]
    found = kept()
    found.readers[0].position = 900
    assert problems(found) == ["reader is at 900, and the log has more"]
    found = kept()
    found.group_read.discard(b"one")
    assert problems(found) == ["the group goes on at 1001 and never read [1]"]


def test_runs_lose_messages_and_skip_their_numbers() -> None:
    drawn = [draw_cluster_scenario(Random(f"cluster of 3: {seed}"), 3) for seed in range(400)]
    keeping = [seed for seed, scenario in enumerate(drawn) if scenario.keeps_numbers]
    assert 0.1 < len(keeping) / len(drawn) < 0.3
    done: Counter[str] = Counter()
    wanted = ("hunt: lost suffix", "numbers skipped", "unclean election allowed", "replication altered")
    for seed in keeping[:30]:
        report = run_seed(seed, nodes=3)
        assert report.violations == []
        done.update(report.faults)
        if all(done[kind] for kind in wanted):
            return
    pytest.fail(f"in {len(keeping[:30])} runs there were {done}")
