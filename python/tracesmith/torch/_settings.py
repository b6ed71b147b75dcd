# SPDX-License-Identifier: Apache-2.0
"""Settings: arguments of enable(), and the value of the environment variable."""

from __future__ import annotations

import re
from typing import Any, Iterable, NamedTuple, Optional, Union

ON = {"1", "true", "yes", "on", "enable", "enabled"}
OFF = {"0", "false", "no", "off", "disable", "disabled", ""}

Modules = Union[None, bool, str, Iterable[Any]]


class Settings(NamedTuple):
    """Checked arguments of enable(); memory and device_time: 0 never, 1 always, 2 as affordable."""

    modules: Union[None, bool, tuple[Any, ...]]
    rate: float
    every: int
    mode: str
    backward: bool
    memory: int
    device_time: int
    cost: float


def check(
    modules: Modules,
    rate: float,
    every: int,
    mode: str,
    backward: bool,
    memory: Union[bool, str],
    device_time: Union[bool, str],
    cost: float,
) -> Settings:
    """Raises ValueError or TypeError if an argument is invalid."""
    for name, number in (("rate", rate), ("cost", cost)):
        if not isinstance(number, (int, float)):
            raise TypeError(f"{name} {number!r}: expected a number")
    if not isinstance(every, int):
        raise TypeError(f"every {every!r}: expected a whole number of steps")
    if not 0 < rate <= 1:
        raise ValueError(f"rate {rate}: expected a share above 0 and up to 1")
    if not 1 <= every < 2**63:
        raise ValueError(f"every {every}: expected 1 or more steps")
    if mode not in ("ordered", "random"):
        raise ValueError(f"mode {mode!r}: expected 'ordered' (steps) or 'random' (calls)")
    if not 0 < cost <= 1:
        raise ValueError(f"cost {cost}: expected a share of the time above 0 and up to 1")
    return Settings(
        _patterns(modules),
        float(rate),
        int(every),
        mode,
        bool(backward),
        _reading("memory", memory),
        _reading("device_time", device_time),
        float(cost),
    )


def _reading(name: str, value: Union[bool, str]) -> int:
    if value == "auto":
        return 2
    if isinstance(value, bool):
        return int(value)
    raise ValueError(f"{name} {value!r}: expected True, False or 'auto'")


def _patterns(modules: Modules) -> Union[None, bool, tuple[Any, ...]]:
    if modules is None or modules is True:
        return None
    if modules is False:
        return False
    if isinstance(modules, (str, re.Pattern)):
        modules = (modules,)
    patterns = tuple(modules) if isinstance(modules, Iterable) else (modules,)
    for pattern in patterns:
        if not isinstance(pattern, (str, re.Pattern)):
            raise TypeError(f"modules {pattern!r}: expected a path, a class name or a regular expression")
        if isinstance(pattern, str) and pattern.startswith("re:"):
            try:
                re.compile(pattern[3:])
            except re.error as error:
                raise ValueError(f"modules {pattern!r}: {error}") from None
    return patterns or False


def parse(text: str) -> tuple[Optional[dict[str, Any]], list[tuple[str, str]]]:
    """Reads "on", "random:0.1", "ordered,every=10,watch=loss@train".

    Returns arguments for enable(), or None for off, and arguments for watch(). The grammar is
    that of PROBING_TORCH_PROFILING, with more keys; as there, unknown keys are ignored.
    """
    tokens = [token.strip() for token in text.split(",") if token.strip()]
    if not tokens or tokens[0].lower() in OFF:
        return None, []
    arguments: dict[str, Any] = {}
    watched: list[tuple[str, str]] = []
    if "=" not in tokens[0]:
        _first(tokens.pop(0), arguments)
    for token in tokens:
        key, separator, value = token.partition("=")
        if not separator:
            # probing splits expressions at commas, too: watch=loss@train,acc@train
            if "@" in token:
                watched.append(_expression(token))
            continue
        key = key.strip().lower()
        value = value.strip()
        if key == "enabled" and value.lower() in OFF:
            return None, []
        if key in ("exprs", "vars", "watch"):
            watched.append(_expression(value))
        else:
            _option(key, value, arguments)
    return arguments, watched


def _first(token: str, arguments: dict[str, Any]) -> None:
    mode, _, rate = token.partition(":")
    if token.lower() in ON:
        return
    if mode.lower() == "steps":
        arguments["modules"] = False
        return
    # As in probing, every mode but "ordered" selects calls.
    arguments["mode"] = "ordered" if mode.lower() in ("ordered", "") else "random"
    if rate:
        arguments["rate"] = _share(rate)


def _option(key: str, value: str, arguments: dict[str, Any]) -> None:
    if key == "rate":
        arguments["rate"] = _share(value)
    elif key == "mode":
        arguments["mode"] = "ordered" if value.lower() == "ordered" else "random"
    elif key == "every":
        arguments["every"] = int(value)
    elif key == "modules":
        arguments["modules"] = False if value.lower() in OFF else value.split("+")
    elif key == "backward":
        arguments["backward"] = value.lower() in ON
    elif key in ("memory", "device_time"):
        arguments[key] = "auto" if value.lower() == "auto" else value.lower() in ON
    elif key == "cost":
        arguments["cost"] = float(value)
    elif key == "sync" and value.lower() in ON:
        # probing waits for the device to measure durations; CUDA events need no waiting.
        arguments["device_time"] = True


def _share(text: str) -> float:
    value = float(text)
    if value <= 0:
        raise ValueError(f"rate {text}: expected a share above 0 and up to 1")
    return min(value, 1.0)


def _expression(text: str) -> tuple[str, str]:
    expression, separator, function = text.partition("@")
    if not separator or not expression.strip() or not function.strip():
        raise ValueError(f"watch {text!r}: expected VARIABLE@FUNCTION")
    return function.strip(), expression.strip()
