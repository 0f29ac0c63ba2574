"""How a cache becomes and stays the same as a store: what to do next, and what goes into the cache. Touches nothing.

`step` says what is to be done next, one thing at a time; whoever does it says how it went. `mirror.py` does it over a real
store, the simulation over its own.

What the cache shows of a key never goes back: it is what the store had at some version, and later what it had at a later one.
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
    """List what metadata servers know of the store, which does not answer itself."""


class Check(NamedTuple):
    """Ask the store for anything: a watch alone would not tell whether it is back."""


class Follow(NamedTuple):
    """Watch the store after this version."""

    after: int


class Pause(NamedTuple):
    """Wait so long."""

    seconds: float


Step = Load | LoadKnown | Check | Follow | Pause


class ListKey(NamedTuple):
    """A request: list what begins with a key."""

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
        """The version up to which everything was told; None: the store has to be loaded."""
        self._pauses = Backoff(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)

    @property
    def is_following(self) -> bool:
        """Whether changes of the store are heard of."""
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
        """The watch tells a change."""
        self._heard = change.version
        self._apply(change)
        self.cache.settle(change.version)

    def lost(self) -> None:
        """Changes that the watch has not told are no longer kept."""
        self._heard = None
        self.step = Load()

    def unavailable(self) -> None:
        """The store does not answer; the cache goes on with what it knows."""
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
        """Something that the watch has not told; what it has told already may have been undone since, and it is right."""
        if self._heard is None or change.version > self._heard or self.cache.version(change.key) != ABSENT:
            self._apply(change)


class OwnRequest:
    """A write or a look of this process, until the cache knows what came of it.

    `request` is to be carried out next; None: it is over, and `outcome` says how it went. After a conflict it is looked what
    stands there now, so that who reads the cache again sees that. A key that is gone is listed: only a listing tells a version
    of the store at which it was, and older news that comes later must not bring it back.
    """

    def __init__(self, mirroring: Mirroring, request: Put | Delete | Look) -> None:
        self.request: Put | Delete | Look | ListKey | None = request
        self.outcome: Outcome = Unknown("nothing was asked yet")
        self._mirroring = mirroring

    def answered(self, outcome: Outcome | Listing) -> None:
        """What became of `request`."""
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
        """A conflict stays one, whatever is found then."""
        if not isinstance(self.outcome, Conflict):
            self.outcome = outcome
