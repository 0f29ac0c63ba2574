"""Names of unreached places: what is named, what is not, and that a name outlives edits elsewhere."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tests.simulation.coverage.justified import NOT_LOOKED_AT, as_toml, judge, read_justified, renewed
from tests.simulation.coverage.named_tests import LIST, missing_tests, named_in
from tests.simulation.coverage.places import HITS, probed
from tests.simulation.coverage.reached import Measured, measure

FILE = "storage/journal.py"
SOURCE = """
    class Journal:
        def append(self, size):
            if size > 9:
                if size > 99:
                    return 'huge'
                raise ValueError('large')
            for number in range(size):
                if number == 7:
                    return 'seven'
            try:
                found = {0: 'nothing'}[size]
            except KeyError:
                found = 'something'
            except (
                TypeError,
                ValueError,
            ):
                if size:
                    found = 'wrong'
            return found

        def never(self):
            if self:
                return 1
            return 2

    def kind(size):
        match size:
            case 1:
                return 'one'
            case 2:
                return 'two'
"""
LARGE = (FILE, "Journal.append", "if size > 9 → yes")
SEVEN = (FILE, "Journal.append", "if number == 7 → yes")


def _measure(directory: Path, source: str, calls: str) -> Measured:
    """Runs the calls on a file of one package."""
    path = directory / "journal.py"
    path.write_text(dedent(source))
    found = probed(path.read_text(), FILE)
    hits = bytearray(len(found.places))
    names: dict[str, object] = {HITS: hits}
    exec(compile(found.tree, str(path), "exec"), names)
    exec(calls, names)
    return measure({FILE: {number for number, hit in enumerate(hits) if hit}}, {FILE: path})


def _told(measured: Measured) -> list[tuple[str, str]]:
    return [(place.function, place.text) for place in measured.unreached]


def test_each_unreached_place_is_named_once(tmp_path: Path) -> None:
    measured = _measure(tmp_path, SOURCE, "Journal().append(0); Journal().append(2); kind(1)")
    assert _told(measured) == [
        ("Journal.append", "if size > 9 → yes"),
        ("Journal.append", "if number == 7 → yes"),
        ("Journal.append", "except (TypeError, ValueError)"),
        ("Journal.never", "never called"),
        ("kind", "case 2"),
        ("kind", "match size → no case"),
    ]
    assert measured.unreached[0].shows == "if size > 99:"
    assert 0 < measured.reached < len(measured.names)


def test_what_was_reached_is_not_named(tmp_path: Path) -> None:
    calls = "Journal().append(0); Journal().append(8); kind(1); kind(2); kind(3); Journal().never()"
    assert [text for _, text in _told(_measure(tmp_path, SOURCE, calls))] == [
        "if size > 9 → yes",
        "except KeyError",
        "except (TypeError, ValueError)",
        "if self → no",
    ]


@pytest.mark.parametrize(
    ("source", "calls", "expected"),
    [
        ("def f(n):\n    while n:\n        n -= 1", "f(0)", ["while n → a round"]),
        ("def f(n):\n    while n:\n        return", "f(1)", ["while n → the end"]),
        ("def f(n):\n    for x in n:\n        pass", "f([])", ["for x in n → a round"]),
        ("def f(n):\n    for x in n:\n        break", "f([1])", ["for x in n → the end"]),
        ("def f(n):\n    while True:\n        return", "f(1)", []),
        ("def f(n):\n    match n:\n        case 1:\n            pass\n        case _:\n            pass", "f(2)", ["case 1"]),
        ("def f(n):\n    if n:\n        return 1\n    elif n is None:\n        return 2", "f(1); f(0)", ["if n is None → yes"]),
        ("def f(n):\n    'Declared.'\n    ...", "", []),
        ("def f(n):\n    'Says.'\n    return n", "assert f.__doc__ == 'Says.'", ["never called"]),
        ("async def f(n):\n    async with n:\n        async for x in n:\n            pass", "", ["never called"]),
        ("def f(n):\n    def g():\n        if n:\n            pass\n    g()", "f(1)", ["if n → no"]),
    ],
)  # fmt: skip
def test_each_kind_of_place(tmp_path: Path, source: str, calls: str, expected: list[str]) -> None:
    assert [text for _, text in _told(_measure(tmp_path, source, calls))] == expected


def test_what_only_type_checkers_read_is_no_place(tmp_path: Path) -> None:
    source = """
        TYPE_CHECKING = False
        if TYPE_CHECKING:
            import sys

        def which(size):
            match size:
                case 1:
                    return 1
                case _ as unreachable:
                    assert_never(unreachable)
    """
    assert not _measure(tmp_path, source, "which(1)").unreached


def test_a_name_outlives_edits_elsewhere(tmp_path: Path) -> None:
    calls = "Journal().append(2); kind(1)"
    before = _measure(tmp_path, SOURCE, calls)
    moved = SOURCE.replace("    class Journal:", "    LIMIT = 9\n\n    class Journal:\n        'One.'\n", 1)
    after = _measure(tmp_path, moved, calls)
    assert [place.name for place in after.unreached] == [place.name for place in before.unreached]
    assert after.unreached[0].line == before.unreached[0].line + 4


def test_places_of_one_text_are_told_apart_whichever_was_reached(tmp_path: Path) -> None:
    source = """
        def twice(first, second):
            if first:
                return 1
            found = 2
            while second:
                if first:
                    return 1
                second = False
            return found
    """
    second = (FILE, "twice", "if first → yes (2)")
    both = _measure(tmp_path, source, "twice(False, True)")
    assert [place.text for place in both.unreached] == ["if first → yes", "if first → yes (2)"]
    one = _measure(tmp_path, source, "twice(False, True); twice(True, True)")
    assert [place.name for place in one.unreached] == [second]


def test_a_planted_place_is_unjustified(tmp_path: Path) -> None:
    calls = "Journal().append(2); kind(1)"
    justified = {place.name: "a test" for place in _measure(tmp_path, SOURCE, calls).unreached}
    assert judge(_measure(tmp_path, SOURCE, calls), justified).is_clean
    planted = SOURCE.replace(
        "            return found",
        "            if size > 5:\n                return 'six'\n            return found",
    )
    verdict = judge(_measure(tmp_path, planted, calls), justified)
    assert [place.text for place in verdict.unjustified] == ["if size > 5 → yes"]
    assert not verdict.stale
    assert not verdict.is_clean


def test_a_justification_of_what_was_reached_or_is_gone_is_stale(tmp_path: Path) -> None:
    measured = _measure(tmp_path, SOURCE, "Journal().append(8)")
    everything = {place.name: "a test" for place in measured.unreached}
    gone = (FILE, "Journal.remove", "never called")
    verdict = judge(measured, {**everything, SEVEN: "it is never seven", gone: "nobody removes"})
    assert verdict.stale == [SEVEN, gone]
    assert not verdict.is_clean


def test_rare_ones_may_be_reached_but_not_be_gone(tmp_path: Path) -> None:
    gone = (FILE, "Journal.remove", "never called")
    for calls in ("Journal().append(8)", "Journal().append(2)"):
        measured = _measure(tmp_path, SOURCE, calls)
        everything = {place.name: "open: a test" for place in measured.unreached}
        verdict = judge(measured, {**everything, SEVEN: "rare: seldom seven"})
        assert verdict.is_clean
        assert verdict.rare == {SEVEN: "rare: seldom seven"}
        assert LARGE in verdict.opened
        assert not verdict.justified
        assert judge(measured, {**everything, gone: "rare: seldom"}).stale == [gone]


def test_the_list_is_written_as_it_is_read(tmp_path: Path) -> None:
    entries = {LARGE: "no run sends so much", SEVEN: 'open: "seven" is never drawn'}
    path = tmp_path / "list.toml"
    path.write_text(as_toml(entries.items()))
    assert read_justified(path) == entries


def test_a_reason_has_to_be_given(tmp_path: Path) -> None:
    path = tmp_path / "list.toml"
    path.write_text(as_toml([(LARGE, "open: ")]))
    with pytest.raises(ValueError, match="no reason"):
        read_justified(path)


def test_a_renewed_list_fits_the_campaign_and_says_what_is_open(tmp_path: Path) -> None:
    measured = _measure(tmp_path, SOURCE, "Journal().append(8)")
    justified = {LARGE: "no run sends so much", SEVEN: "it is never seven"}
    path = tmp_path / "list.toml"
    path.write_text(renewed(judge(measured, justified), justified))
    verdict = judge(measured, read_justified(path))
    assert verdict.is_clean
    assert verdict.justified == {LARGE: "no run sends so much"}
    assert set(verdict.opened.values()) == {NOT_LOOKED_AT}


def test_a_reason_may_name_tests_and_those_have_to_be_there(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(
        "def test_it():\n    pass\n\nTestRandom = Machine.TestCase\n"
    )
    there = "no run does it; tests/test_some.py::test_it, and tests/test_some.py::TestRandom[clean stop]."
    gone = "no run does it; tests/test_some.py::test_that; tests/test_other.py::test_it"
    assert named_in(there) == ["tests/test_some.py::test_it", "tests/test_some.py::TestRandom[clean stop]"]
    assert missing_tests({LARGE: there, SEVEN: gone}, tmp_path) == [
        "tests/test_other.py::test_it",
        "tests/test_some.py::test_that",
    ]


def test_the_tests_that_the_list_names_are_there() -> None:
    """Whether they reach their places is for `python -m tests.simulation.coverage.named_tests` to say."""
    assert not missing_tests(read_justified(LIST))
