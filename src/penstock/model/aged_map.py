"""A map that knows the age of its keys, in pages that can be captured one by one.

Like an `OrderedDict`, in less memory. A page is a dictionary of neighbours in age. The newest is being filled; the others
only lose keys that are removed, or put again and so become new.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from penstock.model import limits
from penstock.model.page_capture import PageCapture

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")
Image = TypeVar("Image")


_MANY = 32_768
_INDEXES = 64


class AgedMap(Generic[Key, Value]):
    """Values by key, oldest first. A value that changes in place must be announced with `touch`."""

    __slots__ = ("_count", "_first", "_front", "_last", "_mask", "_page_of", "_pages", "capture")

    def __init__(self) -> None:
        self._pages: dict[int, dict[Key, Value]] = {0: {}}
        self._page_of: list[dict[Key, int]] = [{}]
        """The page of each key; with many keys in several dictionaries, by hash, because one with a million would take 30 ms
        to grow.
        """
        self._mask = 0
        self._count = 0
        self._first = 0
        self._last = 0
        """Numbers of pages; those between that are missing are empty."""
        self._front: list[Key] = []
        """The keys of the first page, or the oldest of them, the oldest last: a dictionary that lost its first keys is
        slow to say which is first now."""
        self.capture: PageCapture[dict[Key, Value], Any] | None = None

    def __len__(self) -> int:
        return self._count

    def __contains__(self, key: object) -> bool:
        return key in self._page_of[hash(key) & self._mask]

    def has_any(self, keys: Sequence[Key]) -> bool:
        """Whether one of the keys is there."""
        if not self._mask:
            return not self._page_of[0].keys().isdisjoint(keys)
        return any(key in self._page_of[hash(key) & self._mask] for key in keys)

    def get(self, key: Key) -> Value | None:
        """The value of a key."""
        page = self._page_of[hash(key) & self._mask].get(key)
        return self._pages[page][key] if page is not None else None

    def put(self, key: Key, value: Value) -> None:
        """Puts a value; its key is the youngest from now on."""
        page_of = self._page_of[hash(key) & self._mask]
        if key in page_of:
            self.pop(key)
        number = self._last
        page = self._pages[number]
        if len(page) >= limits.PAGE_ROWS:
            number, page = self._begin_page()
            page_of = self._page_of[hash(key) & self._mask]
        elif self.capture is not None:
            self.capture.before(number)
        page[key] = value
        page_of[key] = number
        self._count += 1

    def put_all(self, rows: Iterable[tuple[Key, Value]]) -> None:
        """Puts several, one after the other."""
        indexes, mask, most, number = self._page_of, self._mask, limits.PAGE_ROWS, self._last
        page, page_of, added = self._pages[number], indexes[0], 0
        if self.capture is not None:
            self.capture.before(number)
        for key, value in rows:
            if mask:
                page_of = indexes[hash(key) & mask]
            if key in page_of:
                self.pop(key)
            if len(page) >= most:
                self._count, added = self._count + added, 0
                number, page = self._begin_page()
                indexes, mask = self._page_of, self._mask
                page_of = indexes[hash(key) & mask]
            page[key] = value
            page_of[key] = number
            added += 1
        self._count += added

    def _begin_page(self) -> tuple[int, dict[Key, Value]]:
        self._last += 1
        page = self._pages[self._last] = {}
        if not self._mask and self._count >= _MANY:
            self._mask = _INDEXES - 1
            before, self._page_of = self._page_of[0], [{} for _ in range(_INDEXES)]
            for key, number in before.items():
                self._page_of[hash(key) & self._mask][key] = number
        return self._last, page

    def replace(self, key: Key, value: Value) -> None:
        """Puts another value for a key, which stays as old as it is."""
        self.touch(key)
        self._pages[self._page_of[hash(key) & self._mask][key]][key] = value

    def touch(self, key: Key) -> None:
        """The value of the key is about to change, in its place."""
        if self.capture is not None:
            self.capture.before(self._page_of[hash(key) & self._mask][key])

    def pop(self, key: Key) -> Value | None:
        """Takes a key out."""
        number = self._page_of[hash(key) & self._mask].pop(key, None)
        if number is None:
            return None
        self._count -= 1
        if self.capture is not None:
            self.capture.before(number)
        if number == self._first:
            front = self._front
            if front and front[-1] == key:
                front.pop()
            else:
                self._front = []
        page = self._pages[number]
        value = page.pop(key)
        if not page and number != self._last:
            del self._pages[number]
        return value

    def oldest(self) -> tuple[Key, Value] | None:
        """The key that was put first, with its value."""
        if not self._count:
            return None
        if not self._front:
            while not self._pages.get(self._first):
                self._first += 1
            self._front = [*reversed(self._pages[self._first])]
        key = self._front[-1]
        return key, self._pages[self._first][key]

    def pop_while(self, is_over: Callable[[Value], bool], most: int | None = None) -> list[tuple[Key, Value]]:
        """Takes out the oldest ones, up to the first that is not over, and up to so many."""
        taken: list[tuple[Key, Value]] = []
        while len(taken) != most and (oldest := self.oldest()) is not None and is_over(oldest[1]):
            self.pop(oldest[0])
            taken.append(oldest)
        return taken

    def clear(self) -> None:
        """Takes everything out."""
        self._first = self._last = self._last + 1
        self._pages = {self._last: {}}
        self._page_of, self._mask, self._count = [{}], 0, 0
        self._front = []

    def items(self) -> Iterator[tuple[Key, Value]]:
        """All keys with their values, oldest first."""
        for number in sorted(self._pages):
            yield from self._pages[number].items()

    def newest(self) -> Iterator[tuple[Key, Value]]:
        """All keys with their values, newest first. Values may be replaced meanwhile."""
        for number in sorted(self._pages, reverse=True):
            yield from reversed(self._pages[number].items())

    def values(self) -> Iterator[Value]:
        """All values, oldest first."""
        for number in sorted(self._pages):
            yield from self._pages[number].values()

    def begin_capture(
        self, image: Callable[[dict[Key, Value]], Image]
    ) -> PageCapture[dict[Key, Value], Image]:
        """Captures the map as it is now, until `capture` is None again."""
        self.capture = capture = PageCapture(self._pages, image)
        return capture
