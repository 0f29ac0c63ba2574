"""A replica that follows: whom, from where, and what keeps it from going on."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class FollowedPartition:
    """A replica that follows."""

    queue_id: int
    known_epoch: int = 0
    """The highest epoch that was heard of."""
    leader: str | None = None
    epoch: int = 0
    """Of the primary that it follows now."""
    image: list[bytes] = field(default_factory=list)
    """Parts of a state that is coming in."""
    needs_whole: bool = False
    """What is here is a former life's: a whole state is needed before anything else."""
    cutting: int | None = None
    """The record to cut back to, while that is under way."""
    cut_after: int = 0
    """The journal must be on disk up to here before what is left can be read back."""
    committed: int = 0
    """As the primary said last."""
    too_old: bool = False
    """Its primary is of a newer version, and what came is not for this one: it goes on when this process is upgraded."""
