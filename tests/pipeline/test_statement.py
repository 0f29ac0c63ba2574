"""Statements of SQL over frames: what was kept in memory is still kept, and is what the next statement reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from penstock.pipeline.statement import listed, select

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.alone
def test_a_frame_that_is_kept_in_memory_stays_there_whatever_is_asked_of_it(spark: SparkSession) -> None:
    numbers = select("select id, id % 3 as rest from {all}", all=spark.range(9))
    kept = select("select rest, count(*) as many from {numbers} group by rest", numbers=numbers).persist()
    try:
        first = select("select * from {kept} where rest > 0", kept=kept)
        both = select(
            "select kept.rest from {kept} as kept join {first} as first using (rest)", kept=kept, first=first
        )
        assert sorted(row["rest"] for row in both.collect()) == [1, 2]
        assert kept.storageLevel.useMemory
        assert both._jdf.queryExecution().optimizedPlan().toString().count("InMemoryRelation") == 2
    finally:
        kept.unpersist()
    assert not [table.name for table in spark.catalog.listTables() if table.name.startswith("penstock_")]


def test_in_a_list_of_nothing_is_nothing(spark: SparkSession) -> None:
    rows = spark.range(3)
    assert select(f"select * from {{rows}} where id in ({listed([])})", rows=rows).count() == 0
    assert select(f"select * from {{rows}} where id in ({listed([0, 2])})", rows=rows).count() == 2
