"""node.json: the format of the directory, its owner, and the secret for its receipts and entries.

The identity of the node comes from outside; nothing here invents one.
"""

from __future__ import annotations

import json

import msgspec
from crc32c import crc32c

from penstock.storage.disk import Disk
from penstock.storage.errors import StorageDamagedError, StorageVersionError

FORMAT = 1
"""The layout of the whole directory: journal, segments, snapshots."""
NAME = "node.json"


class Identity(msgspec.Struct, frozen=True):
    """The node that owns a directory."""

    node: str
    secret: bytes

    @property
    def seed(self) -> int:
        """The seed for the checksums of entry headers in this directory."""
        return crc32c(self.secret, crc32c(b"penstock entry header"))


def load_identity(disk: Disk) -> Identity | None:
    """The identity of the directory, or None when it has none yet; refuses a format it does not know."""
    try:
        file = disk.open(NAME)
    except FileNotFoundError:
        return None
    try:
        data = file.read_at(0, file.size())
    finally:
        file.close()
    try:
        fields = json.loads(data)
        written = fields["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageDamagedError(f"{NAME} is damaged: {error}; restore it from a copy") from error
    check_format(NAME, written)
    try:
        identity = Identity(str(fields["node"]), bytes.fromhex(fields["secret"]))
    except (ValueError, KeyError, TypeError) as error:
        raise StorageDamagedError(f"{NAME} is damaged: {error}; restore it from a copy") from error
    if fields.get("checksum") != _checksum(identity):
        # With another secret no entry would be recognised, and the journal would seem to be empty.
        raise StorageDamagedError(f"{NAME} is damaged: its checksum does not match; restore it from a copy")
    return identity


def save_identity(disk: Disk, identity: Identity) -> None:
    """Writes node.json so that after a crash it is there whole or not at all."""
    fields = {
        "format": FORMAT,
        "node": identity.node,
        "secret": identity.secret.hex(),
        "checksum": _checksum(identity),
    }
    temporary = f"{NAME}.new"
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write_at(0, [json.dumps(fields, indent=2).encode() + b"\n"])
        file.sync()
    finally:
        file.close()
    disk.rename(temporary, NAME)
    disk.sync_directory("")


def _checksum(identity: Identity) -> str:
    return f"{crc32c(identity.secret, crc32c(identity.node.encode())):08x}"


def check_format(name: str, written: object) -> None:
    """Raises unless this version of Penstock can read that format."""
    if written != FORMAT:
        raise StorageVersionError(
            f"{name} has format {written}, this version of Penstock reads format {FORMAT}: "
            "run the version that wrote it, or start on another directory"
        )
