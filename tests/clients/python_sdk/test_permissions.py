"""boto3: AddPermission and RemovePermission, and the policy they write."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError


def policy_of(sqs: Any, url: str) -> Any:
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["Policy"]).get("Attributes")
    return None if found is None else json.loads(found["Policy"])


def test_a_permission_is_a_statement_of_the_policy(sqs: Any, queue: str) -> None:
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sqs.add_permission(
        QueueUrl=queue, Label="one", AWSAccountIds=["111111111111"], Actions=["ReceiveMessage"]
    )
    assert policy_of(sqs, queue) == {
        "Version": "2008-10-17",
        "Id": f"{arn}/SQSDefaultPolicy",
        "Statement": [
            {
                "Sid": "one",
                "Effect": "Allow",
                "Principal": {"AWS": "arn:aws:iam::111111111111:root"},
                "Action": "SQS:ReceiveMessage",
                "Resource": arn,
            }
        ],
    }
    sqs.add_permission(
        QueueUrl=queue,
        Label="two",
        AWSAccountIds=["111111111111", "222222222222"],
        Actions=["SendMessage", "DeleteMessage"],
    )
    assert [statement["Sid"] for statement in policy_of(sqs, queue)["Statement"]] == ["one", "two"]
    assert policy_of(sqs, queue)["Statement"][1]["Action"] == ["SQS:SendMessage", "SQS:DeleteMessage"]
    sqs.remove_permission(QueueUrl=queue, Label="one")
    assert [statement["Sid"] for statement in policy_of(sqs, queue)["Statement"]] == ["two"]
    sqs.remove_permission(QueueUrl=queue, Label="two")
    assert policy_of(sqs, queue) is None


def test_permissions_that_cannot_be_given(sqs: Any, queue: str) -> None:
    account = ["111111111111"]
    sqs.add_permission(QueueUrl=queue, Label="taken", AWSAccountIds=account, Actions=["*"])
    refused: list[tuple[str, str, list[str]]] = [
        ("InvalidParameterValue", "taken", ["SendMessage"]),
        ("InvalidParameterValue", "label", ["RemovePermission"]),
        ("InvalidParameterValue", "label", ["FlyAway"]),
        ("InvalidParameterValue", "bad label", ["SendMessage"]),
        ("MissingParameter", "label", []),
    ]
    for code, label, actions in refused:
        with pytest.raises(ClientError) as caught:
            sqs.add_permission(QueueUrl=queue, Label=label, AWSAccountIds=account, Actions=actions)
        assert caught.value.response["Error"]["Code"] == code, (label, actions)
    with pytest.raises(ClientError) as caught:
        sqs.remove_permission(QueueUrl=queue, Label="never-given")
    assert caught.value.response["Error"]["Message"] == (
        "Value never-given for parameter Label is invalid. Reason: can't find label."
    )


def test_a_policy_can_be_set_and_removed_whole(sqs: Any, queue: str) -> None:
    arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    policy = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": "*", "Action": "sqs:SendMessage", "Resource": arn}],
    }
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": json.dumps(policy)})
    assert policy_of(sqs, queue) == policy
    sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": ""})
    assert policy_of(sqs, queue) is None
