"""A server with users: what clients see when their key or secret is wrong, and when that happens too often."""

from __future__ import annotations

from pathlib import Path

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.clients.environments import Environments
from tests.clients.server import Endpoint, create_user, served
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


def test_boto3_is_told_to_slow_down_when_it_is_wrong_too_often(tmp_path: Path) -> None:
    key = create_user(tmp_path, "admin", "--root")
    once = Config(retries={"total_max_attempts": 1})
    with served(tmp_path, PENSTOCK_SQS_FAILED_SIGNATURES="1") as url:
        right, wrong = (
            boto3.client("sqs", config=once, **endpoint.boto_options())
            for endpoint in (Endpoint(url, *key), Endpoint(url, key[0], "not the secret"))
        )
        right.list_queues()
        codes = []
        for _ in range(60):  # a burst of 10, and one a second: far fewer than these
            with pytest.raises(ClientError) as caught:
                wrong.list_queues()
            codes.append(caught.value.response["Error"]["Code"])
        assert codes[:10] == ["SignatureDoesNotMatch"] * 10
        assert "RequestThrottled" in codes
        right.list_queues()
        right.close()
        wrong.close()
