"""A mirror of the simulated store: the counterpart of `metadata/mirror/mirror.py`, over simulated time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, TypeVar

from penstock.cluster.membership.store_requests import Delete, Look, Outcome, Put, Request, Unknown
from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.mirror.mirroring import (
    Check,
    Follow,
    ListKey,
    Load,
    LoadKnown,
    Mirroring,
    OwnRequest,
    Pause,
)
from penstock.metadata.store.interface import Change, Listing

Call = Callable[[], None]
End = Literal["lost", "unavailable"]
Result = TypeVar("Result")


class Watched(Protocol):
    """A running watch."""

    over: bool


class Store(Protocol):
    """The interface of the store."""

    def follow(self, mirror: SimulatedMirror) -> None:
        """A process is about to follow the store."""

    def ask(
        self,
        who: str,
        operation: Callable[[], Result],
        done: Callable[[Result | None], None],
        *,
        reads: bool = False,
    ) -> None:
        """Transports an operation and its result; None: the outcome is unknown."""

    def request(self, who: str, request: Request, done: Callable[[Outcome], None]) -> None:
        """Carries a request there and its outcome back."""

    def listing(self) -> Listing:
        """Everything, as of one moment."""
        ...

    def stream(
        self, who: str, after: int, heard: Callable[[Change], None], ended: Callable[[End], None]
    ) -> Watched:
        """Every change after a version, in order, until it is broken or lost."""
        ...


class Later(Protocol):
    """The interface of time."""

    def after(self, delay_ms: int, call: Call) -> None:
        """Plans a call."""


class SimulatedMirror:
    """One process that follows the store until it has `ended`."""

    def __init__(
        self, store: Store, who: str, schedule: Later, do: Callable[[Call], None] | None = None
    ) -> None:
        """`do` lets the process do something, in its turn."""
        self.who = who
        self.cache = MetadataCache()
        self.ended = False
        self.ready: list[Call] = []
        """Called once when the whole store is known."""
        self.follows_changed: list[Callable[[bool], None]] = []
        """Called when it begins or stops to receive changes."""
        self.about_to_ask: Call = lambda: None
        """Called before a write or a read; the process may pause before it leaves."""
        self._store = store
        self._schedule = schedule
        self._do: Callable[[Call], None] = do if do is not None else lambda call: call()
        self._mirroring = Mirroring(self.cache)
        self._stream: Watched | None = None
        self._followed = False
        store.follow(self)

    def start(self, *, at_once: bool = False) -> None:
        """Begins to load and follow; `at_once` where the store was loaded before."""
        if at_once:
            self._loaded(self._store.listing())
        else:
            self._go_on()

    def end(self) -> None:
        """The process is gone."""
        self.ended = True

    def carry_out(self, request: Put | Delete | Look, done: Callable[[Outcome], None]) -> None:
        """Writes or reads; `done` is called with the result when the cache has it."""
        own = OwnRequest(self._mirroring, request)

        def ask() -> None:
            self.about_to_ask()
            self._run(go_on)

        def go_on() -> None:
            asked = own.request
            if asked is None:
                done(own.outcome)
            elif isinstance(asked, ListKey):
                self._store.ask(
                    self.who,
                    self._store.listing,
                    lambda found: self._run(lambda: answered(found)),
                    reads=True,
                )
            else:
                self._store.request(self.who, asked, lambda outcome: self._run(lambda: answered(outcome)))

        def answered(outcome: Outcome | Listing | None) -> None:
            own.answered(outcome if outcome is not None else Unknown("no answer"))
            go_on()

        ask()

    # -- following -------------------------------------------------------------------------------------------

    def _run(self, call: Call) -> None:
        self._do(lambda: None if self.ended else call())

    def _go_on(self) -> None:
        mirroring = self._mirroring
        match mirroring.step:
            case Load():
                self._store.ask(
                    self.who,
                    self._store.listing,
                    lambda found: self._run(lambda: self._loaded(found)),
                    reads=True,
                )
            case Check():
                self._store.ask(
                    self.who, lambda: True, lambda found: self._run(lambda: self._checked(found)), reads=True
                )
            case Follow(after):
                self._stream = self._store.stream(self.who, after, self._told, self._broken)
            case Pause(seconds):
                self._schedule.after(round(seconds * 1000), lambda: self._run(self._paused))
            case LoadKnown():
                mirroring.unavailable()
                self._go_on()
        if self._followed is not mirroring.is_following:
            self._followed = mirroring.is_following
            for told in self.follows_changed:
                told(self._followed)

    def _loaded(self, listing: Listing | None) -> None:
        was_ready = self._mirroring.is_ready
        if listing is None:
            self._mirroring.unavailable()
        else:
            self._mirroring.loaded(listing)
        self._go_on()
        if self._mirroring.is_ready and not was_ready:
            for call in self.ready:
                call()

    def _checked(self, answers: bool | None) -> None:
        if answers is None:
            self._mirroring.unavailable()
        else:
            self._mirroring.checked()
        self._go_on()

    def _told(self, change: Change) -> None:
        if self.ended and self._stream is not None:
            self._stream.over = True
        self._run(lambda: self._mirroring.heard(change))

    def _broken(self, how: End) -> None:
        def end() -> None:
            if how == "lost":
                self._mirroring.lost()
            else:
                self._mirroring.unavailable()
            self._go_on()

        self._run(end)

    def _paused(self) -> None:
        self._mirroring.paused()
        self._go_on()
