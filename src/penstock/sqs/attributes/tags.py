"""Tags of queues: the effect of TagQueue and UntagQueue."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.sqs.compatibility import TAGS
from penstock.sqs.refusals import invalid_parameter, missing_parameter

KEY_CHARACTERS = 128
VALUE_CHARACTERS = 256


def merged_tags(current: Mapping[str, str], added: Mapping[str, str], queue_name: str) -> dict[str, str]:
    """The tags after TagQueue; the same key is overwritten."""
    if not added:
        raise missing_parameter("Tags")
    check_tags(added)
    merged = {**current, **added}
    if len(merged) > TAGS:
        raise invalid_parameter(f"Too many tags added for queue {queue_name}.")
    return merged


def check_tags(tags: Mapping[str, str]) -> None:
    """Raises unless keys and values are of the right length."""
    for key, value in tags.items():
        if not 1 <= len(key) <= KEY_CHARACTERS:
            raise _bad_key()
        if len(value) > VALUE_CHARACTERS:
            raise invalid_parameter(
                f"Tag values must be between 0 and {VALUE_CHARACTERS} characters in length."
            )


def without_tags(current: Mapping[str, str], keys: Iterable[str]) -> dict[str, str]:
    """The tags after UntagQueue; keys that are not there are ignored."""
    removed = set(keys)
    if not removed:
        raise _bad_key()
    return {key: value for key, value in current.items() if key not in removed}


def _bad_key() -> Exception:
    return invalid_parameter(f"Tag keys must be between 1 and {KEY_CHARACTERS} characters in length.")
