"""Tags, pages and handles of move tasks."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.sqs.attributes.tags import merged_tags, without_tags
from penstock.sqs.errors import ErrorKind, SqsError
from penstock.sqs.paging import Page, decode_token, encode_token, page_of
from penstock.sqs.task_handle import decode_task_handle, encode_task_handle


def test_tags_are_merged() -> None:
    assert merged_tags({"a": "1", "A": "2"}, {"a": "", "b": "3"}, "q") == {"a": "", "A": "2", "b": "3"}
    assert without_tags({"a": "1", "b": "2"}, ["b", "nope"]) == {"a": "1"}


@pytest.mark.parametrize(
    ("added", "message"),
    [
        ({}, "The request must contain the parameter Tags."),
        ({f"k{n}": "" for n in range(51)}, "Too many tags added for queue orders."),
        ({"": "v"}, "Tag keys must be between 1 and 128 characters in length."),
        ({"k" * 129: "v"}, "Tag keys must be between 1 and 128 characters in length."),
        ({"k": "v" * 257}, "Tag values must be between 0 and 256 characters in length."),
    ],
)
def test_tags_that_are_refused(added: dict[str, str], message: str) -> None:
    with pytest.raises(SqsError) as caught:
        merged_tags({}, added, "orders")
    assert caught.value.message == message


def test_untagging_nothing_is_refused() -> None:
    with pytest.raises(SqsError, match=r"Tag keys must be between 1 and 128 characters in length\."):
        without_tags({}, [])


def test_fifty_tags_are_allowed_in_total() -> None:
    full = merged_tags({}, {f"k{n}": "" for n in range(50)}, "q")
    assert merged_tags(full, {"k0": "new"}, "q")["k0"] == "new"
    with pytest.raises(SqsError, match="Too many tags"):
        merged_tags(full, {"more": ""}, "q")


@given(st.sets(st.text("abc", min_size=1, max_size=5)), st.integers(1, 4))
def test_pages_cover_everything_once(names: set[str], size: int) -> None:
    ordered = sorted(names)
    seen: list[str] = []
    token = None
    while True:
        page = page_of(ordered, size, token)
        assert len(page.names) <= size
        seen += page.names
        token = page.next_token
        if token is None:
            break
        assert len(page.names) == size
    assert seen == ordered


def test_without_a_size_there_is_one_page_and_no_token() -> None:
    names = [f"{n:05}" for n in range(1500)]
    assert page_of(names, None, None) == Page(names[:1000], None)
    assert page_of([], 5, None) == Page([], None)
    assert page_of(["a"], 1, encode_token("a")) == Page([], None)


@pytest.mark.parametrize("token", ["!", "a", "x" * 5000, "_w==", "é"])
def test_bad_tokens(token: str) -> None:
    with pytest.raises(SqsError) as caught:
        decode_token(token)
    assert caught.value.kind is ErrorKind.INVALID_PARAMETER_VALUE


def test_task_handles() -> None:
    handle = encode_task_handle("id", "arn:aws:sqs:us-east-1:000000000000:dead")
    assert (
        base64.b64decode(handle) == b'{"taskId":"id","sourceArn":"arn:aws:sqs:us-east-1:000000000000:dead"}'
    )
    assert decode_task_handle(handle).task_id == "id"


@pytest.mark.parametrize("handle", ["", "garbage", "e30=", "W10=", "!!!!", "é", "x" * 5000, "/w=="])
def test_bad_task_handles(handle: str) -> None:
    with pytest.raises(SqsError) as caught:
        decode_task_handle(handle)
    assert caught.value.message == "Value for parameter TaskHandle is invalid."
    assert caught.value.status == 400
