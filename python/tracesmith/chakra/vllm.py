# SPDX-License-Identifier: Apache-2.0
"""Plug-in for vLLM: each call of `execute_model` of a worker is a step of the window manager.

vLLM calls `register()` in each of its processes (entry point group `vllm.general_plugins`). It does
nothing unless a variable of settings.py is set.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

from .manager import get_global_manager
from .settings import Settings

# Modules of the base class of workers, in this version and earlier ones.
_BASES = ("vllm.v1.worker.worker_base", "vllm.worker.worker_base")
# Methods that are called by the engine, and whether a call begins a step.
_METHODS = (("execute_model", True), ("sample_tokens", False))
_MARK = "_tracesmith_is_wrapped"


def register() -> None:
    """Makes workers that are created from now on call `tick_by_flag()`."""
    try:
        if Settings.is_requested() and not _hook_bases():
            _say("windows are off: found no base class of workers in this version of vLLM")
    except Exception as error:  # vLLM must start
        _say(f"windows are off: {error}")


def _hook_bases() -> bool:
    found = False
    for name in _BASES:
        try:
            base = importlib.import_module(name).WorkerBase
        except (ImportError, AttributeError):
            continue
        found = True
        # Workers of vendors have their own classes, which are known when the first is created.
        if "__init__" in vars(base) and not hasattr(base.__init__, _MARK):
            base.__init__ = _wrapped_init(base.__init__)
    return found


def _wrapped_init(original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, *arguments: Any, **named: Any) -> None:
        try:
            _wrap_methods(type(self))
        except Exception as error:
            _say(f"'{type(self).__name__}' has no windows: {error}")
        original(self, *arguments, **named)

    setattr(__init__, _MARK, True)
    return __init__


def _wrap_methods(worker: type) -> None:
    manager = get_global_manager()
    for name, is_step in _METHODS:
        owner = next((owner for owner in worker.__mro__ if name in vars(owner)), None)
        if owner is None or hasattr(vars(owner)[name], _MARK):
            continue
        wrapped = manager.wrap(vars(owner)[name], is_step=is_step)
        setattr(wrapped, _MARK, True)
        setattr(owner, name, wrapped)
    if manager.settings.debug:
        _say(f"steps are calls of {worker.__module__}.{worker.__qualname__}.execute_model")


def _say(text: str) -> None:
    print(f"tracesmith: vLLM: {text}", file=sys.stderr, flush=True)
