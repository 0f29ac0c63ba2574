"""The reference of the protocol says what the code does: every message, every field, every error, the example."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from penstock.model.batch import encode_parts
from penstock.model.errors import ERRORS, ErrorCode
from penstock.model.origin import Origin
from penstock.model.settings import SETTINGS
from penstock.wire import messages

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "native-protocol.md").read_text(encoding="utf-8")
KINDS: tuple[type[msgspec.Struct], ...] = (*get_args(messages.Request), *get_args(messages.Answer))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_message_is_there_with_its_tag_and_its_fields_in_order(kind: type[msgspec.Struct]) -> None:
    heading = f"### {kind.__struct_config__.tag} {kind.__name__}"
    section = re.search(rf"^{heading}$(.*?)(?=^##)", TEXT, re.MULTILINE | re.DOTALL)
    assert section, f"no section '{heading}'"
    rows = re.findall(r"^\| (\d+) \| `(\w+)` \|", section[1], re.MULTILINE)
    assert rows == [(str(place), name) for place, name in enumerate(kind.__struct_fields__, 1)]


def test_every_error_is_there_with_whether_to_retry() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| .* \| (yes|no) \|$", TEXT, re.MULTILINE)
    assert rows == [(str(code), "yes" if ERRORS[code].retryable else "no") for code in ErrorCode]


def test_every_setting_of_a_queue_is_there() -> None:
    section = TEXT[TEXT.index("#### QueueSettings") : TEXT.index("#### QueueStatistics")]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(SETTINGS)


@pytest.mark.parametrize(
    "kind",
    [
        messages.Receipt,
        messages.ReceiptOutcome,
        messages.DeliveredBatch,
        Origin,
        messages.PeekFilter,
    ],
    ids=lambda kind: kind.__name__,
)
def test_the_fields_of_shared_structures_are_there_in_order(kind: type[msgspec.Struct]) -> None:
    section = TEXT[TEXT.index(f"#### {kind.__name__}") :]
    assert f"`[{', '.join(kind.__struct_fields__)}]`" in section[:400]


def test_the_statistics_are_there_in_order() -> None:
    section = TEXT[TEXT.index("#### QueueStatistics") : TEXT.index("#### Receipt\n")]
    assert re.findall(r"`(\w+)`", section) == list(messages.QueueStatistics.__struct_fields__)


def test_the_example_of_a_batch_is_one() -> None:
    line = re.search(r"^01 00 0000.*$", TEXT, re.MULTILINE)
    assert line
    assert bytes.fromhex(line[0]) == encode_parts([b"hi", b"you"])
