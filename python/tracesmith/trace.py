# SPDX-License-Identifier: Apache-2.0
"""Reads traces: ``tracesmith.open()`` returns a Trace, whose tables are attributes.

    with tracesmith.open("t.sbt") as t:
        t.gpu_op.to_pandas().groupby("name").duration.sum()
        t.analyze("breakdown")

Tables implement the Arrow PyCapsule interface, so pandas, Polars, DuckDB, PyArrow and others read
them without copying: ``polars.DataFrame(t.gpu_op)``, ``duckdb.from_arrow(t.gpu_op.to_arrow())``.
None of them is required: iterating over a table yields named tuples.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import html
import json
import operator
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Union

from . import _read
from .errors import InvalidError, NotFoundError, TraceWarning
from .results import Result, _missing
from .writer import Writer

__all__ = ["Table", "Trace", "Writer", "import_", "open"]

Operand = Union[str, bytes, int, "os.PathLike[str]"]
Time = Union[int, str, None]

#: Names and descriptions of the tables, in the order of docs/schema.md.
TABLES = {name: doc for name, _, doc in _read.tables()}
_KINDS = {name: kind for name, kind, _ in _read.tables()}

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000, "h": 3_600_000_000_000}


def open(  # noqa: A001
    operands: Operand | Sequence[Operand], *, progress: Callable[[str | None, int, int], Any] | None = None
) -> Trace:
    """Opens a trace: a file, a process by its pid, or a list of these, such as the ranks of a job.

    A file may be an SBT file, or have any other format that ``tracesmith import`` reads (Kineto and
    Chrome JSON, also compressed, Perfetto, Nsight Systems ...); it is then imported on the fly. The
    trace of a process has what has been recorded of it so far.

    ``progress(path, done, total)`` is called while files are imported; a true value cancels. A
    damaged or incomplete trace that can still be used causes a ``TraceWarning``.
    """
    if hasattr(operands, "read"):
        raise TypeError(f"pass the path of the file, not {operands!r}")
    if isinstance(operands, (str, bytes, os.PathLike)) or not isinstance(operands, Iterable):
        operands = [operands]
    names = [_operand(operand) for operand in operands]
    if not names:
        raise InvalidError("no trace was given")
    for name in names:
        if isinstance(name, int) and names.count(name) > 1:
            raise InvalidError(f"process {name} is given twice")
    job, texts = _read.open(names, progress)
    for text in texts:
        warnings.warn(text, TraceWarning, stacklevel=2)
    return Trace(job, names)


def _operand(operand: Any) -> str | int:
    if isinstance(operand, (str, bytes, os.PathLike)):
        return os.fsdecode(operand)
    if isinstance(operand, bool) or not hasattr(operand, "__index__"):
        raise TypeError(f"a trace is a path, the pid of a process, or a list of them, not {operand!r}")
    pid = operator.index(operand)
    if not 0 < pid < 2**31:
        raise InvalidError(f"{pid} is not the id of a process")
    return pid


def import_(
    path: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    format: str | None = None,
    progress: Callable[[str | None, int, int], Any] | None = None,
) -> int:
    """Imports a file of another tool into an SBT file. Returns the number of events.

    The format is detected from the content unless ``format`` names one. Content that could not be
    imported causes a ``TraceWarning``.
    """
    path, output = os.fsdecode(path), os.fsdecode(output)
    if _is_same_file(path, output):
        raise InvalidError(f"output {output!r} is also the input {path!r}; choose another name")
    events, _, note = _read.import_file(path, output, format, progress)
    if note:
        warnings.warn(note, TraceWarning, stacklevel=2)
    return events


class Table:
    """A table of a trace, or a selection of its columns and rows. Rows are read on demand.

    ``len()`` counts its rows, iteration yields them as named tuples. Calling it makes a selection:
    ``t.gpu_op(columns=["start", "name"], start="1ms", end="2ms")``.
    """

    def __init__(self, trace: Trace, name: str, request: dict[str, Any]):
        self._trace = trace
        self._request = request
        self.name = name

    def __call__(
        self,
        columns: Sequence[str] | None = None,
        *,
        start: Time = None,
        end: Time = None,
        limit: int = 0,
        args: bool = False,
        plain_strings: bool = False,
    ) -> Table:
        """Selects columns, the rows that overlap a time range, or at most ``limit`` rows.

        ``start`` and ``end`` are ns of trace time, or strings such as "1.5ms", relative to the start
        of the trace. ``args`` adds the arguments of rows as JSON text, which only ``counter`` has by
        default. Strings are dictionaries (categories in pandas) unless ``plain_strings`` is true.
        """
        request = dict(self._request)
        if columns is not None:
            request["columns"] = [columns] if isinstance(columns, str) else list(columns)
        if args:
            names = request.get("columns") or self.columns
            request["columns"] = [*names, *(() if "args" in names else ("args",))]
        if start is not None:
            request["start"] = self._trace._time(start)
        if end is not None:
            request["end"] = self._trace._time(end)
        if limit < 0:
            raise InvalidError(f"limit is negative: {limit}")
        if limit:
            request["limit"] = limit
        if plain_strings:
            request["plain"] = True
        table = Table(self._trace, self.name, request)
        self._trace._job.schema(self.name, **request)  # raises errors now
        chosen = request.get("columns", [])
        for name in chosen:
            if chosen.count(name) > 1:
                raise InvalidError(f"column {name!r} is given twice")
        return table

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        chosen = self._request.get("columns")
        if chosen is not None:
            return list(chosen)
        first = ["trace"] if len(self._trace) > 1 else []
        return first + [name for name, _, is_default in _read.columns(self.name) if is_default]

    @property
    def docs(self) -> dict[str, str]:
        """The meaning of each column, including those that are only read on request."""
        return {name: doc for name, doc, _ in _read.columns(self.name)}

    def __len__(self) -> int:
        if _KINDS[self.name] != "derived" and not {"start", "end", "limit"} & set(self._request):
            return self._trace._job.row_count(self.name)
        request = {**self._request, "columns": []}
        return sum(1 for _ in self._trace._job.rows(self.name, **request))

    def __bool__(self) -> bool:
        return any(True for _ in self._trace._job.rows(self.name, **{**self._request, "columns": [], "limit": 1}))

    def __iter__(self) -> Iterator[Any]:
        row: Any = collections.namedtuple("Row", self.columns, rename=True)  # type: ignore[misc]
        return map(row._make, self._trace._job.rows(self.name, **self._request))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._trace._job.stream(self.name, **self._request)

    def __arrow_c_schema__(self) -> object:
        return self._trace._job.schema(self.name, **self._request)

    def to_arrow(self) -> Any:
        """The rows as a pyarrow.Table."""
        try:
            import pyarrow
        except ImportError as error:
            raise _missing("pyarrow", "arrow") from error
        reader = pyarrow.RecordBatchReader._import_from_c_capsule(self.__arrow_c_stream__())
        return reader.read_all()

    def to_pandas(self) -> Any:
        """The rows as a DataFrame. Nullable integers are Int64, so that no ns is lost."""
        try:
            import pandas
            import pyarrow
        except ImportError as error:
            raise _missing(error.name or "pandas", "pandas") from error
        table = self.to_arrow()
        missing = [
            field.name
            for field, column in zip(table.schema, table.columns)
            if pyarrow.types.is_integer(field.type) and column.null_count
        ]
        names = table.column_names
        # One block per column, so that nothing is copied twice.
        whole = table.drop_columns(missing).to_pandas(split_blocks=True)
        columns = {name: _integers(table.column(name)) if name in missing else whole[name] for name in names}
        return pandas.DataFrame(columns, copy=False)

    def to_polars(self) -> Any:
        """The rows as a polars.DataFrame."""
        try:
            import polars
        except ImportError as error:
            raise _missing("polars") from error
        return polars.DataFrame(self)

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        names = self.columns
        return [dict(zip(names, row)) for row in self._trace._job.rows(self.name, **self._request)]

    def __repr__(self) -> str:
        if self._trace._is_closed:
            return f"<Table {self.name}: the trace is closed>"
        count = "derived" if _KINDS[self.name] == "derived" else f"{len(self):,} rows"
        return f"<Table {self.name}: {count}, columns {', '.join(self.columns)}>"

    def _repr_html_(self) -> str:
        if self._trace._is_closed:
            return html.escape(repr(self))
        from . import _notebook

        return _notebook.table(self)


class Trace:
    """An open trace, or the traces of a job. Its tables are attributes: ``t.gpu_op``, ``t.slice``.

    It is a context manager. Arrow streams obtained from it stay readable after it is closed. Any
    thread may use it; analyses of the same trace run one after the other.
    """

    def __init__(self, job: _read.Job, names: Sequence[str | int]):
        self._job = job
        #: The paths and pids that were opened.
        self.names = list(names)

    # ---- tables ----

    def table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        *,
        start: Time = None,
        end: Time = None,
        limit: int = 0,
        args: bool = False,
        plain_strings: bool = False,
    ) -> Table:
        """A table by name; the other arguments are those of calling a Table."""
        return self[name](columns, start=start, end=end, limit=limit, args=args, plain_strings=plain_strings)

    # Ambiguous: [] returns tables, len() counts traces.
    __iter__ = None

    def __contains__(self, name: object) -> bool:
        return name in TABLES

    def __getitem__(self, name: str) -> Table:
        if name not in TABLES:
            raise NotFoundError(f"there is no table {name!r}; there are {', '.join(TABLES)}")
        return Table(self, name, {})

    def __getattr__(self, name: str) -> Table:
        if name in TABLES:
            return Table(self, name, {})
        raise AttributeError(f"'Trace' object has no attribute {name!r}, and there is no table of that name")

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self), *TABLES})

    @property
    def tables(self) -> dict[str, int]:
        """The number of rows of each table that has any."""
        stored = [name for name, kind in _KINDS.items() if kind != "derived"]
        counts = {name: self._job.row_count(name) for name in stored}
        return {name: count for name, count in counts.items() if count}

    # ---- facts ----

    def __len__(self) -> int:
        """The number of traces, such as the ranks of a job."""
        return self._job.count()

    def __bool__(self) -> bool:
        return True

    @property
    def start(self) -> int | None:
        """When the first row starts, in trace time."""
        return self._job.bounds()[0]

    @property
    def end(self) -> int | None:
        """When the last row ends, in trace time."""
        return self._job.bounds()[1]

    @property
    def info(self) -> dict[str, Any]:
        """Facts about the trace: files, time range, tables, processes, devices."""
        start, end = self._job.bounds()
        return {
            "names": self.names,
            "files": self._job.files(),
            "start": start,
            "end": end,
            "duration": None if start is None or end is None else end - start,
            "tables": self.tables,
            "sources": self.source.to_dicts(),
            "processes": self.process(["id", "pid", "name"]).to_dicts(),
            "devices": self.device(["id", "number", "name", "vendor"]).to_dicts(),
        }

    @property
    def meta(self) -> dict[str, Any]:
        """Metadata of the trace and its sources by key; if a key has several values, the last one."""
        found = {}
        for row in self.table("meta", ["process", "thread", "key", "value"]):
            if row.process is None and row.thread is None and row.key is not None:
                found[row.key] = None if row.value is None else json.loads(row.value)
        return found

    def _time(self, time: int | str) -> int:
        """ns of trace time; a string is relative to the start of the trace, or "@" and ns."""
        if hasattr(time, "__index__"):
            return operator.index(time)
        if not isinstance(time, str):
            raise TypeError(f"a time must be an int (ns), or a str such as '1.5ms', not {time!r}")
        text = time.strip()
        number = text.rstrip("nusmh ")
        unit = text[len(number) :].strip() or "ns"
        try:
            if text.startswith("@"):
                return int(text[1:])
            if not number.strip("+-."):
                raise ValueError
            whole, _, fraction = number.partition(".")
            factor = _UNITS[unit]
            ns = int(whole or "0") * factor
            part = int(int(fraction or "0") * factor / 10 ** len(fraction) + 0.5)
            ns += -part if number.startswith("-") else part
        except (KeyError, ValueError):
            raise InvalidError(f"{time!r} is not a valid time, such as '1.5ms', '10us', or an int (ns)") from None
        return ns + (self.start or 0)

    # ---- analyses ----

    @staticmethod
    def analyses() -> dict[str, str]:
        """Names and descriptions of all analyses."""
        return {name: summary for name, _, summary, _ in _read.analyses()}

    def analyze(
        self,
        name: str,
        *,
        steps: int | str | None = None,
        ranks: Sequence[int] | None = None,
        start: Time = None,
        end: Time = None,
        all: bool = False,
        step_span: str | None = None,
        rounding: str | None = None,
        no_align: bool = False,
        short_names: bool = False,
        progress: Callable[[str | None, int, int], Any] | None = None,
        **options: Any,
    ) -> Result:
        """Runs an analysis (docs/analyze.md) and returns its result.

        Options are those of ``tracesmith analyze NAME``, with underscores: ``by_shape=True``. Times
        are ns, or strings such as "20us". ``top=5`` prints five rows; the result has all.
        """
        tables, notes = self._job.analyze(
            name,
            options=_options(options, _time_options(name)),
            **self._selection(steps, ranks, start, end, step_span, rounding),
            all=all,
            no_align=no_align,
            short_names=short_names,
            progress=progress,
        )
        return Result(name, tables, notes, start=self.start or 0, top=int(options.get("top") or 0))

    def diff(
        self,
        other: Trace,
        *,
        steps: int | str | None = None,
        ranks: Sequence[int] | None = None,
        all: bool = False,
        step_span: str | None = None,
        short_names: bool = False,
        progress: Callable[[str | None, int, int], Any] | None = None,
        **options: Any,
    ) -> Result:
        """Compares this trace (before) with another (after); ``outcome`` says whether they differ."""
        if not isinstance(other, Trace):
            raise TypeError(f"the other trace must be a result of tracesmith.open(), not {other!r}")
        outcome, tables, notes = self._job.diff(
            other._job,
            options=_options(options),
            **self._selection(steps, ranks, None, None, step_span, None),
            all=all,
            short_names=short_names,
            progress=progress,
        )
        return Result("diff", tables, notes, outcome, self.start or 0)

    def states(
        self,
        *,
        lanes: bool = False,
        devices: Sequence[int] | None = None,
        streams: Sequence[int] | None = None,
        steps: int | str | None = None,
        ranks: Sequence[int] | None = None,
        start: Time = None,
        end: Time = None,
        progress: Callable[[str | None, int, int], Any] | None = None,
    ) -> Result:
        """Returns what each command was doing at any time; with ``lanes``, each stream and device.

        Devices and streams are the numbers of the driver. The table ``t.state`` has the same rows,
        with ids.
        """
        rows = self._job.states(
            lanes,
            devices=devices,
            streams=streams,
            **self._selection(steps, ranks, start, end, None, None),
            progress=progress,
        )
        return Result("states", [("states", _STATE_COLUMNS, rows)], [], start=self.start or 0)

    def edges(
        self,
        *,
        steps: int | str | None = None,
        ranks: Sequence[int] | None = None,
        start: Time = None,
        end: Time = None,
        progress: Callable[[str | None, int, int], Any] | None = None,
    ) -> Result:
        """Returns every dependency, with both ends and the slack between them."""
        rows = self._job.dependencies(**self._selection(steps, ranks, start, end, None, None), progress=progress)
        return Result("edges", [("edges", _EDGE_COLUMNS, rows)], [], start=self.start or 0)

    def _selection(
        self,
        steps: int | str | None,
        ranks: Sequence[int] | None,
        start: Time,
        end: Time,
        step_span: str | None,
        rounding: str | None,
    ) -> dict[str, Any]:
        return {
            "steps": None if steps is None else str(steps),
            "ranks": None if ranks is None else list(ranks),
            "start": _time_text(start),
            "end": _time_text(end),
            "step_span": step_span,
            "rounding": rounding,
        }

    # ---- files ----

    def export(
        self,
        path: str | os.PathLike[str],
        format: str | None = None,
        *,
        table: str | None = None,
        start: Time = None,
        end: Time = None,
        limit: int = 0,
        trace: int = 0,
        progress: Callable[[str | None, int, int], Any] | None = None,
    ) -> list[tuple[str, int, str]]:
        """Writes a file in another format: chrome, perfetto, csv (with ``table``), folded ...

        The file name extension selects the format unless ``format`` is given; ``.gz`` compresses the
        file. ``table``, ``start``, ``end`` and ``limit`` are for csv, the last three also for dot. ``trace`` is the index
        of the trace in a job. Returns what the format cannot represent: table, number of rows,
        reason.
        """
        name = os.fsdecode(path)
        exporter = _exporter(name, format)
        # Errors are raised before an existing file is overwritten.
        if table is not None and table not in TABLES:
            raise NotFoundError(f"there is no table {table!r}; there are {', '.join(TABLES)}")
        if table is None and exporter.takes_table:
            raise InvalidError(f"a {exporter.name} file holds one table: pass table=...")
        for option, is_given, has_effect in (
            ("table", table is not None, exporter.takes_table),
            ("a time range", start is not None or end is not None, exporter.takes_range),
            ("limit", limit != 0, exporter.takes_limit),
        ):
            if is_given and not has_effect:
                raise InvalidError(f"{option} has no effect on format {exporter.name!r}")
        for trace_name in self.names:
            if isinstance(trace_name, str) and _is_same_file(trace_name, name):
                raise InvalidError(f"output {name!r} is also the trace {trace_name!r}; choose another name")
        if not 0 <= trace < len(self):
            raise IndexError("no such trace")
        first, last = 0, 0
        if start is not None or end is not None:
            first, last = _bound(self, start, -(2**63)), _bound(self, end, 2**63 - 1)
        with _output(name) as file:
            return self._job.export(
                file.fileno(),
                exporter.name,
                table=table,
                start=first,
                end=last,
                limit=limit,
                progress=progress,
                trace=trace,
            )

    def close(self) -> None:
        """Closes the trace. Arrow streams that are in use keep its files open."""
        self._job.close()

    def __enter__(self) -> Trace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def _is_closed(self) -> bool:
        try:
            self._job.count()
        except ValueError:
            return True
        return False

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.names[:3])) + (" ..." if len(self.names) > 3 else "")
        return f"<tracesmith.Trace {shown}{' (closed)' if self._is_closed else ''}>"

    def _repr_html_(self) -> str:
        if self._is_closed:
            return html.escape(repr(self))
        from . import _notebook

        return _notebook.trace(self)


def _integers(column: Any) -> Any:
    """A column of nullable integers as a pandas array."""
    import numpy
    from pandas.arrays import IntegerArray

    count = len(column)
    if column.null_count == count:
        return IntegerArray(numpy.zeros(count, dtype="int64"), numpy.ones(count, dtype=bool))
    return IntegerArray(column.fill_null(0).to_numpy(), ~column.is_valid().to_numpy())


def _bound(trace: Trace, time: Time, default: int) -> int:
    return default if time is None else trace._time(time)


def _time_text(time: Time) -> str | None:
    """A time as the library expects it: a relative string, or "@" and ns of trace time."""
    return time if time is None or isinstance(time, str) else f"@{time}"


def _time_options(analysis: str) -> set[str]:
    """Names of the options of an analysis that are times."""
    for name, alias, _, options in _read.analyses():
        if analysis in (name, alias):
            return {option for option, value, _ in options if value == "TIME"}
    return set()


def _options(options: dict[str, Any], times: Collection[str] = ()) -> dict[str, str | None]:
    """Keyword arguments as command-line options; the value None means a flag."""
    texts: dict[str, str | None] = {}
    for name, value in options.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        if isinstance(value, (list, tuple)):
            value = ",".join(map(str, value))
        elif name in times and not isinstance(value, (bool, str)):
            value = f"{value}ns"
        texts[name] = None if value is True else str(value)
    return texts


class _Exporter(NamedTuple):
    name: str
    doc: str
    endings: tuple[str | None, str | None]
    takes_table: bool
    takes_range: bool
    takes_limit: bool


def _exporter(path: str, format: str | None) -> _Exporter:
    """The exporter of a format, or for a file with this name."""
    exporters = [_Exporter(*exporter) for exporter in _read.exporters()]
    formats = "give one of " + ", ".join(exporter.name for exporter in exporters)
    if format is not None:
        for exporter in exporters:
            if exporter.name == format:
                return exporter
        raise NotFoundError(f"unknown format {format!r}; {formats}")
    name = path[: -len(".gz")] if path.endswith(".gz") else path
    found = [
        (len(ending), exporter)
        for exporter in exporters
        for ending in exporter.endings
        if ending and name.endswith(ending)
    ]
    if not found:
        raise InvalidError(f"the extension of {path!r} is not that of a known format; {formats}")
    return max(found, key=operator.itemgetter(0))[1]


@contextlib.contextmanager
def _output(path: str) -> Iterator[Any]:
    """A file to write to, which replaces the one of that name when it is complete."""
    if os.path.exists(path) and not os.path.isfile(path):
        # Pipes and devices have nothing to preserve.
        with builtins.open(path, "wb") as file:
            yield file
        return
    target = os.path.realpath(path)
    part = target + ".part"
    try:
        with builtins.open(part, "wb") as file:
            if path.endswith(".gz"):
                import gzip
                import shutil
                import tempfile

                with tempfile.TemporaryFile(dir=os.path.dirname(target)) as plain:
                    yield plain
                    plain.seek(0)
                    with gzip.GzipFile("", "wb", 6, file) as compressed:
                        shutil.copyfileobj(plain, compressed, 1 << 20)
            else:
                yield file
        os.replace(part, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _is_same_file(a: str, b: str) -> bool:
    try:
        return os.path.samefile(a, b)
    except (OSError, ValueError):
        return False


_STATE_COLUMNS = [
    ("trace", None, "integer"),
    ("rank", "rank", "integer"),
    ("device", "device", "integer"),
    ("stream", "stream", "integer"),
    ("start", "start", "instant"),
    ("duration", "duration", "time"),
    ("state", "state", "text"),
    ("reason", "reason", "text"),
    ("correlation", "correlation", "integer"),
    ("name", "name", "text"),
]
_EDGE_COLUMNS = [
    ("kind", "kind", "text"),
    ("inferred", "inferred", "bool"),
    ("from_trace", None, "integer"),
    ("from_table", None, "text"),
    ("from_row", None, "integer"),
    ("from_point", "from", "text"),
    ("from_name", "of", "text"),
    ("from_time", "at", "instant"),
    ("to_trace", None, "integer"),
    ("to_table", None, "text"),
    ("to_row", None, "integer"),
    ("to_point", "to", "text"),
    ("to_name", "of", "text"),
    ("to_time", "at", "instant"),
    ("slack", "slack", "time"),
]
