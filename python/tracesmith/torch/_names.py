# SPDX-License-Identifier: Apache-2.0
"""Finds the names of modules: paths from the outermost module, which nobody has to point out."""

from __future__ import annotations

import fnmatch
import gc
import re
import sys
import weakref
from typing import Any, Callable, Optional, Union

import torch

from tracesmith import _torch

# Modules around another one that has the name: DistributedDataParallel(Net), Net.
_WRAPPERS = {
    "DistributedDataParallel": ("module",),
    "DataParallel": ("module",),
    "FullyShardedDataParallel": ("_fsdp_wrapped_module",),
    "CheckpointWrapper": ("_checkpoint_wrapped_module",),
    "OffloadWrapper": ("_checkpoint_wrapped_module",),
    "OptimizedModule": ("_orig_mod",),
}
# In paths of modules that are part of a compiled region, which have no rows.
_GENERATED = "<generated>"
# Each search for the root of a module looks at all objects of the process: tens of milliseconds.
_SEARCHES = 8

_select: Optional[Callable[[str, str], bool]] = None
_searches_left = _SEARCHES
_rank_is_known = _device_is_known = False
_roots: dict[str, list[Any]] = {}


def select(patterns: Union[None, bool, tuple[Any, ...]]) -> None:
    """Which modules have rows: None all, False none, else any that a pattern matches."""
    global _select, _searches_left
    _searches_left = _SEARCHES
    _roots.clear()
    if patterns is None or patterns is True:
        _select = None
    elif patterns is False:
        _select = lambda path, class_name: False  # noqa: E731
    else:
        tests = [_test(pattern) for pattern in patterns]
        _select = lambda path, class_name: any(  # noqa: E731
            test(path) or test(path.partition(".")[2] or path) or test(class_name) for test in tests
        )


def _test(pattern: Any) -> Callable[[str], Any]:
    if isinstance(pattern, str) and not pattern.startswith("re:"):
        return re.compile(fnmatch.translate(pattern)).match
    compiled = re.compile(pattern[3:]) if isinstance(pattern, str) else pattern
    return compiled.search


def name_module(module: Any, outer: Any) -> None:
    """Names a module that is called for the first time, and those in it.

    outer: the module from which it is called, or None for the outermost call.
    """
    if outer is None:
        _name_root(module)
        return
    path = _torch.module_path(outer)
    if path is None:
        _name_root(module)
        return
    path = _inner_path(path)
    # What was added to the outer module since that was named.
    _walk(outer, path)
    if _torch.has_module(module):
        return
    if issubclass(type(module), torch.fx.GraphModule):
        # What a compiler made of the outer module.
        _walk(module, f"{path}.{_GENERATED}")
    else:
        # It is held by something else than a module: a list, a closure.
        _walk(module, f"{path}.{class_name(module)}")


def _name_root(module: Any) -> None:
    learn_process()
    root = _find_root(module)
    _walk(root, _root_name(root))
    if not _torch.has_module(module):
        _walk(module, _root_name(module))


def _inner_path(path: str) -> str:
    """Of the module that a wrapper is named after: DistributedDataParallel(Net) -> Net."""
    while path.endswith(")") and "(" in path:
        path = path[path.index("(") + 1 : -1]
    return path


def class_name(module: Any) -> str:
    """The class as the program calls it, without what fully_shard() puts before it."""
    cls = type(module)
    if len(cls.__bases__) == 2 and cls.__bases__[0].__name__ == "FSDPModule":
        cls = cls.__bases__[1]
    return cls.__name__


def _wrapped(module: Any) -> Any:
    """The module inside a wrapper, else None."""
    for cls in type(module).__mro__:
        for attribute in _WRAPPERS.get(cls.__name__, ()):
            if cls.__module__.startswith("torch."):
                return module._modules.get(attribute)
    return None


def _root_name(root: Any) -> str:
    """The class, with a number from the second living root of that class on."""
    inner = _wrapped(root)
    while inner is not None and _wrapped(inner) is not None:
        inner = _wrapped(inner)
    innermost = root if inner is None else inner
    name = class_name(innermost)
    roots = _roots.setdefault(name, [])
    for at, reference in enumerate(roots):
        known = reference()
        if known is None or known is innermost:
            roots[at] = weakref.ref(innermost)
            break
    else:
        at = len(roots)
        roots.append(weakref.ref(innermost))
    return name if at == 0 else f"{name}#{at + 1}"


def _walk(module: Any, path: str) -> None:
    """Names this module and all below it that have no name, or only one as a root."""
    seen = set()
    todo = [(module, path)]
    while todo:
        module, path = todo.pop()
        if id(module) in seen:
            continue
        seen.add(id(module))
        inner = _wrapped(module)
        if inner is None:
            _add(module, path, None)
        elif type(module).__name__ == "OptimizedModule":
            _add(module, path, inner)
        else:
            _add(module, f"{type(module).__name__}({path})", None)
        if inner is not None:
            todo.append((inner, path))
            continue
        children = [
            (child, f"{path}.{name}")
            for name, child in module._modules.items()
            if child is not None
        ]
        todo.extend(reversed(children))


def _add(module: Any, path: str, inner: Any) -> None:
    known = _torch.module_path(module)
    if known is not None and ("." in known or "." not in path):
        return
    selected = _GENERATED not in path and (
        _select is None or _select(_inner_path(path), class_name(module))
    )
    _torch.add_module(module, path, selected, inner)


def _find_root(module: Any) -> Any:
    """The outermost module that contains this one, such as a LightningModule around a model."""
    global _searches_left
    if _searches_left <= 0:
        return module
    _searches_left -= 1
    parents: dict[int, Any] = {}
    for candidate in gc.get_objects():
        # Not isinstance(), which asks proxies for their __class__.
        if not issubclass(type(candidate), torch.nn.Module):
            continue
        children = candidate.__dict__.get("_modules")
        if isinstance(children, dict):
            for child in list(children.values()):
                parents.setdefault(id(child), candidate)
    root = module
    seen = {id(module)}
    while id(root) in parents and id(parents[id(root)]) not in seen:
        root = parents[id(root)]
        seen.add(id(root))
    return root


def learn_process() -> None:
    """What is known by the time a model runs: its rank, and what it uses. Called at each step."""
    global _rank_is_known, _device_is_known
    config = sys.modules.get("torch._dynamo.config")
    _torch.set_compiled_autograd(bool(getattr(config, "compiled_autograd", False)))
    distributed = sys.modules.get("torch.distributed")
    if not _rank_is_known and distributed is not None and distributed.is_available():
        if distributed.is_initialized():
            _torch.set_rank(distributed.get_rank())
            _rank_is_known = True
    if not _device_is_known and torch.cuda.is_initialized():
        _torch.set_device(torch.cuda.current_device())
        _device_is_known = True


def gradient_node(tensor: Any) -> Any:
    """tensor.grad_fn, unseen by modes and by types that override functions."""
    with torch._C.DisableTorchFunction():
        return tensor.grad_fn


def device_of(value: Any) -> int:
    """The number of the CUDA device of the first tensor in a module's result; -1: none."""
    with torch._C.DisableTorchFunction():
        tensor = _first_tensor(value, 3)
        if tensor is None or not tensor.is_cuda:
            return -1
        return int(tensor.get_device())


def _first_tensor(value: Any, nesting: int) -> Any:
    if isinstance(value, torch.Tensor):
        return value
    if nesting == 0 or not isinstance(value, (tuple, list, dict)):
        return None
    for item in list(value.values() if isinstance(value, dict) else value)[:16]:
        tensor = _first_tensor(item, nesting - 1)
        if tensor is not None:
            return tensor
    return None
