# SPDX-License-Identifier: Apache-2.0
"""Records the current process and its children, from inside.

    with tracesmith.record("t.sbt") as recording:
        train()
    print(recording.summary)

A recorder process writes the file; this process only stores events in shared memory. A program that
is started with ``tracesmith record -o t.sbt -- python3 train.py`` shows more: device activity with
its calls, native and Python stacks, metrics.
"""

from __future__ import annotations

import contextlib
import errno
import os
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
    """Another thread may have been waiting for the end of a file, with the lock."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class RecordingError(RuntimeError):
    """A recording cannot be started, or did not end as it should. ``errno`` says why."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.errno = number


class Summary:
    """What a finished recording holds."""

    __slots__ = ("path", "events", "lost", "processes", "threads", "bytes", "cuda", "notice")

    def __init__(self, path: str, info: Mapping[str, Any], cuda: str, notice: str) -> None:
        #: The file that was written.
        self.path = path
        #: Number of events in it, and of those that are known to be missing.
        self.events: int = info.get("events", 0)
        self.lost: int = info.get("lost", 0)
        self.processes: int = info.get("processes", 0)
        self.threads: int = info.get("threads", 0)
        self.bytes: int = info.get("bytes", 0)
        #: How CUDA was recorded: "wrappers", "cupti" or "no": docs/python-emit.md.
        self.cuda = cuda
        #: What the recorder wants its user to know; or "".
        self.notice = notice

    def __str__(self) -> str:
        processes = _many(self.processes, "process", "es")
        text = (
            f"{self.path}: {_many(self.events, 'event')} of {processes}"
            f" and {_many(self.threads, 'thread')}, {_bytes(self.bytes)}"
        )
        if self.lost:
            text += (
                f"; {_many(self.lost, 'event')} lost, when and why:"
                f" tracesmith view {self.path} --table loss"
            )
        if self.notice:
            text += f"; {self.notice}"
        return text

    def __repr__(self) -> str:
        return f"<tracesmith.Summary {self}>"


class Recording:
    """A recording of this process. ``summary`` is None until it is stopped."""

    def __init__(self, path: str | None, cuda: str) -> None:
        #: The file to write; None: flight mode.
        self.path = path
        #: How CUDA is recorded: "wrappers", "cupti" or "no".
        self.cuda = cuda
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
    """Starts recording this process into a file; without a path, in flight mode.

    The path may have the patterns of ``tracesmith record -o``: ``%r`` is the rank, ``%h`` the host,
    ``%p`` the process id, ``%q{NAME}`` a variable of the environment.

    In flight mode the newest events stay in shared memory, where ``tracesmith record -p``, ``view
    -p`` and ``recover`` find them, also after a crash; a start with a path then begins its file
    with them (stop flight mode first to have it begin empty).

    redact: do not store strings in arguments. budget: bytes of shared memory, by default up to 32
    MiB. cuda: record device activity if CUDA is in use; ``Recording.cuda`` says how. children: also
    record processes that are started from now on and use TraceSmith.
    """
    global _current
    output = None if path is None else os.fsdecode(path)
    with _lock:
        backends, how = _find_cuda() if cuda else (None, "no")
        number, why = _emit.start(output, redact, budget, backends)
        if number:
            raise RecordingError(number, _cannot_start(number, output, why))
        recording = Recording(_emit.output(), how)
        if children:
            recording._variable = _emit.environment()
            if recording._variable:
                os.environ[_VARIABLE] = recording._variable
        _current = recording
    return recording


def stop() -> Summary | None:
    """Stops what start() started, and returns the summary of the file (None after flight mode).

    Returns when the file is complete.
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
    """Records this process and its children into a file for the length of a block.

    Options as in start(). The recording's ``summary`` is there after the block. An exception that
    leaves the block is not hidden by one about the recording.
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
    """At the end of a block, which may have called stop(), or be that of a forked child."""
    if _current is recording and recording._pid == os.getpid():
        stop()


def _cannot_start(number: int, path: str | None, why: str) -> str:
    live = os.environ.get("TRACESMITH_LIVE_DIR") or f"/dev/shm/tracesmith-{os.geteuid()}"
    reasons = {
        errno.EACCES: f"no access to '{live}' or to the tool: set TRACESMITH_LIVE_DIR, or"
        " TRACESMITH_RECORDER",
        errno.EBUSY: "this process is being recorded already, by start(), TRACESMITH_OUT or"
        " 'tracesmith record': stop() the one, or leave out the other",
        errno.ENOENT: "the tool 'tracesmith' was not found: install it, or set"
        " TRACESMITH_RECORDER to its path",
        errno.ETXTBSY: f"another recording writes '{path}'",
        errno.EPERM: f"'{live}' is not a folder of this user alone: chmod 700 it, or set"
        " TRACESMITH_LIVE_DIR; or the program is setuid",
    }
    reason = why or reasons.get(number, f"no shared memory: {os.strerror(number)}")
    return f"cannot start recording: {reason}"


def _cannot_stop(number: int, path: str | None) -> str:
    if number == errno.ETIMEDOUT:
        return f"'{path}' is not complete yet: its recorder is busy"
    if number == errno.EPIPE:
        return (
            f"the recorder of '{path}' has ended early; '{path}.log' may say why:"
            f" tracesmith recover '{path}' -o FILE, or tracesmith recover {os.getpid()} -o FILE"
        )
    return f"cannot stop recording: {os.strerror(number)}"


def _summarize(recording: Recording, notice: str) -> Summary:
    path = recording.path or ""
    if notice.startswith("trace written to '"):
        path = notice.partition("'")[2].partition("' instead: ")[0]
    info: dict[str, Any] = {}
    with contextlib.suppress(OSError):
        info["bytes"] = os.stat(path).st_size
    info.update(_info(path))
    return Summary(path, info, recording.cuda, notice)


def _info(path: str) -> dict[str, Any]:
    """Counts from `tracesmith info --json`; empty if the tool cannot be run."""
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
        return _counts(json.loads(output))
    except (OSError, ValueError, subprocess.CalledProcessError):
        return {}


def _counts(info: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "events": info["events"],
        "lost": info["lost"],
        "processes": info["processes"],
        "threads": info["threads"],
    }


def _find_cuda() -> tuple[str | None, str]:
    """The backend to start, and how it sees CUDA.

    Calls are seen only if the backend was preloaded. In a process that has initialized CUDA
    already, CUPTI still shows what the device does.
    """
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        files = {line.rstrip("\n").rpartition("/")[2] for line in maps}
    if "libtracesmith-backend-cuda.so" in files:
        return "cuda", "wrappers" if "tracesmith-backend-cuda" in os.environ.get(
            "LD_PRELOAD", ""
        ) else "cupti"
    if not any(name.startswith("libcuda.so") for name in files):
        return None, "no"
    from .tool import find_library

    library = find_library("libtracesmith-backend-cuda.so")
    if library is None:
        return None, "no"
    import ctypes

    try:
        # Kept loaded, so that the agent finds it by name.
        ctypes.CDLL(library)
    except OSError:
        return None, "no"
    return "cuda", "cupti"


def _many(count: int, noun: str, ending: str = "s") -> str:
    return f"{count:,} {noun}{'' if count == 1 else ending}"


def _bytes(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return ""
