"""Asks chrony for the maximum error of the wall clock, over its monitoring protocol on the loopback interface.

Chrony's manual gives the bound: the error is at most the remaining correction, plus the root dispersion, plus half the
root delay. Every local user can read the tracking data on UDP port 323 (`cmdport`), so this needs neither chrony's
command-line program nor a right to its socket. The layout is version 6 of its `candm.h`, which chrony has used since 2.2
(2015).
"""

from __future__ import annotations

import math
import secrets
import socket
import struct

from penstock.ordering.clock_estimator import Exchange, host_reading
from penstock.ordering.clock_interval import around
from penstock.ordering.local_clock import LocalClock
from penstock.runtime.clocks.host_clock import LOCAL_CLOCK, HostClockError

CHRONY_ADDRESS = ("127.0.0.1", 323)
ANSWER_SECONDS = 0.5

_VERSION, _REQUEST, _REPLY, _TRACKING, _TRACKING_REPLY, _UNSYNCHRONIZED = 6, 1, 2, 33, 5, 3
_QUESTION = struct.Struct("!BBBBHHIII")
_HEADER = struct.Struct("!BBBBHHHHHHIII")
_BODY = struct.Struct("!I20xHH12x9I")
"""Reference, its address, stratum, leap status, time of the last update, then nine numbers in chrony's own format."""
_REPLY_BYTES = _HEADER.size + _BODY.size
_COEFFICIENT_BITS, _EXPONENT_BITS = 25, 7


def chrony_float(encoded: int) -> float:
    """A number as chrony writes it: 7 bits of exponent, 25 of coefficient, both signed."""
    exponent, coefficient = divmod(encoded, 1 << _COEFFICIENT_BITS)
    if exponent >= 1 << (_EXPONENT_BITS - 1):
        exponent -= 1 << _EXPONENT_BITS
    if coefficient >= 1 << (_COEFFICIENT_BITS - 1):
        coefficient -= 1 << _COEFFICIENT_BITS
    return math.ldexp(coefficient, exponent - _COEFFICIENT_BITS)


def tracking_question(sequence: int) -> bytes:
    """Asks for tracking data; as long as the answer, or chrony would not give one."""
    head = _QUESTION.pack(_VERSION, _REQUEST, 0, 0, _TRACKING, 0, sequence, 0, 0)
    return head.ljust(_REPLY_BYTES, b"\0")


def error_bound_us(answer: bytes, sequence: int) -> int:
    """How far the wall clock may be off, by an answer; raises `HostClockError`."""
    if len(answer) < _HEADER.size:
        raise HostClockError("chrony's answer is too short")
    version, kind, _, _, command, reply, status, _, _, _, echoed, _, _ = _HEADER.unpack_from(answer)
    if (version, kind, command, echoed) != (_VERSION, _REPLY, _TRACKING, sequence):
        raise HostClockError("the program on chrony's port does not use protocol version 6")
    if status or reply != _TRACKING_REPLY or len(answer) < _REPLY_BYTES:
        raise HostClockError(f"chrony refuses to report its accuracy (status {status})")
    _, _, leap, *numbers = _BODY.unpack_from(answer, _HEADER.size)
    if leap == _UNSYNCHRONIZED:
        raise HostClockError("chrony is not synchronized")
    correction, _, _, _, _, _, delay, dispersion, _ = map(chrony_float, numbers)
    return math.ceil((abs(correction) + dispersion + delay / 2) * 1_000_000) + 1


class Chrony:
    """The chrony daemon of this computer."""

    name = "chrony"

    def __init__(self, address: tuple[str, int] = CHRONY_ADDRESS, local: LocalClock = LOCAL_CLOCK) -> None:
        self._address = address
        self._local = local

    def read(self) -> Exchange:
        """Asks; a daemon that is not there is known at once, one that does not answer after half a second."""
        sequence = secrets.randbits(32)
        before_us = self._local.reading_us()
        try:
            # A new socket each time: an answer to an earlier question cannot be taken for this one's.
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
                asking.settimeout(ANSWER_SECONDS)
                asking.connect(self._address)
                asking.send(tracking_question(sequence))
                answer = asking.recv(1024)
        except OSError as error:
            raise HostClockError(f"chrony does not answer: {error.strerror or error}") from None
        wall_us = self._local.wall_us()
        known = around(wall_us, error_bound_us(answer, sequence))
        return host_reading(before_us, known, self._local.reading_us())
