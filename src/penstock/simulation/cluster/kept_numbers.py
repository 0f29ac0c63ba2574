"""What clients of an `async` queue keep over failovers: numbers, receipts, offsets, generations. None may change its meaning.

The clients of `number_keepers.py` fill it; each of their messages has a unique body. A failover may lose messages, leases
and offsets of that queue; so nothing is required of lost ones, and everything of what remains at the end:

- a number belongs to one message, in every answer to a send, delivery, and read of the log;
- a token belongs to one delivery, a generation of a group to one set of members;
- a message in the surviving log of which no delivery was deleted still exists;
- a reader that continues at its offset reads every message of the surviving log, and none twice;
- the members of a group have read everything before the group's offset.

An unclean election may restore messages that a served log did not have, because an outdated replica leads again. For
messages from before the last one it is not required that readers saw them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from penstock.simulation.violation import Violation

NAME = "numbers"


@dataclass(slots=True, eq=False)
class KeptOffset:
    """A reader with its offset, and the messages that it has read."""

    name: str
    position: int = 1
    read: dict[int, bytes] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class KeptNumbers:
    """Everything that the keepers know."""

    messages: dict[int, bytes] = field(default_factory=dict)
    """Number → the message that was first seen with it."""
    deliveries: dict[bytes, dict[int, bytes]] = field(default_factory=dict)
    """Token → its messages."""
    settled: set[bytes] = field(default_factory=set)
    """Messages whose delete was requested, with a receipt of them."""
    generations: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Generation → (reader, number of members)."""
    readers: list[KeptOffset] = field(default_factory=list)
    group_read: set[bytes] = field(default_factory=set)
    """The messages that members of the group have read."""
    group_offset: int = 1
    """The group's offset at the end."""
    drained: set[bytes] = field(default_factory=set)
    """The messages of the final drain."""
    violations: list[Violation] = field(default_factory=list)

    # -- answers to clients ----------------------------------------------------------------------------------

    def told(self, number: int, message: bytes, how: str, at_ms: int) -> None:
        """A client saw a message with a number."""
        known = self.messages.setdefault(number, message)
        if known != message:
            self._violated(
                at_ms, f"number {number} is message {known.decode()} and {how} as message {message.decode()}"
            )

    def delivered(self, token: bytes, messages: Mapping[int, bytes], at_ms: int) -> None:
        """Messages were delivered with a token."""
        for number, message in messages.items():
            self.told(number, message, "was delivered", at_ms)
        known = self.deliveries.setdefault(token, dict(messages))
        if known != messages:
            self._violated(
                at_ms, f"one token was given for messages {sorted(known)} and for {sorted(messages)}"
            )

    def read(self, reader: KeptOffset, messages: Mapping[int, bytes], following: int, at_ms: int) -> None:
        """A reader got messages, and its next offset."""
        for number, message in messages.items():
            self.told(number, message, "was read", at_ms)
            if number < reader.position:
                self._violated(at_ms, f"{reader.name} asked for {reader.position} and was given {number}")
            reader.read[number] = message
        if following < reader.position:
            self._violated(at_ms, f"{reader.name} goes on at {following} after {reader.position}")
        reader.position = following

    def joined(self, generation: int, reader: str, members: int, at_ms: int) -> None:
        """A member learned a generation; `reader` is empty if it is another member's."""
        known = self.generations.setdefault(generation, (reader, members))
        if known[1] != members or (reader and known[0] and known[0] != reader):
            self._violated(
                at_ms,
                f"generation {generation} is one of {known[1]} members read by {known[0]!r}, and one of {members} read "
                f"by {reader!r}",
            )
        elif reader:
            self.generations[generation] = (reader, members)

    def _violated(self, at_ms: int, sentence: str) -> None:
        self.violations.append(Violation(NAME, at_ms, sentence))

    # -- in the end ------------------------------------------------------------------------------------------

    def check(self, log: Mapping[int, bytes], readable_from: int, at_ms: int) -> Iterator[Violation]:
        """Everything, given the log that won; readers must have seen what it has from a number on."""
        for number, message in log.items():
            self.told(number, message, "is in the log", at_ms)
        yield from self.violations
        gone = sorted(number for number, message in log.items() if message not in self.settled | self.drained)
        if gone:
            yield Violation(
                NAME,
                at_ms,
                f"messages {gone} are gone, though nobody deleted them: receipts of others must have",
            )
        for reader in self.readers:
            missed = sorted(
                number
                for number in log
                if readable_from <= number < reader.position and number not in reader.read
            )
            if missed:
                yield Violation(
                    NAME, at_ms, f"{reader.name} never read {missed}, and went on to {reader.position}"
                )
            if log and reader.position <= max(log):
                yield Violation(NAME, at_ms, f"{reader.name} is at {reader.position}, and the log has more")
        unread = sorted(
            number
            for number, message in log.items()
            if readable_from <= number < self.group_offset and message not in self.group_read
        )
        if unread:
            yield Violation(NAME, at_ms, f"the group goes on at {self.group_offset} and never read {unread}")
