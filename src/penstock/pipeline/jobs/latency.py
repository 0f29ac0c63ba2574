"""Durations as counts below rising bounds: counts can be added, over batches, minutes and days, and percentiles are computed
from the sums.
"""

from __future__ import annotations

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

    def counted(self, value: str) -> str:
        """Aggregates of SQL: how many values of this column are within each bound."""
        return ", ".join(
            f"sum(case when `{value}` <= {bound}L then 1L else 0L end) as `{name}`"
            for name, bound in zip(self.names, self.bounds, strict=True)
        )

    def added_up(self) -> str:
        """Aggregates of SQL over rows that have counts already."""
        return ", ".join(f"sum(`{name}`) as `{name}`" for name in self.names)

    def percentile(self, percent: int, total: str, largest: str) -> str:
        """In SQL: the given percentile, from columns of counts; null if there are none.

        The function of a list with one element ensures that the counts are gathered once: Spark's code for the plain
        expression is more than the Java compiler accepts.
        """
        counts = ", ".join(f"`{name}`" for name in self.names)
        bounds = ", ".join(f"{bound}L" for bound in self.bounds)
        packed = f"""struct(
            array({counts}) as counts,
            array({bounds}) as bounds,
            ceil({total} * {percent / 100}D) as rank,
            cast({total} as bigint) as total,
            cast({largest} as bigint) as largest
        )"""
        found = f"transform(array({packed}), packed -> {_INTERPOLATED})[0]"
        return f"cast(case when {total} > 0 then {found} end as bigint)"


_BELOW = "size(filter(packed.counts, count -> count < packed.rank))"
"""How many bounds are below the value that is looked for."""
_LOW, _BEFORE = (
    f"case when {_BELOW} > 0 then element_at(packed.{of}, greatest({_BELOW}, 1)) else 0L end"
    for of in ("bounds", "counts")
)
_HIGH, _WITHIN = (
    f"case when {_BELOW} < size(packed.counts)"
    f" then element_at(packed.{of}, least({_BELOW} + 1, size(packed.counts))) else packed.{beyond} end"
    for of, beyond in (("bounds", "largest"), ("counts", "total"))
)
_TOP = f"greatest(least({_HIGH}, packed.largest), {_LOW})"
_SHARE = f"(packed.rank - {_BEFORE}) / greatest({_WITHIN} - {_BEFORE}, 1L)"
_INTERPOLATED = f"round({_LOW} + ({_TOP} - {_LOW}) * {_SHARE})"
"""Between the bound below the rank and the one above, by how many lie between."""
