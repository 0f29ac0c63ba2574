"""The options of the front end: the SQS interface, the metadata store, and the usage record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from penstock.config import kinds
from penstock.config.address import Address
from penstock.config.option import option
from penstock.config.shared import SharedOptions
from penstock.model.limits import DAY_MS, HOUR_MS, KIBIBYTE, MEBIBYTE, SECOND_MS

CompatibilityName = Literal["extended", "strict"]

SQS_PORT = 9324


@dataclass(frozen=True, kw_only=True)
class SqsOptions(SharedOptions):
    """The SQS interface."""

    sqs_listen: Address | None = field(
        default=Address("127.0.0.1", SQS_PORT),
        metadata=option(
            "sqs.listen",
            kinds.optional("off", kinds.address(SQS_PORT)),
            "Address for SQS clients. Port 0 chooses a free port; `off` disables SQS.",
            "--sqs-listen",
        ),
    )
    sqs_compatibility: CompatibilityName = field(
        default="extended",
        metadata=option(
            "sqs.compatibility",
            kinds.choice("extended", "strict"),
            "`extended`: Penstock's extensions of SQS are allowed. `strict`: the limits of SQS apply, and "
            "attributes named `Penstock.…` are refused.",
        ),
    )
    sqs_account: str = field(
        default="000000000000",
        metadata=option(
            "sqs.account",
            kinds.matching(r"[0-9]{12}", "an account id: twelve digits, as text"),
            "The account whose queues have the same names in SQS and in the native protocol.",
        ),
    )
    sqs_region: str = field(
        default="us-east-1",
        metadata=option(
            "sqs.region",
            kinds.matching(
                r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?",
                "the name of a region: lower-case letters, digits and hyphens, such as us-east-1",
            ),
            "The region whose queues have the same names in SQS and in the native protocol.",
        ),
    )
    sqs_tls_certificate: str | None = field(
        default=None,
        metadata=option(
            "sqs.tls_certificate",
            kinds.optional("none", kinds.file()),
            "The certificate (PEM, with its chain) to serve HTTPS with; `none`: HTTP. Needs `sqs.tls_key`.",
        ),
    )
    sqs_tls_key: str | None = field(
        default=None,
        metadata=option(
            "sqs.tls_key",
            kinds.optional("none", kinds.file()),
            "The certificate's private key (PEM, not encrypted).",
        ),
    )
    sqs_max_connections: int = field(
        default=16_000,
        metadata=option(
            "sqs.max_connections",
            kinds.count(1, 1_000_000),
            "Maximum number of SQS connections. One more connection closes idle ones; if there are none, it "
            "is refused with 503.",
        ),
    )
    sqs_idle_timeout_ms: int = field(
        default=75 * SECOND_MS,
        metadata=option(
            "sqs.idle_timeout",
            kinds.duration(1 * SECOND_MS, 1 * DAY_MS),
            "Time that a connection may stay open between requests.",
        ),
    )
    sqs_request_timeout_ms: int = field(
        default=20 * SECOND_MS,
        metadata=option(
            "sqs.request_timeout",
            kinds.duration(100, 1 * HOUR_MS),
            "Time in which a client must send a request, from its first byte to its last.",
        ),
    )
    sqs_failed_signatures: int | None = field(
        default=20,
        metadata=option(
            "sqs.failed_signatures",
            kinds.optional("off", kinds.count(1, 100_000)),
            "Requests a second from one client address that may fail because of their signature or key, in "
            "the long run; ten times as many at once. Further ones get `RequestThrottled`. `off`: no limit.",
        ),
    )
    sqs_trusted_proxies: tuple[str, ...] | None = field(
        default=None,
        metadata=option(
            "sqs.trusted_proxies",
            kinds.optional("none", kinds.networks()),
            "Load balancers whose `X-Forwarded-For` and `X-Forwarded-Proto` are trusted, so that limits, "
            "policies and usage apply to the client. `none`: these headers are not trusted.",
        ),
    )
    sqs_public_url: str | None = field(
        default=None,
        metadata=option(
            "sqs.public_url",
            kinds.optional("none", kinds.url()),
            "Beginning of queue URLs when clients reach the server through a proxy. `none`: the host that "
            "the client named.",
        ),
    )


@dataclass(frozen=True, kw_only=True)
class MetadataOptions(SharedOptions):
    """The store for users, policies, tags and limits."""

    metadata_file: str = field(
        default="{data}/metadata.sqlite",
        metadata=option(
            "metadata.file",
            kinds.file(),
            "File with users, keys, policies, tags and limits. `{data}` is the data directory.",
        ),
    )
    metadata_key_file: str = field(
        default="{data}/metadata.key",
        metadata=option(
            "metadata.key_file",
            kinds.file(),
            "File with the master key, which encrypts the secrets in the metadata. It is created if it does "
            "not exist. `{data}` is the data directory.",
        ),
    )

    @property
    def metadata_path(self) -> str:
        """`metadata.file` with the data directory put in."""
        return self.path(self.metadata_file)

    @property
    def metadata_key_path(self) -> str:
        """`metadata.key_file` with the data directory put in."""
        return self.path(self.metadata_key_file)


@dataclass(frozen=True, kw_only=True)
class UsageOptions(SharedOptions):
    """The place where usage rows wait for their log."""

    usage_directory: str = field(
        default="{data}/usage",
        metadata=option(
            "usage.directory",
            kinds.directory(),
            "Directory for usage records until the log `penstock.usage` has them. `{data}` is the data "
            "directory.",
        ),
    )
    usage_spool_bytes: int = field(
        default=16 * MEBIBYTE,
        metadata=option(
            "usage.spool_size",
            kinds.size(64 * KIBIBYTE, 1024 * MEBIBYTE),
            "Space for usage records that wait for the log (about 200 bytes a request). Records that do not "
            "fit are counted, and the log shows how many are missing.",
        ),
    )

    @property
    def usage_path(self) -> str:
        """`usage.directory` with the data directory put in."""
        return self.path(self.usage_directory)
