# SPDX-License-Identifier: Apache-2.0
"""A window recorded by TraceSmith: a separate trace, or a window of the running recording."""

from __future__ import annotations

import os
import subprocess

from .process import recorder_backends, synchronize_cuda
from .settings import Settings

_TOOL_SECONDS = 90  # `tracesmith window` waits up to a minute for a busy recorder


class RecordedWindow:
    """Records from `start()` to `stop()`."""

    may_stop_anywhere = may_stop_here = True

    def __init__(self, settings: Settings, tag: str) -> None:
        self._settings = settings
        self._path = os.path.join(settings.trace_dir, f"tracesmith_{tag}.sbt")
        self._recording: object | None = None
        self._has_opened = False
        self.is_watched = False  # for the manager
        self.files: list[str] = []

    def start(self) -> list[str]:
        """Begins to record; returns notes for the user."""
        from .. import is_enabled, start

        if recorder_backends() is not None:
            if is_enabled():
                return ["this process is already being recorded; steps are in that trace"]
            self._window("open")
            self._has_opened = True
            return ["in the trace of the running recording"]
        os.makedirs(self._settings.trace_dir, exist_ok=True)
        self._recording = start(self._path, children=False)
        return [f"recording into '{self._path}'"]

    def step(self, thread: int, number: int) -> None:
        """Begins the next step."""
        from .. import step

        if self._settings.sync_cuda:
            synchronize_cuda()
        step(number)

    def stop(self) -> None:
        """Ends recording; returns when the trace is complete."""
        if self._recording is not None:
            from .. import stop

            summary = stop()
            self._recording = None
            self.files = [summary.path if summary is not None else self._path]
        elif self._has_opened:
            self._has_opened = False
            self._window("close")

    def cancel(self) -> None:
        """Undoes a `start()` that failed or is not wanted any more."""
        try:
            self.stop()
        except Exception:  # the first error is reported
            pass

    def export(self) -> None:
        """The recorder has written the file."""

    def abandon_in_child(self) -> None:
        """A forked child has rings of its own."""

    def discard_in_child(self) -> None:
        """The child inherits no recording."""

    def _window(self, action: str) -> None:
        from ..tool import find_tool

        tool = find_tool()
        if tool is None:
            raise RuntimeError("the tool 'tracesmith' was not found: add its folder to PATH")
        command = [tool, "window", str(os.getpid()), action, "--quiet"]
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_TOOL_SECONDS,
            check=False,
        )
        if done.returncode:
            text = done.stderr.decode(errors="replace").strip() or f"exit code {done.returncode}"
            raise RuntimeError(text)
