# SPDX-License-Identifier: Apache-2.0
"""Results of analyses: tables of rows, and notes."""

from __future__ import annotations

import collections
import html
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

__all__ = ["Column", "Result", "ResultTable"]

_SHOWN_ROWS = 20
_SHOWN_HTML_ROWS = 50
# Longer names are shortened in the middle, as by the tool; sentences are printed below their row.
_NAME_WIDTH = 64
_SENTENCES = {"finding", "evidence", "command"}
_SENTENCE_WIDTH = 80
# Integers that are identifiers: their digits are not grouped.
_NUMBERS = {"correlation", "device", "pid", "rank", "step", "stream", "tid"}


class Column(NamedTuple):
    """A column of a result. Its key includes the unit, unless the type implies it.

    ``type`` is one of text, amount, integer, real, time, instant, percent, bytes, bool: time and
    instant are ns, as all times in Python.
    """

    key: str
    title: str | None
    type: str


def _shown_time(ns: int) -> str:
    for unit, factor in (("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)):
        if abs(ns) >= factor:
            return f"{ns / factor:.4g} {unit}" if abs(ns) < 1000 * factor else f"{ns / factor:,.0f} {unit}"
    return f"{ns} ns"


def _shown(value: Any, kind: str, start: int) -> str:
    """The text of a value, as the tool prints it: instants relative to the start of the trace."""
    if value is None:
        return "-"
    if kind == "time":
        return _shown_time(value)
    if kind == "instant":
        return _shown_time(value - start)
    if kind == "bool":
        return "yes" if value else "no"
    if kind == "percent":
        return f"{value:.2f} %"
    if kind == "real":
        return f"{value:,.4g}"
    if kind in ("integer", "bytes"):
        return f"{value:,}"
    return str(value)


class ResultTable(Sequence[Any]):
    """A table of a result. Rows are named tuples, with the keys of the columns as names.

    Times are in ns; a column that the tool calls ``duration_us`` is ``duration`` here, or
    ``duration_ns`` where another column is called ``duration``. ``print()`` shows instants relative to ``start``, and at most ``top`` rows.
    """

    def __init__(
        self, name: str, columns: Sequence[Sequence[Any]], rows: list[tuple[Any, ...]], start: int = 0, top: int = 0
    ):
        self.name = name
        self._start = start
        self._top = top
        keys = {key for key, _, _ in columns}
        self.columns = [Column(_key(key, kind, keys), title, kind) for key, title, kind in columns]
        self._row: Any = collections.namedtuple(  # type: ignore[misc]
            "Row", [column.key for column in self.columns], rename=True
        )
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._row._make(row) for row in self._rows[index]]
        return self._row._make(self._rows[index])

    def __iter__(self) -> Iterator[Any]:
        return map(self._row._make, self._rows)

    def column(self, key: str) -> list[Any]:
        """All values of one column."""
        keys = [column.key for column in self.columns]
        if key not in keys:
            raise KeyError(f"table {self.name!r} has no column {key!r}; it has {', '.join(keys)}")
        index = keys.index(key)
        return [row[index] for row in self._rows]

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        keys = [column.key for column in self.columns]
        return [dict(zip(keys, row)) for row in self._rows]

    def to_pandas(self) -> Any:
        """The table as a DataFrame."""
        try:
            import pandas
        except ImportError as error:
            raise _missing("pandas") from error
        return pandas.DataFrame(self._rows, columns=[column.key for column in self.columns])

    def _cells(self, most: int) -> tuple[list[str], list[list[str]]]:
        shown = [i for i, column in enumerate(self.columns) if column.title is not None]
        shown = shown or list(range(len(self.columns)))
        titles = [self.columns[i].title or self.columns[i].key for i in shown]
        kinds = [
            "number" if column.key in _NUMBERS and column.type == "integer" else column.type for column in self.columns
        ]
        rows = [[_shown(row[i], kinds[i], self._start) for i in shown] for row in self._rows[:most]]
        return titles, rows

    def __str__(self) -> str:
        titles, rows = self._cells(self._top or _SHOWN_ROWS)
        columns = [column for column in self.columns if column.title is not None] or self.columns
        is_left = [column.type == "text" for column in columns]
        sentences = [i for i, column in enumerate(columns) if column.key in _SENTENCES]
        grid = [i for i in range(len(columns)) if i not in sentences]
        cells = [[_shortened(line[i]) if is_left[i] else line[i] for i in grid] for line in [titles, *rows]]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = []
        for number, line in enumerate(cells):
            padded = [
                cell.ljust(width) if is_left[i] else cell.rjust(width) for cell, width, i in zip(line, widths, grid)
            ]
            lines.append("  ".join(padded).rstrip())
            if number:
                lines += [_paragraph(f"{titles[i]}: {rows[number - 1][i]}") for i in sentences]
        if len(self) > len(rows):
            lines.append(f"... {len(self) - len(rows):,} more rows")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self):,} rows>\n{self}"

    def _repr_html_(self) -> str:
        titles, rows = self._cells(self._top or _SHOWN_HTML_ROWS)
        columns = [column for column in self.columns if column.title is not None] or self.columns
        is_name = [column.type == "text" and column.key not in _SENTENCES for column in columns]
        head = "".join(f"<th>{html.escape(title)}</th>" for title in titles)
        body = "".join(
            "<tr>" + "".join(_html_cell(cell, name) for cell, name in zip(row, is_name)) + "</tr>" for row in rows
        )
        more = f"<p>{len(self) - len(rows):,} more rows</p>" if len(self) > len(rows) else ""
        return f"<b>{html.escape(self.name)}</b><table><tr>{head}</tr>{body}</table>{more}"


def _shortened(text: str) -> str:
    if len(text) <= _NAME_WIDTH:
        return text
    end = (_NAME_WIDTH - 1) // 2
    return f"{text[: _NAME_WIDTH - 1 - end]}…{text[-end:]}"


def _html_cell(text: str, is_name: bool) -> str:
    """A table cell; its tooltip has the full text of a shortened name."""
    shown = _shortened(text) if is_name else text
    title = "" if shown == text else f' title="{html.escape(text)}"'
    # A number and its unit stay together.
    return f"<td{title}>{html.escape(shown if len(shown) > 20 else shown.replace(chr(32), chr(160)))}</td>"


def _paragraph(text: str) -> str:
    import textwrap

    return textwrap.fill(
        text, _SENTENCE_WIDTH, initial_indent="   ", subsequent_indent="   ", break_long_words=False,
        break_on_hyphens=False,
    )


def _key(key: str, kind: str, keys: set[str]) -> str:
    """Values are in ns: a key that ends in us would be wrong."""
    if kind != "time" or not key.endswith("_us"):
        return key
    return key[:-2] + "ns" if key[:-3] in keys else key[:-3]


class Result:
    """The result of an analysis: tables by name, and notes on how to read them.

    Its main table is the one named after the analysis, or else the first one. ``len()``, iteration,
    ``columns`` and ``to_pandas()`` of a result are those of its main table.
    """

    def __init__(
        self,
        name: str,
        tables: Sequence[Sequence[Any]],
        notes: list[str],
        outcome: str | None = None,
        start: int = 0,
        top: int = 0,
    ):
        self.name = name
        self.tables = {key: ResultTable(key, columns, rows, start, top) for key, columns, rows in tables}
        self.notes = notes
        #: Of a diff: "identical", "alike" or "different".
        self.outcome = outcome

    @property
    def table(self) -> ResultTable:
        """The main table: the one named after the analysis, or else the first one."""
        if self.name in self.tables:
            return self.tables[self.name]
        for table in self.tables.values():
            return table
        return ResultTable(self.name, [], [])

    @property
    def columns(self) -> list[Column]:
        """The columns of the main table."""
        return self.table.columns

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self.table[key]
        if key not in self.tables:
            raise KeyError(f"{self.name} has no table {key!r}; it has {', '.join(self.tables)}")
        return self.tables[key]

    def __len__(self) -> int:
        return len(self.table)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.table)

    def to_pandas(self, table: str | None = None) -> Any:
        """The main table, or the named one, as a DataFrame."""
        return (self[table] if table is not None else self.table).to_pandas()

    def to_dicts(self, table: str | None = None) -> list[dict[str, Any]]:
        """The rows of the main table, or of the named one, as dicts."""
        return (self[table] if table is not None else self.table).to_dicts()

    def __str__(self) -> str:
        parts = [str(table) if len(self.tables) == 1 else f"{name}\n{table}" for name, table in self.tables.items()]
        return "\n\n".join(parts + [f"note: {note}" for note in self.notes])

    def __repr__(self) -> str:
        outcome = f" {self.outcome}" if self.outcome else ""
        return f"<Result {self.name}{outcome}>\n{self}"

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        tables = "".join(table._repr_html_() for table in self.tables.values())
        return tables + (f"<ul>{notes}</ul>" if notes else "")


def _missing(package: str, extra: str | None = None) -> ImportError:
    return ImportError(f"{package} is not installed; install it with: pip install 'tracesmith[{extra or package}]'")
