# SPDX-License-Identifier: Apache-2.0
"""A window recorded by torch.profiler: an execution trace and a Kineto trace.

PyTorch writes the execution trace while the program runs. The names of both files end in `.part`
until they are complete; incomplete files of a killed process keep these names.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import re
import shutil
import threading
from typing import Any, BinaryIO

from .process import recorder_backends, synchronize_cuda
from .settings import Settings

PART = ".part"
# The last key of the file, which is written when the observer is removed.
_ET_END = re.compile(rb'"finish_ts"\s*:\s*\d+\s*\}\s*$')
_TAIL_BYTES = 8192


class WindowError(Exception):
    """A window that could not be recorded, or one of its files that could not be written."""


class TorchWindow:
    """Records from `start()` to `stop()`; `export()` writes the files, from any thread."""

    def __init__(self, settings: Settings, tag: str) -> None:
        self._settings = settings
        self._et_path = os.path.join(settings.trace_dir, f"pytorch_et_{tag}.json")
        self._kineto_path = os.path.join(settings.trace_dir, f"kineto_{tag}.json")
        self._torch: Any = None
        self._profiler: Any = None
        self._observer: Any = None
        self._starts_observer = False
        self._steps: dict[int, Any] = {}
        self._has_device = False
        self._started = False
        self._has_events = False
        self.may_stop_anywhere = False
        self._thread: threading.Thread | None = None  # the one that opened the window
        self.is_watched = False  # for the manager
        self.files: list[str] = []

    # ---- recording ----

    def start(self) -> list[str]:
        """Begins to record; returns notes for the user. Raises WindowError, and others."""
        # Slow, and only needed for windows.
        torch: Any = importlib.import_module("torch")

        self._torch = torch
        # The first finds profilers of this thread, the second of all threads.
        if torch.autograd._profiler_enabled() or getattr(
            torch.autograd.profiler, "_is_profiler_enabled", False
        ):
            raise WindowError("torch.profiler is already recording in this process")
        self._create_files()
        return self._start_profiler(torch)

    @property
    def may_stop_here(self) -> bool:
        """False if another thread opened the window and only that one can end it."""
        thread = self._thread
        return (
            self.may_stop_anywhere
            or thread is None
            or thread is threading.current_thread()
            or not thread.is_alive()
        )

    def cancel(self) -> None:
        """Undoes a `start()` that failed or is not wanted any more."""
        try:
            if self._started:
                self.stop()
            else:
                self._remove_observer()
        except Exception:  # the first error is reported
            pass
        self._remove_parts()

    def _create_files(self) -> None:
        """Creates the files. After PyTorch fails to open one, it can never write an execution trace
        again, so errors must be found first."""
        try:
            os.makedirs(self._settings.trace_dir, exist_ok=True)
            for path in (self._et_path, self._kineto_path):
                os.close(os.open(path + PART, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
        except OSError as error:
            self._remove_parts()
            raise WindowError(
                f"cannot write to '{self._settings.trace_dir}': {error.strerror}; "
                "set TRACESMITH_CHAKRA_TRACE_DIR to a writable directory"
            ) from error

    def _start_profiler(self, torch: Any) -> list[str]:
        notes = []
        activities, devices = _activities(torch)
        if devices and "cuda" in (recorder_backends() or []):
            notes.append(
                "`tracesmith record` has no device activity of this window, because CUPTI supports"
                " only one profiler at a time (TRACESMITH_CHAKRA_MODE=tracesmith avoids this)"
            )
        self._has_device = bool(devices)
        arguments: dict[str, Any] = {
            "activities": activities,
            "record_shapes": self._settings.record_shapes,
            "with_stack": self._settings.with_stack,
            "profile_memory": self._settings.profile_memory,
        }
        # PyTorch reports allocations only to a profiler of the thread that makes them.
        all_threads = not self._settings.profile_memory
        config = _config(torch, self._settings.with_stack, all_threads)
        if config is not None:
            arguments["experimental_config"] = config
            self.may_stop_anywhere = all_threads
        observer = getattr(torch.profiler, "ExecutionTraceObserver", None)
        if observer is not None:
            self._observer = observer()
            self._observer.register_callback(self._et_path + PART)
            if not getattr(self._observer, "_registered", True):
                self._observer = None
                raise WindowError("PyTorch's ExecutionTraceObserver could not be registered")
            if "execution_trace_observer" in _parameters(torch.profiler.profile):
                arguments["execution_trace_observer"] = self._observer
            else:
                self._starts_observer = True
        else:
            notes.append(
                f"torch {torch.__version__} has no ExecutionTraceObserver: Kineto trace only"
            )
        self._profiler = torch.profiler.profile(**arguments)
        if self._starts_observer:
            self._observer.start()
        self._profiler.start()
        self._thread = threading.current_thread()
        self._started = True
        notes.append(f"recording the CPU and {devices}" if devices else _why_cpu_only(torch))
        return notes

    def step(self, thread: int, number: int) -> None:
        """Ends the current step of this thread and begins the next one."""
        self._leave(self._steps.pop(thread, None))
        self._synchronize()
        record = self._torch.autograd.profiler.record_function(f"ProfilerStep#{number}")
        record.__enter__()
        self._steps[thread] = record

    def _leave(self, record: Any | None) -> None:
        if record is not None:
            record.__exit__(None, None, None)

    def _synchronize(self) -> None:
        if self._settings.sync_cuda:
            synchronize_cuda()

    def stop(self) -> None:
        """Ends recording, and the execution trace."""
        try:
            self._synchronize()
            # Of all threads: one that ended in a later window would appear in its files.
            while self._steps:
                self._leave(self._steps.popitem()[1])
            if self._starts_observer:
                self._observer.stop()
        finally:
            self._started = False
            try:
                self._profiler.stop()
                self._has_events = _has_events(self._profiler)
            finally:
                self._remove_observer()

    def _remove_observer(self) -> None:
        if self._observer is not None:
            self._observer.unregister_callback()
            # PyTorch 2.4 copies the code of generated kernels without being asked to.
            shutil.rmtree(self._et_path + "_resources", ignore_errors=True)

    # ---- files ----

    def export(self) -> None:
        """Gives complete files their final names, and lists them in `files`. Removes incomplete
        files, and names them in a WindowError."""
        problems: list[str] = []
        if self._observer is not None:
            self._finish(self._et_path, _et_is_complete, problems)
        else:
            _remove(self._et_path + PART)
        try:
            if not self._has_events:
                raise WindowError("another torch.profiler took its events")
            self._profiler.export_chrome_trace(self._kineto_path + PART)
        except Exception as error:  # whatever PyTorch raises
            problems.append(f"{os.path.basename(self._kineto_path)}: {_first_line(error)}")
            _remove(self._kineto_path + PART)
        else:
            self._finish(self._kineto_path, _kineto_is_complete, problems)
        self._profiler = self._observer = None
        if problems:
            raise WindowError("; ".join(problems))

    def _finish(self, path: str, is_complete: Any, problems: list[str]) -> None:
        """Gives a complete file its final name; removes an incomplete one."""
        name = os.path.basename(path)
        try:
            with open(path + PART, "rb") as file:
                os.fsync(file.fileno())
                complete = is_complete(file)
            if complete:
                os.replace(path + PART, path)
                self.files.append(path)
                return
            problems.append(f"{name}: incomplete, removed; {_space(path)}")
        except OSError as error:
            problems.append(f"{name}: {error.strerror}")
        _remove(path + PART)

    def _remove_parts(self) -> None:
        for path in (self._et_path, self._kineto_path):
            _remove(path + PART)

    # ---- fork ----

    def abandon_in_child(self) -> None:
        """In a forked child: keeps it from writing to the files of its parent."""
        null = os.open(os.devnull, os.O_WRONLY)
        try:
            for name in os.listdir("/proc/self/fd"):
                try:
                    if os.readlink(f"/proc/self/fd/{name}") == os.path.realpath(
                        self._et_path + PART
                    ):
                        os.dup2(null, int(name), inheritable=False)
                except OSError:
                    continue
        finally:
            os.close(null)
        # The callbacks would keep what they record in memory.
        if self._started and self._torch is not None:
            if self._observer is not None:
                self._observer.stop()
            toggle = getattr(self._profiler, "toggle_collection_dynamic", None)
            if toggle is not None:
                toggle(False, [self._torch.profiler.ProfilerActivity.CPU])

    def discard_in_child(self) -> None:
        """In a forked child: ends the inherited profiler, so that it can record windows itself."""
        if self._has_device:
            raise WindowError(
                "this process was forked while its parent recorded the GPU: it cannot record"
            )
        if self._started:
            self._started = False
            self._steps.clear()
            self._profiler.stop()
            self._remove_observer()


def _parameters(function: Any) -> Any:
    return inspect.signature(function).parameters


def _activities(torch: Any) -> tuple[list[Any], str]:
    """The activities that can be recorded, and the names of the devices."""
    kinds = torch.profiler.ProfilerActivity
    supported = torch.profiler.supported_activities()
    activities, devices = [kinds.CPU], []
    for name, module in (("CUDA", "cuda"), ("XPU", "xpu"), ("MTIA", "mtia")):
        kind = getattr(kinds, name, None)
        if kind is None or kind not in supported:
            continue
        try:
            if getattr(torch, module).is_available():
                activities.append(kind)
                devices.append(name)
        except Exception:  # a broken driver: no device
            continue
    return activities, " and ".join(devices)


def _why_cpu_only(torch: Any) -> str:
    if torch.version.cuda is None and torch.version.hip is None:
        why = f"torch {torch.__version__} is built without CUDA"
    elif torch.profiler.ProfilerActivity.CUDA not in torch.profiler.supported_activities():
        why = "PyTorch finds no CUPTI"
    else:
        why = "no CUDA device is available"
    return f"recording the CPU only: {why}"


def _config(torch: Any, with_stack: bool, all_threads: bool = True) -> Any | None:
    """With all_threads, records all threads, and allows any thread to close the window; None if this
    PyTorch does not support that."""
    kind = getattr(torch._C._profiler, "_ExperimentalConfig", None)
    # trace_only: creates no Python objects for events.
    for options in ({"trace_only": not with_stack}, {}):
        try:
            return kind and kind(profile_all_threads=all_threads, **options)
        except TypeError:  # an option that this version does not have
            continue
    return None


def _has_events(profiler: Any) -> bool:
    """False if another profiler ended this one: PyTorch would crash while writing."""
    results = getattr(profiler.profiler, "kineto_results", None)
    started = getattr(results, "trace_start_ns", None) or getattr(results, "trace_start_us", None)
    return results is not None and (started is None or started() != 0)


def _tail(file: BinaryIO) -> bytes:
    size = os.fstat(file.fileno()).st_size
    file.seek(max(0, size - _TAIL_BYTES))
    return file.read()


def _et_is_complete(file: BinaryIO) -> bool:
    return _ET_END.search(_tail(file)) is not None


def _kineto_is_complete(file: BinaryIO) -> bool:
    tail = _tail(file).rstrip()
    if not tail.endswith(b"}"):
        return False
    if b'"traceName"' in tail:
        return True
    file.seek(0)
    try:
        json.load(file)
    except ValueError:
        return False
    return True


def _space(path: str) -> str:
    try:
        status = os.statvfs(os.path.dirname(path))
    except OSError as error:
        return error.strerror or str(error)
    free = status.f_bavail * status.f_frsize
    return f"the disk has {free >> 20} MiB left"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _remove(path: str) -> None:
    # Kineto writes to a temporary name first.
    for name in (path, path + ".tmp"):
        try:
            os.unlink(name)
        except OSError:
            pass
