# SPDX-License-Identifier: Apache-2.0
"""Records the current process and its children, from inside.

    with tracesmith.record("t.sbt") as recording:
        train()
    print(recording.summary)

A recorder process writes the file; this process only stores events in shared memory.
``tracesmith record -o t.sbt -- python3 train.py`` records more: device activity with its calls,
native and Python stacks, metrics.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading

from . import _emit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

__all__ = ["Recording", "RecordingError", "Summary", "record", "start", "stop"]

_VARIABLE = "TRACESMITH_AGENT"

_lock = threading.Lock()
_current: Recording | None = None


def _after_fork() -> None:
    """Another thread may have held the lock, waiting for a file to be complete."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class RecordingError(RuntimeError):
    """A recording could not be started or did not end normally. ``errno`` says why."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.errno = number


class Summary:
    """A summary of a finished recording."""

    __slots__ = ("path", "events", "lost", "processes", "threads", "bytes", "cuda", "notice")

    def __init__(self, path: str, info: Mapping[str, Any], cuda: str, notice: str) -> None:
        #: The file that was written.
        self.path = path
        #: Number of events in it, and of events known to be lost.
        self.events: int = info.get("events", 0)
        self.lost: int = info.get("lost", 0)
        self.processes: int = info.get("processes", 0)
        self.threads: int = info.get("threads", 0)
        self.bytes: int = info.get("bytes", 0)
        #: How CUDA was recorded: "wrappers", "cupti" or "no" (docs/python-emit.md).
        self.cuda = cuda
        #: A message of the recorder, or "".
        self.notice = notice

    def __str__(self) -> str:
        processes = _many(self.processes, "process", "es")
        text = (
            f"{self.path}: {_many(self.events, 'event')} of {processes}"
            f" and {_many(self.threads, 'thread')}, {_bytes(self.bytes)}"
        )
        if self.lost:
            text += (
                f"; {_many(self.lost, 'event')} lost (see"
                f" tracesmith view {self.path} --table loss)"
            )
        if self.notice:
            text += f"; {self.notice}"
        return text

    def __repr__(self) -> str:
        return f"<tracesmith.Summary {self}>"


class Recording:
    """A recording of this process. ``summary`` is None until it is stopped."""

    def __init__(self, path: str | None, cuda: str, why_no_cuda: str) -> None:
        #: The file to write; None: flight mode.
        self.path = path
        #: How CUDA is recorded, also if it is used later: "wrappers", "cupti" or "no".
        self.cuda = cuda
        self._why_no_cuda = why_no_cuda
        self.summary: Summary | None = None
        self._pid = os.getpid()
        self._variable: str | None = None

    def __repr__(self) -> str:
        return f"<tracesmith.Recording {self.path or 'in flight mode'}>"


def start(
    path: str | os.PathLike[str] | None = None,
    *,
    redact: bool = False,
    budget: int = 0,
    cuda: bool = True,
    children: bool = True,
) -> Recording:
    """Starts recording this process into a file, or without a path in flight mode.

    The path may contain the patterns of ``tracesmith record -o``: ``%r`` is the rank, ``%h`` the
    host name, ``%p`` the process id, ``%q{NAME}`` an environment variable.

    Flight mode keeps only the newest events, in shared memory, where ``tracesmith record -p``,
    ``view -p`` and ``recover`` read them, even after a crash. A later start with a path writes a
    file that begins with them; to begin with an empty file, stop flight mode first.

    redact: do not store strings in arguments. budget: bytes of shared memory; default: up to 32
    MiB. cuda: record device activity if CUDA is used; ``Recording.cuda`` says how. children: also
    record processes that are started from now on and use TraceSmith.
    """
    global _current
    output = None if path is None else os.fsdecode(path)
    with _lock:
        backends, how, why_not = _find_cuda() if cuda else (None, "no", "")
        number, why = _emit.start(output, redact, budget, backends)
        if number:
            raise RecordingError(number, _cannot_start(number, output, why))
        recording = Recording(_emit.output(), how, why_not)
        if children:
            recording._variable = _emit.environment()
            if recording._variable:
                os.environ[_VARIABLE] = recording._variable
        _current = recording
    return recording


def stop() -> Summary | None:
    """Stops the recording, waits until the file is complete, and returns its summary.

    Returns None after flight mode.
    """
    global _current
    with _lock:
        recording, _current = _current, None
        if recording is None or recording._pid != os.getpid():
            raise RecordingError(errno.ESRCH, "nothing to stop: tracesmith.start() was not called")
        if recording._variable and os.environ.get(_VARIABLE) == recording._variable:
            del os.environ[_VARIABLE]
        number, notice = _emit.stop()
    if number:
        raise RecordingError(number, _cannot_stop(number, recording.path))
    if recording.path is None:
        return None
    recording.summary = _summarize(recording, notice)
    return recording.summary


@contextlib.contextmanager
def record(
    path: str | os.PathLike[str],
    *,
    redact: bool = False,
    budget: int = 0,
    cuda: bool = True,
    children: bool = True,
) -> Iterator[Recording]:
    """Records this process and its children into a file while a block runs.

    Options are those of start(). The recording has a ``summary`` after the block. If the block
    raises an exception, errors of the recording do not replace it.
    """
    recording = start(path, redact=redact, budget=budget, cuda=cuda, children=children)
    try:
        yield recording
    except BaseException:
        with contextlib.suppress(RecordingError):
            _stop_this(recording)
        raise
    _stop_this(recording)


def _stop_this(recording: Recording) -> None:
    """Ends a block, which may have called stop(), or may run in a forked child."""
    if _current is recording and recording._pid == os.getpid():
        stop()


def _cannot_start(number: int, path: str | None, why: str) -> str:
    live = os.environ.get("TRACESMITH_LIVE_DIR") or f"/dev/shm/tracesmith-{os.geteuid()}"
    reasons = {
        errno.EACCES: f"no access to '{live}' or to the tool: set TRACESMITH_LIVE_DIR, or"
        " TRACESMITH_RECORDER",
        errno.EAGAIN: "the recorder cannot be started: raise the limit on processes (ulimit -u)",
        errno.EBUSY: "this process is already being recorded by start(), TRACESMITH_OUT or"
        " 'tracesmith record': call stop(), or use only one of them",
        errno.ENOMEM: f"no memory is left for '{live}' or for the recorder",
        errno.ENOSPC: f"no shared memory is left in '{live}': set TRACESMITH_LIVE_DIR",
        errno.ENOENT: "the tool 'tracesmith' was not found: install it, or set"
        " TRACESMITH_RECORDER to its path",
        errno.ETXTBSY: f"another recording is writing '{path}'",
        errno.EPERM: f"other users can access '{live}' (chmod 700 it, or set"
        " TRACESMITH_LIVE_DIR), or the program is setuid",
    }
    reason = why or reasons.get(number, os.strerror(number))
    return f"cannot start recording: {reason}"


def _cannot_stop(number: int, path: str | None) -> str:
    if number == errno.ETIMEDOUT:
        return f"'{path}' is not complete yet: its recorder is busy"
    if number == errno.EPIPE:
        return (
            f"the recorder of '{path}' exited early; '{path}.log' may say why; recover the events"
            f" with: tracesmith recover '{path}' -o FILE, or tracesmith recover {os.getpid()} -o FILE"
        )
    return f"cannot stop recording: {os.strerror(number)}"


def _summarize(recording: Recording, notice: str) -> Summary:
    path = recording.path or ""
    if notice.startswith("trace written to '"):
        path = notice.partition("'")[2].partition("' instead: ")[0]
    info: dict[str, Any] = {}
    with contextlib.suppress(OSError):
        info["bytes"] = os.stat(path).st_size
    found = _info(path)
    info.update({name: found[name] for name in _COUNTS if name in found})
    is_on, why = _device_side(found, recording._pid)
    why = why or recording._why_no_cuda
    if recording.cuda == "cupti" and not is_on:
        recording.cuda = "no"
        if not why and not _cuda_imports.was_seen and _has_driver():
            why = "the driver was loaded during the recording, by a module not known to use it"
    if why and recording.cuda == "no":
        why = "CUDA was not recorded: " + why
    elif why and not is_on:
        why = "device activity was not recorded: " + why
    return Summary(path, info, recording.cuda, "; ".join(filter(None, (notice, why))))


_COUNTS = ("events", "lost", "processes", "threads")


def _device_side(info: Mapping[str, Any], pid: int) -> tuple[bool, str]:
    """Whether CUPTI was used in this process, and what was in the way."""
    for fact in info.get("process_meta", ()):
        if fact["pid"] == pid and fact["key"] == "cuda_device_side":
            return fact["value"]["state"] == "on", fact["value"].get("reason", "")
    return False, ""


def _info(path: str) -> dict[str, Any]:
    """What `tracesmith info --json` says; empty if the tool cannot be run."""
    import json
    import subprocess

    from .tool import find_tool

    tool = find_tool()
    if tool is None:
        return {}
    environment = {
        name: value for name, value in os.environ.items() if name not in (_VARIABLE, "LD_PRELOAD")
    }
    try:
        output = subprocess.run(
            [tool, "info", "--json", path], env=environment, capture_output=True, check=True
        ).stdout
        info: dict[str, Any] = json.loads(output)
        return info
    except (OSError, ValueError, subprocess.CalledProcessError):
        return {}


def _find_cuda() -> tuple[str | None, str, str]:
    """The backend to start, how CUDA is recorded, also later, and what keeps it from that.

    Calls are recorded only if the backend was preloaded. Otherwise CUPTI reports device activity,
    as soon as the process has initialized CUDA.
    """
    files = _mapped()
    backend = files.get("libtracesmith-backend-cuda.so")
    if backend and "tracesmith-backend-cuda" in os.environ.get("LD_PRELOAD", ""):
        return "cuda", "wrappers", ""
    if not _has_driver() and not any(os.path.exists(device) for device in _DEVICES):
        return None, "no", ""
    if _torch_is_profiling():
        return None, "no", "torch.profiler is running"
    if backend is None:
        from .tool import find_library

        backend = find_library("libtracesmith-backend-cuda.so")
    if backend is None:
        return None, "no", "the library for it is not installed"
    try:
        _cuda_imports.watch(backend)
    except OSError as error:
        return None, "no", str(error)
    return "cuda", "cupti", ""


def _mapped() -> dict[str, str]:
    """Paths of the libraries of this process, and of other mapped files, by name."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        paths = {line.rstrip("\n").partition("/")[2] for line in maps}
    return {os.path.basename(path): "/" + path for path in paths}


def _has_driver() -> bool:
    return any(name.startswith("libcuda.so") for name in _mapped())


#: Modules that may use CUDA.
_CUDA_MODULES = frozenset(
    "catboost cuda cudf cupy faiss jax jaxlib lightgbm mxnet numba onnxruntime paddle pycuda"
    " tensorflow tensorrt torch triton tvm vllm warp xgboost".split()
)


class _CudaImports:
    """Finds no module: sees that one is imported which may use CUDA.

    Only then a thread of the backend waits for CUDA: os.fork() warns in a process with threads. It
    stays in sys.meta_path, from which nothing can be removed safely while others import.
    """

    def __init__(self) -> None:
        self.was_seen = False
        self._await: Any = None

    def watch(self, backend: str) -> None:
        """The library stays loaded, so that the agent finds it by name."""
        import ctypes

        self._await = ctypes.CDLL(backend).ts_cuda_await
        if self not in sys.meta_path:
            sys.meta_path.insert(0, self)
        if any(name.startswith("libcuda") for name in _mapped()) or any(
            name in sys.modules for name in _CUDA_MODULES
        ):
            self.was_seen = True
        self._await(self.was_seen)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name in _CUDA_MODULES and not self.was_seen:
            self.was_seen = True
            self._await(True)


_cuda_imports = _CudaImports()


#: Of NVIDIA's driver, whose library the process may load later; the second one in WSL.
_DEVICES = ("/dev/nvidiactl", "/dev/dxg")


def _torch_is_profiling() -> bool:
    """CUPTI has one user at a time: what torch.profiler has begun would be lost to it."""
    profiler: Any = sys.modules.get("torch.autograd.profiler")
    if getattr(profiler, "_is_profiler_enabled", False):
        return True
    # While it warms up, only the profile itself shows that; this is empty before the first one.
    if not getattr(getattr(profiler, "KinetoStepTracker", None), "_step_dict", None):
        return False
    import gc

    profile = getattr(sys.modules.get("torch.profiler.profiler"), "profile", None)
    if profile is None:
        return False
    profiles = [each for each in gc.get_objects() if issubclass(type(each), profile)]
    inner = [getattr(each, "profiler", None) for each in profiles]
    return any(each is not None and each.kineto_results is None for each in inner)


def _many(count: int, noun: str, ending: str = "s") -> str:
    return f"{count:,} {noun}{'' if count == 1 else ending}"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return ""
