"""The highest number of the users' register that was seen here: a small file beside the master key."""

from __future__ import annotations

import os
from pathlib import Path

from penstock.metadata.seals.master_key import MasterKeyError

SUFFIX = ".seen"
_DIGITS_AT_MOST = 18


class SeenRegister:
    """The number in a file; it only rises. Processes that share the master key's file share this one."""

    def __init__(self, key_file: Path) -> None:
        self.file = key_file.with_name(key_file.name + SUFFIX)

    def load(self) -> int:
        """The number; 0 where none was seen. Raises `MasterKeyError`."""
        try:
            text = self.file.read_text("ascii").strip()
        except FileNotFoundError:
            return 0
        except (OSError, ValueError) as error:
            raise MasterKeyError(f"cannot read {self.file}: {error}") from error
        if not text.isdecimal() or len(text) > _DIGITS_AT_MOST:
            raise MasterKeyError(
                f"{self.file} does not hold the number of a register of users: put back the file that was there, or run "
                "`penstock user seal` after deleting it"
            )
        return int(text)

    def note(self, number: int) -> None:
        """Remembers a higher number; raises `MasterKeyError` where that cannot be written."""
        if number <= self.load():
            return
        temporary = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        try:
            temporary.unlink(missing_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as stream:
                stream.write(f"{number}\n")
                stream.flush()
                os.fsync(stream.fileno())
            temporary.replace(self.file)
        except OSError as error:
            raise MasterKeyError(f"cannot write {self.file}: {error.strerror or error}") from error
