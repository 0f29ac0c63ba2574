"""What `penstock frontend` can be told: the SQS interface in front of a server that runs elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.config import kinds
from penstock.config.address import Address
from penstock.config.option import option, options_of
from penstock.config.serve import NATIVE_PORT
from penstock.config.sqs import MetadataOptions, SqsOptions, UsageOptions


@dataclass(frozen=True, kw_only=True)
class FrontendConfig(SqsOptions, MetadataOptions, UsageOptions):
    """Everything `penstock frontend` runs with."""

    backend: Address = field(
        default=Address("127.0.0.1", NATIVE_PORT),
        metadata=option(
            "frontend.backend",
            kinds.address(NATIVE_PORT, lowest_port=1),
            "The server that keeps the queues: where its native protocol listens.",
            "--backend",
        ),
    )


OPTIONS = options_of(FrontendConfig)
