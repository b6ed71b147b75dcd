# SPDX-License-Identifier: Apache-2.0
"""The functions of the package `probing`, implemented by TraceSmith.

    import probing

    probing.enable_torch_profiling()        # or PROBING_TORCH_PROFILING=on

If the package `probing` is installed, it is imported instead. docs/torch.md lists the differences.
"""

from __future__ import annotations

from typing import Any, Optional

from tracesmith import instant as event
from tracesmith import is_enabled, span
from tracesmith import torch as _torch

__all__ = [
    "disable_torch_profiling",
    "enable_torch_profiling",
    "event",
    "is_enabled",
    "span",
    "step",
]


def enable_torch_profiling(spec: Optional[str] = None, **settings: Any) -> None:
    """Records modules, as PROBING_TORCH_PROFILING=SPEC does: "on", "random:0.1", "off".

    Settings are those of tracesmith.torch.enable().
    """
    from tracesmith.torch import _settings

    arguments, watched = _settings.parse("on" if spec is None else spec)
    if arguments is None:
        _torch.disable()
        return
    _torch.enable(**{**arguments, **settings})
    for function, expression in watched:
        _torch.watch(function, expression, at="step")


def disable_torch_profiling() -> None:
    """Stops recording modules."""
    _torch.disable()


def step(number: Optional[int] = None) -> None:
    """Marks the beginning of a training step: that of this number, or the next."""
    import tracesmith

    tracesmith.step(number)
