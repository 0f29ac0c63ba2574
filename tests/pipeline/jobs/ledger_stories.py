"""Stories of partitions: what happened, which rows never came, where a roll-up cuts it, and what the ledger may say of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from penstock.columnar.lifecycle import Change
from penstock.pipeline.numbers import Gap
from tests.pipeline.rows import Partition

Finding = tuple[str, int | None]


class Story(Partition):
    """A partition, of a queue of its own unless it is told otherwise."""

    def __init__(self, partition_id: int, queue: str | None = None, ordering: str = "best-effort") -> None:
        super().__init__(queue or f"queue-{partition_id}", partition_id, ordering, queue_id=partition_id)
        self.partition_id = partition_id
        self.expected: list[Finding] = []
        self.open: list[int] = []
        """Messages that are still there in the end."""
        self.cut: int | None = None
        """So many rows are seen by the first roll-up; None: all."""
        self.gaps: list[Gap] = []

    def roll_up(self) -> None:
        """What comes now is seen by the next one."""
        self.cut = len(self.rows)

    def loses(self, count: int = 1) -> None:
        """The last rows never reach the log."""
        del self.rows[-count:]
        self.gaps.append(Gap(str(self.partition_id), self.number - count + 1, self.number))

    def moves(self, first: int, target: str, reason: str = "max-receives") -> None:
        """To another queue."""
        self.happens(Change.MOVE_STARTED, first, reason=reason, other_queue=target)
        self.happens(Change.MOVE_FINISHED, first, reason=reason, other_queue=target)


def _a_census_that_a_roll_up_cuts(story: Story) -> None:
    story.sent(1, 10)
    story.counts(Change.QUEUE_DELETED, (1, 2), (3, 2), (5, 2), (8, 3))  # where is 7?
    story.cut = 3
    story.expected = [("lost", 7)]
    story.open = [7]


def _a_census_that_a_roll_up_cuts_when_following_begins_again(story: Story) -> None:
    story.sent(1, 4)
    story.counts(Change.UNFOLLOWED, (1, 4))
    story.counts(Change.STOOD, (1, 1), (3, 2))  # 2 was deleted meanwhile
    story.cut = 3
    story.open = [1, 3, 4]


def _a_census_of_nothing(story: Story) -> None:
    story.sent(1, 2)
    story.worked_on(1)
    story.roll_up()
    story.counts(Change.UNFOLLOWED)
    story.expected = [("lost", 2)]
    story.open = [2]


def _a_census_of_nothing_where_all_is_well(story: Story) -> None:
    story.sent(1)
    story.worked_on(1)
    story.counts(Change.UNFOLLOWED)
    story.counts(Change.STOOD)
    story.sent(2)
    story.open = [2]


def _a_census_without_one_that_nobody_sent(story: Story) -> None:
    story.sent(1)
    story.leased(5)
    story.counts(Change.STOOD, (1, 1))
    story.roll_up()
    story.worked_on(1)
    story.expected = [("lost", 5), ("unsent", 5)]
    story.open = [5]


def _a_gap_in_which_messages_began(story: Story) -> None:
    story.sent(1)
    story.sent(2, 2)
    story.loses()
    story.worked_on(2)
    story.roll_up()
    story.leased(3)
    story.sent(4)
    story.leased(9)  # this one cannot have begun there
    story.expected = [("gap", None), ("unsent", 9)]
    story.open = [1, 3, 4, 9]


def _a_gap_in_which_messages_ended(story: Story) -> None:
    story.sent(1, 3)
    story.leased(1, 2)
    story.deleted(1, 2)
    story.loses()
    story.roll_up()
    story.sent(4)
    story.counts(Change.QUEUE_DELETED, (3, 1))
    story.expected = [("gap", None), ("lost", 4)]
    story.open = [4]


def _a_gap_in_a_census(story: Story) -> None:
    story.sent(1, 3)
    story.counts(Change.QUEUE_DELETED, (1, 1), (3, 1))
    first = story.rows.pop(-2)
    story.gaps.append(Gap(str(story.partition_id), first["number"], first["number"]))
    story.expected = [("gap", None)]


def _a_gap_in_which_one_was_handed_out(story: Story) -> None:
    story.sent(1, 3)
    story.leased(1)
    story.loses()
    story.leased(2)
    story.roll_up()
    story.sent(4, 2)
    story.leased(5)
    story.expected = [("gap", None), ("reordered", 5)]
    story.open = [1, 2, 3, 4, 5]


def _a_gap_before_retention_is_over(story: Story) -> None:
    story.sent(1, 2)
    story.worked_on(1, 2)
    story.loses()
    story.time += timedelta(hours=9)
    story.sent(3)
    story.expected = [("gap", None)]
    story.open = [3]


def _one_that_is_overdue(story: Story) -> None:
    story.sent(1, 2)
    story.worked_on(1)
    story.time += timedelta(hours=9)
    story.sent(3)
    story.expected = [("lost", 2)]
    story.open = [2, 3]


def _one_that_is_overdue_on_its_way_elsewhere(story: Story) -> None:
    story.sent(1)
    story.happens(Change.MOVE_STARTED, 1, reason="max-receives", other_queue="full")
    story.time += timedelta(hours=9)
    story.sent(2)
    story.open = [1, 2]


def _a_partition_that_is_away(story: Story) -> None:
    story.sent(1)  # the rows of others are much younger
    story.open = [1]


def _following_ends_and_begins_within_a_roll_up(story: Story) -> None:
    story.number = 5  # the log has let go of what was before
    story.leased(1)
    story.counts(Change.UNFOLLOWED, (1, 2))
    story.counts(Change.STOOD, (1, 2))
    story.leased(2)  # the first may have been handed out meanwhile
    story.worked_on(1)
    story.counts(Change.UNFOLLOWED, (2, 1))
    story.counts(Change.STOOD, (2, 1))
    story.roll_up()
    story.worked_on(2)


def _following_ends_and_begins_again(story: Story) -> None:
    story.sent(1, 4)
    story.leased(1)
    story.happens(Change.UNFOLLOWED, 1, 4)
    story.happens(Change.STOOD, 2, 3)  # the first was deleted meanwhile
    story.worked_on(2)
    story.roll_up()
    story.leased(3)
    story.open = [3, 4]


def _following_begins_again_and_one_ends_twice(story: Story) -> None:
    story.sent(1, 2)
    story.happens(Change.UNFOLLOWED, 1, 2)
    story.happens(Change.STOOD, 1, 2)
    story.worked_on(2)
    story.roll_up()
    story.deleted(2)
    story.expected = [("duplicate-end", 2)]
    story.open = [1]


def _sent_before_the_log_begins(story: Story) -> None:
    story.sent(1, 3)
    story.leased(1, 2)
    story.sent(4)
    story.deleted(1, 2)
    story.worked_on(3)
    story.leased(20)
    del story.rows[0]  # the log has let go of it
    story.expected = [("unsent", 20)]
    story.open = [4, 20]


def _what_is_normal(story: Story) -> None:
    story.sent(1, 6, message_group="a")
    story.sent(7, 2, message_group="b")
    story.leased(1, 2)
    story.leased(7)  # another group need not wait
    story.happens(Change.RELEASED, 1, reason="lease-ended")
    story.deleted(2)
    story.worked_on(1)  # again, after the one behind it
    story.roll_up()
    story.happens(Change.EXPIRED, 3, reason="ttl")
    story.leased(4)  # the one before it is gone
    story.moves(4, "dead")
    story.counts(Change.UNFOLLOWED, (5, 2), (7, 2))


def _one_comes_before_another_that_was_given_back(story: Story) -> None:
    story.sent(1, 10)
    story.worked_on(1, 2)
    story.leased(3)
    story.roll_up()
    story.happens(Change.RELEASED, 3, reason="released")
    story.leased(5)  # before 4
    story.worked_on(3)
    story.deleted(5)
    story.expected = [("reordered", 5)]
    story.open = [4, 6, 7, 8, 9, 10]


def _by_producers_stamps(story: Story) -> None:
    story.sent(1, 2, stamps="producer")
    story.worked_on(2)
    story.open = [1]


def _by_the_servers_stamps(story: Story) -> None:
    story.sent(1, 2, stamps="server")
    story.worked_on(2)
    story.expected = [("reordered", 2)]
    story.open = [1]


def _purged_expired_and_deleted(story: Story) -> None:
    story.sent(1, 6)
    story.leased(1)
    story.happens(Change.PURGED, 1, 3)
    story.happens(Change.EXPIRED, 4, reason="ttl")
    story.happens(Change.DROPPED, 5)
    story.roll_up()
    story.counts(Change.QUEUE_DELETED, (6, 1))


def _made_anew_under_its_name(story: Story) -> None:
    """The queue of that name, whose retention is known, is another one; this one's last words never came."""
    story.sent(1)
    story.time += timedelta(hours=9)
    story.sent(2)
    story.open = [1, 2]


def _late(story: Story) -> None:
    story.sent(1, 3)
    story.moves(2, "stamped.late", "late")
    story.worked_on(3)
    story.worked_on(1)


def _the_late_queue(story: Story) -> None:
    came: dict[str, Any] = {
        "other_queue": "stamped",
        "other_partition_id": story.partition_id - 1,
        "reason": "late",
    }
    story.happens(Change.ARRIVED, 1, **came, other_first=2)
    story.time += timedelta(hours=1)
    story.worked_on(1)


def _moved_before_anybody_looked(story: Story) -> None:
    story.sent(1)
    story.moves(1, "followed-later")


def _followed_later(story: Story) -> None:
    story.time += timedelta(hours=1)
    story.counts(Change.STOOD, (1, 1))
    story.worked_on(1)


_STORIES: list[tuple[Callable[[Story], None], str | None, str]] = [
    (_a_census_that_a_roll_up_cuts, None, "best-effort"),
    (_a_census_that_a_roll_up_cuts_when_following_begins_again, None, "best-effort"),
    (_a_census_of_nothing, None, "best-effort"),
    (_a_census_of_nothing_where_all_is_well, None, "best-effort"),
    (_a_census_without_one_that_nobody_sent, None, "best-effort"),
    (_a_gap_in_which_messages_began, None, "best-effort"),
    (_a_gap_in_which_messages_ended, None, "best-effort"),
    (_a_gap_in_a_census, None, "best-effort"),
    (_a_gap_in_which_one_was_handed_out, None, "fifo"),
    (_a_gap_before_retention_is_over, "hourly", "best-effort"),
    (_one_that_is_overdue, "hourly", "best-effort"),
    (_one_that_is_overdue_on_its_way_elsewhere, "hourly", "best-effort"),
    (_a_partition_that_is_away, "hourly", "best-effort"),
    (_following_ends_and_begins_within_a_roll_up, None, "fifo"),
    (_following_ends_and_begins_again, None, "best-effort"),
    (_following_begins_again_and_one_ends_twice, None, "best-effort"),
    (_sent_before_the_log_begins, None, "best-effort"),
    (_what_is_normal, None, "fifo"),
    (_one_comes_before_another_that_was_given_back, None, "fifo"),
    (_by_producers_stamps, None, "clock"),
    (_by_the_servers_stamps, None, "clock"),
    (_purged_expired_and_deleted, None, "fifo"),
    (_made_anew_under_its_name, "made-anew", "best-effort"),
    (_late, "stamped", "causal"),
    (_the_late_queue, "stamped.late", "best-effort"),
    (_moved_before_anybody_looked, None, "best-effort"),
    (_followed_later, "followed-later", "best-effort"),
]
KNOWN_QUEUES = (
    {"name": "hourly", "retention_ms": 3_600_000},
    {"name": "made-anew", "queue_id": 1, "retention_ms": 3_600_000},
)


def all_stories() -> dict[str, Story]:
    """Each by its name, in a partition of its own."""
    told: dict[str, Story] = {}
    for partition_id, (tell, queue, ordering) in enumerate(_STORIES, 100):
        story = told[tell.__name__.strip("_")] = Story(partition_id, queue, ordering)
        tell(story)
    return told
