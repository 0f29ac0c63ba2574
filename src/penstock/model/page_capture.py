"""A table as it was at one moment, copied page by page while it continues to change.

A page that is about to change is copied first, unless it was captured already; all others are captured one after the
other, when there is time. So every image shows its page as it was when the capture began. Images must not change with
their page. A table that replaces all of its pages at once leaves the old pages to the capture, and continues with a new
dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

Page = TypeVar("Page")
Image = TypeVar("Image")


class PageCapture(Generic[Page, Image]):
    """The pages of one table that must still be captured, in the order of their numbers."""

    __slots__ = ("_image", "_images", "_left", "_pages", "_untouched")

    def __init__(self, pages: dict[int, Page], image: Callable[[Page], Image]) -> None:
        self._pages = pages
        self._image = image
        self._left = sorted(pages, reverse=True)
        self._untouched = set(pages)
        self._images: dict[int, Image] = {}

    def before(self, number: int) -> None:
        """The page of that number is about to change, or to go."""
        if number in self._untouched:
            self._untouched.remove(number)
            self._images[number] = self._image(self._pages[number])

    def images(self) -> Iterator[Image]:
        """The images of all pages in order, each made when it is asked for."""
        while self._left:
            number = self._left.pop()
            if number in self._untouched:
                self._untouched.remove(number)
                yield self._image(self._pages[number])
            else:
                yield self._images.pop(number)
