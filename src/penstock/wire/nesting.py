"""The depth and size of a msgpack value, found without decoding it.

A decoder goes as deep as its stack allows, so its limit depends on its caller. Input of unauthenticated clients is
measured first, against a fixed limit. The check keeps one count for each open container, never more than the allowed
depth, ends after a maximum of values, and trusts no announced length.
"""

from __future__ import annotations

from penstock.model.batch import Buffer

_ARRAY, _MAP = 1, 2
_COUNTED: dict[int, tuple[int, int]] = {
    0xDC: (2, _ARRAY),
    0xDD: (4, _ARRAY),
    0xDE: (2, _MAP),
    0xDF: (4, _MAP),
}
"""Containers whose number of elements follows the first byte: in so many bytes, and the number of values of an element."""
_SIZED: dict[int, tuple[int, int]] = (
    {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0)}  # bytes
    | {0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}  # extensions, with their type
    | {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}  # text
)
"""Values whose size follows the first byte: in so many bytes, and the number of additional ones."""
_FIXED: dict[int, int] = (
    {0xCA: 4, 0xCB: 8, 0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8, 0xD0: 1, 0xD1: 2, 0xD2: 4, 0xD3: 8}  # numbers
    | {0xD4: 2, 0xD5: 3, 0xD6: 5, 0xD7: 9, 0xD8: 17}  # extensions of one size
)
"""Values that have so many bytes after the first."""


def is_intricate(data: Buffer, *, levels: int, values: int) -> bool:
    """Whether a value has containers in more than `levels` levels, or is made of more than so many values.

    What is cut short or malformed is the decoder's to refuse.
    """
    view = memoryview(data)
    end = len(view)
    open_values: list[int] = [1]
    at = 0
    while open_values:
        if not open_values[-1]:
            open_values.pop()
            continue
        open_values[-1] -= 1
        if at >= end:
            return False
        values -= 1
        if values < 0:
            return True
        first = view[at]
        at += 1
        inside: int | None = None
        if 0x80 <= first <= 0x8F:
            inside = (first & 0x0F) * _MAP
        elif 0x90 <= first <= 0x9F:
            inside = first & 0x0F
        elif 0xA0 <= first <= 0xBF:
            at += first & 0x1F
        elif first in _COUNTED:
            width, each = _COUNTED[first]
            inside = int.from_bytes(view[at : at + width], "big") * each
            at += width
        elif first in _SIZED:
            width, beside = _SIZED[first]
            at += width + beside + int.from_bytes(view[at : at + width], "big")
        else:
            at += _FIXED.get(first, 0)
        if inside is not None:
            open_values.append(inside)
            if len(open_values) - 1 > levels:
                return True
    return False
