"""The options of storage, each explained and checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from penstock.model.limits import FRAME_BYTES, KIBIBYTE, MEBIBYTE
from penstock.storage.entry import POSITION_SHIFT

Durability = Literal["sync", "os"]


@dataclass(frozen=True, kw_only=True)
class StorageOptions:
    """How a node stores."""

    durability: Durability = "sync"
    """`sync`: on disk before it is acknowledged. `os`: handed to the operating system; a power cut may lose it."""
    journal_file_bytes: int = 64 * MEBIBYTE
    """The size of a journal file; the largest entry must fit in one."""
    entry_bytes_max: int = FRAME_BYTES
    """The largest record, head and payload together."""
    journal_files_ahead: int = 2
    """Journal files kept ready; the last of them is the reserve that sends may not use."""
    spare_files_max: int = 4
    """Vacated journal files kept for reuse; more are removed."""
    free_bytes_min: int = 32 * MEBIBYTE
    """New journal files leave this much of the disk free: a checkpoint needs room to make room."""
    segment_bytes: int = 64 * MEBIBYTE
    """A segment that has reached this size is closed and another begun."""
    checkpoint_journal_bytes: int = 128 * MEBIBYTE
    """A checkpoint is due when the journal has grown by this much (or by four snapshots, if that is more)."""
    cache_bytes: int = 16 * MEBIBYTE
    """Batches kept decoded in memory once they are flushed."""
    read_ahead_bytes: int = 256 * KIBIBYTE
    """The size of a read that misses the cache."""
    retry_ms: int = 1_000
    """How long to wait before trying again for space on a full disk."""
    open_files_max: int = 256
    """Segment files kept open."""

    def check(self) -> None:
        """Raises `ValueError` with a sentence that says which choice cannot work."""
        # END and CLOSED take at most a 64th of the file at its end, see `Journal`.
        room = self.journal_file_bytes - self.journal_file_bytes // 64 - 4 * KIBIBYTE
        if self.entry_bytes_max > room:
            raise ValueError(
                f"journal_file_bytes = {self.journal_file_bytes} is too small: an entry may have "
                f"{self.entry_bytes_max} bytes and must fit in one journal file"
            )
        if self.journal_file_bytes % 4096:
            raise ValueError(f"journal_file_bytes = {self.journal_file_bytes} is not a multiple of 4096")
        if self.journal_file_bytes >= 2**POSITION_SHIFT or self.segment_bytes >= 2 ** (POSITION_SHIFT - 1):
            raise ValueError("journal and segment files must be smaller than 4 GiB and 2 GiB")
        if self.journal_files_ahead < 2:
            raise ValueError("journal_files_ahead must be at least 2: one to continue in, one in reserve")
        for name in ("spare_files_max", "free_bytes_min", "cache_bytes"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} cannot be negative")
        for name in (
            "segment_bytes",
            "checkpoint_journal_bytes",
            "read_ahead_bytes",
            "retry_ms",
            "open_files_max",
        ):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if self.durability not in ("sync", "os"):
            raise ValueError(f"durability is 'sync' or 'os', not {self.durability!r}")
