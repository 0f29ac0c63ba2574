"""The throw-away authority: what is wrong with its files is said in a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.runtime.local_cluster.certificates import AuthorityError, ThrowAwayAuthority

STRANGE_KEY = """-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIHcHbQpzGKV9PBbBclGyZkXfTC+H68CZKrF3+6UduSwq
-----END PRIVATE KEY-----
"""


@pytest.mark.parametrize(
    ("content", "why"),
    [(None, "No such file"), ("nonsense", "PEM"), (STRANGE_KEY, "its key is not one that Penstock made")],
)
def test_an_authority_whose_key_cannot_be_used_is_named(
    tmp_path: Path, content: str | None, why: str
) -> None:
    authority = ThrowAwayAuthority(tmp_path / "tls")
    authority.files("node-1")
    key = tmp_path / "tls" / "ca.key"
    if content is None:
        key.unlink()
    else:
        key.write_text(content)
    with pytest.raises(AuthorityError, match=why) as raised:
        authority.files("node-2")
    assert str(key) in str(raised.value)
    assert "delete the directory" in str(raised.value)


def test_keys_are_for_nobody_elses_eyes(tmp_path: Path) -> None:
    files = ThrowAwayAuthority(tmp_path / "tls").files("node-1")
    assert (tmp_path / "tls").stat().st_mode & 0o777 == 0o700
    for one in (files.key, tmp_path / "tls" / "ca.key"):
        assert one.stat().st_mode & 0o777 == 0o600
