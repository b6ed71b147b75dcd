# SPDX-License-Identifier: Apache-2.0
"""Events that Python programs emit arrive in their traces, and cost nothing else."""

from __future__ import annotations

import collections
import os
import signal
import subprocess
import sys
import unittest

import tracesmith
from support import ProgramTest, await_that, is_finished, rows


def end_of(row):
    return row["start"] + row["duration"]


class Names(unittest.TestCase):
    def test_unknown_names_are_attribute_errors(self):
        with self.assertRaises(AttributeError):
            tracesmith.no_such_name

    def test_every_public_name_is_listed(self):
        self.assertLessEqual(set(tracesmith.__all__), set(dir(tracesmith)))

    def test_importing_the_package_imports_nothing_slow(self):
        code = (
            "import sys; before = set(sys.modules); import tracesmith;"
            " print(*sys.modules.keys() - before)"
        )
        output = subprocess.run(
            [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True
        ).stdout
        self.assertEqual({*output.split()} - {"__future__"}, {"tracesmith"})

    def test_emitting_imports_nothing_slow(self):
        code = "import sys, tracesmith; tracesmith.span; print(*sys.modules)"
        output = subprocess.run(
            [sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True
        ).stdout
        for name in ("typing", "collections", "inspect", "logging", "asyncio", "torch"):
            self.assertNotIn(name, output.split())


class Disabled(unittest.TestCase):
    """In this process nothing records."""

    def test_everything_may_be_called(self):
        self.assertFalse(tracesmith.is_enabled())
        with tracesmith.span("a") as span, tracesmith.span("b", "c", key=object()):
            self.assertEqual(repr(span), "<tracesmith.span 'a'>")
        tracesmith.instant("a", "b", c=1)
        tracesmith.counter("a", b=1)
        tracesmith.complete("a", "b", 1.5)
        tracesmith.step()
        self.assertFalse(tracesmith.flush())

    def test_results_and_exceptions_pass_through(self):
        @tracesmith.traced
        def double(x):
            """Doubles."""
            if x is None:
                raise KeyError("x")
            return 2 * x

        self.assertEqual(double(4), 8)
        self.assertEqual((double.__name__, double.__doc__), ("double", "Doubles."))
        with self.assertRaises(KeyError):
            double(None)
        with self.assertRaises(ZeroDivisionError), tracesmith.span("a"):
            1 / 0

    def test_wrong_arguments_are_type_errors(self):
        for call in (
            lambda: tracesmith.span(),
            lambda: tracesmith.span(1),
            lambda: tracesmith.span("a", 2),
            lambda: tracesmith.span("a", "b", "c"),
            lambda: tracesmith.instant(b"a"),
            lambda: tracesmith.counter("a", "b", category="c"),
            lambda: tracesmith.complete("a", "b"),
            lambda: tracesmith.complete("a", "b", "slow"),
            lambda: tracesmith.step("one"),
            lambda: tracesmith.span("a")(3),
            lambda: tracesmith.traced(int),
            lambda: type(tracesmith.span("a"))(),
        ):
            with self.assertRaises(TypeError):
                call()

    def test_values_that_need_work_are_not_read(self):
        class Slow:
            def __str__(self):
                raise AssertionError

        with tracesmith.span("a", n=1, x=Slow()), tracesmith.span("b", x=Slow(), y=[Slow()]):
            pass

    def test_methods_of_spans_take_spans_only(self):
        kind = type(tracesmith.span("a"))

        class Other:
            __enter__ = kind.__enter__
            __exit__ = kind.__exit__

        for method in kind.__enter__, kind.__exit__:
            for call in lambda: method(5), lambda: method.__get__(5), method, lambda: method.__get__(None)(Other()):
                with self.assertRaises(TypeError):
                    call()
        with self.assertRaises(TypeError), Other():
            pass

    def test_an_exit_stack_enters_spans(self):
        import contextlib

        with contextlib.ExitStack() as stack:
            for i in range(10):
                stack.enter_context(tracesmith.span("a"))
                stack.enter_context(tracesmith.span("b", i=i))

    def test_spans_with_arguments_are_freed(self):
        import gc

        for _ in range(1000):
            with tracesmith.span("a", text="x" * 50, number=1.5):
                pass
        gc.collect()
        before = len(gc.get_objects()), sys.getrefcount(tracesmith.span("a").__class__)
        for _ in range(1000):
            with tracesmith.span("a", text="y" * 50, number=1.5):
                pass
        gc.collect()
        after = len(gc.get_objects()), sys.getrefcount(tracesmith.span("a").__class__)
        self.assertLess(abs(after[0] - before[0]), 50)
        self.assertLess(abs(after[1] - before[1]), 50)


class Events(ProgramTest):
    def test_each_kind_of_event_is_a_row(self):
        found = self.traced("""
            import time, tracesmith

            with tracesmith.span("outer", "test", layer=3, name="x", f=1.5, b=True):
                with tracesmith.span("inner"):
                    pass
            tracesmith.instant("mark", "test", why="because")
            tracesmith.counter("memory", "gpu", used=5, free=2.5)
            tracesmith.counter("memory", category="gpu", used=6)
            time.sleep(0.01)  # nothing begins before the first event
            tracesmith.complete("late", "test", 2.5, size=4)
            tracesmith.complete("lane", "test", 0.5, 7)
            tracesmith.step(5)
            tracesmith.step()
            assert tracesmith.flush() and tracesmith.is_enabled()
        """)
        by_name = {row["name"]: row for row in found}
        outer, inner = by_name["outer"], by_name["inner"]
        self.assertEqual(outer["args"], {"layer": 3, "name": "x", "f": 1.5, "b": True})
        self.assertEqual((outer["category"], inner.get("category")), ("test", None))
        self.assertLessEqual(outer["start"], inner["start"])
        self.assertGreaterEqual(
            outer["start"] + outer["duration"], inner["start"] + inner["duration"]
        )
        self.assertEqual(by_name["mark"]["args"], {"why": "because"})
        self.assertEqual(
            [row["args"] for row in found if row["name"] == "memory"],
            [{"used": 5, "free": 2.5}, {"used": 6}],
        )
        self.assertAlmostEqual(by_name["late"]["duration"], 2_500_000, delta=1000)
        self.assertEqual(by_name["late"]["tid"], outer["tid"])
        self.assertEqual(by_name["lane"]["tid"], 7)
        self.assertEqual([row["args"]["step"] for row in found if row["name"] == "step"], [5, 6])

    def test_values_of_any_type(self):
        found = self.traced("""
            import enum, tracesmith

            class Index:
                def __index__(self): return 11
            class Real:
                def __float__(self): return 0.25
            class Color(enum.IntEnum):
                RED = 3
            class Text(str):
                pass
            class Broken:
                def __str__(self): raise OSError("no text")
            class Unhashable(str):
                def __hash__(self): raise OSError("no hash")
                def __eq__(self, other): raise OSError("not comparable")

            tracesmith.instant(Unhashable("odd"), Unhashable("texts"), **{Text("key"): 1})
            tracesmith.instant("values", int=-1, big=2**64, least=-2**63, index=Index(),
                real=Real(), enum=Color.RED, text=Text("t"), none=None, list=[1],
                inf=float("inf"), false=False)
            tracesmith.instant("huge", most=10**5000)
            tracesmith.instant("many", **{f"k{i:02}": i for i in range(40)})
            tracesmith.instant("mixed", **{f"k{i:02}": i % 2 or f"text {i}" for i in range(32)})
            try:
                tracesmith.instant("broken", x=Broken())
            except OSError:
                tracesmith.instant("raised")
        """)
        by_name = {row["name"]: row for row in found}
        self.assertEqual(by_name["odd"]["args"], {"key": 1})
        values = by_name["values"]["args"]
        self.assertEqual(values["int"], -1)
        self.assertEqual(values["big"], str(2**64))
        self.assertEqual(values["least"], -(2**63))
        self.assertEqual((values["index"], values["real"], values["enum"]), (11, 0.25, 3))
        self.assertEqual((values["text"], values["none"], values["list"]), ("t", "None", "[1]"))
        self.assertIs(values["false"], False)
        # As text where str() has no limit, else in hexadecimal.
        self.assertRegex(by_name["huge"]["args"]["most"], "^(0x|10000)")
        self.assertEqual(len(by_name["many"]["args"]), 32)
        mixed = {f"k{i:02}": i % 2 or f"text {i}" for i in range(32)}
        self.assertEqual(by_name["mixed"]["args"], mixed)
        self.assertIn("raised", by_name)
        self.assertNotIn("broken", by_name)

    def test_a_span_that_was_made_before_the_recording_has_its_values(self):
        self.run_program("""
            import tracesmith

            class Text:
                def __str__(self): return "text"
            class Broken:
                def __str__(self): raise OSError("no text")

            span = tracesmith.span("early", n=1, x=Text(), name="x")
            broken = tracesmith.span("broken", x=Broken())
            many = tracesmith.span("many", **{f"k{i:02}": Text() for i in range(40)})
            decorated = tracesmith.traced("decorated", x=Text())(lambda: None)
            tracesmith.start("t.sbt")
            with span, span, many:
                decorated()
                try:
                    with broken:
                        raise AssertionError
                except OSError:
                    pass
            tracesmith.stop()
        """)
        found = rows(self.path("t.sbt"))
        self.assertEqual([row["name"] for row in found], ["early", "early", "many", "decorated"])
        self.assertEqual(found[0]["args"], {"n": 1, "x": "text", "name": "x"})
        self.assertEqual(len(found[2]["args"]), 32)
        self.assertEqual(found[3]["args"], {"x": "text"})

    def test_unusual_names(self):
        names = ["", "Umlaute äöü", "\u65e5\u672c\u8a9e", "\U0001f600", "new\nline", "a" * 3000]
        found = self.traced(f"""
            import tracesmith

            for name in {names!r}:
                with tracesmith.span(name, name):
                    tracesmith.instant(name, **{{name or "empty": name}})
            with tracesmith.span("lone \\udc80 surrogate", "nul \\0 byte", key="\\0\\udc80"):
                pass
        """)
        spans = [row for row in found if row["table"] == "slice"]
        marks = [row for row in found if row["table"] == "mark"]
        self.assertEqual([row["name"] for row in spans[:-1]], names)
        self.assertEqual([row["name"] for row in marks], names)
        self.assertEqual([list(row["args"].values()) for row in marks], [[name] for name in names])
        self.assertEqual(spans[-1]["name"], "lone \\udc80 surrogate")
        self.assertEqual(spans[-1]["category"], "nul \\x00 byte")
        self.assertEqual(spans[-1]["args"], {"key": "\\x00\\udc80"})

    def test_a_hundred_thousand_names_in_bounded_memory(self):
        found = self.traced(
            """
            import resource, tracesmith

            def peak():
                return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

            def emit(first, last):
                for i in range(first, last):
                    with tracesmith.span(f"name {i}", f"category {i % 7}", number=i):
                        pass
                    if i % 2000 == 0:
                        tracesmith.flush()

            emit(0, 70000)
            before = peak()
            emit(70000, 100000)
            tracesmith.instant("grown", kib=peak() - before)
            """,
        )
        spans = [row for row in found if row["table"] == "slice"]
        lost = sum(row["count"] for row in rows(self.path("t.sbt"), "--table", "loss"))
        self.assertEqual(len(spans) + lost // 2, 100_000)
        self.assertEqual(len({row["name"] for row in spans}), len(spans))
        for row in spans:
            self.assertEqual(row["name"], f"name {row['args']['number']}")
        self.assertLess(found[-1]["args"]["kib"], 2048)

    def test_threads_have_their_own_spans(self):
        found = self.traced("""
            import threading, tracesmith

            def work(n):
                tracesmith.thread_name(f"worker {n}")
                for i in range(500):
                    with tracesmith.span("outer", n=n), tracesmith.span("inner"):
                        pass

            threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        """)
        outer = [row for row in found if row["name"] == "outer"]
        self.assertEqual(len(outer), 2000)
        self.assertEqual(len([row for row in found if row["name"] == "inner"]), 2000)
        for n in range(4):
            self.assertEqual(len({row["tid"] for row in outer if row["args"]["n"] == n}), 1)
        self.assertEqual(len({row["tid"] for row in outer}), 4)
        names = {row["name"] for row in rows(self.path("t.sbt"), "--table", "thread")}
        self.assertLessEqual({f"worker {n}" for n in range(4)}, names)

    def test_threads_meet_new_names_and_keys_at_once(self):
        found = self.traced("""
            import asyncio, sys, threading, tracesmith

            sys.setswitchinterval(1e-6)
            start = threading.Barrier(8)

            async def wait(i):
                with tracesmith.span(f"task {i % 10}"):
                    await asyncio.sleep(0)

            async def main():
                await asyncio.gather(*(wait(i) for i in range(20)))

            def work(n):
                start.wait()
                for i in range(300):
                    with tracesmith.span(f"name {i}", "test"), tracesmith.span("same"):
                        tracesmith.instant(f"mark {i}", **{f"key {i % 50}": i, "n": n})
                asyncio.run(main())

            threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
        """)
        counts = collections.Counter((row["table"], row["name"]) for row in found)
        for i in range(300):
            self.assertEqual(counts["slice", f"name {i}"], 8)
            self.assertEqual(counts["mark", f"mark {i}"], 8)
        self.assertEqual(counts["slice", "same"], 8 * 300)
        self.assertEqual(sum(counts["slice", f"task {i}"] for i in range(10)), 8 * 20)
        for row in found:
            if row["table"] == "mark":
                i = int(row["name"].split()[1])
                self.assertEqual(row["args"][f"key {i % 50}"], i)
            else:
                self.assertGreaterEqual(row["duration"], 0)

    def test_an_exception_ends_its_spans(self):
        found = self.traced("""
            import tracesmith

            for _ in range(3):
                try:
                    with tracesmith.span("outer"), tracesmith.span("inner"):
                        raise ValueError
                except ValueError:
                    tracesmith.instant("caught")
        """)
        self.assertEqual([row["name"] for row in found], ["outer", "inner", "caught"] * 3)
        self.assertTrue(all(row["duration"] >= 0 for row in found if row["table"] == "slice"))

    def test_a_child_records_into_the_same_file(self):
        found = self.traced("""
            import asyncio, os, tracesmith

            with tracesmith.span("parent"):
                child = os.fork()
                if not child:
                    with tracesmith.span("child"):
                        pass
                    os._exit(0)
                os.waitpid(child, 0)

            async def main():
                with tracesmith.span("task"):
                    child = os.fork()
                    if child:
                        os.waitpid(child, 0)

            # The child ends spans that it has not begun.
            with tracesmith.span("outer"):
                asyncio.run(main())
        """)
        self.assertFalse(rows(self.path("t.sbt"), "--table", "loss"))
        self.assertEqual([row["name"] for row in found].count("task"), 1)
        parent, child = (
            [row for row in found if row["name"] == name] for name in ("parent", "child")
        )
        self.assertEqual((len(parent), len(child)), (1, 1))
        self.assertNotEqual(parent[0]["pid"], child[0]["pid"])

    def test_what_was_stored_survives_a_kill(self):
        process = self.start(
            """
            import sys, tracesmith

            with tracesmith.span("open"):
                for i in range(1000):
                    tracesmith.instant("mark", i=i)
                print("ready", flush=True)
                sys.stdin.read()
            """,
            TRACESMITH_OUT=self.path("t.sbt"),
        )
        self.assertEqual(process.stdout.readline(), "ready\n")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        await_that(lambda: is_finished(self.path("t.sbt")), "the end of the recorder")
        found = rows(self.path("t.sbt"))
        marks = [row["args"]["i"] for row in found if row["name"] == "mark"]
        self.assertEqual(marks, [*range(1000)])
        self.assertEqual([row["name"] for row in found if row["table"] == "slice"], ["open"])


class Decorators(ProgramTest):
    def test_functions_methods_and_coroutines(self):
        found = self.traced("""
            import asyncio, functools, tracesmith

            @tracesmith.traced
            def plain(): return 1
            @tracesmith.span("named", "test", key=1)
            def other(): return 2
            @tracesmith.span
            def bare(): return 3
            class Model:
                @tracesmith.traced
                def forward(self): return 4
                @tracesmith.traced("class")
                @classmethod
                def make(cls): return cls
                @staticmethod
                @tracesmith.traced("static")
                def add(a, b): return a + b
            @tracesmith.traced("coroutine")
            async def wait():
                await asyncio.sleep(0.001)
                return 5
            part = tracesmith.traced("partial")(functools.partial(max, 6))

            assert (plain(), other(), bare(), Model().forward()) == (1, 2, 3, 4)
            assert Model.make() is Model and Model.add(1, b=2) == 3 and part(1) == 6
            assert asyncio.run(wait()) == 5
        """)
        self.assertEqual(
            [row["name"] for row in found],
            ["plain", "named", "bare", "Model.forward", "class", "static", "partial", "coroutine"],
        )
        self.assertGreaterEqual(found[-1]["duration"], 1_000_000)

    def test_each_resumption_of_a_generator_is_a_span(self):
        found = self.traced("""
            import tracesmith

            @tracesmith.traced("generator")
            def numbers():
                received = []
                try:
                    for i in range(3):
                        try:
                            received.append((yield i))
                        except KeyError:
                            received.append("thrown")
                finally:
                    tracesmith.instant("closed")
                return received

            generator = numbers()
            assert next(generator) == 0 and generator.send("sent") == 1
            with tracesmith.span("consumer"):
                assert generator.throw(KeyError) == 2
            try:
                next(generator)
            except StopIteration as stop:
                assert stop.value == ["sent", "thrown", None], stop.value
            generator = numbers()
            next(generator)
            generator.close()
            assert sum(numbers()) == 3
        """)
        spans = [row["name"] for row in found if row["table"] == "slice"]
        self.assertEqual(spans.count("generator"), 4 + 2 + 4)
        self.assertEqual([row["name"] for row in found].count("closed"), 3)
        self.assertTrue(all(row["duration"] >= 0 for row in found if row["table"] == "slice"))

    def test_each_resumption_of_an_async_generator_is_a_span(self):
        found = self.traced("""
            import asyncio, tracesmith

            @tracesmith.traced("generator")
            async def numbers():
                for i in range(3):
                    await asyncio.sleep(0)
                    yield i

            async def main():
                total = 0
                async for i in numbers():
                    await asyncio.sleep(0)
                    total += i
                generator = numbers()
                await generator.__anext__()
                await generator.aclose()
                return total

            assert asyncio.run(main()) == 3
        """)
        self.assertEqual([row["name"] for row in found], ["generator"] * (4 + 2))


    def test_a_traced_function_is_of_the_same_kind(self):
        import inspect

        def plain(): ...
        def generator():
            yield
        async def coroutine(): ...
        async def async_generator():
            yield

        for function in plain, generator, coroutine, async_generator:
            traced = tracesmith.traced(function)
            for test in (
                inspect.isgeneratorfunction,
                inspect.iscoroutinefunction,
                inspect.isasyncgenfunction,
            ):
                self.assertEqual(test(traced), test(function), (test, function))


class Tasks(ProgramTest):
    def test_spans_of_tasks_that_take_turns_do_not_mix(self):
        found = self.traced("""
            import asyncio, random, tracesmith

            async def request(n):
                rng = random.Random(n)
                async with tracesmith.span("request", n=n):
                    for i in range(5):
                        with tracesmith.span("part", n=n, i=i):
                            await asyncio.sleep(rng.random() / 1000)
                            with tracesmith.span("leaf", n=n):
                                await asyncio.sleep(0)
                    with tracesmith.span("sync", n=n):
                        pass

            async def main():
                with tracesmith.span("main"):
                    await asyncio.gather(*(request(n) for n in range(50)))

            with tracesmith.span("program"):
                asyncio.run(main())
            with tracesmith.span("after"):
                pass
        """)
        spans = [row for row in found if row["table"] == "slice"]
        self.assertEqual(len(spans), 1 + 1 + 1 + 50 * (1 + 5 + 5 + 1))
        self.assertFalse(rows(self.path("t.sbt"), "--table", "loss"))
        tracks = {}
        for row in spans:
            self.assertGreaterEqual(row["duration"], 0)
            tracks.setdefault(row["tid"], []).append(row)
        # Within a track spans nest, and inside a request there are only its own.
        for of_track in tracks.values():
            open_spans = []
            for row in of_track:
                while open_spans and end_of(open_spans[-1]) <= row["start"]:
                    open_spans.pop()
                end = end_of(row)
                for outer in open_spans:
                    self.assertLessEqual(end, end_of(outer))
                    if outer["name"] != "program":
                        self.assertEqual(row["args"]["n"], outer["args"]["n"])
                open_spans.append(row)
        program, after = (row for row in spans if row["name"] in ("program", "after"))
        self.assertEqual(program["tid"], after["tid"])
        self.assertLessEqual(len(tracks), 1 + 51)

    def test_lanes_are_used_again(self):
        found = self.traced("""
            import asyncio, tracesmith

            async def request():
                with tracesmith.span("request"):
                    await asyncio.sleep(0)

            async def main():
                for _ in range(200):
                    await asyncio.gather(request(), request())

            asyncio.run(main())
        """)
        self.assertEqual(len(found), 400)
        self.assertEqual(len({row["tid"] for row in found}), 2)

    def test_a_cancelled_task_ends_its_spans(self):
        found = self.traced("""
            import asyncio, tracesmith

            async def wait():
                with tracesmith.span("wait"):
                    await asyncio.sleep(60)

            async def main():
                task = asyncio.create_task(wait())
                await asyncio.sleep(0)
                task.cancel()
                try:
                    await task
                except asyncio.CancelledError:
                    pass
                with tracesmith.span("next"):
                    await asyncio.sleep(0)

            asyncio.run(main())
        """)
        self.assertEqual([row["name"] for row in found], ["wait", "next"])
        self.assertTrue(all(row["duration"] >= 0 for row in found))


    def test_a_span_that_ends_outside_its_task_ends_itself_only(self):
        found = self.traced("""
            import asyncio, gc, tracesmith

            async def items():
                with tracesmith.span("generator"):
                    for i in range(5):
                        yield i

            async def consume():
                async for i in items():
                    break  # another task closes the generator

            async def wait():
                with tracesmith.span("dropped"):
                    await asyncio.sleep(60)

            async def main():
                await asyncio.gather(*(asyncio.create_task(consume()) for _ in range(3)))
                gc.collect()
                await asyncio.sleep(0.001)

            def drop():
                loop = asyncio.new_event_loop()
                task = loop.create_task(wait())
                loop.run_until_complete(asyncio.sleep(0))
                loop.close()
                loop.set_exception_handler(lambda loop, context: None)
                del task, loop
                gc.collect()

            with tracesmith.span("outer"), tracesmith.span("inner"):
                asyncio.run(main())
                drop()
                tracesmith.instant("still open")
        """)
        mark = found.pop()
        self.assertEqual(mark["name"], "still open")
        own = [row for row in found if row["tid"] == mark["tid"]]
        self.assertEqual([row["name"] for row in own], ["outer", "inner"])
        for row in own:
            self.assertGreater(end_of(row), mark["start"])
        others = [row for row in found if row["tid"] != mark["tid"]]
        self.assertEqual([row["name"] for row in others], ["generator"] * 3 + ["dropped"])
        for row in others:
            self.assertGreaterEqual(row["duration"], 0)
            self.assertLess(end_of(row), mark["start"])
        self.assertEqual(len({row["tid"] for row in others}), 3)

    def test_spans_that_are_open_while_recording_starts_and_stops(self):
        self.run_program("""
            import asyncio, tracesmith

            async def request(n):
                with tracesmith.span("request"):
                    await asyncio.sleep(0)
                    if n == 0:
                        tracesmith.start("t.sbt")
                    await asyncio.sleep(0)
                    with tracesmith.span("part", n=n):
                        await asyncio.sleep(0)
                if n == 1:
                    tracesmith.stop()

            async def main():
                await asyncio.gather(*(request(n) for n in range(10)))

            with tracesmith.span("program"):
                for i in range(2):
                    asyncio.run(main())
                tracesmith.start("t.sbt")
                with tracesmith.span("last"):
                    tracesmith.instant("mark")
            tracesmith.stop()
        """)
        found = rows(self.path("t.sbt"))
        self.assertEqual([row["name"] for row in found], ["last", "mark"])
        self.assertEqual({row["pid"] for row in found}, {row["tid"] for row in found})


class Logging(ProgramTest):
    CODE = """
        import logging, tracesmith

        logger = logging.getLogger("app.db")
        logger.addHandler(tracesmith.LoggingHandler())
        logger.propagate = False
        logger.warning("slow query: %d ms", 1200)
        try:
            1 / 0
        except ZeroDivisionError:
            logger.exception("failed")
        logger.debug("not stored: level")
        logger.error("bad arguments: %d", "x")
    """

    def test_messages_are_marks(self):
        process = self.start(self.CODE, TRACESMITH_OUT=self.path("t.sbt"))
        _, errors = process.communicate()
        self.assertIn("--- Logging error ---", errors)
        found = [row["args"] for row in rows(self.path("t.sbt"))]
        self.assertEqual(len(found), 2)
        self.assertEqual(
            (found[0]["level"], found[0]["logger"], found[0]["message"]),
            ("WARNING", "app.db", "slow query: 1200 ms"),
        )
        self.assertEqual((found[1]["level"], found[1]["exception"]), ("ERROR", "ZeroDivisionError"))
        self.assertTrue(found[0]["source"].startswith("program.py:"))


class Interpreters(ProgramTest):
    def test_subinterpreters_emit(self):
        found = self.traced("""
            import sys
            try:
                import _interpreters as interpreters
            except ImportError:
                import _xxsubinterpreters as interpreters
            import tracesmith

            with tracesmith.span("main"):
                for n in range(3):
                    other = interpreters.create()
                    code = f'''if True:
                        import sys
                        sys.path[:] = {sys.path!r}
                        import tracesmith
                        with tracesmith.span("sub", n={n}), tracesmith.span("main"):
                            tracesmith.instant("mark")'''
                    result = getattr(interpreters, "exec", None)
                    if result:
                        failure = result(other, code)
                        assert failure is None, failure
                    else:
                        interpreters.run_string(other, code)
                    interpreters.destroy(other)
        """)
        names = [row["name"] for row in found]
        self.assertEqual((names.count("sub"), names.count("main"), names.count("mark")), (3, 4, 3))


if __name__ == "__main__":
    unittest.main()
