"""The master key, which encrypts secrets in the metadata store, and its file.

The store's file alone reveals no secret. Randomness is an argument.
"""

from __future__ import annotations

import hmac
import os
import stat
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
NONCE_BYTES = 12
FILE_NAME = "metadata.key"

Token = Callable[[int], bytes]


class MasterKeyError(Exception):
    """The key cannot be used; the message says why and what to do."""


class WrongMasterKeyError(MasterKeyError):
    """A secret was encrypted with another key, or for another entry, or was changed."""


class MasterKey:
    """AES-256-GCM; encrypted data is bound to a name and cannot be read under another."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)
        self._key = key

    def encrypt(self, secret: bytes, bound_to: str, token: Token) -> bytes:
        nonce = token(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secret, bound_to.encode())

    def decrypt(self, encrypted: bytes, bound_to: str) -> bytes:
        try:
            return self._cipher.decrypt(encrypted[:NONCE_BYTES], encrypted[NONCE_BYTES:], bound_to.encode())
        except (InvalidTag, ValueError):
            raise WrongMasterKeyError("the secret was not encrypted with this master key") from None

    def derived(self, purpose: str) -> str:
        """A secret that all who have this key have, for one purpose only."""
        return hmac.digest(self._key, f"penstock {purpose}".encode(), "sha256").hex()


def load_or_make_master_key(file: Path, token: Token, *, may_make: bool = True) -> MasterKey:
    """The key in a file, which is made unless there are secrets already that another key encrypted."""
    try:
        return load_master_key(file)
    except FileNotFoundError:
        if not may_make:
            raise MasterKeyError(
                f"the master key {file} is missing, and the access keys that exist cannot be read without it: "
                "put the file back"
            ) from None
    try:
        _make(file, token)
        return load_master_key(file)
    except OSError as error:
        raise MasterKeyError(f"cannot make the master key {file}: {error.strerror or error}") from error


def load_master_key(file: Path) -> MasterKey:
    """The key in a file; raises `FileNotFoundError` where there is none."""
    try:
        with file.open("rb") as stream:
            status = os.fstat(stream.fileno())
            text = stream.read(4096)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise MasterKeyError(f"cannot read the master key {file}: {error.strerror or error}") from error
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise MasterKeyError(f"others may read the master key {file}: run `chmod 600 {file}`")
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise MasterKeyError(f"{file} is not a master key: it should hold {KEY_BYTES * 2} hexadecimal digits")
    return MasterKey(key)


def _make(file: Path, token: Token) -> None:
    """Whole or not at all, and never over one that another process has just made."""
    temporary = file.with_name(f".{file.name}.{token(8).hex()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(token(KEY_BYTES).hex().encode() + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        try:
            os.link(temporary, file)
        except FileExistsError:
            pass
    finally:
        temporary.unlink()
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
