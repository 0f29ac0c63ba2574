"""Keys derived from secrets for one day, region and service, ready to sign, and a bounded cache of them."""

from __future__ import annotations

import hashlib
import hmac
from typing import Protocol, Self

SERVICE = "sqs"
TERMINATOR = "aws4_request"

_BLOCK_BYTES = 64
_INNER = bytes(byte ^ 0x36 for byte in range(256))
_OUTER = bytes(byte ^ 0x5C for byte in range(256))
_empty = hashlib.sha256()


def sha256_hex(content: bytes) -> str:
    """A digest; copying an empty hash takes two thirds of the time of making one, which asks OpenSSL by name."""
    digest = _empty.copy()
    digest.update(content)
    return digest.hexdigest()


class Hash(Protocol):
    """A SHA-256 in progress; a copy continues from its state."""

    def copy(self) -> Self: ...
    def update(self, content: bytes, /) -> None: ...
    def digest(self) -> bytes: ...
    def hexdigest(self) -> str: ...


class SigningKey:
    """HMAC-SHA-256 with one key that is already hashed: 2.8 µs a signature instead of 6.7."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        block = key.ljust(_BLOCK_BYTES, b"\0")
        self._inner = hashlib.sha256(block.translate(_INNER))
        self._outer = hashlib.sha256(block.translate(_OUTER))

    def sign(self, message: bytes) -> str:
        """The signature in hex."""
        return self.finish(self.begin(message))

    def begin(self, start: bytes) -> Hash:
        """The common part of signing every message with this start."""
        inner = self._inner.copy()
        inner.update(start)
        return inner

    def finish(self, message: Hash) -> str:
        """The signature of a message that was begun here, and has grown since."""
        outer = self._outer.copy()
        outer.update(message.digest())
        return outer.hexdigest()


def derive_key(secret: str, day: str, region: str) -> SigningKey:
    """The key of Signature Version 4 for one secret, day (`YYYYMMDD`) and region."""
    key = ("AWS4" + secret).encode()
    for part in (day, region, SERVICE, TERMINATOR):
        key = hmac.digest(key, part.encode(), "sha256")
    return SigningKey(key)


class SigningKeys:
    """Recently used derived keys; the secret is part of the key, so a changed secret is another one."""

    __slots__ = ("_keys", "_most")

    def __init__(self, most: int = 4096) -> None:
        self._keys: dict[tuple[str, str, str], SigningKey] = {}
        self._most = most

    def get(self, secret: str, day: str, region: str) -> SigningKey:
        """The key, derived if it is new. A full cache starts again: it ends every day anyway."""
        name = (secret, day, region)
        key = self._keys.get(name)
        if key is None:
            if len(self._keys) >= self._most:
                self._keys.clear()
            key = self._keys[name] = derive_key(secret, day, region)
        return key

    def __len__(self) -> int:
        return len(self._keys)
