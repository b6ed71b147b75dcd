# SPDX-License-Identifier: Apache-2.0
"""Reading and writing traces from Python: tables, analyses, exports, errors, threads.

Parts that need pandas, pyarrow, Polars or DuckDB are skipped, with the reason, where these are not
installed.
"""

import array
import ctypes
import gc
import gzip
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

import tracesmith
from tracesmith import errors, trace

NS = 1_000


def need(test, *packages):
    """The modules, or a skip that says which is missing."""
    found = []
    for package in packages:
        try:
            found.append(importlib.import_module(package))
        except ImportError:
            print(f"skip: {test.id()}: {package} is not installed")
            raise unittest.SkipTest(f"{package} is not installed")
    return found[0] if len(found) == 1 else found


def write_sample(path, kernels=100):
    """Two streams of kernels with their launches, a counter, a mark, stacks."""
    with tracesmith.Writer(path) as writer:
        source = writer.source(name="sample", format="test", rank=0, world_size=1)
        process = writer.process(source=source, pid=4242, name="train", command=["python3", "train.py"])
        thread = writer.thread(process=process, tid=4243, name="main")
        device = writer.device(source=source, number=0, name="H200")
        streams = [writer.stream(device=device, number=number) for number in (7, 20)]
        main = writer.frame(name="main", file="train.py", line=3, kind="python")
        step = writer.frame(name="step", file="train.py", line=9, kind="python")
        stack = writer.stack([main, step])
        for i in range(kernels):
            at = 1_000_000 + i * 10 * NS
            writer.api_call(start=at, duration=2 * NS, thread=thread, name="cudaLaunchKernel", correlation=i + 1)
            writer.gpu_op(
                start=at + 5 * NS, duration=4 * NS, device=device, stream=streams[i % 2], process=process,
                kind="kernel", name=f"kernel_{i % 5}", correlation=i + 1, grid_x=i,
                args={"tile": i, "type": "f32", "shape": [i, 2], "ratio": 0.5, "big": 2**70, "ok": True, "no": None},
            )
            writer.counter(start=at, process=process, name="memory", args={"bytes": 1000 * i})
        writer.slice(start=1_000_000, duration=-1, thread=thread, name="unfinished", stack=stack)
        writer.slice(start=1_000_000, duration=500 * NS, thread=thread, name="ProfilerStep#1", category="user_annotation")
        writer.mark(start=1_500_000, thread=thread, name="loss", scope="global", args={"value": 1.5})
        writer.torch_trace(start=1, process=process, module="fc1", stage="forward", allocated=1.5)
        writer.meta(source=source, key="driver", value={"version": 12})


def write_names(path, count):
    """Slices, each with a name of its own; several chunks from 140,000 on."""
    with tracesmith.Writer(path) as writer:
        for number in range(count):
            writer.slice(start=number * 10, duration=5, name=f"name {number}")


class WithSample(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path = os.path.join(cls.folder.name, "sample.sbt")
        write_sample(cls.path)

    def setUp(self):
        self.trace = tracesmith.open(self.path)
        self.addCleanup(self.trace.close)

    def file(self, name):
        return os.path.join(self.folder.name, name)


class Tables(WithSample):
    def test_rows(self):
        rows = list(self.trace.gpu_op)
        self.assertEqual(len(rows), 100)
        self.assertEqual(len(self.trace.gpu_op), 100)
        first = rows[0]
        self.assertEqual(first.start, 1_005_000)
        self.assertEqual(first.duration, 4000)
        self.assertEqual((first.device_number, first.stream_number, first.device_name), (0, 7, "H200"))
        self.assertEqual((first.name, first.kind, first.process_pid), ("kernel_0", "kernel", 4242))
        self.assertIsNone(first.bytes)
        self.assertEqual(rows[1].stream_number, 20)
        self.assertEqual([row.grid_x for row in rows], list(range(100)))

    def test_every_table_can_be_read(self):
        for name in trace.TABLES:
            with self.subTest(name):
                rows = self.trace[name].to_dicts()
                self.assertEqual(len(rows), len(self.trace[name]))
                self.assertEqual(self.trace.tables.get(name, 0), 0 if name in ("state", "edge") else len(rows))
                self.assertTrue(repr(self.trace[name]).startswith(f"<Table {name}"))

    def test_values_of_all_kinds(self):
        self.assertEqual({row["name"]: row["duration"] for row in self.trace.slice.to_dicts()},
                         {"unfinished": None, "ProfilerStep#1": 500 * NS})
        unfinished = next(row for row in self.trace.slice if row.name == "unfinished")
        self.assertIsNone(unfinished.duration)
        self.assertEqual(unfinished.stack_function, "step")
        self.assertEqual(unfinished.thread_tid, 4243)
        self.assertEqual(next(iter(self.trace.mark)).scope, "global")
        self.assertEqual(next(iter(self.trace.torch_trace)).allocated, 1.5)
        self.assertEqual(next(iter(self.trace.process)).command, '["python3","train.py"]')
        self.assertEqual([row.name for row in self.trace.frame], ["main", "step"])

    def test_arguments(self):
        row = next(iter(self.trace.gpu_op(["args"])))
        self.assertEqual(
            json.loads(row.args),
            {"tile": 0, "type": "f32", "shape": [0, 2], "ratio": 0.5, "big": 2**70, "ok": True, "no": None},
        )
        self.assertNotIn("args", self.trace.gpu_op.columns)
        self.assertEqual(self.trace.gpu_op(args=True).columns[-1], "args")
        self.assertIn("args", self.trace.counter.columns)

    def test_columns_ranges_limits(self):
        table = self.trace.table("gpu_op", ["name", "start"], limit=3)
        self.assertEqual(table.columns, ["name", "start"])
        self.assertEqual([tuple(row) for row in table],
                         [("kernel_0", 1_005_000), ("kernel_1", 1_015_000), ("kernel_2", 1_025_000)])
        self.assertEqual(len(table), 3)
        part = self.trace.gpu_op(start=1_100_000, end=1_200_000)
        expected = [row for row in self.trace.gpu_op
                    if row.start <= 1_200_000 and row.start + row.duration >= 1_100_000]
        self.assertEqual(list(map(tuple, part)), list(map(tuple, expected)))
        self.assertEqual(len(part), len(expected))
        # After the start of the trace, which is that of a torch row.
        self.assertEqual(len(self.trace.gpu_op(start="1.1ms", end="@1200000")),
                         len(self.trace.gpu_op(start=1_100_001, end=1_200_000)))
        self.assertFalse(self.trace.gpu_op(start=10**12))
        self.assertEqual(len(self.trace.gpu_op(start=0, end=0)), 0)
        self.assertTrue(self.trace.gpu_op)
        self.assertFalse(self.trace.flow)

    def test_docs(self):
        self.assertEqual(self.trace.gpu_op.docs["grid_x"], "grid size in blocks")
        self.assertIn("args", self.trace.gpu_op.docs)

    def test_unknown_names(self):
        with self.assertRaisesRegex(errors.NotFoundError, "no table 'kernel'; there are string, source"):
            self.trace["kernel"]
        with self.assertRaisesRegex(AttributeError, "no table of that name"):
            self.trace.kernel
        with self.assertRaisesRegex(errors.NotFoundError, "has no column 'color'; it has start"):
            self.trace.gpu_op(["color"])
        with self.assertRaisesRegex(errors.InvalidError, "'soon' is not a valid time"):
            self.trace.gpu_op(start="soon")
        with self.assertRaisesRegex(errors.InvalidError, "column 'start' is given twice"):
            self.trace.gpu_op(["start", "name", "start"])
        with self.assertRaisesRegex(errors.InvalidError, "limit is negative"):
            self.trace.gpu_op(limit=-1)

    def test_capsules_by_the_protocol(self):
        """A consumer that knows nothing of us: it reads the structures as the specification says."""

        class Schema(ctypes.Structure):
            pass

        Schema._fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_char_p),
                           ("flags", ctypes.c_int64), ("n_children", ctypes.c_int64),
                           ("children", ctypes.POINTER(ctypes.POINTER(Schema)))]
        pointer = ctypes.pythonapi.PyCapsule_GetPointer
        pointer.restype = ctypes.c_void_p
        pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
        capsule = self.trace.gpu_op(["start", "name"]).__arrow_c_schema__()
        schema = ctypes.cast(pointer(capsule, b"arrow_schema"), ctypes.POINTER(Schema)).contents
        self.assertEqual(schema.format, b"+s")
        self.assertEqual([schema.children[i].contents.name for i in range(schema.n_children)], [b"start", b"name"])
        self.assertEqual([schema.children[i].contents.format for i in range(schema.n_children)], [b"l", b"i"])
        self.assertTrue(pointer(self.trace.gpu_op.__arrow_c_stream__(), b"arrow_array_stream"))

    def test_streams_outlive_the_trace(self):
        rows = iter(self.trace.gpu_op)
        next(rows)
        self.trace.close()
        self.assertEqual(sum(1 for _ in rows), 99)
        with self.assertRaisesRegex(ValueError, "the trace is closed"):
            len(self.trace.gpu_op)
        with self.assertRaisesRegex(ValueError, "the trace is closed"):
            self.trace.analyze("breakdown")
        self.trace.close()

    def test_threads(self):
        failures = []

        def read():
            try:
                for _ in range(5):
                    self.assertEqual(sum(row.duration for row in self.trace.gpu_op), 400 * NS)
                    self.assertEqual(len(self.trace.analyze("breakdown")), 1)
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Facts(WithSample):
    def test_info_and_meta(self):
        info = self.trace.info
        self.assertEqual(info["tables"]["gpu_op"], 100)
        self.assertEqual(info["start"], 1)
        self.assertEqual(info["devices"], [{"id": 1, "number": 0, "name": "H200", "vendor": None}])
        self.assertTrue(info["files"][0]["finished"])
        self.assertEqual(self.trace.meta, {"driver": {"version": 12}})
        self.assertEqual((self.trace.start, self.trace.end), (info["start"], info["end"]))
        self.assertIn("gpu_op", dir(self.trace))

    def test_several_traces(self):
        other = self.file("other.sbt")
        write_sample(other, kernels=10)
        with tracesmith.open([self.path, other]) as job:
            self.assertEqual(len(job), 2)
            rows = list(job.gpu_op)
            self.assertEqual([row.trace for row in rows], [0] * 100 + [1] * 10)
            self.assertEqual(job.gpu_op.columns[0], "trace")
            self.assertEqual(len(job.gpu_op), 110)
        with self.assertRaisesRegex(errors.InvalidError, "same file|twice"):
            tracesmith.open([self.path, self.path])

    def test_html(self):
        for text in self.trace._repr_html_(), self.trace.gpu_op._repr_html_(), self.trace.analyze("kernels")._repr_html_():
            self.assertTrue(text.startswith("<"), text[:40])
        text = self.trace._repr_html_()
        self.assertIn("device 0 stream 7", text)
        self.assertIn("kernel_0", text)
        self.assertIn("<polyline", text)
        self.assertNotIn("nan", text)
        self.assertEqual(text.count("<svg"), text.count("</svg>"))

    def test_html_of_many_lanes_and_values(self):
        path = self.file("many.sbt")
        with tracesmith.Writer(path) as writer:
            device = writer.device(number=0)
            for number in range(30):
                stream = writer.stream(device=device, number=number)
                writer.gpu_op(start=number, duration=9, device=device, stream=stream, kind="kernel", name="<b>")
            for number in range(30_000):
                writer.counter(start=number * 10, name=f"<{number % 2}>", args={"value": number})
        with tracesmith.open(path) as many:
            text = many._repr_html_()
        self.assertIn("; 6 rows of other streams are not shown", text)
        self.assertNotIn("<b>", text.split("gpu_op over time")[1])
        # Each counter is shown until the end.
        ends = [float(line.split()[-1].split(",")[0]) for line in re.findall('points="([^"]*)"', text)]
        self.assertEqual([end > 700 for end in ends], [True, True])

    def test_html_of_extreme_values(self):
        path = self.file("extreme.sbt")
        with tracesmith.Writer(path) as writer:
            for value in 10**400, float("nan"), float("inf"), 1e308, -1e308, "text", None, [1], True, 5:
                writer.counter(start=1, args={"value": value})
        with tracesmith.open(path) as extreme:
            text = extreme._repr_html_()
        self.assertIn("1 to 5", text)
        self.assertNotRegex(text, "[ ,](nan|inf)")


class Questions(WithSample):
    def test_analyze(self):
        result = self.trace.analyze("kernels", all=True)
        self.assertIn("kernels", self.trace.analyses())
        self.assertGreater(len(result), 0)
        self.assertIn("kernel_0", str(result))
        names = [column.key for column in result.columns]
        self.assertEqual(len(set(names)), len(names))
        self.assertEqual(result.to_dicts()[0].keys(), set(names))
        self.assertEqual(result.table.column(names[0]), [row[0] for row in result])
        with self.assertRaises(KeyError):
            result["no such table"]
        with self.assertRaises(KeyError):
            result.table.column("no such column")

    def test_long_names_and_sentences_are_shown_in_few_columns(self):
        path = self.file("long.sbt")
        with tracesmith.Writer(path) as writer:
            device = writer.device(number=0)
            stream = writer.stream(device=device, number=1)
            for i in range(9):
                writer.gpu_op(start=i * 1000, duration=9, device=device, stream=stream, kind="kernel", name="a" + 999 * "b" + "c")
        with tracesmith.open(path) as long:
            shown = str(long.analyze("kernels", all=True)["kernels"]).splitlines()[1]
            self.assertRegex(shown, " a(b+)…(b+)c ")
            self.assertLess(len(shown), 200)
            self.assertLess(len(long.gpu_op._repr_html_()), 20_000)
            self.assertIn("…", long.analyze("kernels", all=True)._repr_html_())
            self.assertEqual(len(long.analyze("kernels", all=True)["kernels"].column("name")[0]), 1001)
        top = self.trace.analyze("kernels", all=True, top=2)
        self.assertEqual(len(top), 5)
        self.assertIn("... 3 more rows", str(top))
        advice = str(self.trace.analyze("advice", all=True).table).splitlines()
        self.assertNotIn("evidence", advice[0])
        self.assertTrue(any(line.startswith("   evidence: ") for line in advice), advice)
        self.assertLessEqual(max(map(len, advice)), 80)

    def test_times_of_results_are_ns(self):
        result = self.trace.analyze("breakdown", all=True)
        row = result[0]
        self.assertIn("compute", row._fields)
        self.assertEqual(row.compute, 400 * NS)

    def test_every_column_has_a_name_of_its_own(self):
        for name in self.trace.analyses():
            for table in self.trace.analyze(name, all=True).tables.values():
                keys = [column.key for column in table.columns]
                self.assertEqual(len(keys), len(set(keys)), (name, keys))
        self.assertIn("fastest_ns", [column.key for column in self.trace.analyze("steps", all=True)["summary"].columns])

    def test_options(self):
        few = self.trace.analyze("kernels", all=True, top=2)
        self.assertTrue(any("3 more names" in note for note in few.notes), few.notes)
        self.assertEqual(few[0].name, "kernel_0")
        with self.assertRaisesRegex(errors.InvalidError, "colour"):
            self.trace.analyze("idle", colour="red")
        with self.assertRaisesRegex(errors.InvalidError, "option '--wait'"):
            self.trace.analyze("idle", wait="soon")
        self.trace.analyze("idle", wait=1500)  # ns
        with self.assertRaisesRegex(errors.InvalidError, "guesswork"):
            self.trace.analyze("guesswork")
        with self.assertRaises(TypeError):
            self.trace._job.analyze("idle", nonsense=1)

    def test_states_and_edges(self):
        rows = [row for row in self.trace.states() if row.correlation == 1]
        self.assertEqual(rows[-1].state, "running")
        self.assertEqual((rows[-1].start, rows[-1].duration), (1_005_000, 4000))
        lanes = self.trace.states(lanes=True, streams=[7])
        self.assertEqual({row.stream for row in lanes}, {7})
        launches = [row for row in self.trace.edges() if row.kind == "launch"]
        self.assertEqual(len(launches), 100)
        self.assertEqual((launches[0].from_table, launches[0].to_table), ("api_call", "gpu_op"))
        self.assertEqual(launches[0].slack, 5 * NS)
        # The same as tables, with ids.
        self.assertIn("launch", {row.kind for row in self.trace.edge})
        self.assertIn("running", {row.state for row in self.trace.state()})

    def test_diff(self):
        self.assertEqual(self.trace.diff(self.trace, all=True).outcome, "identical")
        other = self.file("diff.sbt")
        write_sample(other, kernels=50)
        with tracesmith.open(other) as fewer:
            result = self.trace.diff(fewer, all=True)
        self.assertEqual(result.outcome, "different")
        self.assertIn("changes", result.tables)

    def test_export(self):
        path = self.file("t.json.gz"[:-3])
        self.trace.export(path)
        with open(path) as file:
            events = json.load(file)
        self.assertIn("kernel_0", json.dumps(events))
        left = self.trace.export(self.file("g.csv"), table="gpu_op", limit=5)
        self.assertEqual(left, [])
        with open(self.file("g.csv")) as file:
            self.assertEqual(len(file.readlines()), 6)
        with self.assertRaisesRegex(errors.InvalidError, "is not that of a known format"):
            self.trace.export(self.file("t.unknown"))
        with self.assertRaises(IndexError):
            self.trace.export(path, trace=1)
        # What is refused leaves the file as it was.
        for options in ({"format": "vhs"}, {"table": "kernels"}):
            with self.assertRaisesRegex(errors.NotFoundError, "vhs|kernels"):
                self.trace.export(self.file("g.csv"), **options)
        with open(self.file("g.csv")) as file:
            self.assertEqual(len(file.readlines()), 6)
        for name, options, message in (
            ("g.csv", {}, "a csv file holds one table"),
            ("g.csv", {"table": "gpu_op", "start": "soon"}, "soon"),
            ("t.json", {"end": "1ms"}, "a time range has no effect on format 'chrome'"),
            ("t.json", {"table": "gpu_op"}, "table has no effect"),
            ("t.json", {"limit": 3}, "limit has no effect"),
        ):
            with self.subTest(message), self.assertRaisesRegex(errors.InvalidError, message):
                self.trace.export(self.file(name), **options)
        with self.assertRaises(errors.CanceledError):
            self.trace.export(path, progress=lambda *_: True)
        with open(self.file("g.csv")) as file:
            self.assertEqual(len(file.readlines()), 6)
        self.assertEqual([name for name in os.listdir(self.folder.name) if name.endswith(".part")], [])
        self.trace.export(path + ".gz")
        with gzip.open(path + ".gz", "rt") as file:
            self.assertEqual(json.load(file), events)
        for call in (
            lambda: self.trace.export(self.path, "chrome"),
            lambda: tracesmith.import_(path, os.path.join(self.folder.name, ".", "t.json")),
        ):
            with self.assertRaisesRegex(errors.InvalidError, "choose another name"):
                call()
        # What was exported is a trace again.
        with tracesmith.open(path) as again:
            self.assertEqual(len(again.gpu_op), 100)


class Errors(WithSample):
    def test_kinds(self):
        with self.assertRaises(errors.NotFoundError) as caught:
            tracesmith.open(self.file("missing.sbt"))
        self.assertIsInstance(caught.exception, tracesmith.Error)
        self.assertIn("missing.sbt", str(caught.exception))
        with open(self.file("noise.bin"), "wb") as file:
            file.write(os.urandom(3) + b"\0noise" * 100)
        with self.assertRaises(errors.FormatError):
            tracesmith.open(self.file("noise.bin"))
        with self.assertRaises(errors.InvalidError):
            tracesmith.open([])
        with open(self.path, "rb") as file, self.assertRaisesRegex(TypeError, "the path of the file"):
            tracesmith.open(file)
        for operand in (None, 3.5, [3.5], True, [[self.path]], self.trace):
            with self.assertRaisesRegex(TypeError, "a path, the pid of a process, or a list"):
                tracesmith.open(operand)
        for pid in (2**22 + 1, 0, 2**31 + os.getpid(), 2**70):
            with self.assertRaises(tracesmith.Error):
                tracesmith.open(pid)
        self.assertEqual(len(tracesmith.open(os.fsencode(self.path)).mark), 1)
        with self.assertRaisesRegex(errors.NotFoundError, r"'\\xff.sbt'"):
            tracesmith.open("\udcff.sbt")
        for call in (tracesmith.open, tracesmith.Writer):
            with self.assertRaisesRegex(ValueError, "null character"):
                call(self.path + "\0")
        for time in ("", "ms", "@x", "1.2.3s"):
            with self.assertRaisesRegex(errors.InvalidError, "is not a valid time"):
                self.trace.mark(start=time)
        with self.assertRaisesRegex(TypeError, "a time must be"):
            self.trace.mark(start=1.5)
        with self.assertRaisesRegex(TypeError, "tracesmith.open"):
            self.trace.diff(self.path)
        with self.assertRaises(TypeError):
            iter(self.trace)
        for pid in 0, -1, 2**32 + os.getpid(), 2**70:
            with self.assertRaisesRegex(errors.InvalidError, "the id of a process"):
                tracesmith.open(pid)

    def test_a_closed_trace_can_be_shown(self):
        table = self.trace.mark
        self.trace.close()
        for shown in repr(self.trace), self.trace._repr_html_(), repr(table), table._repr_html_():
            self.assertIn("closed", shown)

    def test_damage(self):
        with open(self.path, "rb") as file:
            data = bytearray(file.read())
        for at in range(2000, len(data) - 2000, 37):
            data[at] ^= 0x55
        damaged = self.file("damaged.sbt")
        with open(damaged, "wb") as file:
            file.write(data)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with tracesmith.open(damaged) as broken:
                with self.assertRaises((errors.FormatError, errors.VersionError)):
                    for name in trace.TABLES:
                        broken[name].to_dicts()
        self.assertTrue(all(issubclass(warning.category, errors.TraceWarning) for warning in caught))

    def test_cut_file_is_a_warning(self):
        with open(self.path, "rb") as file:
            data = file.read()
        cut = self.file("cut.sbt")
        with open(cut, "wb") as file:
            file.write(data[:-100])
        with self.assertWarns(errors.TraceWarning):
            tracesmith.open(cut).close()

    def big_json(self, events):
        path = self.file("big.json")
        with open(path, "w") as file:
            file.write('{"traceEvents":[')
            event = '{"ph":"X","ts":%d,"dur":1,"pid":1,"tid":1,"name":"work %d"}'
            file.write(",".join(event % (i, i % 100) for i in range(events)))
            file.write("]}")
        return path

    def test_progress_stops(self):
        path = self.big_json(300_000)
        calls = []

        def stop(name, done, total):
            calls.append((name, done, total))
            return True

        with self.assertRaises(errors.CanceledError):
            tracesmith.open(path, progress=stop)
        self.assertEqual(len(calls), 1)
        self.assertTrue(calls[0][0].endswith("big.json") and calls[0][1] <= calls[0][2])

        def fail(name, done, total):
            raise ZeroDivisionError

        with self.assertRaises(ZeroDivisionError):
            tracesmith.open(path, progress=fail)
        # Ctrl-C, which arrives during the import.
        def interrupt(name, done, total):
            os.kill(os.getpid(), signal.SIGINT)

        with self.assertRaises(KeyboardInterrupt):
            tracesmith.open(path, progress=interrupt)
            for _ in range(1000):
                pass
        with tracesmith.open(path) as whole:
            self.assertEqual(len(whole.slice), 300_000)

    def test_questions_inside_a_question(self):
        """Waiting for the call that reports progress would never end."""
        with tracesmith.open(self.big_json(300_000)) as big:
            failures = []

            def ask(name, done, total):
                for question in big.states, big.edges, lambda: big.analyze("breakdown"), lambda: big.diff(big), \
                        lambda: big.export(self.file("inside.json")):
                    try:
                        question()
                    except errors.BusyError as error:
                        failures.append(str(error))

            big.analyze("functions", progress=ask)
            self.assertEqual(len(failures) % 5, 0)
            self.assertIn("in use by the call that reports progress", failures[0])
            # The trace is usable as before.
            self.assertEqual(len(big.slice), 300_000)

    def test_a_child_that_is_forked_during_a_question(self):
        """The call that it would wait for goes on in the parent only."""
        ended = []

        def fork(*_):
            child = os.fork()
            if not child:
                signal.alarm(60)
                try:
                    self.trace.analyze("breakdown")
                except errors.BusyError as error:
                    os._exit("open the trace again" not in str(error))
                finally:
                    os._exit(2)
            ended.append(os.waitpid(child, 0)[1])

        self.trace.export(self.file("forked.json"), progress=fork)
        self.assertEqual(set(ended), {0})

    def test_names_that_are_not_utf8(self):
        for name in b"miss\xffing.sbt", "miss\udcffing.sbt":
            with self.assertRaisesRegex(errors.NotFoundError, r"miss\\xffing.sbt"):
                tracesmith.open(name)
        path = os.path.join(os.fsencode(self.folder.name), b"caf\xe9.json")
        with open(path, "w") as file:
            file.write('[{"ph":"X","ts":1,"dur":1,"name":"one"}]')
        names = []
        with tracesmith.open(path, progress=lambda name, done, total: names.append(name)) as one:
            self.assertEqual(len(one.slice), 1)
        self.assertEqual(set(names) - {None, os.fsdecode(path)}, set())

    def test_objects_without_a_trace(self):
        from tracesmith import _read

        for kind in _read.Job, _read.Rows:
            with self.assertRaises(TypeError):
                kind()


class Imports(WithSample):
    def test_import(self):
        path = self.file("small.json.gz")
        with gzip.open(path, "wt") as file:
            json.dump([{"ph": "X", "ts": 1.5, "dur": 2, "pid": 1, "tid": 1, "name": "one", "args": {"a": 1}}], file)
        events = tracesmith.import_(path, self.file("small.sbt"))
        self.assertEqual(events, 1)
        with tracesmith.open(self.file("small.sbt")) as small:
            row = next(iter(small.slice(args=True)))
        self.assertEqual((row.name, row.start, row.duration, row.args), ("one", 1500, 2000, '{"a":1}'))
        with self.assertRaises(errors.FormatError):
            tracesmith.import_(__file__, self.file("no.sbt"))


class Writing(WithSample):
    def test_integers_of_other_packages(self):
        class Scalar:
            def __index__(self):
                return 7

        class Vector(Scalar):
            def __index__(self):
                raise TypeError("only scalars have an index")

            def __str__(self):
                return "[1 2]"

        path = self.file("scalars.sbt")
        with tracesmith.Writer(path) as writer:
            writer.slice(start=Scalar(), args={"one": Scalar(), "in": {"it": Scalar()}, "all": Vector()})
            with self.assertRaises(TypeError):
                writer.slice(start=Vector())
        with tracesmith.open(path) as written:
            row = next(iter(written.slice(["start", "args"])))
        self.assertEqual((row.start, json.loads(row.args)), (7, {"one": 7, "in": {"it": 7}, "all": "[1 2]"}))

    def test_ids_and_rows(self):
        path = self.file("written.sbt")
        with tracesmith.Writer(path) as writer:
            first = writer.device(number=0)
            second = writer.device(number=1)
            self.assertEqual((first, second), (1, 2))
            self.assertIsNone(writer.gpu_op(start=5, duration=1, device=second, name="späte \0 kernel", kind=3))
            self.assertEqual(writer.frame(name="f"), writer.frame(name="f"))
            self.assertEqual(writer.blob(b"\0\1"), 1)
            writer.flush()
            with self.assertWarnsRegex(errors.TraceWarning, "still being written"):
                self.assertEqual(len(tracesmith.open(path).gpu_op), 1)
            writer.add("slice", start=1, name=None)
        with tracesmith.open(path) as written:
            row = next(iter(written.gpu_op))
            self.assertEqual((row.device_number, row.name, row.kind), (1, "späte \0 kernel", "fill"))
            self.assertEqual(next(iter(written.blob(["data"]))).data, b"\0\1")
            self.assertIsNone(next(iter(written.slice)).name)

    def test_refused(self):
        writer = tracesmith.Writer(self.file("refused.sbt"))
        for error, message, call in (
            (TypeError, "has no column 'colour'", lambda: writer.slice(start=1, colour="red")),
            (TypeError, "must be an int", lambda: writer.slice(start="now")),
            (TypeError, "must be a str", lambda: writer.slice(start=1, name=5)),
            (ValueError, "has no value 'drawing'", lambda: writer.gpu_op(start=1, kind="drawing")),
            (OverflowError, "", lambda: writer.slice(start=2**80)),
            (ValueError, "unknown table 'kernel'", lambda: writer.add("kernel")),
            (ValueError, "not written by row", lambda: writer.add("state", start=1)),
            (TypeError, "args must be a dict", lambda: writer.slice(start=1, args=[1])),
            (TypeError, "names of arguments", lambda: writer.slice(start=1, args={1: 1})),
            (ValueError, "no such stack", lambda: writer.stack([2**32 + 1])),
            (errors.InvalidError, "needs a start", lambda: writer.slice(name="never")),
            (errors.InvalidError, "is negative", lambda: writer.slice(start=1, duration=-5)),
            (errors.InvalidError, "larger than 64 MiB", lambda: writer.blob(bytes((64 << 20) + 1))),
            (AttributeError, "no table of that name", lambda: writer.kernel),
        ):
            with self.subTest(message), self.assertRaisesRegex(error, message):
                call()
        writer.slice(start=1)
        writer.finish()
        with self.assertRaisesRegex(ValueError, "closed"):
            writer.slice(start=1)
        with tracesmith.open(self.file("refused.sbt")) as written:
            self.assertEqual(len(written.slice), 1)
        with self.assertRaises(tracesmith.Error):
            tracesmith.Writer(self.file("no/such/folder.sbt"))

    def test_values_that_change_their_dict(self):
        class Value:
            def __str__(self):
                args.clear()
                return "changed"

        args = {"a": Value(), "b": Value(), "c": 1}
        path = self.file("changed.sbt")
        with tracesmith.Writer(path) as writer:
            writer.slice(start=1, args=args)
        with tracesmith.open(path) as written:
            self.assertEqual(next(iter(written.slice(args=True))).args, '{"a":"changed","b":"changed","c":1}')

    def test_every_row_has_a_name(self):
        """More names than a dictionary of all batches has by default."""
        path = self.file("names.sbt")
        count = 140_000
        write_names(path, count)
        with tracesmith.open(path) as many:
            for row in many.slice(["start", "name"]):
                if row.name != f"name {row.start // 10}":
                    self.fail(row)
            lanes, names, _ = many._job.overview("slice", "thread_pid", "thread_tid", 0, count * 10, 4)
            self.assertEqual(len({name for name, _, _ in names}), count)
            self.assertEqual({(total, rows) for _, total, rows in names}, {(5, 1)})
            self.assertEqual([round(share, 2) for share in lanes[0][2]], [0.5] * 4)

    def test_times_at_both_ends(self):
        path = self.file("ends.sbt")
        first, last = -(2**63) + 2, 2**63 - 2
        with tracesmith.Writer(path) as writer:
            for start in first, 0, last:
                writer.slice(start=start, duration=2**62, name="long")
        with tracesmith.open(path) as ends:
            for bins in 1, 7:
                lanes, *_ = ends._job.overview("slice", "thread_pid", "thread_tid", first, last, bins)
                self.assertEqual(len(lanes[0][2]), bins)
            self.assertIn("slice over time", ends._repr_html_())

    def test_a_writer_that_was_forgotten_keeps_rows(self):
        writer = tracesmith.Writer(self.file("forgotten.sbt"))
        writer.slice(start=1)
        with self.assertWarnsRegex(ResourceWarning, "not finished"):
            del writer
            gc.collect()
        with tracesmith.open(self.file("forgotten.sbt")) as written:
            self.assertEqual(len(written.slice), 1)

    def test_a_forked_child_leaves_the_file_alone(self):
        program = """
import os, sys, tracesmith, warnings
warnings.simplefilter("ignore")
with tracesmith.open(sys.argv[2]) as other, tracesmith.Writer(sys.argv[1]) as writer:
    writer.slice(start=1, name="parent")
    rows = iter(other.slice)
    next(rows)
    child = os.fork()
    if not child:
        for use in (lambda: writer.slice(start=2), writer.flush, lambda: next(rows)):
            try:
                use()
            except ValueError as error:
                print(error, flush=True)
        print(len(list(other.slice)), flush=True)
        del rows
        sys.exit()  # which closes the writer
    print(os.waitpid(child, 0)[1])
with tracesmith.open(sys.argv[1]) as written:
    print([row.name for row in written.slice])
"""
        arguments = [sys.executable, "-c", program, self.file("forked.sbt"), self.path]
        done = subprocess.run(arguments, stdout=subprocess.PIPE, text=True, timeout=120)
        writer = "the writer belongs to the parent process: create another one, with a different file"
        rows = "these rows belong to the parent process: iterate over the table again in this process"
        self.assertEqual(done.stdout.splitlines(), [writer, writer, rows, "2", "0", "['parent']"])

    def test_exception_keeps_rows(self):
        path = self.file("broken_off.sbt")
        with self.assertRaises(ZeroDivisionError), tracesmith.Writer(path) as writer:
            writer.slice(start=1, name="before")
            1 / 0
        with tracesmith.open(path) as written:
            self.assertEqual([row.name for row in written.slice], ["before"])

    def test_lazily_imported(self):
        code = "import tracesmith, sys; assert 'tracesmith._read' not in sys.modules; tracesmith.open"
        self.assertEqual(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]), 0)

    def test_nothing_leaks(self):
        def use():
            with tracesmith.open(self.path) as once:
                next(iter(once.gpu_op))
                once.gpu_op.__arrow_c_stream__()
                once.analyze("kernels")

        use()
        gc.collect()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(20):
            use()
        gc.collect()
        self.assertEqual(len(os.listdir("/proc/self/fd")), before)


class Live(unittest.TestCase):
    CODE = """
import os, tracesmith
tracesmith.start("live.sbt")
for number in range(5):
    with tracesmith.span("step", "train", number=number):
        pass
tracesmith.flush()
with tracesmith.open(os.getpid()) as trace:
    print([row.args for row in trace.slice(["args"])])
tracesmith.stop()
"""

    def test_this_process(self):
        if "TRACESMITH_RECORDER" not in os.environ:
            print(f"skip: {self.id()}: TRACESMITH_RECORDER does not name a recorder")
            self.skipTest("no recorder")
        package = os.path.dirname(os.path.dirname(os.path.abspath(tracesmith.__file__)))
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", self.CODE], cwd=folder, stdout=subprocess.PIPE, check=True,
                                  env=dict(os.environ, PYTHONPATH=package))
        self.assertEqual(done.stdout.decode().strip(), str([f'{{"number":{number}}}' for number in range(5)]))


class WithPackages(WithSample):
    def test_pyarrow_equals_csv(self):
        """Every cell as pyarrow reads it, against the CSV of the tool."""
        need(self, "pyarrow")
        import csv

        for name in trace.TABLES:
            if name in ("state", "edge", "string", "blob"):
                continue
            path = self.file("table.csv")
            self.trace.export(path, table=name)
            with open(path, newline="") as file:
                expected = list(csv.DictReader(file, strict=True))
            table = self.trace.table(name, [column for column in self.trace[name].docs])
            found = table.to_arrow()
            found.validate(full=True)
            rows = found.to_pylist()
            self.assertEqual(len(rows), len(expected), name)
            for row, cells in zip(rows, expected):
                for column, cell in cells.items():
                    value = row[column]
                    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
                    self.assertEqual(text, cell, (name, column))

    def test_pandas(self):
        pandas, _ = need(self, "pandas", "pyarrow")
        frame = self.trace.gpu_op.to_pandas()
        self.assertEqual(list(frame.columns), self.trace.gpu_op.columns)
        self.assertEqual(frame.start.tolist(), [row.start for row in self.trace.gpu_op])
        self.assertEqual(str(frame.name.dtype), "category")
        sums = frame.groupby("name", observed=True).duration.sum()
        self.assertEqual(sums.to_dict(), {f"kernel_{i}": 20 * 4 * NS for i in range(5)})
        # No ns is lost where values are missing.
        slices = self.trace.slice.to_pandas()
        self.assertEqual(str(slices.duration.dtype), "Int64")
        self.assertTrue(slices[slices.name == "unfinished"].duration.isna().all())
        self.assertEqual(int(slices[slices.name != "unfinished"].duration.iloc[0]), 500 * NS)
        self.assertEqual(str(frame.queued.dtype), "Int64")
        frame.loc[0, "queued"] = 5
        self.assertEqual(frame.submitted.isna().sum(), 100)
        self.assertEqual(self.trace.analyze("kernels", all=True).to_pandas().shape[0], len(self.trace.analyze("kernels", all=True)))
        self.assertEqual(len(self.trace.flow.to_pandas()), 0)
        self.assertIsInstance(pandas.DataFrame(self.trace.states().to_dicts()), pandas.DataFrame)

    def test_polars(self):
        polars = need(self, "polars")
        frame = self.trace.gpu_op.to_polars()
        self.assertEqual(frame.height, 100)
        self.assertEqual(frame["duration"].sum(), 400 * NS)
        joined = frame.join(self.trace.stream.to_polars(), left_on="stream", right_on="id", suffix="_of")
        self.assertEqual(joined["number"].to_list(), frame["stream_number"].to_list())
        self.assertEqual(polars.DataFrame(self.trace.state)["state"].null_count(), 0)

    def test_duckdb(self):
        duckdb, _ = need(self, "duckdb", "pyarrow")
        for kernels in self.trace.gpu_op, self.trace.gpu_op.to_arrow():
            found = duckdb.sql("SELECT name, sum(duration), count(*) FROM kernels GROUP BY 1 ORDER BY 1").fetchall()
            self.assertEqual(found, [(f"kernel_{i}", 20 * 4 * NS, 20) for i in range(5)])

    def test_missing_packages_are_named(self):
        hidden = {name: sys.modules.get(name) for name in ("pandas", "pyarrow", "polars")}
        sys.modules.update(dict.fromkeys(hidden))
        try:
            for name in "arrow", "pandas", "polars":
                with self.assertRaisesRegex(ImportError, "pip install 'tracesmith"):
                    getattr(self.trace.gpu_op, f"to_{name}")()
        finally:
            for name, module in hidden.items():
                if module is None:
                    del sys.modules[name]
                else:
                    sys.modules[name] = module


if __name__ == "__main__":
    unittest.main()
