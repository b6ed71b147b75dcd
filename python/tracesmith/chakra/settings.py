# SPDX-License-Identifier: Apache-2.0
"""Settings of windows: from keyword arguments, then from the environment, then defaults."""

from __future__ import annotations

import dataclasses
import os
from typing import Any, Callable, Mapping

PREFIX = "TRACESMITH_CHAKRA_"
# The prefix of the Chakra trace manager.
OLD_PREFIX = "VLLM_CHAKRA_"

MODES = ("torch", "tracesmith")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of a manager. `_VARIABLES` lists the variables that set them."""

    enabled: bool = True
    trace_dir: str = "chakra_traces"  # made absolute when it is read
    flag: str = "/tmp/vllm_chakra_trace_on"
    auto_convert: bool = False
    record_shapes: bool = True
    with_stack: bool = False
    profile_memory: bool = False
    sync_cuda: bool = False
    debug: bool = False
    max_steps: int = 0  # 0: no limit
    mode: str = "torch"  # or "tracesmith"

    @classmethod
    def from_environment(
        cls,
        arguments: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> tuple["Settings", list[str]]:
        """Returns settings, and one line for each invalid value.

        Each setting is read from TRACESMITH_CHAKRA_NAME, else from VLLM_CHAKRA_NAME. `arguments`
        that are not None take precedence over both.
        """
        environment = os.environ if environment is None else environment
        given = {name: value for name, value in (arguments or {}).items() if value is not None}
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise TypeError(f"unknown settings: {', '.join(map(repr, unknown))}")
        complaints: list[str] = []
        values = {}
        for field, suffix, parse in _VARIABLES:
            if field in given:
                values[field] = given[field]
                continue
            for variable in (PREFIX + suffix, OLD_PREFIX + suffix):
                text = environment.get(variable, "")
                if not text.strip():
                    continue
                try:
                    values[field] = parse(text.strip())
                except ValueError as error:
                    complaints.append(f"{variable}={text!r} is ignored: {error}")
                    continue
                break
        if values.get("mode", cls.mode) not in MODES:
            raise ValueError(f"mode {values['mode']!r}: expected one of {', '.join(MODES)}")
        if not isinstance(values.get("max_steps", 0), int) or values.get("max_steps", 0) < 0:
            raise ValueError(f"max_steps {values['max_steps']!r}: expected a number, or 0 for no limit")
        values["trace_dir"] = os.path.abspath(os.fspath(values.get("trace_dir", cls.trace_dir)))
        values["flag"] = os.path.abspath(os.fspath(values.get("flag", cls.flag)))
        return cls(**values), complaints

    @staticmethod
    def is_requested(environment: Mapping[str, str] | None = None) -> bool:
        """Whether the environment requests windows: a variable is set, and TRACE is not off."""
        environment = os.environ if environment is None else environment
        if not any(name.startswith((PREFIX, OLD_PREFIX)) for name in environment):
            return False
        return Settings.from_environment(environment=environment)[0].enabled


def _switch(text: str) -> bool:
    lowered = text.lower()
    if lowered in ("0", "false", "no", "off"):
        return False
    if lowered in ("1", "true", "yes", "on"):
        return True
    raise ValueError("expected 1 or 0")


def _count(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise ValueError("expected a number, or 0 for no limit")
    return number


def _mode(text: str) -> str:
    if text not in MODES:
        raise ValueError(f"expected one of {', '.join(MODES)}")
    return text


# Field, suffix of the variable, parser of its value.
_VARIABLES: tuple[tuple[str, str, Callable[[str], Any]], ...] = (
    ("enabled", "TRACE", _switch),
    ("trace_dir", "TRACE_DIR", str),
    ("flag", "FLAG", str),
    ("auto_convert", "AUTO_CONVERT", _switch),
    ("record_shapes", "RECORD_SHAPES", _switch),
    ("with_stack", "WITH_STACK", _switch),
    ("profile_memory", "PROFILE_MEMORY", _switch),
    ("sync_cuda", "SYNC_CUDA", _switch),
    ("debug", "DEBUG", _switch),
    ("max_steps", "TRACE_MAX_STEPS", _count),
    ("mode", "MODE", _mode),
)
