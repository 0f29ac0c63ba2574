"""Accounts and regions side by side: nobody sees, names or touches what belongs to somebody else."""

from __future__ import annotations

import json

import pytest

from penstock.frontend.queues.native_names import native_name
from tests.frontend.harness import HOME
from tests.frontend.pipeline import HOST, Key, Pipeline, json_request, query_request, read, signed

ACCOUNT, OTHER = HOME.account, "111111111111"


@pytest.fixture
def keys(server: Pipeline) -> dict[str, Key]:
    """The roots of two accounts, one of them in two regions; each has a queue of the same name."""
    own = server.add_user("own", root=True)
    foreign = server.add_user("foreign", account=OTHER, root=True)
    found = {"own": own, "elsewhere": own._replace(region="eu-west-1"), "foreign": foreign}
    for name, key in found.items():
        server.must("CreateQueue", key, QueueName="orders", tags={"whose": name})
        server.must("CreateQueue", key, QueueName=f"only-{name}")
        server.must("SendMessage", key, QueueUrl="orders", MessageBody=name)
    return found


def test_everybody_lists_its_own(server: Pipeline, keys: dict[str, Key]) -> None:
    for name, key in keys.items():
        urls = server.must("ListQueues", key)["QueueUrls"]
        assert [url.rpartition("/")[2] for url in urls] == [f"only-{name}", "orders"]
        assert {url.split("/")[-2] for url in urls} == {OTHER if name == "foreign" else ACCOUNT}


def test_the_same_name_is_a_queue_of_each(server: Pipeline, keys: dict[str, Key]) -> None:
    for name, key in keys.items():
        assert server.must("ListQueueTags", key, QueueUrl="orders")["Tags"] == {"whose": name}
        (message,) = server.must("ReceiveMessage", key, QueueUrl="orders")["Messages"]
        assert message["Body"] == name
        found = server.must("GetQueueAttributes", key, QueueUrl="orders", AttributeNames=["QueueArn"])
        region = "eu-west-1" if name == "elsewhere" else "us-east-1"
        account = OTHER if name == "foreign" else ACCOUNT
        assert found["Attributes"]["QueueArn"] == f"arn:aws:sqs:{region}:{account}:orders"


def test_a_url_leads_into_another_account_only_with_leave(server: Pipeline, keys: dict[str, Key]) -> None:
    url = f"http://{HOST}/{ACCOUNT}/only-own"
    assert server.call("ReceiveMessage", keys["foreign"], QueueUrl=url).error == "AccessDeniedException"
    assert server.call("DeleteQueue", keys["foreign"], QueueUrl=url).error == "AccessDeniedException"
    asked = server.call("GetQueueUrl", keys["foreign"], QueueName="only-own", QueueOwnerAWSAccountId=ACCOUNT)
    assert asked.error == "AccessDeniedException"


def test_a_url_never_leads_into_another_region(server: Pipeline, keys: dict[str, Key]) -> None:
    url = f"http://{HOST}/{ACCOUNT}/only-own"
    assert server.call("DeleteQueue", keys["elsewhere"], QueueUrl=url).error == "QueueDoesNotExist"


@pytest.mark.parametrize("victim", ["foreign", "elsewhere"])
def test_the_names_of_the_engine_are_no_names_here(
    server: Pipeline, keys: dict[str, Key], victim: str
) -> None:
    """Inside, a queue of another account or region has a name with dots; nobody may say it."""
    place = ("us-east-1", OTHER) if victim == "foreign" else ("eu-west-1", ACCOUNT)
    inside = native_name(HOME, *place, "orders")
    key = keys["own"]
    for url in (inside, f"/{ACCOUNT}/{inside}", f"http://{HOST}/{ACCOUNT}/{inside}"):
        assert server.call("ReceiveMessage", key, QueueUrl=url).error == "QueueDoesNotExist"
    assert server.call("GetQueueUrl", key, QueueName=inside).status in (400, 403)
    assert server.call("CreateQueue", key, QueueName=inside).status == 400
    prefixed = server.must("ListQueues", key, QueueNamePrefix=f"{place[1]}.")
    assert not prefixed.get("QueueUrls")
    hosted = json_request("ReceiveMessage", {}, host=f"{inside}.{ACCOUNT}.localhost")
    assert read(server.send(signed(hosted, key, server.node.now_ms))).status >= 400


def test_dead_letters_stay_at_home(server: Pipeline, keys: dict[str, Key]) -> None:
    for arn in (f"arn:aws:sqs:us-east-1:{OTHER}:orders", f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders"):
        redrive = json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": 1})
        answer = server.call(
            "SetQueueAttributes", keys["own"], QueueUrl="orders", Attributes={"RedrivePolicy": redrive}
        )
        assert answer.status == 400
        created = server.call(
            "CreateQueue", keys["own"], QueueName="new", Attributes={"RedrivePolicy": redrive}
        )
        assert created.status == 400


def test_moves_stay_at_home(server: Pipeline, keys: dict[str, Key]) -> None:
    own = "arn:aws:sqs:us-east-1:000000000000:orders"
    away = server.call("StartMessageMoveTask", keys["foreign"], SourceArn=own)
    assert away.error == "AccessDeniedException"
    for target in (f"arn:aws:sqs:us-east-1:{OTHER}:orders", f"arn:aws:sqs:eu-west-1:{ACCOUNT}:orders"):
        answer = server.call("StartMessageMoveTask", keys["own"], SourceArn=own, DestinationArn=target)
        assert answer.status in (400, 403, 404)


def test_a_receipt_is_worth_nothing_elsewhere(server: Pipeline, keys: dict[str, Key]) -> None:
    (message,) = server.must("ReceiveMessage", keys["own"], QueueUrl="orders")["Messages"]
    handle = message["ReceiptHandle"]
    for who, url in (("own", "only-own"), ("elsewhere", "orders"), ("foreign", "orders")):
        answer = server.call("DeleteMessage", keys[who], QueueUrl=url, ReceiptHandle=handle)
        assert answer.error == "ReceiptHandleIsInvalid"
        answer = server.call(
            "ChangeMessageVisibility", keys[who], QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0
        )
        assert answer.error == "ReceiptHandleIsInvalid"
        entries = [{"Id": "1", "ReceiptHandle": handle}]
        batch = server.must("DeleteMessageBatch", keys[who], QueueUrl=url, Entries=entries)
        assert [failed["Code"] for failed in batch["Failed"]] == ["ReceiptHandleIsInvalid"]
    server.must("DeleteMessage", keys["own"], QueueUrl="orders", ReceiptHandle=handle)


def test_a_receipt_of_an_earlier_queue_of_the_name_is_worth_nothing(
    server: Pipeline, keys: dict[str, Key]
) -> None:
    own = keys["own"]
    (message,) = server.must("ReceiveMessage", own, QueueUrl="orders")["Messages"]
    server.must("DeleteQueue", own, QueueUrl="orders")
    server.advance(61_000)
    server.must("CreateQueue", own, QueueName="orders")
    server.must("SendMessage", own, QueueUrl="orders", MessageBody="new")
    server.must("ReceiveMessage", own, QueueUrl="orders")
    answer = server.call("DeleteMessage", own, QueueUrl="orders", ReceiptHandle=message["ReceiptHandle"])
    assert answer.error == "ReceiptHandleIsInvalid"


def test_a_page_of_one_account_is_no_way_into_another(server: Pipeline, keys: dict[str, Key]) -> None:
    first = server.must("ListQueues", keys["foreign"], MaxResults=1)
    second = server.must("ListQueues", keys["own"], MaxResults=9, NextToken=first["NextToken"])
    assert all(f"/{ACCOUNT}/" in url for url in second["QueueUrls"])


# --- what clients put into requests -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    [
        "evil.example/path",
        "evil.example?query",
        "user@evil.example",
        "<b>evil</b>",
        'evil"quote',
        "evil example",
        "evil.example\\",
        "a" * 300,
        "[::1",
        "",
    ],
)
def test_a_host_that_is_none_gets_into_no_url(server: Pipeline, host: str) -> None:
    admin = server.add_user("admin", root=True)  # without users only local names are taken
    request = json_request("CreateQueue", {"QueueName": "orders"}, host=host)
    answer = read(server.send(signed(request, admin, server.node.now_ms)))
    assert answer.members["QueueUrl"] == f"http://{HOST}/{ACCOUNT}/orders"


@pytest.mark.parametrize(
    "host", ["localhost", "queue.example:8443", "[::1]:9324", "10.0.0.1:80", "my_service"]
)
def test_a_url_begins_with_the_host_that_the_client_named(server: Pipeline, host: str) -> None:
    admin = server.add_user("admin", root=True)  # without users only local names are taken
    request = json_request("CreateQueue", {"QueueName": "orders"}, host=host)
    answer = read(server.send(signed(request, admin, server.node.now_ms)))
    assert answer.members["QueueUrl"] == f"http://{host}/{ACCOUNT}/orders"


def test_what_is_echoed_cannot_break_out_of_xml(server: Pipeline) -> None:
    evil = "</Message><Injected/>"
    for request in (
        query_request(evil),
        query_request("CreateQueue", QueueName=evil),
        query_request("CreateQueue", QueueName="q", **{"Attribute.1.Name": evil, "Attribute.1.Value": evil}),
        query_request("ListMessageMoveTasks", SourceArn=evil),
    ):
        answer = server.send(request)
        assert answer.status >= 400
        assert b"<Injected/>" not in answer.body


def test_tags_and_bodies_cannot_break_out_of_xml(server: Pipeline) -> None:
    evil = "]]></Value><Injected/>&amp;"
    server.must("CreateQueue", QueueName="orders", tags={evil[:9]: evil})
    server.must("SendMessage", QueueUrl="orders", MessageBody=evil)
    for action in ("ListQueueTags", "ReceiveMessage"):
        body = server.send(query_request(action, QueueUrl="orders")).body
        assert b"<Injected/>" not in body
        assert b"&lt;Injected/&gt;&amp;amp;" in body
