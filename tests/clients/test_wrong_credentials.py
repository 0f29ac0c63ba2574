"""A server with users: what clients see when their key or secret is wrong."""

from __future__ import annotations

import pytest

from tests.clients.environments import Environments
from tests.clients.server import Endpoint
from tests.clients.test_aws_command_line import Shell


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "code"),
    [
        ({"secret": "not the secret"}, "SignatureDoesNotMatch"),
        ({"access_key": "AKIAIOSFODNN7EXAMPLE"}, "InvalidClientTokenId"),
    ],
)
def test_the_command_line_is_told_what_is_wrong(
    environments: Environments, guarded_endpoint: Endpoint, wrong: dict[str, str], code: str
) -> None:
    done = Shell(environments, guarded_endpoint._replace(**wrong)).run("list-queues")
    assert done.returncode != 0
    assert code in done.stderr
