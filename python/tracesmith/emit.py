# SPDX-License-Identifier: Apache-2.0
"""Emits events into the recording of this process.

    with tracesmith.span("forward", "train", layer=3):
        ...
    tracesmith.counter("memory", used_mb=512)

A call takes tens of nanoseconds while nothing is recorded, and about a hundred during a recording.
Events are stored in shared memory, and survive ``kill -9``.
"""

from __future__ import annotations

import os

from ._emit import Span as Span
from ._emit import _after_fork
from ._emit import complete as complete
from ._emit import counter as counter
from ._emit import flush as flush
from ._emit import instant as instant
from ._emit import is_enabled as is_enabled
from ._emit import span as span
from ._emit import step as step
from ._emit import thread_name as thread_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any, TypeVar, overload

    _Function = TypeVar("_Function", bound=Callable[..., Any])

os.register_at_fork(after_in_child=_after_fork)

# Flags of code objects, as in the module inspect, whose import is slow.
_GENERATOR = 0x20
_COROUTINE = 0x80
_ASYNC_GENERATOR = 0x200


if TYPE_CHECKING:

    @overload
    def traced(function: _Function, /) -> _Function: ...
    @overload
    def traced(
        name: str | None = None, category: str = "", /, **args: Any
    ) -> Callable[[_Function], _Function]: ...


def traced(name: Any = None, category: str = "", /, **args: Any) -> Any:
    """Makes each run of a function a span: ``@traced``, or ``@traced("name", "category", key=1)``.

    The default name is the function's qualified name. A coroutine is one span from its first to its
    last instruction, including what it awaits. A generator is one span per resumption.
    """
    if name is not None and not isinstance(name, str):
        return _decorate(span(_name_of(name), category, **args), name)

    def decorate(function: Any) -> Any:
        return _decorate(span(name or _name_of(function), category, **args), function)

    return decorate


def _name_of(function: Any) -> str:
    function = getattr(function, "__func__", function)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return name or type(function).__qualname__


def _decorate(span: Span, function: Any) -> Any:
    """The result of calling a span with a function."""
    if isinstance(function, (classmethod, staticmethod)):
        return type(function)(_decorate(span, function.__func__))
    if not callable(function) or isinstance(function, type):
        raise TypeError(f"only functions can be traced, not {function!r}")
    import functools

    inner = function
    while isinstance(inner, functools.partial):
        inner = inner.func
    flags = getattr(getattr(inner, "__code__", None), "co_flags", 0)

    async def run_coroutine(*args: Any, **kwargs: Any) -> Any:
        with span:
            return await function(*args, **kwargs)

    async def run_async_generator(*args: Any, **kwargs: Any) -> Any:
        generator = function(*args, **kwargs)
        resume, value = generator.asend, None
        while True:
            try:
                with span:
                    item = await resume(value)
            except StopAsyncIteration:
                return
            try:
                value = yield item
                resume = generator.asend
            except GeneratorExit:
                with span:
                    await generator.aclose()
                raise
            except BaseException as error:
                resume, value = generator.athrow, error

    def run_generator(*args: Any, **kwargs: Any) -> Any:
        return (yield from _resume(span, function(*args, **kwargs)))

    def run_function(*args: Any, **kwargs: Any) -> Any:
        with span:
            return function(*args, **kwargs)

    run: Callable[..., Any] = run_function
    if flags & _COROUTINE:
        run = run_coroutine
    elif flags & _ASYNC_GENERATOR:
        run = run_async_generator
    elif flags & _GENERATOR:
        run = run_generator
    return functools.wraps(function)(run)


def _resume(span: Span, generator: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """One span per resumption, since the time in between belongs to the consumer."""
    resume, value = generator.send, None
    while True:
        try:
            with span:
                item = resume(value)
        except StopIteration as stop:
            return stop.value
        try:
            value = yield item
            resume = generator.send
        except GeneratorExit:
            with span:
                generator.close()
            raise
        except BaseException as error:
            resume, value = generator.throw, error


# `async with span(...)`: nothing in it suspends, so these only begin and end the span.


async def _enter(span: Span) -> Span:
    return span.__enter__()


async def _exit(span: Span) -> None:
    span.__exit__(None, None, None)
