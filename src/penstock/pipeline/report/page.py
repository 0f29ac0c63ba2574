"""The page: its appearance, and how sections and tables are written."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple


class Cell(NamedTuple):
    """Content of a table cell that is not escaped; all other text is."""

    html: str
    number: bool = False


class Section(NamedTuple):
    """A part of the page."""

    title: str
    html: str


def text_table(heads: Sequence[str], rows: Sequence[Sequence[str | Cell]], empty: str = "None.") -> str:
    """A table, or a sentence where it would be empty."""
    if not rows:
        return f'<p class="none">{escape(empty)}</p>'
    right = [isinstance(cell, Cell) and cell.number for cell in rows[0]]
    head = "".join(
        f"<th{' class=n' if at_right else ''}>{escape(name)}</th>"
        for name, at_right in zip(heads, right, strict=True)
    )
    body = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def number(text: str) -> Cell:
    """A figure, aligned to the right."""
    return Cell(escape(text), number=True)


def tiles(figures: Sequence[tuple[str, str]]) -> str:
    """The figures to see first."""
    parts = (f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for name, value in figures)
    return f'<div class="tiles">{"".join(parts)}</div>'


def not_there(job: str) -> str:
    """What to do if a section has no table."""
    return f'<p class="none">Not there yet: run <code>penstock pipeline run {escape(job)} --once</code>.</p>'


def whole_page(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Everything in one file: nothing is fetched from anywhere."""
    parts = "".join(f"<section><h2>{escape(one.title)}</h2>{one.html}</section>" for one in sections)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body>"
        f"<header><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></header><main>{parts}</main></body></html>\n"
    )


def _cell(cell: str | Cell) -> str:
    if isinstance(cell, Cell):
        return f"<td{' class=n' if cell.number else ''}>{cell.html}</td>"
    return f"<td>{escape(cell)}</td>"


_STYLE = """
:root{--ink:#1c2430;--soft:#667085;--line:#e3e7ee;--back:#f6f7f9;--card:#fff;
--c0:#2563eb;--c1:#d97706;--c2:#059669;--c3:#db2777;--c4:#7c3aed;--c5:#64748b}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ef;--soft:#98a2b3;--line:#2b3340;--back:#12161c;--card:#1a2029;
--c0:#60a5fa;--c1:#fbbf24;--c2:#34d399;--c3:#f472b6;--c4:#a78bfa;--c5:#94a3b8}}
*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
header,main{max-width:1000px;margin:0 auto;padding:0 20px}header{padding-top:28px}h1{margin:0;font-size:26px}
header p{margin:4px 0 0;color:var(--soft)}section{background:var(--card);border:1px solid var(--line);
border-radius:10px;padding:4px 20px 18px;margin:18px 0;overflow-x:auto}h2{font-size:19px;margin:14px 0 8px}
h3{font-size:15px;margin:18px 0 6px}table{border-collapse:collapse;width:100%;font-size:14px}
th{text-align:left;color:var(--soft);font-weight:500}th,td{padding:4px 10px 4px 0;border-bottom:1px solid var(--line)}
th.n{text-align:right}td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}.none{color:var(--soft)}
.tiles{display:flex;flex-wrap:wrap;gap:10px 34px;margin:6px 0 10px}.tiles b{display:block;font-size:22px}
.tiles span{color:var(--soft);font-size:13px}svg{width:100%;height:auto;font-size:11px}svg text{fill:var(--soft)}
.grid{stroke:var(--line)}polyline{fill:none;stroke-width:1.8}.legend span{margin-right:16px;font-size:13px}
.legend i{display:inline-block;width:14px;height:3px;margin-right:6px;vertical-align:middle}
.bar{display:inline-block;width:110px;height:9px;background:var(--line);border-radius:5px}
.bar i{display:block;height:9px;border-radius:5px;background:var(--c0)}.bad{color:var(--c3);font-weight:600}
code{background:var(--back);padding:1px 5px;border-radius:4px}
""" + "".join(
    f"polyline.c{n}{{stroke:var(--c{n})}}circle.c{n}{{fill:var(--c{n})}}i.c{n}{{background:var(--c{n})}}"
    for n in range(6)
)
