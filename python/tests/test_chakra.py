# SPDX-License-Identifier: Apache-2.0
"""Windows by a flag file: one file set a process and window, with exactly its steps; and nothing
that goes wrong reaches the program.

Workers are forked from this process, which has imported torch but has run none of it.
"""

from __future__ import annotations

import contextlib
import glob
import io
import json
import multiprocessing
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import types
import unittest
from typing import Any, Callable

from tracesmith.chakra import ChakraTraceManager, Settings, get_global_manager, torch_window

try:
    import torch
    import torch._inductor.config  # what the profiler imports at its first start
except ImportError as error:
    torch = None
    no_torch = f"{sys.executable} has no torch: {error}"

needs_torch = unittest.skipIf(torch is None, "" if torch else no_torch)
# The files of a window. PyTorch 2.0 writes no execution traces.
KINDS = ["pytorch_et", "kineto"]
if torch and not hasattr(torch.profiler, "ExecutionTraceObserver"):
    KINDS = ["kineto"]
needs_all_threads = unittest.skipIf(
    torch is not None and torch_window._config(torch, False) is None,
    "the profiler of this PyTorch sees one thread",
)
fork = multiprocessing.get_context("fork")
TOOL = os.environ.get("TRACESMITH", "tracesmith")
LIMIT_S = 300


def await_condition(condition: Callable[[], Any], what: str) -> Any:
    """Waits until it holds, and returns its value."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f"never: {what}")


def work() -> None:
    """One step of a model."""
    model = torch.nn.Linear(8, 4)
    model(torch.ones(2, 8)).sum().backward()


def steps_of(kineto: dict) -> list[int]:
    names = [event["name"] for event in kineto["traceEvents"] if event.get("ph") == "X"]
    return sorted(int(name[13:]) for name in names if re.fullmatch(r"ProfilerStep#\d+", name))


class Worker:
    """A process that does what it is told: names of functions below, and their arguments."""

    def __init__(self, directory: str, flag: str, **arguments: Any) -> None:
        self.connection, other = fork.Pipe()
        self.errors = os.path.join(directory, "errors")
        self.errors += str(len(glob.glob(self.errors + "*")))
        options = {"trace_dir": os.path.join(directory, "traces"), "flag": flag, **arguments}
        self.process = fork.Process(target=self._serve, args=(other, options), daemon=False)
        self.process.start()
        other.close()
        self.pid = self.process.pid

    def _serve(self, connection: Any, options: dict) -> None:
        errors = os.open(self.errors, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(errors, 2)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        torch.set_num_threads(1)
        manager = ChakraTraceManager(**options)
        while True:
            try:
                name, arguments = connection.recv()
            except EOFError:
                return
            if name == "leave":
                return
            connection.send(globals()[name](manager, *arguments))

    def send(self, function: Callable, *arguments: Any) -> None:
        self.connection.send((function.__name__, arguments))

    def receive(self) -> Any:
        if not self.connection.poll(LIMIT_S):
            raise AssertionError(f"worker {self.pid} does not answer: {self.said()}")
        return self.connection.recv()

    def call(self, function: Callable, *arguments: Any) -> Any:
        self.send(function, *arguments)
        return self.receive()

    def leave(self) -> int:
        with contextlib.suppress(OSError):
            self.connection.send(("leave", ()))
        self.process.join(LIMIT_S)
        return self.process.exitcode

    def said(self) -> str:
        with open(self.errors, encoding="utf-8") as file:
            return file.read()

    def lines(self, pattern: str) -> list[str]:
        return [
            line
            for line in self.said().splitlines()
            if line.startswith("tracesmith:") and re.search(pattern, line)
        ]


# ---- what workers do ----


def tick(manager: ChakraTraceManager, count: int = 1) -> bool:
    is_open = False
    for _ in range(count):
        is_open = manager.tick_by_flag()
        work()
    return is_open


def written(manager: ChakraTraceManager) -> list[str]:
    manager.wait()
    return manager.files


def tick_and_hang(manager: ChakraTraceManager) -> None:
    tick(manager)
    signal.pause()


def start_and_step(manager: ChakraTraceManager, count: int) -> list[str]:
    with manager:
        for _ in range(count):
            work()
            manager.step()
    return manager.files


def tick_in_threads(manager: ChakraTraceManager, threads: int, count: int) -> None:
    # All are there at once: thread ids are reused.
    barrier = threading.Barrier(threads)

    def run() -> None:
        barrier.wait()
        tick(manager, count)
        barrier.wait()

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


def tick_in_a_thread(manager: ChakraTraceManager) -> bool:
    answers: list[bool] = []
    thread = threading.Thread(target=lambda: answers.append(manager.tick_by_flag()))
    thread.start()
    thread.join()
    return answers[0]


def serve_calls(manager: ChakraTraceManager, count: int) -> None:
    call = manager.wrap(work)
    for _ in range(count):
        call()


def fork_a_child(manager: ChakraTraceManager, ticks: int) -> int:
    pid = os.fork()
    if pid == 0:
        # Without a backward pass: if there is a GPU, PyTorch refuses it in a forked child.
        with torch.no_grad():
            for _ in range(100):
                torch.ones(8, 8).sum()
        tick(manager, ticks)
        # PyTorch's destructors hang in a child of a process that has used its profiler.
        manager._finish()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def load_data(manager: ChakraTraceManager) -> int:
    from torch.utils.data import DataLoader

    loader = DataLoader(torch.arange(32.0), batch_size=4, num_workers=2)
    return sum(len(batch) for batch in loader)


def tick_in_a_users_profiler(manager: ChakraTraceManager) -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        tick(manager, 2)
    return len(profiler.events())


def use_a_profiler(manager: ChakraTraceManager) -> int:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        work()
    return len(profiler.events())


def break_step(manager: ChakraTraceManager) -> bool:
    """As if PyTorch failed inside a window."""

    def fails(thread: int, number: int) -> None:
        raise RuntimeError("injected")

    manager._window.step = fails
    return tick(manager, 3)


def limit_file_size(manager: ChakraTraceManager, size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def handle_sigterm(manager: ChakraTraceManager) -> None:
    def handler(number: int, frame: Any) -> None:
        manager.tick_by_flag()
        os._exit(42)

    signal.signal(signal.SIGTERM, handler)


def sigterm_is_default(manager: ChakraTraceManager) -> bool:
    return signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


class Case(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.flag = os.path.join(self.directory, "flag")
        self.traces = os.path.join(self.directory, "traces")
        self.workers: list[Worker] = []
        self.addCleanup(self.end_workers)

    def worker(self, **arguments: Any) -> Worker:
        worker = Worker(self.directory, self.flag, **arguments)
        self.workers.append(worker)
        return worker

    def end_workers(self) -> None:
        for worker in self.workers:
            if worker.process.is_alive():
                worker.process.kill()
            worker.process.join()

    def touch(self) -> None:
        with open(self.flag, "w"):
            pass

    def remove(self) -> None:
        os.unlink(self.flag)

    def names(self) -> list[str]:
        return sorted(os.listdir(self.traces)) if os.path.isdir(self.traces) else []

    def check_set(self, pid: int, steps: int, windows: int = 1) -> None:
        """The files of this process: parsed, complete, and of the same operators."""
        for kind in KINDS:
            self.assertEqual(len(self.files(kind, pid)), windows, f"{kind}: {self.names()}")
        for path in self.files("kineto", pid):
            with open(path, encoding="utf-8") as file:
                kineto = json.load(file)
            self.assertEqual(steps_of(kineto), list(range(steps)))
            if "pytorch_et" not in KINDS:
                continue
            with open(path.replace("kineto_", "pytorch_et_"), encoding="utf-8") as file:
                et = json.load(file)
            self.assertEqual(et["pid"], pid)
            self.assertGreaterEqual(et["finish_ts"], et["start_ts"])
            roots = [node for node in et["nodes"] if node["id"] == 1]
            self.assertEqual(
                [node["name"] for node in roots], ["[pytorch|profiler|execution_trace|process]"]
            )
            self.check_links(et, kineto, steps)

    def check_links(self, et: dict, kineto: dict, steps: int) -> None:
        names = {}
        for node in et["nodes"]:
            handle = next(item["value"] for item in node["attrs"] if item["name"] == "rf_id")
            if handle:
                names[handle] = node["name"]
        events = {
            event["args"]["Record function id"]: event["name"]
            for event in kineto["traceEvents"]
            if event.get("args", {}).get("Record function id")
        }
        self.assertEqual(names, events)
        for name in ("aten::linear", "autograd::engine::evaluate_function: AddmmBackward0"):
            self.assertGreaterEqual(list(names.values()).count(name), steps, name)

    def files(self, kind: str, pid: int) -> list[str]:
        pattern = re.compile(rf"{kind}_pid{pid}_\d{{13,}}\.json")
        return [
            os.path.join(self.traces, name) for name in self.names() if pattern.fullmatch(name)
        ]


class Configuration(unittest.TestCase):
    def settings(self, arguments: dict | None = None, **environment: str) -> Settings:
        settings, complaints = Settings.from_environment(arguments, environment)
        self.assertEqual(complaints, [])
        return settings

    def test_defaults(self):
        settings = self.settings()
        self.assertTrue(settings.enabled)
        self.assertEqual(settings.trace_dir, os.path.join(os.getcwd(), "chakra_traces"))
        self.assertEqual(settings.flag, "/tmp/vllm_chakra_trace_on")
        self.assertTrue(settings.record_shapes)
        for name in ("auto_convert", "with_stack", "profile_memory", "sync_cuda", "debug"):
            self.assertFalse(getattr(settings, name), name)
        self.assertEqual(settings.max_steps, 0)
        self.assertEqual(settings.mode, "torch")

    def test_old_names(self):
        settings = self.settings(
            VLLM_CHAKRA_TRACE="false",
            VLLM_CHAKRA_TRACE_DIR="/a",
            VLLM_CHAKRA_FLAG="/b",
            VLLM_CHAKRA_AUTO_CONVERT="1",
            VLLM_CHAKRA_RECORD_SHAPES="0",
            VLLM_CHAKRA_WITH_STACK="1",
            VLLM_CHAKRA_PROFILE_MEMORY="true",
            VLLM_CHAKRA_SYNC_CUDA="1",
            VLLM_CHAKRA_DEBUG="1",
            VLLM_CHAKRA_TRACE_MAX_STEPS="7",
        )
        self.assertEqual(
            settings, Settings(False, "/a", "/b", True, False, True, True, True, True, 7, "torch")
        )

    def test_new_names_win_over_old_ones_and_arguments_over_both(self):
        names = {"VLLM_CHAKRA_FLAG": "/old", "VLLM_CHAKRA_TRACE_MAX_STEPS": "1"}
        self.assertEqual(self.settings(**names, TRACESMITH_CHAKRA_FLAG="/new").flag, "/new")
        self.assertEqual(self.settings(**names, TRACESMITH_CHAKRA_FLAG="").flag, "/old")
        names["TRACESMITH_CHAKRA_FLAG"] = "/new"
        self.assertEqual(self.settings({"flag": "/argument"}, **names).flag, "/argument")
        self.assertEqual(self.settings({"max_steps": 0}, **names).max_steps, 0)

    def test_bad_values_are_named_and_ignored(self):
        settings, complaints = Settings.from_environment(
            None, {"VLLM_CHAKRA_TRACE_MAX_STEPS": "many", "TRACESMITH_CHAKRA_DEBUG": "perhaps"}
        )
        self.assertEqual((settings.max_steps, settings.debug), (0, False))
        self.assertEqual(len(complaints), 2)
        self.assertIn("VLLM_CHAKRA_TRACE_MAX_STEPS='many'", " ".join(complaints))
        for number in (-1, "3"):
            with self.assertRaisesRegex(ValueError, "max_steps .*: expected a number"):
                self.settings({"max_steps": number})
        with self.assertRaises(TypeError):
            Settings.from_environment({"no_such_setting": 1}, {})

    def test_plug_ins_ask_whether_windows_are_wanted(self):
        self.assertFalse(Settings.is_requested({}))
        self.assertTrue(Settings.is_requested({"VLLM_CHAKRA_TRACE_DIR": "/a"}))
        self.assertTrue(Settings.is_requested({"TRACESMITH_CHAKRA_TRACE": "1"}))
        self.assertFalse(
            Settings.is_requested({"VLLM_CHAKRA_TRACE": "0", "VLLM_CHAKRA_TRACE_DIR": "/a"})
        )

    def test_shim(self):
        from chakra_trace.manager import get_global_manager as shimmed

        self.assertIs(shimmed, get_global_manager)
        self.assertIs(shimmed(), get_global_manager())

    def test_off(self):
        with tempfile.NamedTemporaryFile() as flag, tempfile.TemporaryDirectory() as directory:
            manager = ChakraTraceManager(enabled=False, flag=flag.name, trace_dir=directory)
            self.assertFalse(manager.tick_by_flag())
            self.assertFalse(manager.start())
            self.assertFalse(manager.step())
            self.assertEqual(manager.stop(), [])
            self.assertEqual(os.listdir(directory), [])

    def test_without_torch_windows_are_off_with_one_line(self):
        code = """
            import sys
            sys.modules["torch"] = None  # as if it was not installed
            from tracesmith.chakra import ChakraTraceManager
            manager = ChakraTraceManager(flag=sys.argv[1])
            print([manager.tick_by_flag() for _ in range(3)])
        """
        with tempfile.NamedTemporaryFile() as flag:
            run = subprocess.run(
                [sys.executable, "-c", textwrap.dedent(code), flag.name],
                capture_output=True,
                text=True,
                check=True,
            )
        self.assertEqual(run.stdout.strip(), "[False, False, False]")
        self.assertEqual(len(run.stderr.splitlines()), 1, run.stderr)
        self.assertIn("windows are off", run.stderr)


@needs_torch
class Windows(Case):
    def test_four_workers_write_one_file_set_each_with_the_steps_of_the_window(self):
        workers = [self.worker() for _ in range(4)]
        for worker in workers:
            self.assertFalse(worker.call(tick, 2))
        self.touch()
        for worker in workers:
            worker.send(tick, 3)
        self.assertEqual([worker.receive() for worker in workers], [True] * 4)
        self.remove()
        for worker in workers:
            self.assertFalse(worker.call(tick, 2))
            self.assertEqual(len(worker.call(written)), len(KINDS))
            self.assertEqual(worker.leave(), 0)
            self.check_set(worker.pid, 3)
        self.assertEqual(len(self.names()), 4 * len(KINDS))
        self.check_tool()

    def check_tool(self) -> None:
        """The tool reads the Kineto trace, and counts the same steps."""
        trace = os.path.join(self.directory, "t.sbt")
        kineto = glob.glob(os.path.join(self.traces, "kineto_*"))[0]
        subprocess.run([TOOL, "import", "-q", kineto, "-o", trace], check=True)
        text = subprocess.run(
            [TOOL, "analyze", trace, "steps", "--all", "--json"],
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        self.assertEqual(set(re.findall(r'"step":\s*"?(\d+)', text)), {"0", "1", "2"}, text)

    def test_each_window_has_its_own_files(self):
        worker = self.worker()
        for _ in range(3):
            self.touch()
            # The flag is set again before the files of the last window are written.
            await_condition(lambda: worker.call(tick), "a window")
            worker.call(tick)
            self.remove()
            self.assertFalse(worker.call(tick))
        worker.call(written)
        self.check_set(worker.pid, 2, windows=3)

    def test_a_flag_that_was_replaced_between_two_steps_ends_the_window(self):
        worker = self.worker()
        self.touch()
        self.assertTrue(worker.call(tick))
        # Another file, so that its inode is another.
        with open(self.flag + "2", "w"):
            pass
        os.replace(self.flag + "2", self.flag)
        self.assertFalse(worker.call(tick))
        await_condition(lambda: worker.call(tick), "the second window")
        self.remove()
        worker.call(tick)
        worker.call(written)
        self.check_set(worker.pid, 1, windows=2)

    def test_flag_removed_while_a_worker_is_busy(self):
        busy, last = self.worker(), self.worker()
        self.touch()
        for worker in (busy, last):
            self.assertTrue(worker.call(tick, 2))
        self.remove()
        self.assertEqual([name for name in self.names() if name.endswith(".json")], [])
        # One writes at its next step, the other when it ends.
        self.assertFalse(busy.call(tick))
        busy.call(written)
        self.check_set(busy.pid, 2)
        self.assertEqual(last.leave(), 0)
        self.check_set(last.pid, 2)

    def test_a_program_that_ends_writes_its_window(self):
        code = """
            import sys, torch
            from chakra_trace.manager import get_global_manager
            manager = get_global_manager()
            for _ in range(2):
                assert manager.tick_by_flag()
                torch.nn.Linear(8, 4)(torch.ones(2, 8)).sum().backward()
            print(__import__("os").getpid())
        """
        self.touch()
        environment = {
            **os.environ,
            "TRACESMITH_CHAKRA_TRACE_DIR": self.traces,
            "VLLM_CHAKRA_FLAG": self.flag,
            "VLLM_CHAKRA_AUTO_CONVERT": "1",
        }
        run = subprocess.run(
            [sys.executable, "-c", textwrap.dedent(code)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        self.check_set(int(run.stdout), 2)
        self.assertEqual(run.stderr.count("not converted"), 1, run.stderr)

    def test_killed_worker(self):
        killed, other = self.worker(), self.worker()
        self.touch()
        killed.call(tick)
        other.call(tick)
        killed.process.kill()
        killed.process.join()
        self.remove()
        self.assertFalse(other.call(tick))
        other.call(written)
        self.check_set(other.pid, 1)
        left = [name for name in self.names() if f"pid{killed.pid}_" in name]
        self.assertEqual([name for name in left if not name.endswith(".part")], [])

    def test_terminated_workers_write_their_windows(self):
        default, handled = self.worker(), self.worker()
        handled.call(handle_sigterm)
        self.touch()
        for worker in (default, handled):
            self.assertTrue(worker.call(tick))
            self.assertEqual(worker.call(sigterm_is_default), False)
        self.remove()
        for worker in (default, handled):
            os.kill(worker.pid, signal.SIGTERM)
            worker.process.join(LIMIT_S)
        self.assertEqual(default.process.exitcode, -signal.SIGTERM)
        self.check_set(default.pid, 1)
        # The program's own handler is the one that runs.
        self.assertEqual(handled.process.exitcode, 42)

    def test_sigterm_has_its_default_after_a_window(self):
        worker = self.worker()
        worker.call(start_and_step, 1)
        self.assertTrue(worker.call(sigterm_is_default))

    def test_a_directory_that_cannot_be_written_to_is_one_line(self):
        # Not even root makes directories there.
        worker = self.worker(trace_dir="/proc/tracesmith/traces")
        self.touch()
        self.assertFalse(worker.call(tick, 20))
        self.assertEqual(len(worker.lines("cannot write to '/proc/tracesmith/traces'")), 1)
        self.assertEqual(len(worker.lines("")), 1)
        # Setting the flag anew is another try.
        self.remove()
        worker.call(tick)
        self.touch()
        self.assertFalse(worker.call(tick, 2))
        self.assertEqual(len(worker.lines("")), 2)

    def test_full_disk(self):
        """A limit on the size of files, which PyTorch's writers do not notice either."""
        worker = self.worker()
        self.touch()
        self.assertTrue(worker.call(tick))
        worker.call(limit_file_size, 8192)
        worker.call(tick, 20)
        self.remove()
        self.assertFalse(worker.call(tick))
        self.assertEqual(worker.call(written), [])
        self.assertEqual(self.names(), [])
        self.assertEqual(len(worker.lines("not written.*" + ".*".join(KINDS))), 1)
        self.assertEqual(worker.leave(), 0)

    def test_max_steps(self):
        worker = self.worker(max_steps=3)
        self.touch()
        self.assertTrue(worker.call(tick, 3))
        self.assertFalse(worker.call(tick, 5))
        self.assertEqual(len(worker.call(written)), len(KINDS))
        self.check_set(worker.pid, 3)
        # No further window for the same flag; touching it is a new request.
        self.assertFalse(worker.call(tick, 5))
        os.utime(self.flag)
        self.assertTrue(worker.call(tick, 3))
        self.assertFalse(worker.call(tick))
        worker.call(written)
        self.check_set(worker.pid, 3, windows=2)

    def test_context_manager(self):
        worker = self.worker(max_steps=2)
        self.assertEqual(len(worker.call(start_and_step, 5)), len(KINDS))
        self.check_set(worker.pid, 2)

    @needs_all_threads
    def test_threads(self):
        worker = self.worker()
        self.touch()
        worker.call(tick_in_threads, 4, 3)
        self.remove()
        self.assertFalse(worker.call(tick))
        worker.call(written)
        self.check_set(worker.pid, 12)

    def test_memory(self):
        worker = self.worker(profile_memory=True)
        self.touch()
        self.assertTrue(worker.call(tick, 2))
        # PyTorch records allocations of one thread, and only that one can end it.
        self.remove()
        self.assertTrue(worker.call(tick_in_a_thread))
        self.assertFalse(worker.call(tick))
        worker.call(written)
        self.check_set(worker.pid, 2)
        (path,) = self.files("kineto", worker.pid)
        with open(path, encoding="utf-8") as file:
            names = [event["name"] for event in json.load(file)["traceEvents"]]
        self.assertIn("[memory]", names)

    @needs_all_threads
    def test_an_idle_server_closes_its_window(self):
        worker = self.worker()
        self.touch()
        worker.call(serve_calls, 3)
        self.remove()
        await_condition(lambda: self.files("kineto", worker.pid), "files of the idle server")
        self.assertEqual(len(worker.call(written)), len(KINDS))
        self.check_set(worker.pid, 3)

    def test_children_forked_in_a_window_leave_it_alone(self):
        worker = self.worker()
        self.touch()
        self.assertTrue(worker.call(tick, 2))
        self.assertEqual(worker.call(fork_a_child, 0), 0)
        self.assertEqual(worker.call(load_data), 32)
        self.remove()
        self.assertFalse(worker.call(tick))
        worker.call(written)
        self.assertEqual(len(self.names()), len(KINDS))
        self.check_set(worker.pid, 2)

    @unittest.skipIf(os.path.exists("/dev/nvidiactl"), "no GPU works in a forked child")
    def test_children_have_windows_of_their_own(self):
        worker = self.worker()
        self.touch()
        self.assertTrue(worker.call(tick, 2))
        self.assertEqual(worker.call(fork_a_child, 3), 0)
        self.remove()
        self.assertFalse(worker.call(tick))
        worker.call(written)
        pids = {int(re.search(r"pid(\d+)_", name)[1]) for name in self.names()}
        self.assertEqual(len(pids), 2)
        self.check_set(worker.pid, 2)
        self.check_set((pids - {worker.pid}).pop(), 3)

    def test_a_profiler_of_the_program_is_left_alone(self):
        worker = self.worker()
        self.touch()
        self.assertGreater(worker.call(tick_in_a_users_profiler), 0)
        self.assertEqual(len(worker.lines("already recording")), 1)
        self.assertEqual(self.names(), [])

    def test_a_profiler_that_the_program_starts_in_a_window_has_its_events(self):
        worker = self.worker()
        self.touch()
        self.assertTrue(worker.call(tick))
        self.assertGreater(worker.call(use_a_profiler), 0)
        self.assertTrue(worker.call(tick))
        self.remove()
        self.assertFalse(worker.call(tick))
        files = [os.path.basename(path).split("_pid")[0] for path in worker.call(written)]
        self.assertEqual(files, KINDS[:-1])
        self.assertEqual([name for name in self.names() if name.endswith(".part")], [])
        self.assertEqual(len(worker.lines("another torch.profiler")), 1)
        self.assertEqual(worker.leave(), 0)

    def test_an_error_inside_the_profiler_does_not_reach_the_program(self):
        worker = self.worker()
        self.touch()
        self.assertTrue(worker.call(tick))
        self.assertFalse(worker.call(break_step))
        self.assertEqual(len(worker.lines("injected")), 1)
        worker.call(written)
        self.check_set(worker.pid, 1)
        self.assertEqual(worker.leave(), 0)


@needs_torch
class Recorded(Case):
    """Windows that TraceSmith records itself."""

    def test_own_recording(self):
        worker = self.worker(mode="tracesmith")
        self.touch()
        self.assertTrue(worker.call(tick, 3))
        self.remove()
        self.assertFalse(worker.call(tick))
        (path,) = worker.call(written)
        self.assertRegex(os.path.basename(path), rf"tracesmith_pid{worker.pid}_\d+\.sbt$")
        self.assertEqual(self.steps(path), [0, 1, 2])

    def test_window_of_the_running_recording(self):
        code = """
            import sys
            from tracesmith.chakra import ChakraTraceManager
            manager = ChakraTraceManager(mode="tracesmith")
            for n in range(2):
                assert manager.start()
                manager.step()
                manager.stop()
        """
        trace = os.path.join(self.directory, "t.sbt")
        command = [TOOL, "record", "-q", "-o", trace, "--window", "command", "--backends", "none"]
        run = subprocess.run(
            [*command, "--", sys.executable, "-c", textwrap.dedent(code)],
            capture_output=True,
            text=True,
        )
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr.count("in the trace of the running recording"), 2, run.stderr)
        self.assertEqual(self.steps(trace), [0, 1, 0, 1])

    def steps(self, path: str) -> list[int]:
        text = subprocess.run(
            [TOOL, "view", path, "--json"], check=True, capture_output=True, text=True
        ).stdout
        return [int(number) for number in re.findall(r'"step":\s*(\d+)', text)]


class Plugin(unittest.TestCase):
    """The hook, on classes that are laid out as those of vLLM; package/vllm runs the real one."""

    def test_each_call_of_a_worker_is_a_step(self):
        base = types.ModuleType("vllm.v1.worker.worker_base")

        class WorkerBase:
            def __init__(self, rank: int) -> None:
                self.rank = rank

            def execute_model(self, batch: int) -> int:
                raise NotImplementedError

        class GpuWorker(WorkerBase):
            def execute_model(self, batch: int) -> int:
                return batch + self.rank

        class CpuWorker(GpuWorker):
            def execute_model(self, batch: int) -> int:
                return -super().execute_model(batch)

        base.WorkerBase = WorkerBase
        from tracesmith.chakra import manager as module
        from tracesmith.chakra import vllm

        ticks = []

        class Counting(ChakraTraceManager):
            def tick_by_flag(self) -> bool:
                ticks.append(1)
                return super().tick_by_flag()

        with Changed(sys.modules, {"vllm.v1.worker.worker_base": base}), Changed(
            os.environ, {"TRACESMITH_CHAKRA_TRACE": "1"}
        ), Changed(vars(module), {"_global_manager": Counting(flag="/nonexistent")}):
            vllm.register()
            vllm.register()  # vLLM may load a plug-in again
            worker = CpuWorker(rank=3)
            CpuWorker(rank=4)
            self.assertEqual([worker.execute_model(batch) for batch in (1, 2)], [-4, -5])
        self.assertEqual(len(ticks), 2)

    def test_a_vllm_that_is_not_understood_is_one_line(self):
        from tracesmith.chakra import vllm

        said = io.StringIO()
        modules = {name: None for name in ("vllm", *vllm._BASES)}
        with Changed(sys.modules, modules), Changed(
            os.environ, {"TRACESMITH_CHAKRA_TRACE": "1"}
        ), contextlib.redirect_stderr(said):
            vllm.register()
        self.assertEqual(len(said.getvalue().splitlines()), 1, said.getvalue())


class Changed:
    """Entries of a dictionary, for the length of a block."""

    def __init__(self, dictionary: Any, entries: dict) -> None:
        self.dictionary, self.entries = dictionary, entries

    def __enter__(self) -> None:
        self.before = {name: self.dictionary.get(name, self) for name in self.entries}
        self.dictionary.update(self.entries)

    def __exit__(self, *error: Any) -> None:
        for name, value in self.before.items():
            if value is self:
                del self.dictionary[name]
            else:
                self.dictionary[name] = value


if __name__ == "__main__":
    unittest.main()
