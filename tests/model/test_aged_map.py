"""The map that knows the age of its keys, beside an `OrderedDict`; and captures of it while it changes."""

from __future__ import annotations

from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as some

from penstock.model import aged_map, limits
from penstock.model.aged_map import AgedMap
from penstock.model.page_capture import PageCapture

Row = tuple[int, int]
commands = some.lists(
    some.tuples(
        some.sampled_from(
            ["put", "put", "put", "several", "replace", "pop", "pop", "over", "clear", "begin", "take"]
        ),
        some.integers(0, 12),
        some.integers(0, 99),
    ),
    max_size=80,
)


def rows_of(page: dict[int, int]) -> list[Row]:
    return list(page.items())


@given(commands, some.integers(1, 4), some.sampled_from([2, 5, 100]))
def test_it_does_what_an_ordered_dictionary_does_and_is_captured_as_it_was(
    taken: list[tuple[str, int, int]], rows: int, many: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "PAGE_ROWS", rows)
        patch.setattr(aged_map, "_MANY", many)
        patch.setattr(aged_map, "_INDEXES", 4)
        _run(taken)


def _run(taken: list[tuple[str, int, int]]) -> None:
    aged: AgedMap[int, int] = AgedMap()
    plain: OrderedDict[int, int] = OrderedDict()
    capture: PageCapture[dict[int, int], list[Row]] | None = None
    expected: list[Row] = []
    found: list[Row] = []
    for command, key, value in taken:
        match command:
            case "put":
                aged.put(key, value)
                plain[key] = value
                plain.move_to_end(key)
            case "several":
                aged.put_all([(key, value), (key + 1, value + 1), (key, value + 2)])
                for one, other in ((key + 1, value + 1), (key, value + 2)):
                    plain[one] = other
                    plain.move_to_end(one)
            case "replace":
                if key in plain:
                    aged.replace(key, value)
                    plain[key] = value
            case "pop":
                assert aged.pop(key) == plain.pop(key, None)
            case "over":
                over = []
                for row in list(plain.items()):
                    if row[1] > value:
                        break
                    over.append(row)
                    del plain[row[0]]
                assert aged.pop_while(lambda one, most=value: one <= most) == over  # type: ignore[misc]  # a lambda with its own value
            case "clear":
                aged.clear()
                plain.clear()
            case "begin":
                capture, expected, found = aged.begin_capture(rows_of), list(plain.items()), []
            case _:
                for image in capture.images() if capture is not None else ():
                    found += image
                    break
        assert list(aged.items()) == list(plain.items())
        assert len(aged) == len(plain)
        assert aged.oldest() == next(iter(plain.items()), None)
        assert aged.get(key) == plain.get(key)
        assert (key in aged) is (key in plain)
        assert aged.has_any([key, value, 50]) is any(one in plain for one in (key, value, 50))
    if capture is not None:
        for image in capture.images():
            found += image
        assert found == expected
