"""The URL of an etcd says all there is to say, and what is wrong with it is said plainly."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.metadata.store.etcd_settings import (
    DEFAULT_TIMEOUT_SECONDS,
    Endpoint,
    EtcdSettings,
    EtcdUrlError,
    TlsFiles,
    parse_etcd_url,
    without_password,
)


def test_a_short_url_means_the_usual() -> None:
    assert parse_etcd_url("etcd://one") == EtcdSettings((Endpoint("one", 2379),), "penstock")
    assert parse_etcd_url("etcd://one").timeout_seconds == DEFAULT_TIMEOUT_SECONDS


def test_a_long_url_says_everything(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("s3:cret@\n")
    settings = parse_etcd_url(
        f"etcds://al@one:1,two,[::1]:3/a/b?password_file={secret}&timeout=2.5&ca=/ca&certificate=/c&key=/k"
    )
    assert settings == EtcdSettings(
        (Endpoint("one", 1), Endpoint("two", 2379), Endpoint("::1", 3)),
        "a/b",
        "al",
        "s3:cret@",
        TlsFiles(Path("/ca"), Path("/c"), Path("/k")),
        2.5,
    )
    assert str(settings.endpoints[2]) == "[::1]:3"
    assert "s3" not in repr(settings)
    assert parse_etcd_url("etcd://al:a%40b@one").password == "a@b"
    assert parse_etcd_url("etcds://one").tls == TlsFiles()


@pytest.mark.parametrize(
    ("url", "explained"),
    [
        ("http://one:2379", "begins with etcd://"),
        ("etcd://", "names no host"),
        ("etcd://one,,two", "names no host"),
        ("etcd://one:x", "HOST:PORT"),
        ("etcd://one:99999", "HOST:PORT"),
        ("etcd://al@one", "password_file"),
        ("etcd://one?password_file=/x", "no user"),
        ("etcd://al@one?password_file=/does/not/exist", "cannot read the password"),
        ("etcd://one?ca=/x", "etcds://"),
        ("etcds://one?key=/x", "go together"),
        ("etcd://one?timeout=soon", "number of seconds"),
        ("etcd://one?timeout=nan", "number of seconds"),
        ("etcd://one?tiemout=1", "unknown option tiemout"),
    ],
)
def test_what_is_wrong_is_said(url: str, explained: str) -> None:
    with pytest.raises(EtcdUrlError, match=explained):
        parse_etcd_url(url)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("etcd://al:secret@one:2379,two:2379/ours?timeout=1", "etcd://al:…@one:2379,two:2379/ours?timeout=1"),
        ("etcds://al:a%40b@one", "etcds://al:…@one"),
        ("etcd://al:pa@ss@one", "etcd://al:…@one"),
        ("etcd://al:@one", "etcd://al:…@one"),
        ("etcds://al@one:2379?password_file=/a:b@c", "etcds://al@one:2379?password_file=/a:b@c"),
        ("etcd://one:2379,two:2379/a@b", "etcd://one:2379,two:2379/a@b"),
        ("metadata://one:9327", "metadata://one:9327"),
        ("none", "none"),
    ],
)
def test_a_password_is_shown_to_nobody(url: str, shown: str) -> None:
    assert without_password(url) == shown
