"""How a cache becomes and stays equal to a store: the next action, and the contents of the cache. It has no side effects.

`step` returns the next action; the caller carries it out and reports the result. `mirror.py` does this over a real store,
the simulation over its own.

The cache never goes back for a key: it shows the store's entry at some version, and later the one at a later version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from penstock.cluster.membership.store_requests import (
    Conflict,
    Delete,
    Done,
    Found,
    LeaseEnded,
    Look,
    Outcome,
    Put,
    Unknown,
)
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.store.interface import ABSENT, Change, Listing
from penstock.wire.backoff import Backoff

FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0


class Load(NamedTuple):
    """List the whole store."""


class LoadKnown(NamedTuple):
    """List the copies of metadata servers, because the store does not answer."""


class Check(NamedTuple):
    """Read anything from the store: a watch alone would not show whether it is back."""


class Follow(NamedTuple):
    """Watch the store after this version."""

    after: int


class Pause(NamedTuple):
    """Wait for so long."""

    seconds: float


Step = Load | LoadKnown | Check | Follow | Pause


class ListKey(NamedTuple):
    """A request: list the entries that begin with a key."""

    key: str


class Mirroring:
    """The state of one mirror, and its cache."""

    def __init__(
        self,
        cache: MetadataCache,
        *,
        remembers: bool = False,
        apply: Callable[[Change], None] | None = None,
    ) -> None:
        """`remembers`: whether others know the store while it does not answer. `apply` takes a change into the cache."""
        self.cache = cache
        self._apply = apply if apply is not None else cache.apply
        self.step: Step = Load()
        self.is_ready = False
        """Whether the whole store is in the cache, as it is now or as metadata servers know it."""
        self.fails = False
        """Whether the store did not answer when last asked."""
        self._remembers = remembers
        self._heard: int | None = None
        """All changes up to this version were received; None: the store must be loaded."""
        self._pauses = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)

    @property
    def is_following(self) -> bool:
        """Whether changes of the store are received."""
        return isinstance(self.step, Follow)

    # -- loading and following -------------------------------------------------------------------------------

    def loaded(self, listing: Listing) -> None:
        """The whole store was listed, by itself or by those who know it."""
        self.cache.load(listing)
        self._heard = listing.version
        is_known_only = isinstance(self.step, LoadKnown)
        self.is_ready = True
        if is_known_only:
            self._wait()
        else:
            self._follow(listing.version)

    def checked(self) -> None:
        """The store answers."""
        if self._heard is None:
            self.step = Load()
        else:
            self._follow(self._heard)

    def heard(self, change: Change) -> None:
        """The watch delivers a change."""
        self._heard = change.version
        self._apply(change)
        self.cache.settle(change.version)

    def lost(self) -> None:
        """Undelivered changes of the watch are no longer available."""
        self._heard = None
        self.step = Load()

    def unavailable(self) -> None:
        """The store does not answer; the cache continues with its contents."""
        self.fails = True
        if isinstance(self.step, Load) and self._remembers and not self.is_ready:
            self.step = LoadKnown()
        else:
            self._wait()

    def broken(self) -> None:
        """Something else went wrong: nothing is relied on but a new listing."""
        self._heard = None
        self._wait()

    def paused(self) -> None:
        """The pause is over."""
        self.step = Load() if self._heard is None else Check()

    def _follow(self, after: int) -> None:
        self._pauses.reset()
        self.fails = False
        self.step = Follow(after)

    def _wait(self) -> None:
        self.step = Pause(self._pauses.pause())

    # -- own writes and looks --------------------------------------------------------------------------------

    def apply_own(self, change: Change) -> None:
        """Applies a change that the watch has not delivered; a delivered one may have been undone since, so the watch takes
        precedence.
        """
        if self._heard is None or change.version > self._heard or self.cache.version(change.key) != ABSENT:
            self._apply(change)


class OwnRequest:
    """A write or a read of this process, until the cache has its result.

    `request` is to be carried out next; None: it is over, and `outcome` has the result. After a conflict the present entry
    is read, so that a caller who reads the cache again sees it. A deleted key is listed: only a listing has a version of
    the store at which the key was missing, and older changes that come later must not restore it.
    """

    def __init__(self, mirroring: Mirroring, request: Put | Delete | Look) -> None:
        self.request: Put | Delete | Look | ListKey | None = request
        self.outcome: Outcome = Unknown("nothing was asked yet")
        self._mirroring = mirroring

    def answered(self, outcome: Outcome | Listing) -> None:
        """The outcome of `request`."""
        asked, self.request = self.request, None
        match asked, outcome:
            case Put(key, value), Done(version):
                self.outcome = outcome
                self._mirroring.apply_own(Change(key, value, version))
            case Delete(key), Done(version):
                self.outcome = outcome
                if version != ABSENT:
                    self._mirroring.apply_own(Change(key, None, version))
            case ((Put(key) | Delete(key)), Conflict()):
                self.outcome = outcome
                self.request = Look(key)
            case Look(key), Found(value, version):
                self._keep(outcome)
                if value is not None:
                    self._mirroring.apply_own(Change(key, value, version))
                elif self._mirroring.cache.version(key) != ABSENT:
                    self.request = ListKey(key)
            case ListKey(key), Listing(entries, version):
                for entry in entries:
                    if entry.key == key:
                        self._mirroring.apply_own(Change(*entry))
                        return
                self._mirroring.apply_own(Change(key, None, version))
            case _, Unknown() | LeaseEnded():
                self.outcome = outcome
            case _:
                raise AssertionError(f"{asked} was answered with {outcome}")

    def _keep(self, outcome: Outcome) -> None:
        """Keeps a conflict as the outcome, whatever is read afterwards."""
        if not isinstance(self.outcome, Conflict):
            self.outcome = outcome
