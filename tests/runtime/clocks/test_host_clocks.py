"""Chrony and ClockBound: their bounds are read as their own programs read them, and refusals are understood."""

from __future__ import annotations

import math
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.ordering import clockbound_page
from penstock.ordering.local_clock import LocalClock
from penstock.runtime.clocks import chrony, clockbound
from penstock.runtime.clocks.host_clock import HostClockError
from tests.ports import free_port

WALL_US = 1_700_000_000_000_000
LOCAL = LocalClock(lambda: WALL_US, lambda: 5_000)


# -- chrony --------------------------------------------------------------------------------------------------


def chrony_number(value: float) -> int:
    """Written as chrony does it: the coefficient as large as 24 bits and a sign allow."""
    if value == 0:
        return 0
    fraction, exponent = math.frexp(abs(value))
    coefficient, exponent = round(math.ldexp(fraction, 24)), exponent + 1
    if coefficient == 1 << 24:
        coefficient, exponent = coefficient >> 1, exponent + 1
    if value < 0:
        coefficient = (1 << 25) - coefficient
    return (exponent % 128) << 25 | coefficient


def tracking_answer(
    question: bytes,
    *,
    correction: float = -0.000_25,
    delay: float = 0.001,
    dispersion: float = 0.000_1,
    leap: int = 0,
    status: int = 0,
) -> bytes:
    """What chronyd answers, field by field as in its `candm.h`."""
    version, kind, _, _, command, _, sequence = struct.unpack_from("!BBBBHHI", question)
    assert (version, kind, command) == (6, 1, 33)
    head = struct.pack("!BBBBHHHHHHIII", 6, 2, 0, 0, command, 5, status, 0, 0, 0, sequence, 0, 0)
    numbers = (correction, 0.0, 0.0, -3.5, 0.0, 0.1, delay, dispersion, 64.0)
    body = struct.pack("!I20xHH12x9I", 0x7F7F0101, 2, leap, *map(chrony_number, numbers))
    return head + body


@contextmanager
def chronyd(**fields: float) -> Iterator[tuple[str, int]]:
    """Answers one question on a port of its own."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as listening:
        listening.bind(("127.0.0.1", 0))
        listening.settimeout(20)

        def answer() -> None:
            question, sender = listening.recvfrom(1024)
            reply = tracking_answer(question, **fields)  # type: ignore[arg-type]  # as the caller names them
            assert len(question) >= len(reply)  # chronyd answers no shorter question
            listening.sendto(reply, sender)

        thread = threading.Thread(target=answer)
        thread.start()
        yield listening.getsockname()
        thread.join()


@given(st.floats(-100.0, 100.0).filter(lambda value: value == 0 or abs(value) > 1e-9))
def test_chronys_numbers_are_read(value: float) -> None:
    assert chrony.chrony_float(chrony_number(value)) == pytest.approx(value, rel=1e-6)


def test_chronys_bound_is_what_is_to_be_corrected_the_dispersion_and_half_the_delay() -> None:
    with chronyd() as address:
        exchange = chrony.Chrony(address, LOCAL).read()
    bound_us = 250 + 100 + 500
    assert exchange.sent_us == exchange.returned_us == 5_000
    assert exchange.received == exchange.answered
    assert bound_us <= exchange.answered.uncertainty_us <= bound_us + 2
    assert exchange.answered.middle_us == WALL_US


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [({"leap": 3}, "chrony is not synchronized"), ({"status": 2}, r"chrony refuses .* \(status 2\)")],
)
def test_a_chrony_that_does_not_know_the_time_says_so(fields: dict[str, float], sentence: str) -> None:
    with chronyd(**fields) as address, pytest.raises(HostClockError, match=sentence):
        chrony.Chrony(address, LOCAL).read()


def test_a_chrony_that_is_not_there_is_known_at_once() -> None:
    with pytest.raises(HostClockError, match="chrony does not answer"):
        chrony.Chrony(("127.0.0.1", free_port()), LOCAL).read()


@given(st.binary(max_size=200))
def test_no_answer_whatever_breaks_the_reader(answer: bytes) -> None:
    with pytest.raises(HostClockError):
        chrony.error_bound_us(answer, 77)


# -- ClockBound ----------------------------------------------------------------------------------------------


def segment(
    *,
    generation: int = 4,
    as_of_s: int = 100,
    void_s: int = 1_100,
    bound_ns: int = 40_000,
    drift_ppb: int = 15_000,
    status: int = 1,
    version: int = 2,
    magic: tuple[int, int] = clockbound_page.MAGIC,
) -> bytes:
    return clockbound_page.LAYOUT.pack(
        *magic, 80, version, generation, as_of_s, 0, void_s, 0, bound_ns, 0, drift_ppb, status, 0
    )


def test_clockbounds_layout_is_that_of_its_protocol() -> None:
    assert clockbound_page.LAYOUT.size == 80
    written = segment()
    assert struct.unpack_from("=q", written, 48) == (40_000,)  # the bound
    assert struct.unpack_from("=Ii", written, 64) == (15_000, 1)  # drift, status


def test_clockbounds_bound_grows_with_its_drift(tmp_path: Path) -> None:
    file = tmp_path / "shm0"
    file.write_bytes(segment())
    exchange = clockbound.ClockBound(str(file), LOCAL, lambda: 110_000_000_000).read()
    assert exchange.answered.middle_us == WALL_US
    assert exchange.answered.uncertainty_us == (40_000 + 10 * 15_000) // 1000 + 1


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (segment(status=0), "does not guarantee"),
        (segment(status=3), "does not guarantee"),
        (segment(void_s=105), "does not guarantee"),
        (segment(version=3), "not of version 2"),
        (segment(magic=(1, 2)), "not of version 2"),
        (segment(generation=5), "in the middle of an update"),
        (segment(generation=0), "has not begun"),
        (segment()[:40], "too short"),
    ],
)
def test_a_clockbound_that_cannot_be_trusted_is_not(tmp_path: Path, written: bytes, sentence: str) -> None:
    file = tmp_path / "shm0"
    file.write_bytes(written)
    with pytest.raises(HostClockError, match=sentence):
        clockbound.ClockBound(str(file), LOCAL, lambda: 110_000_000_000).read()


def test_a_clockbound_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(HostClockError, match="ClockBound is not there: No such file"):
        clockbound.ClockBound(str(tmp_path / "none"), LOCAL).read()


def test_a_free_running_clock_is_bounded_too(tmp_path: Path) -> None:
    file = tmp_path / "shm0"
    file.write_bytes(segment(status=clockbound_page.FREE_RUNNING))
    reading = clockbound.ClockBound(str(file), LOCAL, lambda: 100_000_000_000).read()
    assert reading.answered.uncertainty_us == 41
