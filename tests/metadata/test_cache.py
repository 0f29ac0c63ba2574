"""The cache: newest wins, whatever the order of the news."""

from penstock.metadata.mirror.cache import MetadataCache
from penstock.metadata.store.interface import ABSENT, Change, Entry, Listing


def test_older_news_never_undoes_newer() -> None:
    cache = MetadataCache()
    cache.apply(Change("a", b"2", 2))
    cache.apply(Change("a", b"1", 1))
    assert cache.get("a") == ("a", b"2", 2)
    cache.apply(Change("a", None, 4))
    cache.apply(Change("a", b"3", 3))
    assert cache.get("a") is None
    assert cache.version("a") == ABSENT
    cache.apply(Change("a", b"5", 5))
    assert cache.version("a") == 5


def test_a_list_is_by_prefix_and_stays_as_it_was() -> None:
    cache = MetadataCache()
    for version, key in enumerate(("users/a", "users/b", "usersome", "queues/a"), 1):
        cache.apply(Change(key, b"", version))
    users = cache.list("users/")
    cache.apply(Change("users/a", None, 9))
    assert sorted(entry.key for entry in users) == ["users/a", "users/b"]
    assert [entry.key for entry in cache.list("users/")] == ["users/b"]
    assert sorted(entry.key for entry in cache.list("users")) == ["users/b", "usersome"]
    assert len(cache.list("")) == 3
    assert list(cache.list("nothing/")) == []


def test_those_who_listen_hear_each_change_once() -> None:
    cache = MetadataCache()
    heard: list[Change] = []
    cache.listen("users/", heard.append)
    change = Change("users/a", b"", 1)
    cache.apply(change)
    cache.apply(change)
    cache.apply(Change("queues/a", b"", 2))
    assert heard == [change]


def test_loading_removes_what_is_gone_and_keeps_what_is_newer() -> None:
    cache = MetadataCache()
    cache.apply(Change("gone", b"", 1))
    cache.apply(Change("own", b"", 9))
    heard: list[Change] = []
    cache.listen("", heard.append)
    cache.load(Listing((Entry("here", b"", 3),), 5))
    assert sorted(entry.key for entry in cache.list("")) == ["here", "own"]
    assert [(change.key, change.value) for change in heard] == [("gone", None), ("here", b"")]
    cache.apply(Change("gone", b"again", 6))
    assert cache.get("gone") is not None
