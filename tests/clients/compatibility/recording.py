"""Clients of both protocols that keep count of what was really sent, answered and refused."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.loaders import Loader

from tests.clients.server import Endpoint


class Recording:
    """A client, and per action the members that went out, those that came back, and the error codes."""

    def __init__(self, endpoint: Endpoint, models: Path | None = None) -> None:
        """`models` holds an older service model to speak by; without it the newest is used."""
        session = botocore.session.Session()
        if models is not None:
            session.register_component("data_loader", Loader(extra_search_paths=[str(models)]))
        self.client = session.create_client(
            "sqs", config=Config(retries={"total_max_attempts": 1}), **endpoint.boto_options()
        )
        self.sent: dict[str, set[str]] = defaultdict(set)
        self.answered: dict[str, set[str]] = defaultdict(set)
        self.refused: dict[str, set[str]] = defaultdict(set)
        self.classes: set[str] = set()
        events = self.client.meta.events
        events.register("provide-client-params.sqs.*", self._sends)
        events.register("after-call.sqs.*", self._answers)

    @property
    def protocol(self) -> str:
        """`json` or `query`."""
        return str(self.client.meta.service_model.metadata["protocol"])

    def _sends(self, params: dict[str, Any], model: Any, **_: object) -> None:
        self.sent[model.name] |= set(params)

    def _answers(self, parsed: dict[str, Any], model: Any, **_: object) -> None:
        if "Error" in parsed:
            self.refused[model.name].add(str(parsed["Error"]["Code"]))
            # The JSON protocol has a second name for an error: that of its class.
            self.classes.add(str(parsed["Error"].get("QueryErrorCode", parsed["Error"]["Code"])))
        else:
            self.answered[model.name] |= set(parsed) - {"ResponseMetadata"}
