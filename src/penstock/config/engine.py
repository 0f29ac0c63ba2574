"""The options of every process that stores messages: where it listens, how it stores."""

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
    """The part of a configuration about messages and their storage."""

    listen: Address = field(
        default=Address("127.0.0.1", NATIVE_PORT),
        metadata=option(
            "native.listen",
            kinds.address(NATIVE_PORT),
            "Address for clients of the native protocol. Port 0 chooses a free port.",
            "--listen",
        ),
    )
    durability: Durability = field(
        default="sync",
        metadata=option(
            "storage.durability",
            kinds.choice("sync", "os"),
            "When a request is acknowledged. `sync`: when it is on disk. `os`: when the operating system "
            "has it; a crash of the process loses nothing, but a power cut may.",
            "--durability",
        ),
    )
    journal_file_bytes: int = field(
        default=64 * MEBIBYTE,
        metadata=option(
            "storage.journal_file_size",
            kinds.size(32 * MEBIBYTE, 1 * GIBIBYTE),
            "Size of a journal file. The files are allocated in full and reused.",
        ),
    )
    checkpoint_bytes: int = field(
        default=128 * MEBIBYTE,
        metadata=option(
            "storage.checkpoint_size",
            kinds.size(32 * MEBIBYTE, 64 * GIBIBYTE),
            "Amount of journal between checkpoints. A larger value copies fewer messages and makes recovery "
            "longer.",
        ),
    )
    segment_bytes: int = field(
        default=64 * MEBIBYTE,
        metadata=option(
            "storage.segment_size",
            kinds.size(1 * MEBIBYTE, 1 * GIBIBYTE),
            "Size at which a segment file of a queue is closed and a new one begins.",
        ),
    )
    cache_bytes: int = field(
        default=16 * MEBIBYTE,
        metadata=option(
            "storage.cache_size",
            kinds.size(0, 1024 * GIBIBYTE),
            "Memory for messages that were sent or read recently, so that receiving them needs no disk.",
        ),
    )
    max_unflushed_bytes: int = field(
        default=64 * MEBIBYTE,
        metadata=option(
            "storage.max_unflushed_size",
            kinds.size(1 * MEBIBYTE, 4 * GIBIBYTE),
            "Amount of data that may wait for the disk. Above it the server pauses reading from clients.",
        ),
    )
    max_connections: int = field(
        default=10_000,
        metadata=option(
            "native.max_connections",
            kinds.count(1, 1_000_000),
            "Maximum number of client connections. One more connection closes the oldest connection that is "
            "not authenticated; if there is none, it is refused with an error.",
        ),
    )
    write_buffer_bytes: int = field(
        default=4 * MEBIBYTE,
        metadata=option(
            "native.write_buffer_size",
            kinds.size(64 * KIBIBYTE, 1 * GIBIBYTE),
            "Size of the answers that a client has not read. Above it the server does not read the client's "
            "requests; above 64 times this it closes the connection if the client reads nothing for 10 "
            "seconds.",
        ),
    )
    hello_timeout_ms: int = field(
        default=10 * SECOND_MS,
        metadata=option(
            "native.hello_timeout",
            kinds.duration(100, 1 * HOUR_MS),
            "Time in which a new connection must send its hello.",
        ),
    )
