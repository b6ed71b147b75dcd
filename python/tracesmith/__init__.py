# SPDX-License-Identifier: Apache-2.0
"""Records what a program does on its GPUs and NPUs, analyzes it, and replays it.

    import tracesmith

    with tracesmith.span("forward", "train", layer=3):
        ...

Importing this package loads almost nothing: each name is loaded on first use.
"""

from __future__ import annotations

# The module typing takes longer to import than all of this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from . import chakra as chakra
    from . import errors as errors
    from . import torch as torch
    from .emit import complete as complete
    from .emit import counter as counter
    from .emit import flush as flush
    from .emit import instant as instant
    from .emit import is_enabled as is_enabled
    from .emit import span as span
    from .emit import step as step
    from .emit import thread_name as thread_name
    from .emit import traced as traced
    from .logs import LoggingHandler as LoggingHandler
    from .errors import Error as Error
    from .trace import Trace as Trace
    from .trace import Writer as Writer
    from .trace import import_ as import_
    from .trace import open as open
    from .recording import record as record
    from .recording import start as start
    from .recording import stop as stop

__version__ = "0.1.0"

# Submodules that need no import statement of their own.
_MODULES = ("chakra", "errors", "torch")

# The module of each public name.
_NAMES = {
    "span": "emit",
    "traced": "emit",
    "complete": "emit",
    "instant": "emit",
    "counter": "emit",
    "step": "emit",
    "is_enabled": "emit",
    "flush": "emit",
    "thread_name": "emit",
    "LoggingHandler": "logs",
    "record": "recording",
    "start": "recording",
    "stop": "recording",
    "open": "trace",
    "Trace": "trace",
    "Writer": "trace",
    "import_": "trace",
    "Error": "errors",
}

__all__ = [*_NAMES]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module("." + name, __name__)
    module = _NAMES.get(name)
    if module is None:
        raise AttributeError(f"module 'tracesmith' has no attribute {name!r}")
    value = getattr(import_module("." + module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})
