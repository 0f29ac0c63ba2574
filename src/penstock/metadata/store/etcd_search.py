"""Which member of an etcd is asked, how long it may take, what follows from each failure, and when no member is asked any more.

Decides only: `etcd_client` and `etcd_watch` ask, wait and close.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.metadata.store.etcd_errors import (
    UNAUTHENTICATED,
    DistrustError,
    EtcdError,
    PerhapsDoneError,
    RefusedError,
    TokenRefusedError,
)
from penstock.metadata.store.etcd_settings import Endpoint
from penstock.metadata.store.interface import StoreRefusedError, StoreUnavailableError

CONNECT_SECONDS = 1.0
"""For a connection; also the shortest share of a question's time that one member gets."""
PAUSE_SECONDS = 0.05
"""Between two rounds through all members, none of which could answer."""


class MemberOrder:
    """The members of an etcd. The one that answered last is asked first."""

    def __init__(self, members: Sequence[Endpoint]) -> None:
        self._order = list(members)

    def __len__(self) -> int:
        return len(self._order)

    @property
    def first(self) -> Endpoint:
        """The member that is asked next."""
        return self._order[0]

    def demote(self, member: Endpoint) -> None:
        """It did not answer: the others are asked first."""
        if self._order[0] == member:
            self._order.append(self._order.pop(0))


class Question:
    """One question, asked until a member answers or its time is over. `again`: it does no harm when it is asked twice."""

    def __init__(self, order: MemberOrder, timeout_seconds: float, now: float, *, again: bool) -> None:
        self._order = order
        self._timeout_seconds = timeout_seconds
        self._deadline = now + timeout_seconds
        self._again = again
        self._failures: dict[Endpoint, EtcdError] = {}
        self._refused_tokens = 0

    def seconds(self, now: float) -> float:
        """How long the first member of the order may take; raises `StoreUnavailableError` when the time is over."""
        left = self._deadline - now
        if left <= 0:
            raise unavailable(self._timeout_seconds, self._failures)
        # A question that may be asked again leaves time to ask the others too.
        share = max(self._timeout_seconds / len(self._order), CONNECT_SECONDS) if self._again else left
        return min(share, left)

    def token_refused(self, member: Endpoint, error: TokenRefusedError) -> float:
        """How long to wait before the next attempt, with a new token; raises `RefusedError` if no token helps."""
        self._refused_tokens += 1
        if self._refused_tokens > len(self._order) + 1:
            raise RefusedError(f"etcd at {member} refuses its own token: {error}", UNAUTHENTICATED) from error
        # A member that is behind does not know a new token yet.
        return PAUSE_SECONDS if self._refused_tokens > 1 else 0.0

    def failed(self, member: Endpoint, error: EtcdError, now: float) -> float:
        """How long to wait before the next member is asked.

        Raises `PerhapsDoneError` if the question may not be asked again, and `StoreRefusedError` if asking again would find the
        same certificates.
        """
        # An attempt that was cut short by the end of the time says less than the one before.
        if member not in self._failures or not isinstance(error.__cause__, TimeoutError):
            self._failures[member] = error
        if isinstance(error, PerhapsDoneError) and not self._again:
            raise PerhapsDoneError(f"{member}: {error}") from error
        if len(self._failures) < len(self._order):
            return 0.0
        if all(isinstance(failure, DistrustError) for failure in self._failures.values()):
            raise StoreRefusedError(f"no member of etcd can be trusted ({_all_said(self._failures)})")
        return min(PAUSE_SECONDS, max(self._deadline - now, 0.0))


class WatchSearch:
    """The search for a member that goes on with a watch. `StoreUnavailableError` ends it."""

    def __init__(self, order: MemberOrder, timeout_seconds: float) -> None:
        self._order = order
        self._timeout_seconds = timeout_seconds
        self._failures: dict[Endpoint, EtcdError] = {}
        self._failing_since: float | None = None
        self._refused_tokens = 0

    @property
    def seconds(self) -> float:
        """How long a member may take to begin."""
        return max(self._timeout_seconds / len(self._order), CONNECT_SECONDS)

    def answered(self) -> None:
        """A member tells changes."""
        self._failures.clear()
        self._failing_since, self._refused_tokens = None, 0

    def token_refused(self, member: Endpoint, error: TokenRefusedError) -> None:
        """The next attempt has a new token; raises `StoreUnavailableError` if that was refused too."""
        self._refused_tokens += 1
        if self._refused_tokens > 1:
            raise StoreUnavailableError(f"etcd at {member} refuses the watch: {error}") from error

    def failed(self, member: Endpoint, error: EtcdError, now: float) -> float:
        """How long to wait before the next member is asked; raises `StoreUnavailableError` when all have failed for too long."""
        self._failures[member] = error
        if self._failing_since is None:
            self._failing_since = now
        if now - self._failing_since >= self._timeout_seconds:
            raise unavailable(self._timeout_seconds, self._failures) from error
        return PAUSE_SECONDS


def unavailable(seconds: float, failures: dict[Endpoint, EtcdError]) -> StoreUnavailableError:
    """Says what each member said."""
    return StoreUnavailableError(
        f"etcd did not answer within {seconds:g} s, try again ({_all_said(failures)})"
    )


def _all_said(failures: dict[Endpoint, EtcdError]) -> str:
    return "; ".join(f"{member}: {error}" for member, error in failures.items())
