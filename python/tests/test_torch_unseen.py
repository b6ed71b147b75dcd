# SPDX-License-Identifier: Apache-2.0
"""Programs behave as without the profiler, whatever they do with modules."""

from __future__ import annotations

import copy
import inspect
import io
import pickle
import traceback
import unittest
import warnings
from typing import Any

import torch
from torch import nn
from torch_support import VERSION, Net, Rows, TorchCase, tokens, with_and_without

import tracesmith.torch


class UnseenTest(TorchCase):
    def unchanged(self, function: Any) -> Any:
        """Runs a function without and with rows; compares what it returns."""
        without, recorded = with_and_without(function)
        if isinstance(without, (list, tuple, torch.Tensor)):
            self.assert_equal_bits(without, recorded)
        else:
            self.assertEqual(without, recorded)
        return recorded

    def test_functions_stay_the_same_objects(self) -> None:
        before = torch.nn.Module.__call__
        enter = torch.autograd.profiler.record_function.__enter__
        codes = before.__code__, enter.__code__
        name, source = before.__name__, inspect.getsource(before)
        with Rows():
            self.assertIs(torch.nn.Module.__call__, before)
            self.assertIs(getattr(torch.nn.Module, name), before)
            self.assertEqual(before.__name__, name)
            self.assertEqual(inspect.getsource(before), source)
            self.assertEqual(len(torch.nn.modules.module._global_forward_hooks), 0)
        self.assertEqual((before.__code__, enter.__code__), codes)

    def test_modules_have_no_more_attributes(self) -> None:
        def run() -> Any:
            model = Net()
            model(tokens()).sum().backward()
            return [sorted(module.__dict__) for module in model.modules()]

        without, recorded = with_and_without(run)
        self.assertEqual(without, recorded)

    def test_hooks_of_the_program(self) -> None:
        def run() -> Any:
            seen: list[str] = []
            model = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
            model[0].register_forward_pre_hook(lambda m, args: (args[0] * 2,))
            model[0].register_forward_hook(lambda m, args, out: out + 1)
            model[1].register_forward_hook(
                lambda m, args, kwargs, out: seen.append("kwargs"), with_kwargs=True
            )
            model[1].register_full_backward_hook(lambda m, gi, go: seen.append("backward"))
            model.register_full_backward_pre_hook(lambda m, go: seen.append("pre"))
            handle = nn.modules.module.register_module_forward_hook(
                lambda m, args, out: seen.append(type(m).__name__)
            )
            y = model(torch.ones(2, 4))
            y.register_hook(lambda grad: seen.append("tensor"))
            y.grad_fn.register_prehook(lambda grads: seen.append("node"))
            y.sum().backward()
            handle.remove()
            return [torch.tensor([ord(c) for c in "".join(seen)]), model[0].weight.grad]

        self.unchanged(run)

    def test_exceptions(self) -> None:
        class Failing(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                raise KeyError("missing")

        def run() -> list[str]:
            model = nn.Sequential(nn.Identity(), Failing())
            try:
                model(torch.ones(1))
            except KeyError:
                lines = [
                    line.split(", line")[0].strip()
                    for line in traceback.format_exc().splitlines()
                    if "^" not in line
                    and "_tracesmith" not in line
                    and "return self._call" not in line
                ]
                # Before torch 2.1, our frame has the line of the one that it calls.
                return lines if VERSION >= (2, 1) else list(dict.fromkeys(lines))
            return []

        without, recorded = with_and_without(run)
        self.assertEqual(without, recorded)
        with Rows() as rows:
            run()
        self.assertEqual(rows.modules("forward"), ["Sequential", "Sequential.0", "Sequential.1"])

    def test_copies_and_pickles(self) -> None:
        model = Net()
        with Rows():
            model(tokens())
            copied = copy.deepcopy(model)
            stored = pickle.dumps(model)
            buffer = io.BytesIO()
            torch.save(model, buffer)
        loaded = pickle.loads(stored)
        buffer.seek(0)
        again = torch.load(buffer, weights_only=False)
        for each in (copied, loaded, again):
            self.assert_equal_bits(
                list(each.state_dict().values()), list(model.state_dict().values())
            )
        self.assertNotIn(b"tracesmith", stored)

    def test_functional_call_and_transforms(self) -> None:
        from torch.func import functional_call, grad, jvp, vmap

        def run() -> Any:
            model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
            parameters = dict(model.named_parameters())
            x = torch.randn(3, 4)

            def loss(parameters: Any, x: torch.Tensor) -> torch.Tensor:
                return functional_call(model, parameters, (x,)).sum()

            per_sample = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
            value, tangent = jvp(lambda x: model(x), (x,), (torch.ones_like(x),))
            return [*per_sample.values(), value.detach(), tangent.detach()]

        self.unchanged(run)

    def test_jit_trace_and_script(self) -> None:
        def run() -> Any:
            model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            x = torch.randn(2, 4)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                traced = torch.jit.trace(model, x)
                scripted = torch.jit.script(model)
            return [
                traced(x).detach(),
                scripted(x).detach(),
                torch.tensor([ord(c) for c in str(traced.graph).split("%")[0]]),
                torch.tensor(len(list(traced.inlined_graph.nodes()))),
            ]

        self.unchanged(run)

    def test_fx_and_export(self) -> None:
        class Model(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.first = nn.Linear(4, 4)
                self.second = nn.Sequential(nn.ReLU(), nn.Linear(4, 4))

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                return self.second(self.first(x)) + 1

        def run() -> str:
            model = Model()
            symbolic = torch.fx.symbolic_trace(model)
            if VERSION < (2, 4):  # no torch.export, or another
                return symbolic.code
            strict = torch.export.export(model, (torch.ones(2, 4),), strict=True)
            loose = torch.export.export(model, (torch.ones(2, 4),), strict=False)
            return "\n".join([symbolic.code, strict.graph_module.code, loose.graph_module.code])

        self.unchanged(run)

    def test_modes_do_not_see_it(self) -> None:
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode

        class Functions(TorchFunctionMode):
            def __init__(self) -> None:
                super().__init__()
                self.calls: list[str] = []

            def __torch_function__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                self.calls.append(getattr(func, "__name__", str(func)))
                return func(*args, **(kwargs or {}))

        class Operations(TorchDispatchMode):
            def __init__(self) -> None:
                super().__init__()
                self.calls: list[str] = []

            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                self.calls.append(str(func))
                return func(*args, **(kwargs or {}))

        def run() -> list[list[str]]:
            model = Net(layers=1)
            with Functions() as functions, Operations() as operations:
                model(tokens()).sum().backward()
            return [functions.calls, operations.calls]

        without, recorded = with_and_without(run)
        self.assertEqual(without, recorded)

    def test_tensor_subclasses(self) -> None:
        calls: list[str] = []

        class Logged(torch.Tensor):
            @classmethod
            def __torch_function__(
                cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                calls.append(func.__name__)
                return super().__torch_function__(func, types, args, kwargs or {})

        def run() -> list[str]:
            calls.clear()
            model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
            model(torch.ones(2, 4).as_subclass(Logged)).sum().backward()
            return list(calls)

        without, recorded = with_and_without(run)
        self.assertEqual(without, recorded)

    def test_inference_mode_and_autocast(self) -> None:
        def run() -> Any:
            model = Net()
            with torch.inference_mode():
                first = model(tokens())
            with torch.autocast("cpu", dtype=torch.bfloat16):
                second = model(tokens())
                second.sum().backward()
            return [first.clone(), second.detach().float(), model.head.weight.grad]

        self.unchanged(run)

    def test_memory_is_freed_as_early(self) -> None:
        import gc
        import weakref

        def run() -> list[bool]:
            gc.collect()
            gc.disable()
            try:
                model = Net()
                output = model(tokens())
                loss = output.sum()
                loss.backward()
                kept = [weakref.ref(output), weakref.ref(model)]
                del output, loss
                first = kept[0]() is None
                del model
                return [first, kept[1]() is None]
            finally:
                gc.enable()

        without, recorded = with_and_without(run)
        self.assertEqual(recorded, without)
        self.assertEqual(recorded, [True, True])

    def test_a_graph_without_a_backward_pass_is_freed(self) -> None:
        class Marker:
            pass

        import weakref

        with Rows():
            model = Net()
            output = model(tokens())
            marker = Marker()
            output.grad_fn.metadata["marker"] = marker
            alive = weakref.ref(marker)
            del marker
            self.assertIsNotNone(alive())
            del output
            self.assertIsNone(alive())

    def test_enabling_twice_and_disabling_inside_a_call(self) -> None:
        class Switch(nn.Module):
            def forward(self, x: torch.Tensor) -> torch.Tensor:
                tracesmith.torch.disable()
                return x + 1

        tracesmith.torch.enable()
        tracesmith.torch.enable(every=2)
        self.assertTrue(tracesmith.torch.is_enabled())
        y = nn.Sequential(nn.Linear(2, 2), Switch(), nn.Linear(2, 2))(torch.ones(1, 2))
        y.sum().backward()
        self.assertFalse(tracesmith.torch.is_enabled())


if __name__ == "__main__":
    unittest.main()
