"""The state of a replica that follows: its primary, its position, and what prevents it from continuing."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class FollowerState:
    """The state of a follower of one partition."""

    partition_id: int
    known_epoch: int = 0
    """The highest known epoch."""
    leader: str | None = None
    epoch: int = 0
    """Of the primary that it follows now."""
    unclean: int = 0
    """The newest epoch that began with an unclean election, according to its primary."""
    joined: int | None = None
    """The membership of this node (`PartitionEntry.joined`) that its primary was told last; None: none yet."""
    image: list[bytes] = field(default_factory=list)
    """Parts of a state that is coming in."""
    image_index: int = 0
    """The record as of which that state is."""
    installing: int = 0
    """The number of the installation of a state that is not valid yet; 0: there is none."""
    needs_whole: bool = False
    """The data here is of a former membership: a whole state is needed first."""
    cutting: int | None = None
    """The record to cut back to, while that is under way."""
    cuts_to_lead: bool = False
    """The cut is for this node itself, which was elected: if it is impossible, the data here stays unchanged."""
    uncut_epoch: int = 0
    """The epoch for which such a cut could not be made; 0: none."""
    cut_after: int = 0
    """The journal must be on disk up to here before what is left can be read back."""
    committed: int = 0
    """According to the primary's last message."""
    too_old: bool = False
    """Its primary has a newer version, and the records are not for this one: it continues when this process is upgraded."""

    @property
    def is_restoring(self) -> bool:
        """Whether a whole state is on its way to take the place of what is here."""
        return bool(self.image or self.installing)

    def forget_image(self) -> None:
        """A partly received state is abandoned: the data here stays unchanged."""
        self.image = []
        self.installing = 0
