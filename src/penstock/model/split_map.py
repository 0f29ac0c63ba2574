"""Maps whose dictionaries never have very many keys: one with a million keys takes 30 ms to grow, in one step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

Value = TypeVar("Value")

NUMBER_BITS = 12
_MANY = 32_768
_PARTS = 64


class NumberMap(Generic[Value]):
    """Values by number. Neighbours are in one page."""

    __slots__ = ("pages",)

    def __init__(self) -> None:
        self.pages: dict[int, dict[int, Value]] = {}
        """By number >> NUMBER_BITS; none is empty. Code that visits every message of a batch uses this directly."""

    def __bool__(self) -> bool:
        return bool(self.pages)

    def __contains__(self, number: int) -> bool:
        return number in self.pages.get(number >> NUMBER_BITS, ())

    def __iter__(self) -> Iterator[tuple[int, Value]]:
        """All of them. None may be added or taken out meanwhile."""
        for page in self.pages.values():
            yield from page.items()

    def get(self, number: int) -> Value | None:
        """The value of a number."""
        page = self.pages.get(number >> NUMBER_BITS)
        return page.get(number) if page is not None else None

    def put(self, number: int, value: Value) -> None:
        """Enters a value, or replaces one."""
        page = self.pages.get(number >> NUMBER_BITS)
        if page is None:
            page = self.pages[number >> NUMBER_BITS] = {}
        page[number] = value

    def pop(self, number: int) -> Value:
        """Takes a value out that is there."""
        page = self.pages[number >> NUMBER_BITS]
        value = page.pop(number)
        if not page:
            del self.pages[number >> NUMBER_BITS]
        return value


class NameMap:
    """Numbers by name; with many names in several dictionaries, by hash."""

    __slots__ = ("_count", "mask", "parts")

    def __init__(self) -> None:
        self.parts: list[dict[bytes, int]] = [{}]
        """A name is in the one of its hash & mask. Code that visits every message of a batch uses this directly."""
        self.mask = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def get(self, name: bytes) -> int:
        """The number of a name; 0 where it has none."""
        return self.parts[hash(name) & self.mask].get(name, 0)

    def put(self, name: bytes, number: int) -> None:
        """Enters a name that is not there."""
        if self._count >= _MANY and not self.mask:
            before, self.mask = self.parts[0], _PARTS - 1
            self.parts = [{} for _ in range(_PARTS)]
            for known, its_number in before.items():
                self.parts[hash(known) & self.mask][known] = its_number
        self.parts[hash(name) & self.mask][name] = number
        self._count += 1

    def remove(self, name: bytes) -> None:
        """Takes a name out that is there."""
        del self.parts[hash(name) & self.mask][name]
        self._count -= 1
