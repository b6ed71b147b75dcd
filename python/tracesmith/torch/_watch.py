# SPDX-License-Identifier: Apache-2.0
"""Records values of variables in functions on request: tracesmith.torch.watch().

Values become marks of the category "watch". An expression is a variable with attributes and
subscripts. Reading it calls no code of the program: attributes must be stored, not computed.
Tensors are described by shape, type and device. The value of a tensor is read only if it has one
element, which is in host memory or is copied there asynchronously.
"""

from __future__ import annotations

import ast
import functools
import inspect
import sys
import types
import warnings
from typing import Any, Callable, Iterator, NamedTuple, Optional, Union

_TEXT = 200  # characters of a value
_SUSPENDED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_EVENTS = 64  # of a trace function, until the watched function begins
_SEARCHES = 16  # for a function that does not exist yet, one after each step
_MISSING = object()

_watches: list["Watch"] = []


class _Path(NamedTuple):
    """A parsed expression: a variable, then attributes (str) and subscripts (a tuple of one)."""

    text: str
    variable: str
    steps: tuple[Any, ...]


class Watch:
    """A watch on variables of a function; remove() ends it."""

    def __init__(self, function: Any, paths: list[_Path], every: int, at: str) -> None:
        self.function = function
        self.paths = paths
        self.every = every
        self.at = at
        self.calls = 0
        self.searches = 0
        self.emitted = 0
        self._undo: list[Callable[[], None]] = []
        self._refused = False

    @property
    def is_active(self) -> bool:
        """False until the function exists."""
        return bool(self._undo)

    def remove(self) -> None:
        """Ends the watch and restores the function."""
        for undo in self._undo:
            undo()
        self._undo.clear()
        if self in _watches:
            _watches.remove(self)

    def _refuse(self, reason: str) -> None:
        if not self._refused:
            self._refused = True
            warnings.warn(f"watch {_name_of(self.function)}: {reason}", stacklevel=3)


def watch(function: Any, *expressions: str, every: int = 1, at: str = "return") -> Watch:
    """Emits variables of a function as marks of the category "watch".

        watch("Model.forward", "loss", "x.shape", "self.scale", "batch['ids'].shape", every=10)

    function: a function, or its name: "Class.method", "function", "package.module.function". It may
    be defined later.
    at: "return" reads values when the function returns. "step" reads them after an optimizer step,
    in a function that is running then, such as the one with the training loop.
    every: 10 reads values at every tenth return or step.
    """
    if not (isinstance(function, str) and function.strip()) and not hasattr(function, "__module__"):
        raise TypeError(f"watch {function!r}: expected a function, or its name")
    if not expressions:
        raise ValueError("watch: name at least one variable, such as 'loss' or 'x.shape'")
    if every < 1:
        raise ValueError(f"every {every}: expected 1 or more")
    if at not in ("return", "step"):
        raise ValueError(f"at {at!r}: expected 'return' or 'step'")
    watched = Watch(function, [_parse(text) for text in expressions], every, at)
    if at == "return":
        _install(watched)
    else:
        _need_steps()
        watched._undo.append(lambda: None)
    _watches.append(watched)
    return watched


def unwatch(watched: Optional[Watch] = None) -> None:
    """Ends one watch, or all."""
    if watched is not None and not isinstance(watched, Watch):
        raise TypeError(f"unwatch {watched!r}: expected a result of watch()")
    for each in [watched] if watched is not None else list(_watches):
        each.remove()


# ---- expressions ----


def _parse(text: str) -> _Path:
    """Raises ValueError for anything but a variable with attributes and subscripts."""
    error = ValueError(
        f"watch {text!r}: expected a variable with attributes and constant subscripts, such as "
        "'loss', 'x.shape' or 'batch[0].shape'"
    )
    if not isinstance(text, str):
        raise error
    try:
        node: Any = ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        raise error from None
    steps: list[Any] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Subscript):
            try:
                # Python 3.8 wraps it.
                key = ast.literal_eval(getattr(node.slice, "value", node.slice))
            except (ValueError, TypeError):
                if not isinstance(node.slice, ast.Constant):
                    raise error from None
                key = node.slice.value
            if not isinstance(key, (int, str)):
                raise error
            steps.append((key,))
            node = node.value
        else:
            raise error
    return _Path(text.strip(), node.id, tuple(reversed(steps)))


def _value(path: _Path, variables: Any) -> Any:
    """The value, or _MISSING."""
    value = variables[path.variable] if path.variable in variables else _MISSING
    for step in path.steps:
        if value is _MISSING:
            break
        value = _item(value, step[0]) if isinstance(step, tuple) else _attribute(value, step)
    return value


def _item(value: Any, key: Union[int, str]) -> Any:
    try:
        if isinstance(value, dict):
            return dict.__getitem__(value, key)
        if isinstance(value, (list, tuple)) and isinstance(key, int):
            base = list if isinstance(value, list) else tuple
            return base.__getitem__(value, key)  # type: ignore[index]
    except (KeyError, IndexError):
        pass
    return _MISSING


def _attribute(value: Any, name: str) -> Any:
    """An attribute that is stored in the object or its class; for tensors, also metadata."""
    if _is_tensor(value):
        return _tensor_attribute(value, name)
    try:
        attributes = object.__getattribute__(value, "__dict__")
    except AttributeError:
        attributes = {}
    if type(attributes) is dict:
        if name in attributes:
            return attributes[name]
        # A module's parameters, buffers and modules.
        for group in ("_parameters", "_buffers", "_modules"):
            members = attributes.get(group)
            if isinstance(members, dict) and dict.__contains__(members, name):
                return dict.__getitem__(members, name)
    for cls in type(value).__mro__:
        if name in cls.__dict__:
            found = cls.__dict__[name]
            if type(found) is types.MemberDescriptorType:  # __slots__
                try:
                    return found.__get__(value)
                except AttributeError:
                    return _MISSING
            getter = getattr(type(found), "__get__", None)
            if getter is None:
                return found
            if type(found).__name__ == "_tuplegetter" and isinstance(value, tuple):
                return found.__get__(value)  # a named tuple's field
            return _MISSING
    return _MISSING


# ---- values ----


def _is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and issubclass(type(value), getattr(torch, "Tensor", ()))


def _quiet(function: Callable[[], Any]) -> Any:
    """Calls a function that reads a tensor, without calling modes or types that override it."""
    torch = sys.modules["torch"]
    with torch._C.DisableTorchFunction():
        return function()


def _tensor_attribute(tensor: Any, name: str) -> Any:
    if name in ("shape", "dtype", "device", "ndim", "requires_grad", "is_leaf", "layout", "grad"):
        return _quiet(lambda: getattr(tensor, name))
    attributes = getattr(tensor, "__dict__", {})
    return attributes.get(name, _MISSING)


def _plain(value: Any) -> Any:
    """The value as a mark can store it: int, float, bool or str."""
    if type(value) in (bool, int, float):
        if type(value) is int and not -(2**63) <= value < 2**63:
            return str(value)
        return value
    if type(value) is str:
        return value[:_TEXT]
    if value is None:
        return "None"
    if _is_tensor(value):
        return _quiet(lambda: _describe(value))
    if type(value) is tuple or type(value).__name__ == "Size":
        return f"[{', '.join(str(_plain(item)) for item in tuple.__iter__(value))}]"[:_TEXT]
    if type(value) is list:
        return f"[{', '.join(str(_plain(item)) for item in value[:8])}]"[:_TEXT]
    torch = sys.modules.get("torch")
    if torch is not None and type(value) in (torch.dtype, torch.device, torch.layout):
        return str(value).replace("torch.", "")
    if type(value).__module__ == "numpy" and type(value).__name__ != "ndarray":
        return _plain(value.item()) if hasattr(value, "item") else type(value).__name__
    return f"<{type(value).__qualname__}>"


def _describe(tensor: Any) -> Any:
    """The value of a tensor with one element in host memory, else its description."""
    kind = str(tensor.dtype).replace("torch.", "")
    text = f"{kind} {list(tensor.shape)} {tensor.device}"
    if tensor.dim() or tensor.device.type == "meta" or not _has_memory(tensor):
        return text
    if tensor.device.type == "cpu":
        value = tensor.detach().item()
        return value if type(value) in (bool, int, float) else str(value)
    if tensor.device.type == "cuda":
        return _Deferred.of(tensor) or text
    return text


def _has_memory(tensor: Any) -> bool:
    """False for stand-ins for tensors, while code is traced or transformed."""
    torch = sys.modules["torch"]
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and not _is_transformed(torch, tensor)


def _is_transformed(torch: Any, tensor: Any) -> bool:
    functorch = getattr(torch._C, "_functorch", None)
    test = getattr(functorch, "is_functorch_wrapped_tensor", None)
    return bool(test and test(tensor)) or bool(torch._C._get_tracing_state())


class _Deferred:
    """A number that is being copied from a CUDA device, without waiting for it."""

    waiting: list[tuple[str, dict[str, Any]]] = []

    def __init__(self, copy: Any, event: Any) -> None:
        self.copy = copy
        self.event = event

    @classmethod
    def of(cls, tensor: Any) -> Optional["_Deferred"]:
        torch = sys.modules["torch"]
        if torch.cuda.is_current_stream_capturing():
            return None
        with torch.no_grad(), torch.cuda.device(tensor.device):
            copy = torch.empty((), dtype=tensor.dtype, pin_memory=True)
            copy.copy_(tensor.detach(), non_blocking=True)
            event = torch.cuda.Event()
            event.record()
        return cls(copy, event)

    @classmethod
    def emit(cls, instant: Callable[..., None]) -> None:
        """Emits the marks whose numbers have been copied."""
        while cls.waiting:
            name, args = cls.waiting[0]
            deferred = [value for value in args.values() if isinstance(value, cls)]
            if not all(value.event.query() for value in deferred):
                return
            cls.waiting.pop(0)
            instant(
                name,
                "watch",
                **{
                    key: value.copy.item() if isinstance(value, cls) else value
                    for key, value in args.items()
                },
            )


# ---- emitting ----


def _emit(watched: Watch, name: str, variables: Any) -> None:
    from tracesmith import emit

    if _Deferred.waiting:
        _Deferred.emit(emit.instant)
    if not emit.is_enabled():
        return
    args = {}
    for path in watched.paths:
        value = _value(path, variables)
        args[path.text] = "<no such value>" if value is _MISSING else _plain(value)
    step = _current_step()
    if step is not None:
        args["step"] = step
    watched.emitted += 1
    if any(isinstance(value, _Deferred) for value in args.values()):
        _Deferred.waiting.append((name, args))
    else:
        emit.instant(name, "watch", **args)


def _current_step() -> Optional[int]:
    core = sys.modules.get("tracesmith._torch")
    return core.state()["step"] if core else None


def _returned(watched: Watch, name: str, variables: Any) -> None:
    """Emits the variables of a function that has returned. Never raises."""
    watched.calls += 1
    if (watched.calls - 1) % watched.every:
        return
    try:
        _emit(watched, name, variables)
    except Exception as error:
        watched._refuse(f"{type(error).__name__}: {error}")


def after_step(frame: Any) -> None:
    """Called after an optimizer step; `frame` called it."""
    waiting = [watched for watched in _watches if watched.at == "step"]
    while frame is not None and waiting:
        for watched in list(waiting):
            if _is_named(frame.f_code, watched.function):
                waiting.remove(watched)
                _returned(watched, _name_of(watched.function), frame.f_locals)
        frame = frame.f_back
    if _Deferred.waiting:
        from tracesmith import emit

        _Deferred.emit(emit.instant)
    for watched in list(_watches):
        if watched.at == "return" and not watched.is_active:
            _look_again(watched)


def _look_again(watched: Watch) -> None:
    """Looks for a function that did not exist yet, less and less often: a search takes a while."""
    watched.searches += 1
    if watched.searches > _SEARCHES and watched.searches & (watched.searches - 1):
        return
    try:
        _install(watched)
    except Exception as error:
        watched.remove()
        warnings.warn(f"{error}; it is not watched", stacklevel=2)
        return
    if not watched.is_active and watched.searches == _SEARCHES:
        watched._refuse("not found yet: expected 'function', 'Class.method' or 'module.function'")


def _is_named(code: Any, function: Any) -> bool:
    if not isinstance(function, str):
        return code is getattr(inspect.unwrap(function), "__code__", None)
    qualified = getattr(code, "co_qualname", code.co_name)
    return function in (code.co_name, qualified) or str(qualified).endswith("." + function)


def _need_steps() -> None:
    """Steps of optimizers are followed even if modules are not recorded."""
    if "torch" in sys.modules:
        from . import _patch

        _patch.follow_steps(True)


# ---- finding functions ----


def _name_of(function: Any) -> str:
    return function if isinstance(function, str) else function.__qualname__


def _install(watched: Watch) -> None:
    """Watches the function if it exists."""
    for owner, name, function in _find(watched.function):
        plain = inspect.unwrap(function)
        if not isinstance(plain, types.FunctionType):
            raise TypeError(f"watch {_name_of(watched.function)}: not a function written in Python")
        if plain.__code__.co_flags & _SUSPENDED:
            raise TypeError(
                f"watch {_name_of(watched.function)}: a generator or coroutine returns several times"
            )
        if hasattr(sys, "monitoring"):
            watched._undo.append(_monitor(watched, plain.__code__))
        elif owner is None:
            raise TypeError(
                f"watch {watched.function!r}: before Python 3.12, the function must be an "
                "attribute of a module or a class"
            )
        else:
            watched._undo.append(_wrap(watched, owner, name, function, plain.__code__))
        return


def _find(function: Any) -> Iterator[tuple[Any, str, Any]]:
    """Yields (owner, attribute, function) for each owner of a function; it may be None."""
    if not isinstance(function, str):
        function = getattr(function, "__func__", function)
        module = sys.modules.get(function.__module__)
        owner: Any = module
        parts = function.__qualname__.split(".")
        for part in parts[:-1]:
            owner = getattr(owner, "__dict__", {}).get(part)
        if _unbound(getattr(owner, "__dict__", {}).get(parts[-1])) is function:
            yield owner, parts[-1], function
        else:
            yield None, parts[-1], function
        return
    parts = function.replace(":", ".").split(".")
    for at in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:at]))
        if module is not None:
            yield from _below(module, parts[at:])
    main = sys.modules.get("__main__")
    if main is not None:
        yield from _below(main, parts)
    for name, module in list(sys.modules.items()):
        if isinstance(module, types.ModuleType) and module is not main:
            found = module.__dict__.get(parts[0])
            if getattr(found, "__module__", None) == name:
                yield from _below(module, parts)
    # Classes inside functions.
    nn = sys.modules.get("torch.nn")
    if nn is not None and len(parts) == 2:
        todo = list(nn.Module.__subclasses__())
        while todo:
            cls = todo.pop()
            todo.extend(type.__subclasses__(cls))
            if cls.__name__ == parts[0] and parts[1] in cls.__dict__:
                yield cls, parts[1], _unbound(cls.__dict__[parts[1]])


def _unbound(held: Any) -> Any:
    """The function that a class holds as a static method or a class method."""
    return held.__func__ if isinstance(held, (staticmethod, classmethod)) else held


def _below(owner: Any, parts: list[str]) -> Iterator[tuple[Any, str, Any]]:
    for part in parts[:-1]:
        found = getattr(owner, "__dict__", {}).get(part)
        if not isinstance(found, (type, types.ModuleType)):
            return
        owner = found
    # A method may be inherited.
    owners = owner.__mro__ if isinstance(owner, type) else (owner,)
    for each in owners:
        function = _unbound(each.__dict__.get(parts[-1]))
        if isinstance(function, types.FunctionType):
            yield each, parts[-1], function
            return


# ---- Python 3.12 and later: sys.monitoring ----

_tool: Optional[int] = None
_by_code: dict[Any, list[Watch]] = {}


def _monitor(watched: Watch, code: Any) -> Callable[[], None]:
    """Sets local events of one function: other functions have no overhead."""
    monitoring = sys.monitoring  # type: ignore[attr-defined]
    tool = _take_tool(monitoring)
    _by_code.setdefault(code, []).append(watched)
    monitoring.set_local_events(tool, code, monitoring.events.PY_RETURN)

    def undo() -> None:
        watches = _by_code.get(code, [])
        if watched in watches:
            watches.remove(watched)
        if not watches and _by_code.pop(code, None) is not None:
            monitoring.set_local_events(tool, code, 0)

    return undo


def _take_tool(monitoring: Any) -> int:
    global _tool
    if _tool is None:
        for number in (4, 3):
            if monitoring.get_tool(number) is None:
                monitoring.use_tool_id(number, "tracesmith")
                monitoring.register_callback(
                    number, monitoring.events.PY_RETURN, _on_monitored_return
                )
                _tool = number
                break
        else:
            raise RuntimeError("watch: other tools use ids 3 and 4 of sys.monitoring; stop one")
    return _tool


def _on_monitored_return(code: Any, offset: int, value: Any) -> None:
    watches = _by_code.get(code)
    if not watches:
        return
    frame = sys._getframe(1)
    if frame.f_code is code:
        variables = frame.f_locals
        for watched in list(watches):
            _returned(watched, _name_of(watched.function), variables)


# ---- before Python 3.12: one event of sys.settrace ----


def _wrap(watched: Watch, owner: Any, name: str, function: Any, code: Any) -> Callable[[], None]:
    """Replaces the function with one that obtains its frame when it begins, and reads the frame
    after it has returned. In between, nothing is traced."""
    torch = sys.modules.get("torch")
    is_compiling = getattr(getattr(torch, "compiler", None), "is_compiling", None)
    if is_compiling is None:  # before torch 2.1
        is_compiling = getattr(getattr(torch, "_utils", None), "is_compiling", None)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if is_compiling is not None and is_compiling():
            return function(*args, **kwargs)
        return _run_watched(watched, function, code, args, kwargs)

    held = owner.__dict__[name]
    wrapper = type(held)(run) if held is not function else run
    setattr(owner, name, wrapper)

    def undo() -> None:
        if owner.__dict__.get(name) is wrapper:
            setattr(owner, name, held)

    return undo


def _run_watched(watched: Watch, function: Any, code: Any, args: Any, kwargs: Any) -> Any:
    # This call is counted, but not read.
    if watched.calls % watched.every:
        watched.calls += 1
        return function(*args, **kwargs)
    if sys.gettrace() is not None:
        watched._refuse("a debugger or coverage tool uses sys.settrace(); skipping its calls")
        return function(*args, **kwargs)
    frames: list[Any] = []
    left = _EVENTS

    def trace(frame: Any, event: str, arg: Any) -> None:
        nonlocal left
        left -= 1
        if frame.f_code is code:
            frames.append(frame)
        if frames or not left:
            sys.settrace(None)

    sys.settrace(trace)
    try:
        result = function(*args, **kwargs)
    finally:
        if sys.gettrace() is trace:
            sys.settrace(None)
    if frames:
        variables = frames.pop().f_locals
        _returned(watched, _name_of(watched.function), variables)
    return result
