"""Seals on documents in the metadata store: a writer without the key cannot change anything that is trusted.

A seal is an HMAC over the key under which a document is stored and the bytes of the document, and is its last field:

    {"name":"ada", … ,"seal":"<64 hexadecimal digits>"}

The bytes before it were sealed, so nothing depends on how a version of Penstock writes a document; for versions without
seals it is one more field. A sealed document cannot be put under another key. An old one can be put back under its own: if
that matters, documents have numbers (`user_register`).
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping

from penstock.metadata.seals.master_key import MasterKey

REGISTER = "register/"
USER_KINDS = ("users/", "keys/", REGISTER)
"""Entries of front ends and administrators about users: sealed with the master key, without exception."""
QUEUE_KINDS = ("queues/", "moves/", "making/")
"""Entries of front ends about queues: policies, move tasks, notes of queues that are being created; also sealed with the
master key.
"""
LAYOUT_KINDS = (
    "cluster/nodes/",
    "cluster/queues/",
    "cluster/partitions/",
    "cluster/positions/",
    "cluster/ids",
)
"""Entries of nodes and front ends about the layout: sealed with the cluster's secret."""

_SEALED = re.compile(rb',"seal":"([0-9a-f]{64})"\}\Z')
_SEAL_BYTES = len(b',"seal":"') + 64 + len(b'"}')
_PURPOSE = b"penstock seal 1\0"


def _seal_of(stored: bytes) -> re.Match[bytes] | None:
    return _SEALED.match(stored, max(0, len(stored) - _SEAL_BYTES))


class NoSealError(Exception):
    """A document has no seal."""


class WrongSealError(Exception):
    """A document has a wrong seal."""


class Sealer:
    """Seals and opens with one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, place: str, document: bytes) -> bytes:
        """The document, a JSON object with a field at least, with its seal; `place` is the key that it is put under."""
        if not document.endswith(b"}") or len(document) < len(b'{"":0}'):
            raise ValueError(f"the value for {place} is not a document that can be sealed")
        return document[:-1] + b',"seal":"' + self._mark(place, document) + b'"}'

    def open(self, place: str, sealed: bytes) -> bytes:
        """The document without its seal; raises `NoSealError` or `WrongSealError`."""
        found = _seal_of(sealed)
        if found is None:
            raise NoSealError(place)
        document = sealed[: found.start()] + b"}"
        if not hmac.compare_digest(found[1], self._mark(place, document)):
            raise WrongSealError(place)
        return document

    @staticmethod
    def bare(stored: bytes) -> bytes:
        """A document without its seal, which is not verified."""
        found = _seal_of(stored)
        return stored if found is None else stored[: found.start()] + b"}"

    def _mark(self, place: str, document: bytes) -> bytes:
        named = place.encode()
        said = _PURPOSE + len(named).to_bytes(4, "big") + named + document
        return hmac.digest(self._key, said, "sha256").hex().encode()


def is_wrongly_sealed(sealer: Sealer, place: str, stored: bytes) -> bool:
    """Whether a document has a wrong seal: made with another key, or invented."""
    try:
        sealer.open(place, stored)
    except WrongSealError:
        return True
    except NoSealError:
        pass
    return False


Sealers = Mapping[str, Sealer]
"""By what keys begin with."""


def front_end_sealers(master_key: MasterKey) -> dict[str, Sealer]:
    """The sealers with the master key."""
    sealer = Sealer(master_key.derived("seal 1").encode())
    return dict.fromkeys((*USER_KINDS, *QUEUE_KINDS), sealer)


def layout_sealers(cluster_secret: bytes) -> dict[str, Sealer]:
    """The sealers with the cluster's secret."""
    sealer = Sealer(hmac.digest(cluster_secret, b"penstock layout seal 1", "sha256"))
    return dict.fromkeys(LAYOUT_KINDS, sealer)
