"""Requests of state machines to the metadata store, and the possible outcomes of each.

A machine numbers its requests. The adapter carries each out and reports the outcome under the same number. The outcome may
come late, in any order, or after the machine has stopped waiting for it. `Unknown` means that the request may have been
done, or may still be done later.
"""

from __future__ import annotations

from typing import NamedTuple

ABSENT = 0
"""The version of a key that does not exist."""


# -- requests ------------------------------------------------------------------------------------------------


class Grant(NamedTuple):
    """A new lease."""

    lease_ms: int


class Renew(NamedTuple):
    """Extends a lease from now."""

    lease: int


class Revoke(NamedTuple):
    """Ends a lease now, with every entry under it."""

    lease: int


class Look(NamedTuple):
    """Reads a key."""

    key: str


class Put(NamedTuple):
    """Writes an entry, on condition of its version (`ABSENT`: it must not exist) and of a living lease."""

    key: str
    value: bytes
    version: int | None = None
    """None: any version."""
    lease: int | None = None


class Delete(NamedTuple):
    """Deletes an entry, on condition of its version."""

    key: str
    version: int | None = None


Request = Grant | Renew | Revoke | Look | Put | Delete


# -- outcomes ------------------------------------------------------------------------------------------------


class Granted(NamedTuple):
    """The number of the new lease."""

    lease: int


class Renewed(NamedTuple):
    """Whether the lease was still alive."""

    alive: bool


class Revoked(NamedTuple):
    """The lease has ended."""


class Found(NamedTuple):
    """The entry; None and `ABSENT`: there is none."""

    value: bytes | None
    version: int


class Done(NamedTuple):
    """The entry was written or deleted, at this version of the store."""

    version: int


class Conflict(NamedTuple):
    """The entry has another version. Nothing was changed."""


class LeaseEnded(NamedTuple):
    """The lease has ended. Nothing was changed."""


class Unknown(NamedTuple):
    """The outcome is not known. The request may have been done, or may be done later."""

    why: str


Outcome = Granted | Renewed | Revoked | Found | Done | Conflict | LeaseEnded | Unknown


class Ask(NamedTuple):
    """An effect: carry this request out, and report the outcome to the machine under this number."""

    number: int
    request: Request
