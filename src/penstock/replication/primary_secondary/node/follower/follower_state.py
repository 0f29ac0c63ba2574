"""A replica that follows: whom, from where, and what keeps it from going on."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class FollowedPartition:
    """A replica that follows."""

    partition_id: int
    known_epoch: int = 0
    """The highest epoch that was heard of."""
    leader: str | None = None
    epoch: int = 0
    """Of the primary that it follows now."""
    unclean: int = 0
    """The newest epoch that began with an unclean election, as its primary said."""
    joined: int | None = None
    """The membership of this node (`PartitionEntry.joined`) that its primary was told last; None: it was told of none yet."""
    image: list[bytes] = field(default_factory=list)
    """Parts of a state that is coming in."""
    image_index: int = 0
    """The record as of which that state is."""
    installing: int = 0
    """The number of the installation of a state that came in and does not count yet; 0: there is none."""
    needs_whole: bool = False
    """What is here is a former life's: a whole state is needed before anything else."""
    cutting: int | None = None
    """The record to cut back to, while that is under way."""
    cuts_to_lead: bool = False
    """That cut is for this node itself, which was elected: where it cannot be made, what is here stays as it is."""
    uncut_epoch: int = 0
    """The epoch for which such a cut could not be made; 0: none."""
    cut_after: int = 0
    """The journal must be on disk up to here before what is left can be read back."""
    committed: int = 0
    """As the primary said last."""
    too_old: bool = False
    """Its primary is of a newer version, and what came is not for this one: it goes on when this process is upgraded."""

    @property
    def is_restoring(self) -> bool:
        """Whether a whole state is on its way to take the place of what is here."""
        return bool(self.image or self.installing)

    def forget_image(self) -> None:
        """What was coming in is given up: what is here stays as it is."""
        self.image = []
        self.installing = 0
