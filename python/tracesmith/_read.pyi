# SPDX-License-Identifier: Apache-2.0
"""The extension module that binds libtracesmith; trace.py and writer.py are its interface."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Optional, final

_Progress = Callable[[Optional[str], int, int], Any]
_ResultTables = list[tuple[str, list[tuple[str, Optional[str], str]], list[tuple[Any, ...]]]]

@final
class Rows(Iterator[tuple[Any, ...]]):
    def __next__(self) -> tuple[Any, ...]: ...

@final
class Job:
    def close(self) -> None: ...
    def count(self) -> int: ...
    def bounds(self) -> tuple[int | None, int | None]: ...
    def files(self) -> list[dict[str, Any]]: ...
    def row_count(self, table: str, /) -> int: ...
    def stream(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        start: int | None = None,
        end: int | None = None,
        limit: int = 0,
        plain: bool = False,
        all: bool = False,
        threads: int = 0,
    ) -> object: ...
    def schema(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        start: int | None = None,
        end: int | None = None,
        limit: int = 0,
        plain: bool = False,
        all: bool = False,
        threads: int = 0,
    ) -> object: ...
    def rows(
        self,
        table: str,
        columns: Sequence[str] | None = None,
        start: int | None = None,
        end: int | None = None,
        limit: int = 0,
        plain: bool = False,
        all: bool = False,
        threads: int = 0,
    ) -> Rows: ...
    def overview(
        self, table: str, owner: str, number: str, start: int, end: int, bins: int, /
    ) -> tuple[list[tuple[int, int, list[float]]], list[tuple[str, int, int]], int]: ...
    def analyze(self, name: str, /, **choice: Any) -> tuple[_ResultTables, list[str]]: ...
    def diff(self, other: Job, /, **choice: Any) -> tuple[str, _ResultTables, list[str]]: ...
    def states(self, lanes: bool, /, **choice: Any) -> list[tuple[Any, ...]]: ...
    def dependencies(self, /, **choice: Any) -> list[tuple[Any, ...]]: ...
    def export(
        self,
        fd: int,
        format: str,
        table: str | None = None,
        start: int = 0,
        end: int = 0,
        limit: int = 0,
        flags: int = 0,
        progress: _Progress | None = None,
        trace: int = 0,
    ) -> list[tuple[str, int, str]]: ...

@final
class Writer:
    def __new__(cls, path: str, dumps: Callable[[Any], str], level: int, /) -> Writer: ...
    def add(self, table: str, values: dict[str, Any], /) -> int | None: ...
    def string(self, text: str, /) -> int: ...
    def blob(self, data: bytes, /) -> int: ...
    def save(self) -> None: ...
    def finish(self) -> None: ...
    def close(self) -> None: ...

def open(
    operands: Sequence[str | int], progress: _Progress | None, /
) -> tuple[Job, list[str]]: ...
def columns(table: str, /) -> list[tuple[str, str, bool]]: ...
def tables() -> list[tuple[str, str, str]]: ...
def analyses() -> list[
    tuple[str, str | None, str, list[tuple[str, str | None, str]]]
]: ...
def exporters() -> list[
    tuple[str, str, tuple[str | None, str | None], bool, bool, bool]
]: ...
def import_file(
    path: str, output: str, format: str | None = None, progress: _Progress | None = None
) -> tuple[int, str, str]: ...
