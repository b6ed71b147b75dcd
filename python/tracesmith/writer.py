# SPDX-License-Identifier: Apache-2.0
"""Writes traces: rows of any table of docs/schema.md, as keyword arguments."""

from __future__ import annotations

import json
import operator
import os
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Any

from . import _read

__all__ = ["Writer"]

_TABLES = {name for name, kind, _ in _read.tables() if kind not in ("derived", "internal")}


def _plain(value: Any) -> int | str:
    """Integers of other packages as int, everything else as text."""
    try:
        return operator.index(value)
    except TypeError:
        return str(value)


_dumps = partial(json.dumps, separators=(",", ":"), ensure_ascii=False, default=_plain)


class Writer:
    """Writes a trace, row by row.

    >>> with Writer("out.sbt") as writer:           # doctest: +SKIP
    ...     device = writer.device(number=0, name="H200")
    ...     stream = writer.stream(device=device, number=7)
    ...     writer.gpu_op(start=1000, duration=500, device=device, stream=stream,
    ...                   kind="kernel", name="gemm", args={"tile": 128})

    Columns are those of the table; times are ns, enums are given by name, ``args`` is a dict. Calls
    for entities (device, stream, process, thread ...) return an id, which other rows refer to. Rows
    may be in any order of time. The file is complete after ``finish()``, which the end of the
    ``with`` block calls, even after an exception. An invalid row raises an exception and does not
    affect other rows. A forked child cannot use the writer.
    """

    def __init__(self, path: str | os.PathLike[str], *, level: int = 0):
        """Creates or replaces the file. ``level`` is the level of zstd; 0: the default."""
        self.path = os.fsdecode(path)
        self._writer = _read.Writer(self.path, _dumps, level)
        self._is_finished = False

    def add(self, table: str, **columns: Any) -> int | None:
        """Adds a row to a table. Returns its id if rows of this table have one."""
        return self._writer.add(table, columns)

    def __getattr__(self, name: str) -> Callable[..., int | None]:
        if name in _TABLES:
            return partial(self.add, name)
        raise AttributeError(f"'Writer' object has no attribute {name!r}, and there is no table of that name")

    def stack(self, frames: Iterable[int] | int, parent: int | None = None) -> int:
        """Adds a call stack: frames, outermost first, called from ``parent``. Returns its id."""
        stack = parent or 0
        for frame in [frames] if isinstance(frames, int) else frames:
            stack = self._writer.add("stack", {"parent": stack, "frame": frame}) or 0
        return stack

    def blob(self, data: bytes) -> int:
        """Adds bytes, at most 64 MiB. Returns their id."""
        return self._writer.blob(bytes(data))

    def flush(self) -> None:
        """Writes all rows so far. The file is then a complete trace until the next row."""
        self._writer.save()

    def finish(self) -> None:
        """Completes the file. No rows can be added afterwards."""
        if not self._is_finished:
            self._is_finished = True
            self._writer.finish()
            self._writer.close()

    def close(self) -> None:
        """Closes the file. Without ``finish()``, rows that have not been written are dropped."""
        self._is_finished = True
        self._writer.close()

    def __del__(self) -> None:
        if getattr(self, "_is_finished", True):
            return
        # Never closed: its rows are kept, too.
        try:
            self.finish()
        except Exception:
            self.close()
        else:
            warnings.warn(f"{self!r} was not finished", ResourceWarning, stacklevel=2, source=self)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
            return
        # Rows that were added before the exception are kept.
        try:
            self.finish()
        except Exception:
            self.close()

    def __repr__(self) -> str:
        return f"<tracesmith.Writer {self.path!r}>"
