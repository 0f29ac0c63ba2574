"""Settings: defaults that can be, and refusals that say why."""

from __future__ import annotations

import msgspec
import pytest

from penstock.model import limits
from penstock.model.errors import ErrorCode, PenstockError
from penstock.model.settings import QueueSettings
from penstock.model.settings_checks import (
    changed_settings,
    check_new,
    check_queue_name,
    check_settings,
    settings_difference,
)


def refused(settings: QueueSettings) -> str:
    with pytest.raises(PenstockError) as caught:
        check_settings("orders", settings)
    assert caught.value.code is ErrorCode.BAD_REQUEST
    return caught.value.message


def test_the_defaults_can_be() -> None:
    check_settings("orders", QueueSettings())


@pytest.mark.parametrize("name", ["a", "Orders", "_x", "-x", "0", "a.b", "a" * limits.QUEUE_NAME_CHARACTERS])
def test_a_queue_name(name: str) -> None:
    check_queue_name(name)


@pytest.mark.parametrize(
    "name", ["", ".", "..", ".hidden", "a b", "a/b", "a\n", "é", "a" * (limits.QUEUE_NAME_CHARACTERS + 1)]
)
def test_no_queue_name(name: str) -> None:
    with pytest.raises(PenstockError, match="is not a queue name"):
        check_queue_name(name)


@pytest.mark.parametrize(
    ("field", "low", "high"),
    [
        ("max_messages", 1, limits.QUEUE_MESSAGES_MAX),
        ("max_bytes", 1, limits.QUEUE_BYTES_MAX),
        ("max_message_bytes", 1, limits.MESSAGE_BYTES_MAX),
        ("visibility_timeout_ms", 0, limits.VISIBILITY_TIMEOUT_MS_MAX),
        ("retention_ms", limits.RETENTION_MS_MIN, limits.RETENTION_MS_MAX),
        ("default_ttl_ms", 1, limits.RETENTION_MS_MAX),
        ("deduplication_window_ms", 1, limits.DEDUPLICATION_WINDOW_MS_MAX),
        ("max_receives", 1, limits.RECEIVE_COUNT_MAX),
    ],
)
def test_each_number_has_a_range_and_the_refusal_names_it(field: str, low: int, high: int) -> None:
    fine = QueueSettings(dead_letter_queue="dead")
    for value in (low, high):
        check_settings("orders", msgspec.structs.replace(fine, **{field: value}))
    for value in (low - 1, high + 1):
        assert field in refused(msgspec.structs.replace(fine, **{field: value}))


def test_what_cannot_go_together() -> None:
    assert "retention_ms" in refused(QueueSettings(delay_ms=2_000, retention_ms=1_000))
    assert "dead_letter_queue" in refused(QueueSettings(max_receives=3))
    assert "dead_letter_queue" in refused(QueueSettings(overflow="dead-letter"))
    assert "its own" in refused(QueueSettings(dead_letter_queue="orders"))
    assert "queue name" in refused(QueueSettings(dead_letter_queue="../orders"))


def test_a_change_keeps_what_it_does_not_name() -> None:
    before = QueueSettings(max_messages=5, visibility_timeout_ms=1)
    assert changed_settings(before, {"max_messages": None}) == QueueSettings(visibility_timeout_ms=1)
    assert changed_settings(before, {}) == before


@pytest.mark.parametrize(
    "changes",
    [
        {"no_such_setting": 1},
        {"max_messages": "many"},
        {"max_messages": 1.5},
        {"overflow": "explode"},
        {"retention_ms": None},
        {"max_receives": True},
        {"ordering": "fifo"},
    ],
)
def test_a_change_that_cannot_be_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(PenstockError) as caught:
        changed_settings(QueueSettings(), changes)
    assert caught.value.code is ErrorCode.BAD_REQUEST


NEWER = QueueSettings(max_messages=7, later={"flavour": "sweet"})


def test_settings_of_a_newer_version_outlive_a_change() -> None:
    assert changed_settings(NEWER, {"max_messages": 8}) == QueueSettings(
        max_messages=8, later={"flavour": "sweet"}
    )


def test_who_asks_for_a_queue_again_need_not_know_what_newer_versions_set() -> None:
    assert settings_difference(NEWER, QueueSettings(max_messages=7)) is None
    assert settings_difference(NEWER, QueueSettings()) == "max_messages"


@pytest.mark.parametrize("changes", [{"flavour": "sour"}, {"later": {}}, {"needs": 2}, {"needs": 1}])
def test_what_people_write_is_not_kept_for_newer_versions_but_refused(changes: dict[str, object]) -> None:
    (name,) = changes
    with pytest.raises(PenstockError, match=f"there is no setting '{name}'"):
        changed_settings(NEWER, changes)


def test_a_queue_is_not_made_with_settings_that_are_nobody_s_to_choose() -> None:
    check_new(QueueSettings())
    with pytest.raises(PenstockError, match="there is no setting 'later'"):
        check_new(NEWER)
    with pytest.raises(PenstockError, match="there is no setting 'needs'"):
        check_new(QueueSettings(needs=1))
