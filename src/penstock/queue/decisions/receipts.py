"""Receipt tokens: proof that this server issued a lease, for this incarnation of the queue.

A token authenticates (queue id, lease number). The lease table knows which messages the lease covers. So a token is
useless for messages that its lease never held, and for all messages once the lease has ended.
"""

from __future__ import annotations

import struct
from hashlib import blake2b
from hmac import compare_digest

from penstock.model.errors import ErrorCode, PenstockError

_IDENTITY = struct.Struct("<QQ")
_SEAL_BYTES = 16
TOKEN_BYTES = _IDENTITY.size + _SEAL_BYTES


class ReceiptSeal:
    """Makes and checks tokens with the node's secret."""

    def __init__(self, secret: bytes) -> None:
        # Keyed once and copied for each token: 1.5 µs instead of 2.6, for every delivery and again for its delete.
        self._keyed = blake2b(key=secret, digest_size=_SEAL_BYTES)

    def token(self, partition_id: int, lease: int) -> bytes:
        """The token of a lease."""
        identity = _IDENTITY.pack(partition_id, lease)
        return identity + self._seal(identity)

    def open(self, token: bytes) -> tuple[int, int]:
        """(queue id, lease) of a token this server gave out; raises on any other."""
        identity = token[: _IDENTITY.size]
        if len(token) != TOKEN_BYTES or not compare_digest(self._seal(identity), token[_IDENTITY.size :]):
            raise PenstockError(ErrorCode.BAD_RECEIPT, "the receipt was not given out by this server")
        partition_id, lease = _IDENTITY.unpack(identity)
        return partition_id, lease

    def _seal(self, identity: bytes) -> bytes:
        sealing = self._keyed.copy()
        sealing.update(identity)
        return sealing.digest()
