"""The canonical form of paths and queries, and the cache of derived keys."""

import pytest

from penstock.sqs.errors import SqsError
from penstock.sqs.signing.canonical_request import canonical_path, canonical_queries
from penstock.sqs.signing.signing_keys import SigningKeys


@pytest.mark.parametrize(
    ("path", "canonical"),
    [
        ("/", "/"),
        ("/a/b.fifo", "/a/b.fifo"),
        ("/a/b/", "/a/b/"),
        ("//a//b", "/a/b"),
        ("/a/./b/../c", "/a/c"),
        ("/../..", "/"),
        ("/a%20b", "/a%2520b"),
        ("/ä", "/%C3%A4"),
    ],
)
def test_canonical_paths(path: str, canonical: str) -> None:
    assert canonical_path(path) == canonical


@pytest.mark.parametrize(
    ("query", "canonical"),
    [
        ("", [""]),
        ("b=2&a=1", ["a=1&b=2"]),
        ("a=2&a=1", ["a=1&a=2"]),
        ("a", ["a="]),
        ("&&a=1&", ["a=1"]),
        ("a=b+c", ["a=b%20c", "a=b+c"]),
        ("a=%7e%2f", ["a=~%2F", "a=%7e%2f"]),
        ("a=%FF", ["a=%FF"]),
        ("X-Amz-Signature=x&a=1", ["a=1"]),
    ],
)
def test_canonical_queries(query: str, canonical: list[str]) -> None:
    assert canonical_queries(query) == canonical


def test_a_query_over_the_limit_is_not_canonicalized() -> None:
    with pytest.raises(SqsError, match="larger than"):
        canonical_queries("a" * (1024 * 1024 + 1))


def test_derived_keys_are_kept_and_bounded() -> None:
    keys = SigningKeys(most=2)
    first = keys.get("s", "20231114", "r")
    assert keys.get("s", "20231114", "r") is first
    assert keys.get("other", "20231114", "r") is not first
    keys.get("s", "20231115", "r")
    assert len(keys) == 1
