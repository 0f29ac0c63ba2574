"""The log: one line a message, for people and for collectors."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from penstock.runtime.logs import set_up_logging


@pytest.fixture
def logger() -> Iterator[logging.Logger]:
    """Penstock's logger, put back as it was."""
    logger = logging.getLogger("penstock")
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield logger
    logger.handlers[:], logger.propagate = before[0], before[2]
    logger.setLevel(before[1])


def test_text_is_one_line_with_time_and_level(logger: logging.Logger) -> None:
    stream = io.StringIO()
    set_up_logging("info", "text", stream)
    logging.getLogger("penstock.runtime").info("listening on %s", "127.0.0.1:9326")
    logging.getLogger("penstock.runtime").debug("not shown")
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(" INFO    listening on 127.0.0.1:9326")
    assert line[4] == line[7] == "-"


def test_json_is_one_object_a_line_even_with_an_exception(logger: logging.Logger) -> None:
    stream = io.StringIO()
    set_up_logging("warning", "json", stream)
    try:
        raise ValueError("a\nb")
    except ValueError:
        logging.getLogger("penstock.runtime").exception("it broke")
    (line,) = stream.getvalue().splitlines()
    fields = json.loads(line)
    assert (fields["level"], fields["message"], fields["logger"]) == ("error", "it broke", "penstock.runtime")
    assert "ValueError" in fields["exception"]


def test_setting_up_twice_logs_once(logger: logging.Logger) -> None:
    stream = io.StringIO()
    set_up_logging("info", "text", stream)
    set_up_logging("info", "text", stream)
    logging.getLogger("penstock").info("once")
    assert len(stream.getvalue().splitlines()) == 1
