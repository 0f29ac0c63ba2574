"""What is made from the table of queue settings is as the table says."""

from __future__ import annotations

import pytest

from penstock.model.setting import Setting, row_of
from penstock.model.settings import SETTINGS, QueueSettings
from penstock.model.settings_checks import check_settings
from scripts.settings_sources import ROOT, sources


def test_options_and_pages_are_made_from_the_table() -> None:
    stale = [
        str(path.relative_to(ROOT))
        for path, text in sources().items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    assert not stale, f"run `make settings`: {stale}"


def test_a_setting_needs_a_row() -> None:
    with pytest.raises(TypeError, match="the setting colour has no row"):
        row_of("colour", str, "red")


@pytest.mark.parametrize("name", [name for name, setting in SETTINGS.items() if setting.row.low is not None])
def test_both_bounds_are_allowed_and_nothing_beyond_them(name: str) -> None:
    row = SETTINGS[name].row
    assert row.low is not None
    assert row.high is not None
    for value in (row.low, row.high):
        settings = QueueSettings(**{name: value})  # type: ignore[arg-type]  # by name
        refusal = _refusal(settings)
        assert "must be between" not in refusal
    for value in (row.low - 1, row.high + 1):
        settings = QueueSettings(**{name: value})  # type: ignore[arg-type]  # by name
        assert f"{name} must be between {row.low} and {row.high}" in _refusal(settings)


def _refusal(settings: QueueSettings) -> str:
    try:
        check_settings("orders", settings)
    except Exception as error:
        return str(error)
    return ""


def test_every_number_has_bounds_and_every_setting_a_sentence() -> None:
    for setting in SETTINGS.values():
        assert isinstance(setting.row, Setting)
        assert setting.row.help.endswith(".")
        if setting.kind in ("count", "size", "duration"):
            assert setting.row.low is not None, setting.name
            assert setting.row.high is not None, setting.name
