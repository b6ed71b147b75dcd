# SPDX-License-Identifier: Apache-2.0
"""Intercepts calls of modules and steps of optimizers, without effect on the program or on dynamo.

It replaces the code objects of functions of torch, not the functions: torch.nn.Module.__call__ and
torch.autograd.profiler.record_function, which runs around each step of an optimizer. Code that
compares functions, guards on them or patches them (dynamo, fx, quantization) therefore works as
before. Dynamo traces through the new code as through the old one, since is_compiling() is a
constant to it, and it knows record_function by name.
"""

from __future__ import annotations

import sys
import threading
import types
import weakref
from typing import Any, Optional

import torch
import torch.nn.modules.module

from tracesmith import _torch

from . import _names, _watch

# Line numbers match the original, so that tracebacks show its source.
_CALL = """
def _wrapped_call_impl(self, *args, **kwargs):
    call = self._call_impl if self._compiled_call_impl is None else self._compiled_call_impl

    if IS_COMPILING: return call(*args, **kwargs)
    return _tracesmith_call(self, call, args, kwargs)
"""
# Before torch 2.1, __call__ is _call_impl, which calls forward() on its eighth line.
_OLD_CALL = """
def _call_impl(self, *args, **kwargs):
    if IS_COMPILING: return _tracesmith_original(self, *args, **kwargs)





    return _tracesmith_call(self, _tracesmith_original.__get__(self), args, kwargs)
"""
_ENTER = """
def __enter__(self):
    if self.name.startswith("Optimizer.step#"): _tracesmith_outside(_tracesmith_begin, self)
    return _tracesmith_enter(self)
"""
_EXIT = """
def __exit__(self, exc_type, exc_value, traceback):
    result = _tracesmith_exit(self, exc_type, exc_value, traceback)
    if self.name.startswith("Optimizer.step#"): _tracesmith_outside(_tracesmith_end, self)
    return result
"""


class _Exchange:
    """Replaces the code object of a function, which remains the same object."""

    def __init__(self, function: Any, source: str, original: Optional[str], **names: Any) -> None:
        self.function = function
        self.old = function.__code__
        scope: dict[str, Any] = {}
        exec(compile(source.strip(), self.old.co_filename, "exec"), scope)
        (new,) = [value for name, value in scope.items() if name != "__builtins__"]
        changes = {"co_firstlineno": self.old.co_firstlineno, "co_name": self.old.co_name}
        if hasattr(self.old, "co_qualname"):
            changes["co_qualname"] = self.old.co_qualname
        self.new = new.__code__.replace(**changes)
        if original:
            names[original] = types.FunctionType(
                self.old,
                function.__globals__,
                function.__name__,
                function.__defaults__,
                function.__closure__,
            )
        # Never removed: a call may be in progress, and dynamo may guard on them.
        function.__globals__.update(names)

    def switch(self, on: bool) -> None:
        code = self.new if on else self.old
        # If something else has replaced the code, leave it alone.
        if self.function.__code__ in (self.old, self.new) and self.function.__code__ is not code:
            self.function.__code__ = code


_call: Optional[_Exchange] = None
_record: list[_Exchange] = []
_calls_are_wanted = False


def calls(on: bool) -> None:
    """Starts or stops intercepting calls of modules."""
    global _call, _calls_are_wanted
    _calls_are_wanted = on
    if on and _call is None:
        _call = _make_call()
    if _call is not None:
        _call.switch(on)


def _make_call() -> _Exchange:
    function = torch.nn.Module.__call__
    names: dict[str, Any] = {"_tracesmith_call": _torch.call}
    compiling = "torch.compiler.is_compiling()"
    if not hasattr(getattr(torch, "compiler", None), "is_compiling"):
        compiling = "torch._utils.is_compiling()"
        if not hasattr(torch._utils, "is_compiling"):
            compiling = "_tracesmith_false()"
            names["_tracesmith_false"] = lambda: False
    if "_compiled_call_impl" in function.__code__.co_names:
        return _Exchange(function, _CALL.replace("IS_COMPILING", compiling), None, **names)
    return _Exchange(
        function, _OLD_CALL.replace("IS_COMPILING", compiling), "_tracesmith_original", **names
    )


def follow_steps(on: bool) -> None:
    """Starts or stops intercepting steps of optimizers."""
    global _parameter
    _parameter = None
    if on and not _record:
        profiled = torch.autograd.profiler.record_function
        _record.append(
            _Exchange(
                profiled.__enter__,
                _ENTER,
                "_tracesmith_enter",
                _tracesmith_begin=_begin,
                _tracesmith_outside=_torch.outside,
            )
        )
        _record.append(
            _Exchange(profiled.__exit__, _EXIT, "_tracesmith_exit", _tracesmith_end=_end)
        )
    for exchange in _record:
        exchange.switch(on)


# ---- optimizers ----


class _Running(threading.local):
    """Optimizers whose step is running in this thread, with its record_function."""

    def __init__(self) -> None:
        self.steps: list[tuple[Any, Any]] = []


_running = _Running()
# By class name.
_optimizers: dict[str, list[Any]] = {}


def _begin(record: Any) -> None:
    optimizer = _optimizer_of(sys._getframe(1))
    if optimizer is not None:
        _running.steps.append((record, optimizer))
        _torch.optimizer_begin(optimizer)


def _end(record: Any) -> None:
    steps = _running.steps
    while steps:
        begun, optimizer = steps.pop()
        if begun is not record:
            continue  # its end was not seen
        wanted = _torch.optimizer_end(optimizer, _optimizer_name(optimizer))
        # Calls have no overhead in steps that are not recorded.
        if _calls_are_wanted and _call is not None:
            _call.switch(wanted)
        _names.learn_process()
        _watch.after_step(sys._getframe(1).f_back)
        return


def _optimizer_of(frame: Any) -> Any:
    """The optimizer in the wrapper of step(), which called record_function.__enter__()."""
    caller = frame.f_back
    names = caller.f_locals if caller is not None else {}
    for name in ("self", "obj"):
        value = names.get(name)
        if isinstance(value, torch.optim.Optimizer):
            return value
    return None


def _optimizer_name(optimizer: Any) -> str:
    """The class name, with a number if there are other live optimizers of that class."""
    name = type(optimizer).__name__
    living = _optimizers.setdefault(name, [])
    for at, reference in enumerate(living):
        known = reference()
        if known is optimizer:
            break
        if known is None:
            living[at] = weakref.ref(optimizer)
            break
    else:
        at = len(living)
        living.append(weakref.ref(optimizer))
    return name if at == 0 else f"{name}#{at + 1}"


# ---- steps of programs whose optimizer is not seen ----

_parameter: Any = None
_version = -1


def parameters_changed(module: Any) -> bool:
    """True if the first parameter has changed since the last outermost call."""
    with torch._C.DisableTorchFunction():
        return _parameters_changed(module)


def _parameters_changed(module: Any) -> bool:
    global _parameter, _version
    parameter = _parameter() if _parameter is not None else None
    if parameter is None:
        parameter = next((p for p in module.parameters() if p.requires_grad), None)
        if parameter is None:
            return False
        _parameter = weakref.ref(parameter)
        _version = parameter._version
        return False
    changed = bool(parameter._version != _version)
    _version = parameter._version
    return changed
