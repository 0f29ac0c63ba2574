"""The log: one line for each message, for people and for collectors."""

import ast
import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from penstock.runtime.processes.logs import set_up_logging

SOURCE = Path(penstock.__file__).parent
LEVELS = {"debug", "info", "warning", "error", "critical", "exception"}
LOGGERS = {"log", "logger"}


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


def test_json_has_the_values_of_a_message_as_fields(logger: logging.Logger) -> None:
    stream = io.StringIO()
    set_up_logging("info", "json", stream)
    logging.getLogger("penstock.runtime").warning(
        "partition %(partition)d of %(queue)r, on node %(node)s: %(error)s (%(level)s)",
        {"partition": 7, "queue": "orders", "node": None, "error": OSError("gone"), "level": "odd"},
    )
    logging.getLogger("penstock.runtime").info("listening on %s", "127.0.0.1:9326")
    first, second = map(json.loads, stream.getvalue().splitlines())
    assert first["message"] == "partition 7 of 'orders', on node None: gone (odd)"
    assert (first["partition"], first["queue"], first["node"], first["error"]) == (7, "orders", None, "gone")
    assert first["level"] == "warning", "what every line has is not replaced"
    assert second.keys() == {"time", "level", "logger", "message"}


def test_every_message_of_a_server_names_its_values() -> None:
    unnamed = re.compile(r"%(?!\(|%)")
    found = [
        f"{path}:{node.lineno}: {ast.unparse(node.args[0])}"
        for path, text in ((path, path.read_text()) for path in SOURCE.rglob("*.py"))
        if "import logging" in text
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in LEVELS and ast.unparse(node.func.value).split(".")[-1].strip("_") in LOGGERS
        if isinstance(node.args[0], ast.Constant) and unnamed.search(str(node.args[0].value))
    ]
    assert not found, "\n".join(found)


def test_setting_up_twice_logs_once(logger: logging.Logger) -> None:
    stream = io.StringIO()
    set_up_logging("info", "text", stream)
    set_up_logging("info", "text", stream)
    logging.getLogger("penstock").info("once")
    assert len(stream.getvalue().splitlines()) == 1
