# SPDX-License-Identifier: Apache-2.0
"""Records every module of a PyTorch program, without changing the program.

    import tracesmith.torch

    tracesmith.torch.enable()                  # or TRACESMITH_TORCH_PROFILING=on
    tracesmith.torch.watch("train", "loss")    # values of variables

Each forward, backward and optimizer step becomes a row of the table torch_trace. Rows go into the
recording of this process if there is one. Otherwise, shared memory keeps the newest rows, which can
be read from outside, even after a crash (tracesmith view -p PID --table torch_trace).

Importing this package does not import torch.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import warnings
from typing import Any, Iterable, Union

from . import _settings
from ._watch import unwatch, watch

__all__ = ["enable", "disable", "is_enabled", "watch", "unwatch", "state"]

_enabled = False
_started_flight = False
_at_exit = False


def enable(
    modules: Union[None, bool, str, Iterable[Any]] = None,
    rate: float = 1.0,
    every: int = 1,
    mode: str = "ordered",
    backward: bool = True,
    memory: Union[bool, str] = "auto",
    device_time: Union[bool, str] = "auto",
    cost: float = 0.01,
) -> None:
    """Starts recording modules and steps, or changes the settings.

    modules: globs that match the path ("*.layers.*.mlp"), the path without the root, or the class
    ("Linear"); "re:..." and compiled patterns are regular expressions. None: all. False: steps.
    every: 10 records every tenth step. rate: the share of steps (mode "ordered") or calls (mode
    "random") to record.
    backward: also record backward passes.
    memory, device_time: True reads the allocator (about 10 us) for each row, or records CUDA events
    around each call. "auto" does so while each takes at most `cost` of the time; other rows have no
    value.
    """
    global _enabled
    settings = _settings.check(modules, rate, every, mode, backward, memory, device_time, cost)
    import torch  # noqa: F401  (loads it if the program has not)

    from tracesmith import _torch

    from . import _names, _patch

    _bind(_torch)
    _names.select(settings.modules)
    _torch.forget_modules()
    if not _enabled:
        _torch.start()
    _torch.set_options(
        settings.modules is not False,
        settings.backward,
        settings.mode == "ordered",
        settings.rate,
        settings.every,
        settings.memory,
        settings.device_time,
        settings.cost,
    )
    _start_flight(_torch)
    _patch.follow_steps(True)
    _patch.calls(settings.modules is not False)
    _enabled = True


def disable() -> None:
    """Stops recording modules and steps; stored rows are kept."""
    global _enabled, _started_flight
    if not _enabled:
        return
    from tracesmith import _torch, recording

    from . import _patch

    _patch.calls(False)
    _patch.follow_steps(False)
    _finish_devices()
    _torch.stop()
    _enabled = False
    # A recording that the program started since then goes on.
    if _started_flight and recording._current is None:
        _torch.stop_flight()
    _started_flight = False


def is_enabled() -> bool:
    """True between enable() and disable()."""
    return _enabled


def state() -> dict[str, Any]:
    """Counters: the current step, stored rows, named modules."""
    if "tracesmith._torch" not in sys.modules:
        return {"step": 0, "seq": 0, "rows": 0, "failures": 0, "modules": 0, "on": False}
    from tracesmith import _torch

    return _torch.state()


def _bind(_torch: Any) -> None:
    """Passes the extension module what it uses of torch, which depends on the version."""
    import torch

    from . import _names, _patch

    core = torch._C
    dynamo = getattr(getattr(core, "_dynamo", None), "eval_frame", None)
    _torch.bind(
        tensor_type=torch.Tensor,
        parameter_type=torch.nn.Parameter,
        is_grad_enabled=torch.is_grad_enabled,
        current_graph_task_id=getattr(core, "_current_graph_task_id", None),
        queue_callback=torch.autograd.Variable._execution_engine.queue_callback,
        hook_carrier=torch.empty(0),
        function_mode_enabled=getattr(core, "_is_torch_function_mode_enabled", None),
        set_eval_frame=getattr(dynamo, "set_eval_frame", None),
        # Not torch.cuda.is_available(): children could not use CUDA after it.
        memory_stats=getattr(core, "_cuda_memoryStats", None),
        raw_stream=getattr(core, "_cuda_getCurrentRawStream", None),
        name_module=_names.name_module,
        outermost_call=_patch.parameters_changed,
        gradient_node=_names.gradient_node,
        device_of=_names.device_of,
    )


def _start_flight(_torch: Any) -> None:
    """Keeps the newest rows in shared memory, unless this process is being recorded."""
    global _started_flight, _at_exit
    try:
        _started_flight = _torch.start_flight() or _started_flight
    except OSError as error:
        from tracesmith import recording

        number = error.errno or 0
        message = recording._cannot_start(number, None, "")
        raise recording.RecordingError(number, message) from None
    if not _at_exit:
        atexit.register(_finish_devices)
        _at_exit = True


def _finish_devices(limit_s: float = 1.0) -> None:
    """Collects the last device times; gives up if the device hangs."""
    _torch = sys.modules.get("tracesmith._torch")
    until = time.monotonic() + limit_s
    while _torch and _torch.poll_devices() and time.monotonic() < until:
        time.sleep(0.001)


def _on_import() -> None:
    """Called after torch is imported: applies the environment variable."""
    for name in ("TRACESMITH_TORCH_PROFILING", "PROBING_TORCH_PROFILING"):
        text = os.environ.get(name)
        if text is None:
            continue
        try:
            settings, watched = _settings.parse(text)
            if settings is not None:
                enable(**settings)
                for function, expression in watched:
                    watch(function, expression, at="step")
        except Exception as error:  # the program must run
            warnings.warn(f"{name}={text}: {error}; modules are not recorded", stacklevel=2)
        return
