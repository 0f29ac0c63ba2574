"""The reference page of metrics names every figure that servers and pipelines show, and no other.

`PENSTOCK_WRITE_METRICS=1 pytest tests/metrics/test_reference_page.py` writes the tables of the page anew.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from penstock.metrics.exposition import Family
from penstock.metrics.front_end_figures import FrontEndDescription, front_end_families
from penstock.metrics.group_figures import group_families
from penstock.metrics.node_figures import node_families
from penstock.metrics.queue_figures import queue_families
from penstock.metrics.reader_figures import reader_families
from penstock.metrics.replica_figures import replica_families
from penstock.metrics.usage_figures import usage_families
from penstock.pipeline.progress import Progress
from penstock.wire.log_messages import GroupDescription
from penstock.wire.messages import ReplicaStatus
from tests.metrics.test_figures import NODE, queue

PAGE = Path(__file__).parents[2] / "docs/reference/metrics.md"
TABLE = re.compile(r"<!-- figures: (\w+) -->\n(.*?)<!-- end of figures -->\n", re.DOTALL)


def _tables() -> dict[str, str]:
    replica = ReplicaStatus("primary", 1, 1, 1, ["node-1"], {"node-2": 1})
    orders = msgspec.structs.replace(queue("orders"), replica=replica)
    group = GroupDescription("billing", 1, 1, 1, 1, 1, ["reader-1"])
    return {
        "node": _table(node_families(NODE)),
        "queues": _table(queue_families([orders], 0)),
        "groups": _table(group_families([("orders", group)])),
        "frontend": _table(front_end_families(FrontEndDescription("frontend-1", "1.0", 0, True, 1.0, 1))),
        "usage": _table(usage_families(1, 1, 0, 0)),
        "replicas": _table(replica_families(NODE, [orders])),
        "readers": _table(reader_families(1, 1, 1)),
        "pipeline": _table(Progress("usage", lag_seconds=1.0, lag_messages=1).families()),
    }


def _table(families: Iterable[Family]) -> str:
    lines = ["| name | kind | labels | meaning |", "|---|---|---|---|"]
    for family in families:
        labels = sorted({label for sample in family.samples for label in sample.labels})
        named = ", ".join(f"`{label}`" for label in labels)
        lines.append(f"| `{family.name}` | {family.kind} | {named} | {family.meaning} |")
    return "\n".join(lines) + "\n"


def test_the_page_has_every_figure() -> None:
    tables, text = _tables(), PAGE.read_text()
    if os.environ.get("PENSTOCK_WRITE_METRICS"):
        text = TABLE.sub(
            lambda found: f"<!-- figures: {found[1]} -->\n{tables[found[1]]}<!-- end of figures -->\n", text
        )
        PAGE.write_text(text)
    assert {found[1]: found[2] for found in TABLE.finditer(text)} == tables
