# SPDX-License-Identifier: Apache-2.0
"""Programs that record themselves: tracesmith.record(), start(), stop(), python3 -m tracesmith."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import unittest

from support import PATIENCE, TOOL, ProgramTest, await_that, is_finished, rows


class Record(ProgramTest):
    def test_a_block_is_recorded_and_summarized(self):
        output = self.run_program("""
            import os, threading, tracesmith

            tracesmith.instant("before")
            with tracesmith.record(os.environ["OUT"]) as recording:
                assert tracesmith.is_enabled() and recording.summary is None
                with tracesmith.span("inside", "test"):
                    thread = threading.Thread(target=tracesmith.instant, args=("thread",))
                    thread.start()
                    thread.join()
            assert not tracesmith.is_enabled()
            tracesmith.instant("after")
            summary = recording.summary
            assert (summary.events, summary.lost) == (2, 0)
            assert (summary.processes, summary.threads) == (1, 2)
            assert summary.bytes == os.path.getsize(summary.path) and summary.cuda == "no"
            print(summary)
        """)
        self.assertRegex(
            output, r"^/.*/t\.sbt: 2 events of 1 process and 2 threads, [0-9.]+ KiB\n$"
        )
        self.assertEqual({row["name"] for row in rows(self.path("t.sbt"))}, {"inside", "thread"})

    def test_the_same_path_twice_and_others_in_turn(self):
        self.run_program("""
            import os, tracesmith

            for i in range(6):
                name = ["t.sbt", "other.sbt"][i % 2]
                with tracesmith.record(name, children=i % 3 == 0) as recording:
                    with tracesmith.span("cycle", i=i):
                        pass
                assert recording.summary.events == 1, recording.summary
        """)
        for name, last in (("t.sbt", 4), ("other.sbt", 5)):
            self.assertEqual([row["args"] for row in rows(self.path(name))], [{"i": last}])

    def test_children_that_are_forked_and_executed(self):
        with open(self.path("child.py"), "w", encoding="utf-8") as child:
            child.write(
                "import sys, tracesmith\n"
                "with tracesmith.span('child', n=int(sys.argv[1])): pass\n"
            )
        self.run_program("""
            import multiprocessing, os, subprocess, sys, tracesmith

            def work(n):
                with tracesmith.span("worker", n=n):
                    pass

            if __name__ == "__main__":
                with tracesmith.record("t.sbt") as recording:
                    for method in ("fork", "spawn"):
                        context = multiprocessing.get_context(method)
                        process = context.Process(target=work, args=(1,))
                        process.start()
                        process.join()
                        assert process.exitcode == 0
                    subprocess.run([sys.executable, "child.py", "2"], check=True)
                assert "TRACESMITH_AGENT" not in os.environ
                assert recording.summary.processes >= 3, recording.summary
                subprocess.run([sys.executable, "child.py", "3"], check=True)
                with tracesmith.record("alone.sbt", children=False):
                    subprocess.run([sys.executable, "child.py", "4"], check=True)
        """)
        found = rows(self.path("t.sbt"))
        self.assertEqual([row["name"] for row in found].count("worker"), 2)
        self.assertEqual([row["args"]["n"] for row in found if row["name"] == "child"], [2])
        self.assertEqual(rows(self.path("alone.sbt")), [])

    def test_flight_mode_is_the_beginning_of_a_recording(self):
        self.run_program("""
            import tracesmith

            tracesmith.start()
            for i in range(2000):
                tracesmith.instant("kept", i=i)
            tracesmith.start("t.sbt")
            tracesmith.instant("recorded")
            assert tracesmith.stop().events == 2001
            tracesmith.start()
            tracesmith.instant("forgotten")
            assert tracesmith.stop() is None
            with tracesmith.record("empty.sbt"):
                pass
        """)
        self.assertEqual(len(rows(self.path("t.sbt"))), 2001)
        self.assertEqual(rows(self.path("empty.sbt")), [])

    def test_flight_mode_is_readable_after_a_kill(self):
        process = self.start("""
            import sys, tracesmith

            tracesmith.start()
            for i in range(3000):
                tracesmith.instant("kept", i=i)
            print("ready", flush=True)
            sys.stdin.read()
        """)
        self.assertEqual(process.stdout.readline(), "ready\n")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        subprocess.run(
            [TOOL, "recover", str(process.pid), "-o", self.path("t.sbt")],
            env=self.environment(),
            check=True,
            capture_output=True,
        )
        self.assertEqual(
            [row["args"]["i"] for row in rows(self.path("t.sbt"))], [*range(3000)]
        )

    def folder_of_others(self) -> str:
        os.mkdir(self.path("others"))
        os.chmod(self.path("others"), 0o755)
        return self.path("others")

    def test_errors_name_cause_and_remedy(self):
        output = self.run_program("""
            import errno, os, tracesmith

            def error(call):
                try:
                    call()
                except RuntimeError as problem:
                    print(errno.errorcode[problem.errno], problem)

            error(tracesmith.stop)
            tracesmith.start("t.sbt")
            error(lambda: tracesmith.start("other.sbt"))
            tracesmith.stop()
            error(tracesmith.stop)
            os.environ["TRACESMITH_RECORDER"] = "/nonexistent"
            error(lambda: tracesmith.start("t.sbt"))
            error(lambda: tracesmith.start(""))
            error(lambda: tracesmith.start("x" * 2000))
            error(lambda: tracesmith.start("%r.sbt"))
            error(lambda: tracesmith.start("folder/"))
        """)
        # Before the first start, a live directory that is not the user's alone.
        output += self.run_program(
            """
            import errno, tracesmith

            try:
                tracesmith.start("t.sbt")
            except RuntimeError as problem:
                print(errno.errorcode[problem.errno], problem)
            """,
            TRACESMITH_LIVE_DIR=self.folder_of_others(),
        )
        lines = output.splitlines()
        self.assertEqual(
            [line.split()[0] for line in lines],
            ["ESRCH", "EBUSY", "ESRCH", "ENOENT", "EINVAL", "EINVAL", "EINVAL", "EINVAL", "EPERM"],
        )
        self.assertIn("already being recorded", lines[1])
        self.assertIn("call stop()", lines[1])
        self.assertIn("name of a file", lines[7])
        self.assertRegex(lines[8], r"other users can access .*/others' \(chmod 700")
        self.assertIn("TRACESMITH_RECORDER", lines[3])
        self.assertIn("empty", lines[4])
        self.assertIn("too long", lines[5])
        self.assertIn("rank is unknown", lines[6])

    def test_any_kind_of_path(self):
        self.run_program("""
            import os, pathlib, tracesmith

            for path in (b"bytes.sbt", pathlib.Path("path"), "Umlaut ä.sbt", b"raw \\xff.sbt"):
                with tracesmith.record(path) as recording:
                    tracesmith.instant("stored")
                name = os.fsdecode(path).replace(".sbt", "") + ".sbt"
                assert recording.path == os.path.abspath(name), recording.path
                assert recording.summary.bytes == os.path.getsize(name), recording.summary
                assert recording.summary.events == 1, recording.summary
        """)

    def test_paths_have_patterns(self):
        output = self.run_program(
            """
            import os, tracesmith

            with tracesmith.record("job/rank%r-%q{NAME}-%p.sbt") as recording:
                tracesmith.instant("stored")
            assert recording.path == recording.summary.path
            assert recording.summary.events == 1 and str(os.getpid()) in recording.path
            print(recording.path)
            """,
            RANK="3",
            WORLD_SIZE="8",
            NAME="x",
        )
        self.assertIn("/job/rank3-x-", output)
        self.assertEqual([row["name"] for row in rows(output.strip())], ["stored"])

    def test_a_program_that_is_recorded_cannot_record_itself(self):
        self.run_program(
            """
            import tracesmith

            tracesmith.instant("first")
            try:
                with tracesmith.record("other.sbt"):
                    raise AssertionError
            except RuntimeError:
                tracesmith.instant("refused")
            """,
            TRACESMITH_OUT=self.path("t.sbt"),
        )
        self.assertEqual([row["name"] for row in rows(self.path("t.sbt"))], ["first", "refused"])

    def test_redaction_stores_no_strings_of_arguments(self):
        self.run_program("""
            import logging, tracesmith

            logging.getLogger().addHandler(tracesmith.LoggingHandler())
            with tracesmith.record("t.sbt", redact=True):
                with tracesmith.span("name", prompt="secret", n=1):
                    logging.warning("also secret")
        """)
        with open(self.path("t.sbt"), "rb") as trace:
            self.assertNotIn(b"secret", trace.read())
        found = {row["name"]: row.get("args") for row in rows(self.path("t.sbt"))}
        self.assertEqual(found["name"], {"n": 1})
        self.assertIn("log", found)

    def test_an_exception_leaves_the_block_and_the_file_is_complete(self):
        self.run_program("""
            import tracesmith

            try:
                with tracesmith.record("t.sbt"):
                    tracesmith.instant("stored")
                    raise KeyError("mine")
            except KeyError as error:
                assert error.args == ("mine",)
            assert not tracesmith.is_enabled()
        """)
        self.assertEqual([row["name"] for row in rows(self.path("t.sbt"))], ["stored"])

    def test_a_block_may_be_stopped_and_left_by_a_child(self):
        self.run_program("""
            import os, sys, tracesmith

            with tracesmith.record("a.sbt") as first:
                tracesmith.stop()
                with tracesmith.record("b.sbt") as second:
                    tracesmith.instant("stored")
                    try:
                        with tracesmith.record("c.sbt"):
                            pass
                    except tracesmith.recording.RecordingError as error:
                        assert "already being recorded" in str(error)
                    tracesmith.instant("stored")
            assert (first.summary.events, second.summary.events) == (0, 2)
            child = 0
            with tracesmith.record("d.sbt") as recording:
                child = os.fork()
                tracesmith.instant("stored")
            if not child:
                sys.exit(recording.summary is not None)
            assert os.waitpid(child, 0)[1] == 0
            assert recording.summary.processes == 2, recording.summary
        """)

    def test_a_program_that_ends_or_is_killed_without_a_stop(self):
        self.run_program("import tracesmith; tracesmith.start('t.sbt'); tracesmith.instant('end')")
        self.assertEqual([row["name"] for row in rows(self.path("t.sbt"))], ["end"])
        os.remove(self.path("t.sbt"))
        process = self.start("""
            import sys, tracesmith

            with tracesmith.record("t.sbt"):
                for i in range(500):
                    tracesmith.instant("mark", i=i)
                print("ready", flush=True)
                sys.stdin.read()
        """)
        self.assertEqual(process.stdout.readline(), "ready\n")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        await_that(lambda: is_finished(self.path("t.sbt")), "the end of the recorder")
        self.assertEqual([row["args"]["i"] for row in rows(self.path("t.sbt"))], [*range(500)])

    def test_a_recorder_that_is_killed_is_reported_and_nothing_is_lost(self):
        output = self.run_program("""
            import os, signal, tracesmith

            tracesmith.start("t.sbt")
            tracesmith.instant("first")
            assert tracesmith.flush()
            for name in os.listdir("/proc"):
                try:
                    with open(f"/proc/{name}/cmdline", "rb") as file:
                        words = file.read().split(b"\\0")
                except (OSError, ValueError):
                    continue
                if b"--detached" in words and os.path.abspath("t.sbt").encode() in words:
                    os.kill(int(name), signal.SIGKILL)
            tracesmith.instant("second")
            try:
                tracesmith.stop()
            except RuntimeError as error:
                print(error)
        """)
        self.assertIn("exited early", output)
        self.assertIn("tracesmith recover", output)

    def test_an_unwritable_output_is_recorded_elsewhere(self):
        os.mkdir(self.path("tmp"))
        output = self.run_program(
            """
            import tracesmith

            with tracesmith.record("missing/it's") as recording:
                tracesmith.instant("stored")
            print(recording.summary.path)
            print(recording.summary)
            """,
            TMPDIR=self.path("tmp"),
        )
        path = output.splitlines()[0]
        self.assertTrue(path.startswith(self.path("tmp")), output)
        self.assertIn("No such file or directory", output)
        self.assertEqual([row["name"] for row in rows(path)], ["stored"])


class Cuda(ProgramTest):
    """With a stand-in for the driver, whose device activity nobody can record."""

    def driver(self) -> str:
        return os.path.join(os.environ.get("TS_BUILD", ""), "tests/cuda/driver/libcuda.so.1")

    def test_what_is_recorded_of_cuda_is_said(self):
        if not os.path.exists(self.driver()):
            self.skipTest("no stand-in driver: TS_BUILD is not set, or it was not built")
        output = self.run_program(
            """
            import contextlib, ctypes, importlib, os, pathlib, sys, time, types, tracesmith, tracesmith.recording

            def until(waiting):
                names = None
                while names is None or ("ts-cuda-wait\\n" in names) != waiting:
                    time.sleep(0.01)
                    names = []
                    for task in os.listdir("/proc/self/task"):
                        with contextlib.suppress(OSError):
                            names.append(open(f"/proc/self/task/{task}/comm").read())

            tracesmith.recording._DEVICES = ()
            with tracesmith.record("no-driver.sbt") as recording:
                assert recording.cuda == "no"
            tracesmith.recording._DEVICES = ("/dev/null",)
            pathlib.Path("cupy.py").write_text("import ctypes, os; ctypes.CDLL(os.environ['DRIVER'])")
            with tracesmith.record("imported.sbt") as recording:
                assert recording.cuda == "cupti"
                until(waiting=False)
                importlib.invalidate_caches()
                import json.tool, cupy
                until(waiting=True)
            until(waiting=False)
            assert recording.cuda == "no" and not recording.summary.notice
            driver = ctypes.CDLL(os.environ["DRIVER"])
            torch = sys.modules["torch.autograd.profiler"] = types.ModuleType("profiler")
            torch._is_profiler_enabled = True
            with tracesmith.record("profiling.sbt") as recording:
                assert recording.cuda == "no"
            assert "CUDA was not recorded: torch.profiler is running" in str(recording.summary)
            torch._is_profiler_enabled = False
            class profile:  # as torch.profiler's: it warms up, and has ended
                profiler = types.SimpleNamespace(kineto_results=None)
            sys.modules["torch.profiler.profiler"] = types.SimpleNamespace(profile=profile)
            torch.KinetoStepTracker = types.SimpleNamespace(_step_dict={"ProfilerStep": {}})
            each = profile()
            with tracesmith.record("warming-up.sbt") as recording:
                assert recording.cuda == "no"
            profile.profiler.kineto_results = object()
            with tracesmith.record("not-used.sbt") as recording:
                assert recording.cuda == "cupti"
                until(waiting=True)
            assert (recording.cuda, recording.summary.cuda) == ("no", "no")
            assert recording.summary.notice == ""
            for name in "first.sbt", "second.sbt":
                with tracesmith.record(name) as recording:
                    assert recording.cuda == "cupti"
                    until(waiting=name == "first.sbt")
                    driver.cuInit(0)
                    until(waiting=False)
                assert (recording.cuda, recording.summary.cuda) == ("no", "no")
                print(recording.summary)
            with tracesmith.record("without.sbt", cuda=False) as recording:
                pass
            assert (recording.cuda, recording.summary.notice) == ("no", "")
            """,
            DRIVER=self.driver(),
            NSYS_STAND_IN="1",
        )
        for line in output.splitlines():
            self.assertIn("CUDA was not recorded: the program runs under Nsight", line)
        self.assertEqual(len(output.splitlines()), 2)

    def test_a_driver_that_comes_unnoticed_is_said(self):
        if not os.path.exists(self.driver()):
            self.skipTest("no stand-in driver: TS_BUILD is not set, or it was not built")
        output = self.run_program(
            """
            import ctypes, os, sys, tracesmith, tracesmith.recording

            tracesmith.recording._DEVICES = ("/dev/null",)
            for name in "first.sbt", "second.sbt":
                with tracesmith.record(name) as recording:
                    assert recording.cuda == "cupti"
                    ctypes.CDLL(os.environ["DRIVER"])
                print(recording.cuda, recording.summary.notice)
            assert sys.meta_path.count(tracesmith.recording._cuda_imports) == 1
            """,
            DRIVER=self.driver(),
        )
        first, second = output.splitlines()
        self.assertTrue(first.startswith("no CUDA was not recorded: the driver was loaded during"))
        self.assertEqual(second, "no ")


class Module(ProgramTest):
    """python3 -m tracesmith."""

    def run_module(self, *arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tracesmith", *arguments],
            cwd=self.folder,
            env=self.environment(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def setUp(self) -> None:
        super().setUp()
        with open(self.path("train.py"), "w", encoding="utf-8") as program:
            program.write(
                "import sys, tracesmith\n"
                "with tracesmith.span('train', lr=float(sys.argv[1])): print(__name__)\n"
                "sys.exit(int(sys.argv[2]))\n"
            )

    def test_a_script_is_recorded_with_its_arguments(self):
        result = self.run_module("train.py", "0.5", "3")
        self.assertEqual((result.returncode, result.stdout), (3, "__main__\n"), result.stderr)
        train = rows(self.path("train.sbt"), "--name", "train")
        self.assertEqual([row["args"] for row in train], [{"lr": 0.5}])

    def test_options_go_to_the_recorder(self):
        result = self.run_module("-q", "-o", "o.sbt", "-m", "train", "1", "0")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(len(rows(self.path("o.sbt"), "--name", "train")), 1)
        result = self.run_module("-q", "--output=c.sbt", "-c", "import train", "2", "0")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(len(rows(self.path("c.sbt"), "--name", "train")), 1)

    def test_a_program_from_standard_input(self):
        result = self.run_module("-q", "-", "3", "0", stdin="import train")
        self.assertEqual((result.returncode, result.stdout), (0, "train\n"), result.stderr)
        self.assertEqual(len(rows(self.path("python.sbt"), "--name", "train")), 1)

    def test_usage(self):
        for arguments in (), ("-o",), ("-o", "t.sbt"), ("-m",), ("-c",):
            self.assertEqual(self.run_module(*arguments).returncode, 2, arguments)
        self.assertEqual(sorted(os.listdir(self.folder)), ["live", "train.py"])
        result = self.run_module("--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("usage: python3 -m tracesmith", result.stdout)


if __name__ == "__main__":
    unittest.main()
