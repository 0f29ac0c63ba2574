"""How processors are named."""

import pytest

from penstock.config import load_frontend_config, load_serve_config
from penstock.config.processors import Processors, format_processors, parse_processors


@pytest.mark.parametrize(
    ("text", "processors", "written"),
    [
        ("auto", "auto", "auto"),
        ("all", "all", "all"),
        ("0", (0,), "0"),
        ("3,1", (1, 3), "1,3"),
        ("0-3,6", (0, 1, 2, 3, 6), "0-3,6"),
        (" 0 - 1 , 2", (0, 1, 2), "0-2"),
        ("2-2,2", (2,), "2"),
    ],
)
def test_names_are_read_and_written(text: str, processors: Processors, written: str) -> None:
    assert parse_processors(text) == processors
    assert format_processors(processors) == written
    assert parse_processors(written) == processors


@pytest.mark.parametrize("text", ["", "none", "-1", "1-", "a-b", "0,,1", "4096", "0x1", "٣", "99999999999"])
def test_what_names_none_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match=r"names no processors; write auto, all, or numbers"):
        parse_processors(text)


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(ValueError, match="ends before it begins"):
        parse_processors("3-1")


def test_every_role_takes_them_from_the_environment() -> None:
    variable = {"PENSTOCK_PROCESS_CPUS": "0-1"}
    assert load_serve_config(None, variable).processors == (0, 1)
    assert load_frontend_config(None, variable).processors == (0, 1)
    assert load_serve_config(None, {}).processors == "auto"
