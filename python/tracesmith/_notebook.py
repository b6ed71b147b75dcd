# SPDX-License-Identifier: Apache-2.0
"""HTML of traces and tables in notebooks: small tables, and plots as inline SVG."""

from __future__ import annotations

import html
import json
import random
from collections.abc import Iterator
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, Any

from .results import _shown_time

if TYPE_CHECKING:
    from .trace import Table, Trace

_WIDTH = 720
_BINS = 360
_LANE = 14
_LABEL = 130
_TOP = 8
_SERIES = 4
_POINTS = 20_000
_ROWS = 10
_CELL = 120


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 3] + "..."


def _grid(titles: list[str], rows: list[list[str]]) -> str:
    head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def table(table: Table) -> str:
    """The first rows of a table."""
    rows = [["" if cell is None else _shortened(str(cell), _CELL) for cell in row] for row in table(limit=_ROWS)]
    title = html.escape(repr(table).strip("<>").split(", columns")[0])
    return f"<b>{title}</b>" + _grid(table.columns, rows)


def _svg(height: float, parts: list[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height:.0f}" '
        f'font-family="sans-serif" font-size="10">{"".join(parts)}</svg>'
    )


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.0f}" y="{y:.0f}" fill="currentColor">{html.escape(text)}</text>'


def _lanes(title: str, lanes: list[tuple[str, list[float]]], duration: int) -> str:
    """One row per lane; the darker, the busier in that interval."""
    width = (_WIDTH - _LABEL) / _BINS
    parts = [_text(0, 10, title), _text(_WIDTH - 80, 10, _shown_time(duration))]
    for number, (label, bins) in enumerate(lanes):
        y = 16 + number * _LANE
        parts.append(_text(0, y + 10, label))
        at = 0
        while at < len(bins):
            # Neighboring bins of one shade are one box; even very short work is visible.
            shade, end = ceil(bins[at] * 8), at + 1
            while end < len(bins) and ceil(bins[end] * 8) == shade:
                end += 1
            if shade:
                parts.append(
                    f'<rect x="{_LABEL + at * width:.1f}" y="{y}" width="{(end - at) * width:.1f}" '
                    f'height="{_LANE - 3}" fill="#2a78d6" fill-opacity="{0.2 + shade / 10:.2f}"/>'
                )
            at = end
    return _svg(20 + len(lanes) * _LANE, parts)


def _bars(title: str, names: list[tuple[str, int, int]]) -> str:
    """Total time by name."""
    total = sum(ns for _, ns, _ in names) or 1
    names = sorted(names, key=lambda item: -item[1])[:_TOP]
    most = names[0][1] or 1
    parts = [_text(0, 10, title)]
    for number, (name, ns, count) in enumerate(names):
        y = 16 + number * _LANE
        width = 240 * ns / most
        parts.append(f'<rect x="0" y="{y}" width="{max(width, 1):.1f}" height="{_LANE - 3}" fill="#2a78d6"/>')
        label = f"{100 * ns / total:.1f} %  {_shown_time(ns)}  {count:,} x  {_shortened(name, 60)}"
        parts.append(_text(250, y + 10, label))
    return _svg(20 + len(names) * _LANE, parts)


def _sample(rows: Iterator[Any], count: int) -> Iterator[Any]:
    """About ``_POINTS`` of the rows, at uneven distances: counters that take turns all appear."""
    most, distance = 2 * ceil(count / _POINTS) - 1, random.Random(0)
    for row in rows:
        yield row
        skipped = distance.randrange(most)
        next(islice(rows, skipped, skipped), None)


def _counters(trace: Trace, start: int, duration: int, count: int) -> str:
    """The first few counters over time."""
    series: dict[str, list[tuple[int, float]]] = {}
    for row in _sample(iter(trace.table("counter", ["start", "name", "args"])), count):
        for key, value in json.loads(row.args or "{}", parse_int=float).items():
            # Infinite and enormous values have no place in a picture.
            if isinstance(value, (bool, float)) and abs(value) < 1e300:
                name = row.name or "counter"
                name = name if key in ("value", name) else f"{name} {key}"
                if name in series or len(series) < _SERIES:
                    series.setdefault(name, []).append((row.start, float(value)))
    parts = []
    for number, (name, points) in enumerate(series.items()):
        y = number * 34
        low = min(value for _, value in points)
        high = max(value for _, value in points)
        scale = high - low or 1
        stride = max(1, len(points) // _BINS)
        line = " ".join(
            f"{_LABEL + (_WIDTH - _LABEL) * (at - start) / duration:.1f},{y + 28 - 22 * (value - low) / scale:.1f}"
            for at, value in points[::stride]
        )
        parts.append(_text(0, y + 14, name[-24:]))
        parts.append(_text(0, y + 26, f"{low:g} to {high:g}"))
        parts.append(f'<polyline points="{line}" fill="none" stroke="#2a78d6"/>')
    return _svg(len(series) * 34, parts) if parts else ""


def _label(owner: int, number: int, words: tuple[str, str]) -> str:
    absent = -(2**63)
    parts = [f"{word} {value}" for word, value in zip(words, (owner, number)) if value != absent]
    return " ".join(parts) or words[1]


def trace(trace: Trace) -> str:
    """A summary: facts, streams or threads over time, total time by name, counters."""
    start, end = trace._job.bounds()
    tables = trace.tables
    facts = [
        ["trace", ", ".join(map(str, trace.names[:3])) + (" ..." if len(trace.names) > 3 else "")],
        ["rows", ", ".join(f"{name} {count:,}" for name, count in tables.items() if name != "string")],
    ]
    if start is None or end is None:
        return _grid(["", ""], facts)
    duration = max(end - start, 1)
    facts.insert(1, ["duration", _shown_time(duration)])
    parts: list[Any] = [_grid(["", ""], facts)]
    for name, owner, number, words in (
        ("gpu_op", "device_number", "stream_number", ("device", "stream")),
        ("slice", "thread_pid", "thread_tid", ("process", "thread")),
    ):
        if name not in tables:
            continue
        lanes, names, others = trace._job.overview(name, owner, number, start, end, _BINS)
        lanes.sort()
        shown = [(_label(of, at, words), bins) for of, at, bins in lanes]
        title = f"{name} over time" + (f"; {others:,} rows of other {words[1]}s are not shown" if others else "")
        parts.append(_lanes(title, shown, duration))
        if names:
            parts.append(_bars(f"{name} by name", names))
        break
    if "counter" in tables:
        parts.append(_counters(trace, start, duration, tables["counter"]))
    return "<div>" + "<br>".join(part for part in parts if part) + "</div>"
