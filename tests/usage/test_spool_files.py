"""What spools ask of their files holds for the real ones and for those of the simulation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from penstock.runtime.disk.spool_directory import SpoolDirectory
from penstock.simulation.disk import SimulatedDisk
from penstock.simulation.spool_files import SimulatedSpoolFiles, SpoolHost
from penstock.usage.collector import UsageCollector
from penstock.usage.spool import LEAST_BYTES
from penstock.usage.spool_files import SpoolFiles
from tests.usage.test_usage import drained, event, latencies

Processes = Callable[[], SpoolFiles]
"""The same directory, as another process has it."""


@pytest.fixture(params=["real", "simulated"])
def process(request: pytest.FixtureRequest, tmp_path: Path) -> Processes:
    if request.param == "real":
        return lambda: SpoolDirectory(tmp_path / "usage")
    host = SpoolHost(SimulatedDisk(Random(1)))
    return lambda: SimulatedSpoolFiles(host)


def test_a_new_file_is_there_and_full_of_zeros(process: Processes) -> None:
    files = process()
    assert files.names() == []
    file = files.make("b", LEAST_BYTES)
    files.make("a", LEAST_BYTES).close()
    assert files.names() == ["a", "b"]
    assert bytes(file.memory) == bytes(LEAST_BYTES)
    file.remove()
    assert process().names() == ["a"]


def test_a_file_belongs_to_one_process_until_that_lets_go(process: Processes) -> None:
    first = process().make("one", LEAST_BYTES)
    first.memory[100:103] = b"row"
    assert process().take("one") is None
    first.close()
    second = process().take("one")
    assert second is not None
    assert bytes(second.memory[99:104]) == b"\0row\0"
    assert process().take("one") is None
    second.remove()
    assert process().names() == []


def test_what_one_process_has_left_the_next_hands_on(process: Processes) -> None:
    first = UsageCollector(process(), "front", token=bytes(16), spool_bytes=LEAST_BYTES)
    for number in range(3):
        first.record(event(number))
    first.close()
    second = UsageCollector(process(), "front", token=b"1" * 16, spool_bytes=LEAST_BYTES)
    assert latencies(drained(second)) == [0, 1, 2]
    second.close()
    assert process().names() == []


def test_a_simulated_process_that_is_killed_leaves_its_files_to_the_next() -> None:
    host = SpoolHost(SimulatedDisk(Random(1)))
    files = SimulatedSpoolFiles(host)
    first = UsageCollector(files, "front", token=bytes(16), spool_bytes=LEAST_BYTES)
    first.record(event(7))
    files.kill()
    with pytest.raises(TypeError, match="read-write"):  # it is no more, and writes nothing
        first.record(event(8))
    second = UsageCollector(SimulatedSpoolFiles(host), "front", token=b"1" * 16, spool_bytes=LEAST_BYTES)
    assert latencies(drained(second)) == [7]


def test_a_simulated_disk_that_is_full_takes_no_spool(caplog: pytest.LogCaptureFixture) -> None:
    host = SpoolHost(SimulatedDisk(Random(1), capacity=1_000))
    usage = UsageCollector(SimulatedSpoolFiles(host), "front", token=bytes(16), spool_bytes=LEAST_BYTES)
    assert "cannot store usage" in caplog.text
    usage.record(event(1))
    assert latencies(drained(usage)) == [1]
    assert host.disk.list("usage") == []
