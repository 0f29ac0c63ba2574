"""Times as counts below rising bounds: counts add up, over batches, minutes and days, and percentiles come from the sums."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from penstock.pipeline.warehouse.table import WarehouseColumn, column


class Buckets:
    """Bounds that grow by the same factor. A percentile between two of them is interpolated."""

    def __init__(self, prefix: str, first: int, growth: float, count: int, unit: str) -> None:
        bounds: list[int] = []
        bound = float(first)
        while len(bounds) < count:
            bounds.append(max(round(bound), bounds[-1] + 1 if bounds else 0))
            bound *= growth
        self.bounds = tuple(bounds)
        self.prefix = prefix
        self.unit = unit

    @property
    def names(self) -> tuple[str, ...]:
        """One column a bound."""
        return tuple(f"{self.prefix}_le_{bound}" for bound in self.bounds)

    def columns(self, what: str) -> tuple[WarehouseColumn, ...]:
        """For the table that holds them."""
        return tuple(
            column(name, "int64", f"{what} of at most {bound:,} {self.unit}.")
            for name, bound in zip(self.names, self.bounds, strict=True)
        )

    def counted(self, value: str) -> list[Column]:
        """Aggregates over rows: how many values of this column are within each bound."""
        # As text: made of objects, every count would be some twenty questions to Java.
        return [
            sf.expr(f"sum(case when `{value}` <= {bound}L then 1L else 0L end) as `{name}`")
            for name, bound in zip(self.names, self.bounds, strict=True)
        ]

    def added_up(self) -> list[Column]:
        """Aggregates over rows that have counts already."""
        return [sf.expr(f"sum(`{name}`) as `{name}`") for name in self.names]

    def percentile(self, share: float, total: Column, largest: Column) -> Column:
        """The value that this share of all is at most, from columns of counts; null where there is nothing.

        The function of a list of one is there so that the counts are gathered once: what Spark would make of the plain
        expression is more code than the Java compiler takes.
        """
        counts = ", ".join(f"`{name}`" for name in self.names)
        bounds = ", ".join(f"{bound}L" for bound in self.bounds)
        rank = sf.ceil(total * share)
        packed = sf.struct(
            sf.expr(f"array({counts})").alias("counts"),
            sf.expr(f"array({bounds})").alias("bounds"),
            rank.alias("rank"),
            total.cast("long").alias("total"),
            largest.cast("long").alias("largest"),
        )
        found = sf.transform(sf.array(packed), _interpolated)[0]
        return sf.when(total > 0, found).cast("long")


def _interpolated(packed: Column) -> Column:
    """Between the bound below the rank and the one above, by how many lie between."""
    size = sf.size(packed["counts"])
    below = sf.size(sf.filter(packed["counts"], lambda count: count < packed["rank"]))
    low = sf.when(below > 0, sf.element_at(packed["bounds"], sf.greatest(below, sf.lit(1)))).otherwise(0)
    high = sf.when(below < size, sf.element_at(packed["bounds"], sf.least(below + 1, size))).otherwise(
        packed["largest"]
    )
    before = sf.when(below > 0, sf.element_at(packed["counts"], sf.greatest(below, sf.lit(1)))).otherwise(0)
    within = sf.when(below < size, sf.element_at(packed["counts"], sf.least(below + 1, size))).otherwise(
        packed["total"]
    )
    share = (packed["rank"] - before) / sf.greatest(within - before, sf.lit(1))
    top = sf.greatest(sf.least(high, packed["largest"]), low)
    return sf.round(low + (top - low) * share)
