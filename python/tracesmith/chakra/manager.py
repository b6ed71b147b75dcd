# SPDX-License-Identifier: Apache-2.0
"""Records windows of a program: while a flag file exists, or between `start()` and `stop()`.

    from tracesmith.chakra import get_global_manager

    manager = get_global_manager()
    while True:
        manager.tick_by_flag()
        step()

Errors never reach the program. If a window cannot be recorded, one line on standard error says why,
and no other window is opened until the flag is set again.
"""

from __future__ import annotations

import atexit
import functools
import os
import signal
import sys
import threading
import time
import weakref
from types import FrameType, TracebackType
from typing import Any, Callable, TypeVar

from .settings import Settings

Function = TypeVar("Function", bound=Callable[..., Any])

# Device, inode and change time of a flag file.
_Identity = tuple[int, int, int]

_WATCH_SECONDS = 0.25
# Calls of a server that follow soon belong to the same step.
_IDLE_SECONDS = 1.0


class ChakraTraceManager:
    """Records windows of this process, if it is enabled.

    Keyword arguments are the fields of `Settings`; others are read from the environment. Any thread
    may call methods.
    """

    def __init__(self, **arguments: Any) -> None:
        self.settings, complaints = Settings.from_environment(arguments)
        # Read by each tick.
        self._flag = self.settings.flag
        self._enabled = self.settings.enabled
        self._reset()
        self._has_exit = False
        self._last_tag = 0
        for complaint in complaints:
            self._say(complaint)
        _managers.add(self)

    def _reset(self) -> None:
        """The state of a process without windows."""
        self._lock = threading.RLock()
        self._owner = 0  # the thread that holds the lock
        self._window: Any | None = None
        self._stopping: Any | None = None
        self._inherited: Any | None = None  # a window of the parent, in a forked child
        self._is_manual = False
        self._opened_for: _Identity | None = None
        self._served: _Identity | None = None  # the flag that gets no further window
        self._exporter: threading.Thread | None = None
        self._callers: set[int] = set()
        self._idle_since = 0.0
        self._finalizer: Any | None = None
        self._has_signal = False
        self._is_terminating = False
        self.steps = 0
        self.files: list[str] = []

    # ---- what programs call ----

    @property
    def is_open(self) -> bool:
        """Whether a window is open."""
        return self._window is not None

    def tick_by_flag(self) -> bool:
        """Begins a step, and checks the flag file. Returns whether a window is open.

        While the file exists, the first call opens a window, and each later call begins its next
        step. The first call without the file closes the window; another thread writes the files.
        A call takes less than a microsecond if there is neither a file nor a window.
        """
        if self._window is None and not (self._enabled and os.access(self._flag, os.F_OK)):
            self._served = None
            return False
        return bool(self._guarded(self._tick))

    def start(self) -> bool:
        """Opens a window, whether or not the flag file exists; returns whether one is open."""
        return self._enabled and bool(self._guarded(self._start))

    def step(self) -> bool:
        """Ends a step of the open window and begins the next; returns whether one is open."""
        return self._window is not None and bool(self._guarded(self._advance))

    def stop(self, wait: bool = True) -> list[str]:
        """Closes the window, and returns the files that were written. If `wait` is false, another
        thread writes them, and `files` lists them after `wait()`."""
        if self._window is not None and self._guarded(self._close) is False:
            self._say("only the thread that opened the window can close it")
        if not wait:
            return []
        self.wait()
        return list(self.files)

    def wait(self) -> None:
        """Waits until the files of the last window have been written."""
        exporter = self._exporter
        if exporter is not None and exporter is not threading.current_thread():
            exporter.join()

    def __enter__(self) -> "ChakraTraceManager":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def wrap(self, function: Function, is_step: bool = True) -> Function:
        """Returns a function whose calls are steps, or parts of steps if `is_step` is false.

        It is for servers that wait between calls: after the flag is removed, the window is closed
        soon after the last call, instead of by the next one."""

        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            thread = threading.get_ident()
            if thread in self._callers:  # a call inside a call
                return function(*arguments, **named)
            self._callers.add(thread)
            try:
                if self.tick_by_flag() if is_step else self._window is not None:
                    self._watch_idle()
                return function(*arguments, **named)
            finally:
                self._idle_since = time.monotonic()
                self._callers.discard(thread)

        return call  # type: ignore[return-value]

    # ---- windows; the lock is held ----

    def _guarded(self, action: Callable[[], Any]) -> Any:
        """Calls a function with the lock held; exceptions never reach the program."""
        try:
            with self._lock:
                before, self._owner = self._owner, threading.get_ident()
                try:
                    return action()
                finally:
                    self._owner = before
        except Exception as error:
            self._say(f"{type(error).__name__}: {error}")
            return None
        finally:
            if self._is_terminating and threading.current_thread() is threading.main_thread():
                self._on_terminate(signal.SIGTERM, None)

    def _tick(self) -> bool:
        identity = _identity(self._flag)
        if self._window is None:
            if identity is None or identity == self._served or self._is_exporting():
                return False
            return self._open(identity)
        if not self._is_manual and not _same_file(identity, self._opened_for):
            return not self._close()
        return self._advance()

    def _start(self) -> bool:
        if self._window is not None:
            return True
        self.wait()
        return self._open(None)

    def _open(self, identity: _Identity | None) -> bool:
        """Opens a window for this flag file; None: for start()."""
        window = self._window = self._new_window()
        self.files = []
        try:
            if self._inherited is not None:
                self._inherited.discard_in_child()
                self._inherited = None
            notes = window.start()
            window.step(threading.get_ident(), 0)
        except BaseException as error:
            self._window = None
            self._served = identity
            window.cancel()
            if not isinstance(error, Exception):
                raise
            if isinstance(error, ImportError):
                self._enabled = False
                self._say(
                    f"windows are off: {error} (TRACESMITH_CHAKRA_MODE=tracesmith does not need it)"
                )
            else:
                self._say(f"cannot open a window: {_text(error)}")
            return False
        self._is_manual = identity is None
        self._opened_for = identity
        self.steps = 1
        self._prepare_end()
        self._say("; ".join(["window opened", *notes]))
        return True

    def _advance(self) -> bool:
        if self._window is None:
            return False
        limit = self.settings.max_steps
        if limit and self.steps >= limit:
            self._served = _identity(self._flag)
            return not self._close()
        try:
            self._window.step(threading.get_ident(), self.steps)
        except Exception:
            self._served = _identity(self._flag)
            self._close()
            raise
        if self.settings.debug:
            self._say(f"step {self.steps}")
        self.steps += 1
        return True

    def _close(self, at_end: bool = False) -> bool:
        """Returns False if the window stays open, since only another thread can close it."""
        window = self._window
        if window is None:
            return True
        if not (window.may_stop_here or at_end):
            return False
        self._stopping = window
        self._window = None
        self._restore_signal()
        try:
            window.stop()
        except Exception as error:  # export() finds out whether its files are complete
            self._say(f"cannot close the window: {_text(error)}")
        self._stopping = None
        export = functools.partial(self._export, window, self.steps)
        self._exporter = threading.Thread(target=export, name="tracesmith-export")
        try:
            self._exporter.start()
        except RuntimeError:  # the interpreter is ending
            self._exporter = None
            export()
        return True

    def _new_window(self) -> Any:
        # Two windows never have the same name.
        self._last_tag = max(self._last_tag + 1, time.time_ns() // 1_000_000)
        tag = f"pid{os.getpid()}_{self._last_tag}"
        if self.settings.mode == "tracesmith":
            from .recorded_window import RecordedWindow

            return RecordedWindow(self.settings, tag)
        from .torch_window import TorchWindow

        return TorchWindow(self.settings, tag)

    # ---- files, without the lock ----

    def _is_exporting(self) -> bool:
        return self._exporter is not None and self._exporter.is_alive()

    def _export(self, window: Any, steps: int) -> None:
        try:
            window.export()
        except Exception as error:
            self._say(f"window of {_steps(steps)} not written: {_text(error)}")
        self.files = list(window.files)
        if not self.files:
            return
        names = " and ".join(os.path.basename(path) for path in self.files)
        self._say(f"wrote {_steps(steps)} to {names} in '{os.path.dirname(self.files[0])}'")
        if self.settings.auto_convert:
            self._say("not converted: this version of TraceSmith cannot link execution traces")

    # ---- servers ----

    def _watch_idle(self) -> None:
        window = self._window
        if window is None or self._is_manual or not window.may_stop_anywhere or window.is_watched:
            return
        window.is_watched = True
        watcher = threading.Thread(
            target=self._watch, args=(window,), name="tracesmith-flag", daemon=True
        )
        try:
            watcher.start()
        except RuntimeError:
            pass

    def _watch(self, window: Any) -> None:
        while self._window is window:
            time.sleep(_WATCH_SECONDS)
            if self._is_idle_without_flag():
                self._guarded(functools.partial(self._close_idle, window))

    def _is_idle_without_flag(self) -> bool:
        return (
            not self._callers
            and time.monotonic() - self._idle_since > _IDLE_SECONDS
            and not os.access(self._flag, os.F_OK)
        )

    def _close_idle(self, window: Any) -> None:
        if self._window is window and self._is_idle_without_flag():
            self._close()

    # ---- the end of the process ----

    def _prepare_end(self) -> None:
        """A window that is open when the process ends is closed and written."""
        if not self._has_exit:
            atexit.register(self._finish)
            self._has_exit = True
        if self._finalizer is None:
            # Children of multiprocessing end without atexit.
            util = sys.modules.get("multiprocessing.util")
            process = sys.modules.get("multiprocessing.process")
            if util is not None and process is not None and process.parent_process() is not None:
                self._finalizer = util.Finalize(self, self._finish, exitpriority=100)
        if threading.current_thread() is not threading.main_thread():
            return
        try:
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, self._on_terminate)
                self._has_signal = True
        except ValueError:  # not the main interpreter
            pass

    def _finish(self) -> None:
        if self._window is not None:
            self._guarded(functools.partial(self._close, at_end=True))
        self.wait()

    def _on_terminate(self, number: int, frame: FrameType | None) -> None:
        """Handles SIGTERM while a window is open, unless the program has a handler."""
        if self._owner == threading.get_ident():
            self._is_terminating = True  # handled when the lock is released
            return
        self._is_terminating = False
        self._finish()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    def _restore_signal(self) -> None:
        # Only the main thread may restore it; otherwise our handler stays.
        if not self._has_signal or threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGTERM) == self._on_terminate and not self._is_terminating:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        self._has_signal = False

    # ---- fork ----

    def _after_fork_in_child(self) -> None:
        window = self._window or self._stopping
        inherited, has_signal = self._inherited, self._has_signal
        self._reset()
        self._inherited = window or inherited
        if has_signal and signal.getsignal(signal.SIGTERM) == self._on_terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if window is not None:
            window.abandon_in_child()

    # ---- messages ----

    def _say(self, text: str) -> None:
        """One line on standard error."""
        try:
            sys.stderr.write(f"tracesmith: pid {os.getpid()}: {text}\n")
            sys.stderr.flush()
        except Exception:  # closed, or None
            pass


def get_global_manager() -> ChakraTraceManager:
    """Returns the manager of this process, created from the environment at the first call."""
    global _global_manager
    if _global_manager is None:
        with _global_lock:
            if _global_manager is None:
                _global_manager = ChakraTraceManager()
    return _global_manager


def _identity(path: str) -> _Identity | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_ctime_ns


def _same_file(a: _Identity | None, b: _Identity | None) -> bool:
    return a is not None and b is not None and a[:2] == b[:2]


def _text(error: BaseException) -> str:
    """The first line of an error message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count:,} steps"


_managers: "weakref.WeakSet[ChakraTraceManager]" = weakref.WeakSet()
_global_manager: ChakraTraceManager | None = None
_global_lock = threading.Lock()


def _after_fork_in_child() -> None:
    global _global_lock
    _global_lock = threading.Lock()
    for manager in list(_managers):
        manager._after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)
