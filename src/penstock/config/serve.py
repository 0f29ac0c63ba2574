"""The options of `penstock serve`: the engine, SQS, metadata and usage, all in one process.

`docs/reference/configuration.md` documents this package; a test compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.config.engine import GIBIBYTE as GIBIBYTE
from penstock.config.engine import NATIVE_PORT as NATIVE_PORT
from penstock.config.engine import Durability as Durability
from penstock.config.engine import EngineOptions
from penstock.config.native_tls import NativeTlsOptions
from penstock.config.option import options_of
from penstock.config.shared import LogFormat as LogFormat
from penstock.config.shared import LogLevel as LogLevel
from penstock.config.sqs import MetadataOptions, SqsOptions, UsageOptions


@dataclass(frozen=True, kw_only=True)
class ServeConfig(SqsOptions, MetadataOptions, UsageOptions, NativeTlsOptions, EngineOptions):
    """All options of `penstock serve`."""


OPTIONS = options_of(ServeConfig)
