"""The state byte of a message, and the tables that change a whole run of bytes in one step.

High bit: the message has a group. Next three bits: the state. Low four bits: the priority. With all three in one byte,
`bytes.find` finds the next ready message of a priority, and one `bytes.translate` moves a run from state to state while
each message keeps its priority and group flag.
"""

from __future__ import annotations

import re

from penstock.model import limits

GONE, READY, LEASED, DELAYED, MOVING, HELD = 0x00, 0x10, 0x20, 0x30, 0x40, 0x50
GROUPED = 0x80
STATE_BITS = 0x70
PRIORITY_BITS = 0x0F

NAMES = {READY: "ready", LEASED: "leased", DELAYED: "delayed", MOVING: "moving", HELD: "held"}


def _into(state: int) -> bytes:
    """A table that moves every living message into `state`."""
    return bytes((byte & ~STATE_BITS) | state if byte & STATE_BITS else GONE for byte in range(256))


INTO = {state: _into(state) for state in (READY, LEASED, DELAYED, MOVING, HELD)}

MOVING_ALONE = bytes(byte if byte & STATE_BITS == MOVING else GONE for byte in range(256))
"""A table that leaves only messages that are on their way elsewhere."""

KNOWN = bytes(
    byte
    for byte in range(256)
    if byte == GONE or (byte & STATE_BITS in NAMES and byte & PRIORITY_BITS < limits.PRIORITIES)
)
"""Every state byte there is."""

WITHOUT_GROUP = bytes(byte for byte in KNOWN if not byte & GROUPED)

NEW = {state: bytes(byte | state for byte in range(256)) for state in (READY, DELAYED, HELD)}
"""Makes a state byte of a priority."""

MANY = 255
"""As a number of receives: "look in the overflow table"."""

ONE_MORE = bytes([*range(1, MANY + 1), MANY])
"""Adds one receive."""

ONE_LESS = bytes([0, *range(MANY)])
"""Takes one receive away; a full counter must be looked up instead."""


def _runs_in(*states: int) -> re.Pattern[bytes]:
    """Matches a run of messages in any of the states."""
    ranges = [
        bytes([flag | state]) + b"-" + bytes([flag | state | PRIORITY_BITS])
        for state in states
        for flag in (0, GROUPED)
    ]
    escaped = b"".join(
        b"".join(b"\\x%02x" % byte if byte != 0x2D else b"-" for byte in part) for part in ranges
    )
    return re.compile(b"[" + escaped + b"]+")


RUNS_IN = {state: _runs_in(state) for state in (READY, LEASED, DELAYED, MOVING, HELD)}
RUNS_WAITING = _runs_in(READY, DELAYED)
RUNS_EXPIRABLE = _runs_in(READY, LEASED, DELAYED, HELD)
RUNS_LIVING = _runs_in(READY, LEASED, DELAYED, MOVING, HELD)
RUNS_UNRECEIVED = _runs_in(READY, HELD)
