"""Ranges and alphabets of single parameters, in the service's words."""

from collections.abc import Callable

import pytest

from penstock.sqs import parameters
from penstock.sqs.compatibility import EXTENDED, STRICT
from penstock.sqs.errors import ErrorKind, SqsError

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
ID_RULE = "can only include alphanumeric and punctuation characters. 1 to 128 in length."


def refused(check: Callable[[], object]) -> str:
    with pytest.raises(SqsError) as caught:
        check()
    assert caught.value.kind is ErrorKind.INVALID_PARAMETER_VALUE
    return caught.value.message


def test_delay_seconds() -> None:
    assert [parameters.delay_seconds(value, STRICT) for value in (None, 0, 900)] == [None, 0, 900]
    assert refused(lambda: parameters.delay_seconds(901, STRICT)) == (
        "Value 901 for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900."
    )
    assert parameters.delay_seconds(901, EXTENDED) == 901
    refused(lambda: parameters.delay_seconds(-1, EXTENDED))


def test_visibility_timeout() -> None:
    assert [parameters.visibility_timeout(value, STRICT) for value in (None, 0, 43200)] == [None, 0, 43200]
    assert refused(lambda: parameters.visibility_timeout(43201, STRICT)) == (
        "Value 43201 for parameter VisibilityTimeout is invalid. "
        "Reason: Must be >= 0 and <= 43200, if provided."
    )
    assert parameters.visibility_timeout(43201, EXTENDED) == 43201
    assert parameters.required_visibility_timeout(0, STRICT) == 0
    with pytest.raises(SqsError, match="must contain the parameter VisibilityTimeout"):
        parameters.required_visibility_timeout(None, STRICT)


@pytest.mark.parametrize("value", [-1, 21])
def test_wait_time_seconds(value: int) -> None:
    assert parameters.wait_time_seconds(20) == 20
    assert refused(lambda: parameters.wait_time_seconds(value)) == (
        f"Value {value} for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided."
    )


@pytest.mark.parametrize("value", [0, -1, 11])
def test_max_number_of_messages(value: int) -> None:
    assert [parameters.max_number_of_messages(good) for good in (None, 1, 10)] == [1, 1, 10]
    assert refused(lambda: parameters.max_number_of_messages(value)) == (
        f"Value {value} for parameter MaxNumberOfMessages is invalid. "
        "Reason: Must be between 1 and 10, if provided."
    )


@pytest.mark.parametrize("value", ["", " ", "group 123", "a" * 129, "é", "a\n"])
def test_ids(value: str) -> None:
    for check, name in (
        (parameters.deduplication_id, "MessageDeduplicationId"),
        (parameters.group_id, "MessageGroupId"),
        (parameters.attempt_id, "ReceiveRequestAttemptId"),
    ):
        assert check(None) is None
        assert check(PUNCTUATION + "aZ9") == PUNCTUATION + "aZ9"
        assert check("x" * 128) == "x" * 128
        assert refused(lambda check=check: check(value)) == (  # type: ignore[misc]  # a lambda with its own value
            f"Value {value} for parameter {name} is invalid. Reason: {name} {ID_RULE}"
        )


def test_labels_and_pages() -> None:
    assert parameters.label("a-Z_9") == "a-Z_9"
    for bad in ("", "a b", "x" * 81):
        refused(lambda bad=bad: parameters.label(bad))  # type: ignore[misc]  # a lambda with its own value
    assert (parameters.max_results(None), parameters.max_results(1000)) == (None, 1000)
    refused(lambda: parameters.max_results(0))
    refused(lambda: parameters.max_results(1001))
    assert (parameters.max_tasks(None), parameters.max_tasks(10)) == (1, 10)
    refused(lambda: parameters.max_tasks(11))
    assert (parameters.messages_per_second(None), parameters.messages_per_second(500)) == (None, 500)
    refused(lambda: parameters.messages_per_second(501))
