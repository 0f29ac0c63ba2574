"""The page of figures: tables are renewed between their marks, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from benchmarks.figures import figure
from benchmarks.options import CLUSTER_SECTIONS, LOG_SECTIONS, SECTIONS, SQS_SECTIONS
from benchmarks.order_modes import BEST_EFFORT, MODES
from benchmarks.page import BLOCKS, PageError, blocks_of, main, renewed
from benchmarks.report import Line, Report, encode_report, line_of
from tests.benchmarks.test_report import report_of

PAGE = """\
# Figures

Before.

<!-- figures: log -->
stale table
<!-- end of figures -->

Between.

<!-- figures: order -->
old order
<!-- end of figures -->

After.
"""


def log_report() -> Report:
    return report_of(
        line_of("log", figure("log.100.rate", "read a cold log", "msg/s", [1_600_000.0, 1_500_000.0, 2e6])),
        line_of("log", figure("log.100.server-cpu", "  server CPU", "s/M", [0.25])),
    )


def order_report() -> Report:
    lines: list[Line] = []
    for rank, mode in enumerate(MODES, 1):
        figures = [
            figure(f"order.{mode.name}.{way}.{size}.rate", way, "msg/s", [900_000.0 / rank])
            for way in ("publish", "receive")
            for size in (100, 1024)
        ]
        figures += [
            figure(f"order.{mode.name}.{kind}.{share}", kind, "µs", [1_000.0 * rank])
            for kind in ("send", "end-to-end")
            for share in ("p50", "p99")
        ]
        if mode is not BEST_EFFORT:
            figures += [
                figure(f"{one.name.removesuffix('.rate')}.ratio", "  beside", "×", [1 / rank])
                for one in tuple(figures)
            ]
        if mode.sorted:
            figures.append(figure(f"order.{mode.name}.late.1024", "  late", "%", [float(rank)]))
        lines += [line_of("order", one) for one in figures]
    return report_of(*lines)


def test_a_table_is_renewed_and_the_rest_stays() -> None:
    page = renewed(PAGE, log_report())
    assert "| read a cold log | 1,600,000 msg/s | 1,500,000–2,000,000 | ≥ 1,500,000 ✓ |" in page
    assert "| — server CPU | 0.25 s/M |  |  |" in page
    assert "stale table" not in page
    assert page.startswith(
        "# Figures\n\nBefore.\n\n<!-- figures: log -->\nVersion 0.1.0, 2026-11-15: 2 cores"
    )
    assert page.endswith(PAGE[PAGE.index("<!-- end of figures -->\n\nBetween.") :])
    assert renewed(page, log_report()) == page


def test_others_at_work_are_told() -> None:
    report = msgspec.structs.replace(log_report(), bystanders={"log": 0.83})
    assert "other programs used 83% of the processors meanwhile, so renew this" in renewed(PAGE, report)
    assert "so renew this" not in renewed(PAGE, log_report())


def test_half_a_run_renews_nothing() -> None:
    rate = line_of("throughput", figure("publish.100.rate", "publish", "msg/s", [1.0]))
    with pytest.raises(PageError, match="without --only"):
        renewed(PAGE, report_of(rate))
    failed = msgspec.structs.replace(log_report(), failures={"log": "no room"})
    assert blocks_of(failed) == []


@pytest.mark.parametrize("sections", [SECTIONS, SQS_SECTIONS, LOG_SECTIONS, CLUSTER_SECTIONS])
def test_a_whole_run_renews_its_table(sections: tuple[str, ...]) -> None:
    lines = [line_of(section, figure(f"{section}.x", section, "µs", [1.0])) for section in sections]
    (block,) = blocks_of(report_of(*lines))
    assert block.sections == sections


def test_order_is_one_row_a_kind_and_a_plot(tmp_path: Path) -> None:
    page, report = tmp_path / "page.md", tmp_path / "order.json"
    page.write_text(PAGE)
    report.write_bytes(encode_report(order_report()))
    assert main([str(report)], page) == 0
    rows = [line for line in page.read_text().splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(MODES)
    assert rows[1].startswith("| best-effort | 900 k/s | 900 k/s | ")
    assert rows[2].startswith("| fifo, one group | 450 k/s (0.50 ×) | ")
    assert rows[2].endswith("| 2.00 / 2.00 ms (0.50 / 0.50 ×) |  |")
    assert rows[-1].endswith("| up to 10.0 % |")
    plot = ET.parse(tmp_path / "images" / "order.svg")
    words = [text.text for text in plot.iter("{http://www.w3.org/2000/svg}text")]
    assert {mode.title for mode in MODES} < set(words)


def test_a_page_without_the_marks_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, report = tmp_path / "page.md", tmp_path / "log.json"
    page.write_text("no marks")
    report.write_bytes(encode_report(log_report()))
    assert main([str(report)], page) == 1
    assert "0 places marked <!-- figures: log -->" in capsys.readouterr().err
    assert page.read_text() == "no marks"
    assert main([], page) == 2
    report.write_text("{}")
    assert main([str(report)], page) == 1


def test_the_real_page_has_a_place_for_every_table() -> None:
    page = Path("docs/benchmarks.md").read_text()
    for block in BLOCKS:
        assert page.count(f"<!-- figures: {block.name} -->") == 1
    assert page.count("<!-- end of figures -->") == len(BLOCKS)
