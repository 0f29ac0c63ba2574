"""The report of a warehouse: one page with the results of every job."""

from __future__ import annotations

from datetime import datetime

from penstock.pipeline.report import figures
from penstock.pipeline.report.message_sections import capacity_section, dead_letters_section, ledger_section
from penstock.pipeline.report.page import whole_page
from penstock.pipeline.report.reading import Shelf
from penstock.pipeline.report.usage_section import usage_section
from penstock.pipeline.warehouse.arrow_files import reading

SECTIONS = (usage_section, ledger_section, dead_letters_section, capacity_section)


def report(warehouse: str, since: datetime, until: datetime) -> str:
    """The page; raises `PipelineError` where there is no warehouse, or a damaged one."""
    shelf = Shelf(warehouse, since, until)
    title = "Penstock: what happened"
    subtitle = f"{figures.moment(since)} to {figures.moment(until)} UTC, from {warehouse}"
    with reading(warehouse):
        sections = [section(shelf) for section in SECTIONS]
    return whole_page(title, subtitle, sections)
