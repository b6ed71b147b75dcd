# SPDX-License-Identifier: Apache-2.0
"""Enables what environment variables request when an interpreter starts.

tracesmith.pth imports this module if the name of a variable begins with TRACESMITH_ or PROBING_.
inject/sitecustomize.py imports it in programs started by `tracesmith record`. It imports little and
never makes the program fail: an error is one line on standard error.
"""

import os
import sys
from _thread import get_ident

TYPE_CHECKING = False  # without importing typing, which takes milliseconds
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

# A variable with one of these prefixes that is not empty enables tracesmith.torch.
_TORCH_VARIABLES = ("TRACESMITH_TORCH", "PROBING_TORCH")


def report(what: str, error: BaseException) -> None:
    """Prints what failed, in one line."""
    cause = " ".join(f"{type(error).__name__}: {error}".split())
    try:
        sys.stderr.write(f"tracesmith: {what}: {cause}\n")
    except Exception:
        pass  # there is no standard error, or it is closed


class ImportHook:
    """Calls a function once, right after a module is imported; first in sys.meta_path until then.

    The finders behind it do the import. It only replaces exec_module of the loader that they
    return, until it is called, so the module has the loader that it would have had. If the import
    fails, the hook stays for the next attempt.
    """

    def __init__(self, name: str, function: "Callable[[], None]") -> None:
        self._name = name
        self._function = function
        self._searching = 0  # the thread in find_spec

    def install(self) -> None:
        """Calls the function at once if the module is imported already."""
        module = sys.modules.get(self._name)
        if module is None:
            sys.meta_path.insert(0, self)
        elif not getattr(getattr(module, "__spec__", None), "_initializing", False):
            self._call()

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        # Another finder may ask all finders in turn, as this one does.
        if name != self._name or self._searching == get_ident():
            return None
        self._searching = get_ident()
        try:
            spec = self._find_behind(name, path, target)
        finally:
            self._searching = 0
        if spec is not None and spec.loader is not None:
            try:
                self._wrap(spec.loader)
            except Exception as error:
                report(f"cannot hook the import of {name}", error)
        return spec

    def _find_behind(
        self, name: str, path: "Sequence[str] | None", target: "ModuleType | None"
    ) -> "ModuleSpec | None":
        for finder in list(sys.meta_path):
            find_spec = getattr(finder, "find_spec", None)
            spec = None if finder is self or find_spec is None else find_spec(name, path, target)
            if spec is not None:
                return spec  # type: ignore[no-any-return]
        return None

    def _wrap(self, loader: "Any") -> None:
        """Replaces exec_module in the instance, not in its class."""
        exec_module = loader.exec_module

        def exec_and_call(module: "ModuleType") -> None:
            loader.__dict__.pop("exec_module", None)
            exec_module(module)
            self._call()

        loader.exec_module = exec_and_call

    def _call(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        function, self._function = self._function, _nothing
        try:
            function()
        except Exception as error:
            report(f"after import of {self._name}", error)


def _nothing() -> None:
    pass


def _on_torch() -> None:
    from .torch import _on_import

    _on_import()


def _start() -> None:
    if any(name.startswith(_TORCH_VARIABLES) and value for name, value in os.environ.items()):
        ImportHook("torch", _on_torch).install()


try:
    _start()
except Exception as error:
    report("cannot start", error)
