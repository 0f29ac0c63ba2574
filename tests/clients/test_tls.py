"""boto3 over HTTPS, with a certificate that nobody signed but itself, and queues that are named by their host."""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit

import boto3
import pytest
from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import SSLError

from tests.clients.environments import Environments, client_variables
from tests.clients.server import Endpoint, create_user, served
from tests.runtime.http.certificate import write_certificate

GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "sqs.md"
DOMAIN = "000000000000.sqs.example"
ONCE = Config(retries={"total_max_attempts": 1})
TESTS = Path(__file__).parent / "python_sdk"
SECONDS = 300


class Secured(NamedTuple):
    """A server that speaks HTTPS only and checks signatures, and what its clients must trust."""

    endpoint: Endpoint
    certificate: Path

    def at(self, host: str) -> Endpoint:
        """The same server by another name."""
        return self.endpoint._replace(url=f"https://{host}:{urlsplit(self.endpoint.url).port}")


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    certificate, key = directory / "server.pem", directory / "server.key"
    # A star stands for one label, so a FIFO queue, whose name has a dot, needs a name of its own.
    write_certificate(certificate, key, ["127.0.0.1", f"*.{DOMAIN}", f"payments.fifo.{DOMAIN}"])
    user = create_user(directory, "admin", "--root")
    with served(
        directory, PENSTOCK_SQS_TLS_CERTIFICATE=str(certificate), PENSTOCK_SQS_TLS_KEY=str(key)
    ) as url:
        yield Secured(Endpoint(url, *user), certificate)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every host of the domain is this machine, as an entry for them all in the DNS would say."""
    real: Callable[..., Any] = socket.getaddrinfo

    def look_up(host: str, *arguments: Any, **options: Any) -> Any:
        return real("127.0.0.1" if host.endswith(f".{DOMAIN}") else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


@pytest.fixture
def connect(secured: Secured) -> Iterator[Callable[..., Any]]:
    """Makes clients that are closed when the test is over."""
    made = []

    def client(endpoint: Endpoint, verify: str | None = None) -> Any:
        trusted = verify if verify is not None else str(secured.certificate)
        made.append(boto3.client("sqs", config=ONCE, verify=trusted, **endpoint.boto_options()))
        return made[-1]

    yield client
    for one in made:
        one.close()


def test_messages_go_and_come_over_https(secured: Secured, connect: Callable[..., Any]) -> None:
    assert secured.endpoint.url.startswith("https://127.0.0.1:")
    sqs = connect(secured.endpoint)
    url = sqs.create_queue(QueueName="secret")["QueueUrl"]
    assert url == f"{secured.endpoint.url}/000000000000/secret"
    sqs.send_message(QueueUrl=url, MessageBody="one espresso")
    (message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"]
    assert message["Body"] == "one espresso"
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])


def test_the_snippet_of_the_guide_runs(
    secured: Secured, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in client_variables(secured.endpoint).items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)  # it remembers the keys it found first
    monkeypatch.chdir(secured.certificate.parent)  # where the server.pem of the page is
    text = GUIDE.read_text(encoding="utf-8")
    (snippet,) = re.findall(r"^```python https\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert "https://127.0.0.1:9324" in snippet
    namespace: dict[str, Any] = {}
    exec(snippet.replace("https://127.0.0.1:9324", secured.endpoint.url), namespace)
    namespace["sqs"].close()
    assert capsys.readouterr().out.startswith("[")


def test_a_client_that_was_not_given_the_certificate_sends_nothing(
    secured: Secured, connect: Callable[..., Any], tmp_path: Path
) -> None:
    other = tmp_path / "other.pem"
    write_certificate(other, tmp_path / "other.key", ["127.0.0.1"])
    with pytest.raises(SSLError, match="CERTIFICATE_VERIFY_FAILED"):
        connect(secured.endpoint, str(other)).list_queues()


@pytest.mark.usefixtures("names")
def test_a_name_that_the_certificate_does_not_hold_is_not_trusted(
    secured: Secured, connect: Callable[..., Any]
) -> None:
    with pytest.raises(SSLError, match="SSL validation failed"):
        connect(secured.at(f"other.fifo.{DOMAIN}")).list_queues()


@pytest.mark.usefixtures("names")
@pytest.mark.parametrize(
    ("name", "attributes", "more"),
    [
        ("orders", {}, {}),
        (
            "payments.fifo",
            {"FifoQueue": "true", "ContentBasedDeduplication": "true"},
            {"MessageGroupId": "g"},
        ),
    ],
)
@pytest.mark.parametrize("form", ["{}", "{}/", ""])
def test_a_queue_is_found_by_its_host(
    secured: Secured,
    connect: Callable[..., Any],
    name: str,
    attributes: dict[str, str],
    more: dict[str, str],
    form: str,
) -> None:
    """The URL of a virtual host as `QueueUrl`, and no `QueueUrl` at all, where only the signed host tells."""
    connect(secured.endpoint).create_queue(QueueName=name, Attributes=attributes)
    endpoint = secured.at(f"{name}.{DOMAIN}")
    sqs, url = connect(endpoint), form.format(endpoint.url)
    sqs.send_message(QueueUrl=url, MessageBody=f"to {name} as {form}", **more)
    (message,) = sqs.receive_message(QueueUrl=url, WaitTimeSeconds=5)["Messages"]
    assert message["Body"] == f"to {name} as {form}"
    sqs.change_message_visibility(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=60)
    sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    assert found == f"arn:aws:sqs:us-east-1:000000000000:{name}"
    assert sqs.get_queue_url(QueueName=name)["QueueUrl"] == f"{endpoint.url}/000000000000/{name}"


@pytest.mark.usefixtures("names")
def test_a_host_of_no_queue_is_refused_as_one(secured: Secured, connect: Callable[..., Any]) -> None:
    sqs = connect(secured.at(f"never-made.{DOMAIN}"))
    with pytest.raises(sqs.exceptions.QueueDoesNotExist):
        sqs.send_message(QueueUrl="", MessageBody="x")


@pytest.mark.usefixtures("names")
def test_a_presigned_url_of_a_virtual_host_opens_that_queue_and_no_other(
    secured: Secured, connect: Callable[..., Any]
) -> None:
    connect(secured.endpoint).create_queue(QueueName="orders")
    url = presigned(secured.at(f"orders.{DOMAIN}"), "GetQueueAttributes", {"AttributeName.1": "QueueArn"})
    trusted = ssl.create_default_context(cafile=str(secured.certificate))
    with urllib.request.urlopen(url, context=trusted) as answer:
        assert b"arn:aws:sqs:us-east-1:000000000000:orders" in answer.read()
    with pytest.raises(HTTPError) as caught:
        urllib.request.urlopen(url.replace("//orders.", "//secret."), context=trusted)
    assert caught.value.code == 403
    assert b"SignatureDoesNotMatch" in caught.value.read()


def presigned(endpoint: Endpoint, action: str, parameters: dict[str, str]) -> str:
    """A URL of the Query protocol, by botocore's own signer."""
    query = urlencode({"Action": action, "Version": "2012-11-05"} | parameters)
    request = AWSRequest("GET", f"{endpoint.url}/?{query}")
    credentials = Credentials(endpoint.access_key, endpoint.secret)
    SigV4QueryAuth(credentials, "sqs", endpoint.region, expires=60).add_auth(request)
    return str(request.url)


@pytest.mark.slow
def test_an_old_boto3_speaks_the_query_protocol_over_https(
    environments: Environments, secured: Secured
) -> None:
    python = str(environments.program("query", "python"))
    variables = client_variables(secured.endpoint) | {"AWS_CA_BUNDLE": str(secured.certificate)}
    options = ["-q", "-c", "/dev/null", "--rootdir", str(TESTS), "--confcutdir", str(TESTS)]
    options += ["--import-mode=importlib", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [python, "-m", "pytest", *options, str(TESTS / "test_messages.py")],
        env=variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stdout + done.stderr
