"""A queue of several partitions, in a cluster: every partition is read, by batches and by streams, straight from its node or not."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.request import urlopen

import pytest

import penstock
from penstock.model.partition_numbers import number_in_partition, partition_of
from tests.pipeline.broker import Broker
from tests.pipeline.test_stream import collected
from tests.ports import base_port
from tests.process.local_cluster import ClusterUp

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = 3
MESSAGES = 90


@contextmanager
def cluster_in(directory: Path) -> Iterator[Broker]:
    """One node is enough for several partitions."""
    up = ClusterUp(
        directory / "cluster",
        *("--nodes", "1", "--frontends", "1", "--metadata", "0", "--base-port", base_port()),
    )
    try:
        with penstock.connect_blocking(up.facts["url"], timeout=120) as client:
            yield Broker(up.facts["url"], client)
    finally:
        up.kill()


def read_from_nodes(place: Path) -> int:
    """How many bytes the node has sent to readers without its front end, by its own figures."""
    ready = json.loads((place / "cluster" / "node-1" / "ready.json").read_text())
    with urlopen(ready["metrics_url"]) as figures:
        found = re.search(rb"^penstock_readers_sent_bytes_total (\d+)", figures.read(), re.MULTILINE)
    assert found
    return int(found[1])


@pytest.mark.beside
def test_every_partition_is_read(spark: SparkSession, tmp_path: Path) -> None:
    with cluster_in(tmp_path) as cluster:
        check_every_partition(spark, cluster, tmp_path)


def check_every_partition(spark: SparkSession, cluster: Broker, tmp_path: Path) -> None:
    queue = cluster.new_log(partitions=PARTITIONS, replicas=1)
    # Ids spread messages over the partitions by their hash.
    sent = [penstock.OutgoingMessage(f"{one}", deduplication_id=f"{one}") for one in range(MESSAGES)]
    queue.send_batch(sent)
    present = queue.log().partitions()
    assert all(one.end > one.begin for one in present)

    assert read_from_nodes(tmp_path) == 0
    assert cluster.read(spark, queue.name, direct="never").count() == MESSAGES
    assert read_from_nodes(tmp_path) == 0
    rows = cluster.read(spark, queue.name).collect()
    assert read_from_nodes(tmp_path) > sum(len(row.body) for row in rows)
    assert sorted(int(row.body) for row in rows) == list(range(MESSAGES))
    assert all(row.partition == partition_of(row.sequence) for row in rows)
    offsets = json.dumps({"1": number_in_partition(present[1].end) - 1, "0": present[0].end})
    part = cluster.read(spark, queue.name, startingOffsets=offsets).groupBy("partition").count().collect()
    assert {row.partition: row["count"] for row in part} == {1: 1, 2: present[2].end - present[2].begin}
    two = cluster.read(spark, queue.name, partitions="0,2").groupBy("partition").count().collect()
    assert {row.partition: row["count"] for row in two} == {
        one: present[one].end - present[one].begin for one in (0, 2)
    }

    stream = cluster.follow(spark, queue.name, group="reports", maxMessagesPerTrigger="40")
    batches, _ = collected(stream, tmp_path / "checkpoint")
    assert [len(batch) for batch in batches] == [40, 40, 10]
    assert sorted(number for batch in batches for number in batch) == sorted(row.sequence for row in rows)
    assert queue.log().group_offsets("reports") == {one.partition: one.end for one in present}
    queue.send_batch([b"one more"])
    assert len(collected(stream, tmp_path / "checkpoint")[0][0]) == 1
