"""The machine's own limits: what any durable queue on it is made of."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.disk_probe import append_and_sync, overwrite_and_sync, sequential_write
from benchmarks.echo import echo_round_trips
from benchmarks.figures import Figure, figure, latency_figures
from benchmarks.stage import Stage

_MEBIBYTE = 1024 * 1024


def measure(stage: Stage) -> Iterator[Figure]:
    """Disk and loopback, without Penstock."""
    options = stage.options
    rounds, syncs = options.rounds, 300 if options.quick else 1_000
    size_bytes = (64 if options.quick else 256) * _MEBIBYTE
    stage.progress("4 KiB append + fdatasync")
    appends = [append_and_sync(stage.directory, syncs) for _ in range(rounds)]
    yield from latency_figures("machine.append", "4 KiB append + fdatasync", appends)
    stage.progress("4 KiB overwrite + fdatasync")
    overwrites = [overwrite_and_sync(stage.directory, syncs) for _ in range(rounds)]
    yield from latency_figures(
        "machine.overwrite",
        "4 KiB overwrite + fdatasync",
        overwrites,
        "in a preallocated file, as the journal does",
    )
    stage.progress("loopback echo")
    echoes = [echo_round_trips(2 * syncs) for _ in range(rounds)]
    yield from latency_figures("machine.echo", "1 KiB loopback echo", echoes, "raw sockets, two processes")
    stage.progress("sequential write")
    rates = [sequential_write(stage.directory, size_bytes) for _ in range(rounds)]
    yield figure("machine.write", "sequential write", "MB/s", rates, "one fdatasync at the end")
