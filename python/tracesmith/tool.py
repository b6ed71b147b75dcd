# SPDX-License-Identifier: Apache-2.0
"""Finds the program `tracesmith` and its libraries, in a wheel, a build or a prefix."""

from __future__ import annotations

import os
import sys


def find_tool() -> str | None:
    """The path of `tracesmith`, or None.

    Searches TRACESMITH_RECORDER, the places where it is installed with this package, the folder of
    this environment's programs, and PATH.
    """
    given = os.environ.get("TRACESMITH_RECORDER")
    if given:
        return given if os.access(given, os.X_OK) else None
    package = os.path.dirname(os.path.abspath(__file__))
    folders = [
        # build/python/tracesmith of build/
        os.path.normpath(os.path.join(package, "../..")),
        # lib/python3/site-packages/tracesmith of an environment, lib/tracesmith/python/tracesmith of
        # a prefix, also below lib/MULTIARCH; tracesmith of `pip install --target`
        os.path.normpath(os.path.join(package, "../../../../bin")),
        os.path.normpath(os.path.join(package, "../../../../../bin")),
        os.path.normpath(os.path.join(package, "../bin")),
        os.path.dirname(sys.executable),
        os.path.join(sys.prefix, "bin"),
        *os.environ.get("PATH", "").split(os.pathsep),
    ]
    for folder in folders:
        path = os.path.join(folder, "tracesmith")
        if os.path.isabs(path) and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None


def find_library(name: str) -> str | None:
    """The path of a library next to the agent that this process has loaded, or None."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            _, slash, path = line.rstrip("\n").partition("/")
            folder, _, file = path.rpartition("/")
            if slash and file == "libtracesmith-agent.so":
                library = f"/{folder}/{name}"
                return library if os.path.exists(library) else None
    return None
