"""What every process that keeps messages can be told: where it listens, how it stores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.config import kinds
from penstock.config.address import Address
from penstock.config.clock import ClockOptions
from penstock.config.monitoring import MonitoringOptions
from penstock.config.option import option
from penstock.config.shared import SharedOptions
from penstock.model.limits import HOUR_MS, KIBIBYTE, MEBIBYTE, SECOND_MS

Durability = Literal["sync", "os"]

NATIVE_PORT = 9326
GIBIBYTE = 1024 * MEBIBYTE


@dataclass(frozen=True, kw_only=True)
class EngineOptions(MonitoringOptions, ClockOptions, SharedOptions):
    """The part of a configuration that is about messages and their storage."""

    listen: Address = field(
        default=Address("127.0.0.1", NATIVE_PORT),
        metadata=option(
            "native.listen",
            kinds.address(NATIVE_PORT),
            "Where clients connect with the native protocol. Port 0 lets the system choose one.",
            "--listen",
        ),
    )
    durability: Durability = field(
        default="sync",
        metadata=option(
            "storage.durability",
            kinds.choice("sync", "os"),
            "`sync`: an acknowledgement means it is on disk. `os`: it means the operating system has it; "
            "a crash of the process loses nothing, a power cut may.",
            "--durability",
        ),
    )
    journal_file_bytes: int = field(
        default=64 * MEBIBYTE,
        metadata=option(
            "storage.journal_file_size",
            kinds.size(32 * MEBIBYTE, 1 * GIBIBYTE),
            "Size of one journal file; they are allocated in full and used again.",
        ),
    )
    checkpoint_bytes: int = field(
        default=128 * MEBIBYTE,
        metadata=option(
            "storage.checkpoint_size",
            kinds.size(32 * MEBIBYTE, 64 * GIBIBYTE),
            "How much journal is written between checkpoints: more means fewer moves and a longer recovery.",
        ),
    )
    segment_bytes: int = field(
        default=64 * MEBIBYTE,
        metadata=option(
            "storage.segment_size",
            kinds.size(1 * MEBIBYTE, 1 * GIBIBYTE),
            "Size at which a queue's segment file is closed and the next begun.",
        ),
    )
    cache_bytes: int = field(
        default=16 * MEBIBYTE,
        metadata=option(
            "storage.cache_size",
            kinds.size(0, 1024 * GIBIBYTE),
            "Memory for messages that were just sent or read, so that receiving them needs no disk.",
        ),
    )
    max_unflushed_bytes: int = field(
        default=64 * MEBIBYTE,
        metadata=option(
            "storage.max_unflushed_size",
            kinds.size(1 * MEBIBYTE, 4 * GIBIBYTE),
            "How much may wait for the disk before the server stops reading from clients for a moment.",
        ),
    )
    max_connections: int = field(
        default=10_000,
        metadata=option(
            "native.max_connections",
            kinds.count(1, 1_000_000),
            "How many clients may be connected at once. For one more, the oldest unknown one is cut off; without any it is "
            "refused with a clear error.",
        ),
    )
    write_buffer_bytes: int = field(
        default=4 * MEBIBYTE,
        metadata=option(
            "native.write_buffer_size",
            kinds.size(64 * KIBIBYTE, 1 * GIBIBYTE),
            "Answers a client has not read yet; beyond this its requests are not read. Beyond 64 times this it is "
            "disconnected if it reads nothing for 10 seconds.",
        ),
    )
    hello_timeout_ms: int = field(
        default=10 * SECOND_MS,
        metadata=option(
            "native.hello_timeout",
            kinds.duration(100, 1 * HOUR_MS),
            "How long a new connection may take to say hello.",
        ),
    )
