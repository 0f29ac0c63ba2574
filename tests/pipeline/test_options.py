"""The options of the source: what is accepted, what is refused and how, and that the reference has them all."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from penstock.model.partition_numbers import number_of
from penstock.pipeline.errors import PipelineError
from penstock.pipeline.source.option_table import OPTIONS, Use
from penstock.pipeline.source.options import read_options, write_options

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "spark-source.md"


def test_the_reference_has_the_table_of_options_word_for_word() -> None:
    lines = [
        f"| `{one.name}` | {f'`{one.default}`' if one.default else ''} | {', '.join(one.uses)} | {one.meaning} |"
        for one in OPTIONS
    ]
    assert "\n".join(lines) in REFERENCE.read_text()


def test_case_does_not_matter_and_defaults_stand_behind() -> None:
    options = read_options(
        {"QUEUE": "clicks", "startingoffsets": "LATEST", "FailOnDataLoss": "False"}, "read"
    )
    assert options.target.endpoints == ("penstock://127.0.0.1:9326",)
    assert (options.target.queue, options.starting, options.ending) == ("clicks", "latest", "latest")
    assert not options.fail_on_data_loss
    assert write_options({"path": "results"}, "write").target.queue == "results"


def test_offsets_name_messages_with_or_without_their_partition() -> None:
    given = f'{{"0": 0, "1": 700, "2": {number_of(2, 9)}}}'
    starting = read_options({"queue": "q", "startingOffsets": given}, "read").starting
    assert starting == {0: 1, 1: number_of(1, 700), 2: number_of(2, 9)}


def test_tasks_read_from_nodes_unless_told_not_to() -> None:
    assert read_options({"queue": "q"}, "read").direct
    assert not read_options({"queue": "q", "direct": "Never"}, "readStream").direct


def test_times_without_a_zone_are_utc() -> None:
    options = read_options(
        {"queue": "q", "startingTime": "2026-05-01", "endingTime": "2026-05-01T12:00+02:00"}, "read"
    )
    assert options.starting == datetime(2026, 5, 1, tzinfo=UTC)
    assert options.ending == datetime(2026, 5, 1, 10, tzinfo=UTC)


def test_several_endpoints_are_tried() -> None:
    options = read_options({"queue": "q", "endpoint": "a:1, penstock://b:2"}, "readStream")
    assert options.target.endpoints == ("penstock://a:1", "penstock://b:2")


@pytest.mark.parametrize(
    ("options", "use", "said"),
    [
        ({}, "read", "name the queue"),
        ({"queue": "q", "direct": "always"}, "read", "use auto or never"),
        ({"queue": "no spaces"}, "read", "no spaces"),
        ({"queue": "q", "endpoint": "http://x"}, "read", "must start with penstock://"),
        ({"queue": "q", "rows": "cells"}, "read", "use messages, usage, lifecycle"),
        ({"queue": "q", "startingOffsets": "first"}, "read", "use earliest, latest, committed"),
        ({"queue": "q", "startingOffsets": '{"0": "1"}'}, "read", "has '0': '1'"),
        (
            {"queue": "q", "startingOffsets": f'{{"0": {number_of(1, 5)}}}'},
            "read",
            "is of partition 1, not 0",
        ),
        ({"queue": "q", "startingOffsets": "committed"}, "read", "set the option group too"),
        ({"queue": "q", "startingOffsets": "latest", "startingTime": "2026-01-01"}, "read", "not both"),
        ({"queue": "q", "endingTime": "noon"}, "read", "write a time as"),
        ({"queue": "q", "endingOffsets": "latest"}, "readStream", "is for read, not for readStream"),
        ({"queue": "q", "maxBytesPerTrigger": "1k"}, "readStream", "give a whole number"),
        ({"queue": "q", "failOnDataLoss": "no"}, "read", "use true or false"),
        ({"queue": "q", "timeout": "0"}, "read", "give seconds, above 0"),
        ({"queue": "q", "partitions": "0-2"}, "read", "as 0,2"),
        ({"queue": "q", "groop": "g"}, "read", "did you mean group?"),
    ],
)
def test_what_cannot_be_is_named(options: dict[str, str], use: Use, said: str) -> None:
    with pytest.raises(PipelineError, match=r".*") as caught:
        read_options(options, use)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"queue": "q", "password": "hunter2"},
        {"queue": "q", "secretKey": "hunter2"},
        {"queue": "q", "accessKey": "", "secretKey": "hunter2"},
        {"queue": "q", "sessionToken": "hunter2"},
        {"queue": "q", "endpoint": "penstock://user:hunter2@host:9326"},
        {"queue": "q", "endpoint": "user:hunter2@host:9326"},
    ],
)
def test_what_may_be_a_secret_is_never_repeated(options: dict[str, str]) -> None:
    with pytest.raises(PipelineError, match="accessKey") as caught:
        read_options(options, "read")
    assert "hunter2" not in str(caught.value)


def test_credentials_come_from_the_options_or_from_the_environment_and_are_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_ACCESS_KEY", "AKIAENVIRONMENT")
    monkeypatch.setenv("PENSTOCK_SECRET_KEY", "hunter2")
    from_environment = read_options({"queue": "q"}, "read")
    assert from_environment.target.credentials == ("AKIAENVIRONMENT", "hunter2")
    given = read_options({"queue": "q", "accessKey": "AKIAOPTION", "secretKey": "hunter3"}, "read")
    assert given.target.credentials == ("AKIAOPTION", "hunter3")
    for shown in (repr(from_environment), repr(given), str(given.target)):
        assert "hunter" not in shown
