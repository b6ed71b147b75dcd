# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of live recording for bench/run: the cost of an event, and of the recorder."""
import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
EMIT_RUNS = 5
STEADY_SECONDS = 20
# Event rates to try; the highest show where loss begins.
RATES = (2_000_000, 4_000_000, 8_000_000)
RATE_SECONDS = 5


# ---- one event ----

class Lttng:
    """An LTTng-UST session in overwrite mode with the tracepoint of emit_peers/; `reason`: why
    there is none."""

    def __init__(self, bench):
        self.bench, self.program, self.daemon, self.reason = bench, bench.path("lttng"), None, None
        self.environment = dict(os.environ, LTTNG_HOME=bench.folder, HOME=bench.folder)

    def lttng(self, *arguments):
        return subprocess.run(["lttng", "--no-sessiond", *arguments], env=self.environment, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def build(self):
        command = [os.environ.get("CC", "cc"), "-O2", "-I", os.path.join(HERE, "emit_peers"), "-o", self.program,
                   os.path.join(HERE, "emit_peers", "lttng.c"), "-llttng-ust", "-ldl", "-lpthread"]
        return subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0

    def start_daemon(self):
        if self.lttng("list"):
            return True  # an existing session will do
        self.daemon = subprocess.Popen(["lttng-sessiond", "--no-kernel", "--quiet"], env=self.environment,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(50):
            if self.lttng("list"):
                return True
            time.sleep(0.1)
        return False

    def __enter__(self):
        if not shutil.which("lttng") or not shutil.which("lttng-sessiond"):
            self.reason = "no lttng-tools: scripts/bootstrap bench"
        elif not self.build():
            self.reason = "no liblttng-ust-dev: scripts/bootstrap bench"
        elif not self.start_daemon():
            self.reason = "lttng-sessiond does not start here"
        elif not (self.lttng("create", "--snapshot", "tracesmith-bench")
                  and self.lttng("enable-channel", "-u", "--overwrite", "--subbuf-size", "64K", "--num-subbuf", "4", "events")
                  and self.lttng("enable-event", "-u", "-c", "events", "tracesmith_bench:token") and self.lttng("start")):
            self.reason = "no session can be made"
        return self

    def measure(self, threads):
        if self.reason:
            return None
        done = subprocess.run([self.program, "--threads", str(threads)], stdout=subprocess.PIPE, env=self.environment, check=True)
        line = json.loads(done.stdout)
        if not line["is_on"]:
            self.reason = "its session does not take the event"
        return line if line["is_on"] else None

    def __exit__(self, *_):
        if shutil.which("lttng"):
            self.lttng("destroy", "tracesmith-bench")
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait()


def middle(lines, key):
    """The median run by that figure, or None."""
    lines = sorted((line for line in lines if line), key=lambda line: line[key])
    return lines[len(lines) // 2] if lines else None


def plural(threads):
    return "1 thread" if threads == 1 else f"{threads} threads"


def measure_hot_path(bench):
    """In rounds over all modes, so that other load affects all of them."""
    modes = [(mode, threads) for mode in ("stream", "large", "flight") for threads in (1, 2)]
    ours, theirs = {}, {}
    with Lttng(bench) as lttng:
        for _ in range(EMIT_RUNS):
            for mode, threads in modes:
                ours.setdefault((mode, threads), []).append(bench.program("emit", mode, "--threads", str(threads)))
            for threads in (1, 2):
                theirs.setdefault(threads, []).append(lttng.measure(threads))
                run = Recorded(bench, ("recorded", "--threads", threads), program="emit")
                ours.setdefault(("recorded", threads), []).append(dict(run.load, lost=run.lost))
        reason = lttng.reason
    for (mode, threads), lines in ours.items():
        line = middle(lines, "event_over_counter_ns")
        bench.add(f"event over counter, {mode}, {plural(threads)}", line["event_over_counter_ns"], "ns", "<= 4")
    for threads in (1, 2):
        line = middle(ours["recorded", threads], "event_ns")
        peer, bound = middle(theirs[threads], "event_ns"), f"<= {line['counter_ns'] + 4:.1f}"
        if peer:
            bench.add(f"event, whole, {plural(threads)}", line["event_ns"], "ns", bound, "LTTng-UST", peer["event_ns"],
                      peer["event_ns"] / line["event_ns"])
        bench.add(f"event, whole, {plural(threads)}", line["event_ns"], "ns", bound, "mutex and array", line["array_ns"],
                  line["array_ns"] / line["event_ns"])
    if reason:
        bench.skip("event against LTTng-UST", reason)
    lost = sum(line["lost"] for threads in (1, 2) for line in ours["recorded", threads])
    bench.add("events lost in the runs called recorded", lost, "events", None)


def measure_emit(bench):
    measure_hot_path(bench)
    bench.add("event while off", bench.program("emit", "off")["event_ns"], "ns", "<= 1")
    single = bench.program("emit", "single")
    for key, name in (("p50_ns", "median"), ("p99_ns", "99 %"), ("p999_ns", "99.9 %"), ("max_ns", "longest")):
        bench.add(f"single events, 1 M: {name}", single[key], "ns", None)
    first = bench.program("emit", "first")
    bench.add("first event of a thread, an ended one's ring", first["taken_ring_ns"], "ns", None)
    bench.add("first event of a thread, a new ring", first["new_ring_ns"], "ns", None)
    bench.add("event lost: ring full", bench.program("emit", "full")["event_ns"], "ns", None)
    bench.add("event lost: no budget for a ring", bench.program("emit", "no-ring")["event_ns"], "ns", None)


# ---- the recorder ----

class Recorded:
    """Runs a program, usually bench/load, under `tracesmith record`; calls `look` with the
    recorder's pid."""

    def __init__(self, bench, load, record=(), look=None, wrap=(), program="load"):
        trace, live = bench.path("live.sbt"), tempfile.mkdtemp(prefix="tracesmith-bench-", dir="/dev/shm")
        command = [bench.tool, "record", "-q", "--backends", "none", "-o", trace, *record, "--", *wrap,
                   os.path.join(bench.build, "bench", program), *map(str, load)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                 env=dict(os.environ, TRACESMITH_LIVE_DIR=live))
        self.seen = look(child.pid) if look else None
        self.load = json.loads(child.stdout.read())
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        self.cpu_seconds = process_seconds(child.pid)
        child.wait()
        info = subprocess.run([bench.tool, "info", trace, "--json"], stdout=subprocess.PIPE, check=True).stdout
        self.events = json.loads(info)["events"]
        self.lost = self.load["events"] - self.events
        os.unlink(trace)
        shutil.rmtree(live)


def process_seconds(pid):
    """CPU time of a zombie: all threads, without children."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def thread_seconds(pid):
    """The same of a running process, in ns resolution."""
    seconds = 0
    for path in glob.glob(f"/proc/{pid}/task/*/schedstat"):
        with open(path, encoding="utf-8") as file:
            seconds += int(file.read().split()[0]) / 1e9
    return seconds


def steady_share(pid):
    """Percent of a core, after startup."""
    time.sleep(4)
    before, start = thread_seconds(pid), time.monotonic()
    time.sleep(STEADY_SECONDS)
    return (thread_seconds(pid) - before) / (time.monotonic() - start) * 100


def measure_drain(bench):
    name, program = "ring to journal, one core", os.path.join("live", "drain")
    if not os.path.exists(os.path.join(bench.build, "bench", program)):
        bench.skip(name, "bench/live/drain was not built")
        return
    line = bench.program(program, bench.path("drain.journal"))
    bench.add(name, line["events_per_second"] / 1e6, "M events/s", ">= 20", "plain copy of the bytes",
              line["copy_events_per_second"] / 1e6, line["events_per_second"] / line["copy_events_per_second"])


def measure_launches(bench):
    """Size of a launch with device times and stack in a trace, and the decoding rate."""
    name, program = "launches of kernels", os.path.join("live", "cuda_rows")
    if not os.path.exists(os.path.join(bench.build, "bench", program)):
        bench.skip(name, "bench/live/cuda_rows was not built")
        return
    for step in (36, 4096):
        line = bench.program(program, bench.path("launches.sbt"), "--step", str(step))
        bench.add(f"a launch in the trace, {step} a step", line["bytes_per_launch"], "bytes", "<= 12")
        bench.add(f"launches to rows, {step} a step, one core", line["launches_per_s_with_compression"] / 1e6, "M launches/s", ">= 0.25")


def measure_rates(bench):
    """Increases the rate until events are lost: the first figure is of the fastest run without
    loss."""
    best, first_loss = None, None
    for rate in RATES:
        run = Recorded(bench, ("--rate", rate, "--seconds", RATE_SECONDS))
        if run.lost:
            first_loss = run
            break
        best = run
    if not best:
        bench.skip("end to end", f"of {RATES[0]} events/s {run.lost} in {run.load['events']} were lost: the recorder had no core to run on")
        return
    bench.add("end to end without loss, one core", best.events / best.cpu_seconds / 1e6, "M events/s", ">= 5")
    bench.add("the rate that was recorded so", best.events / best.load["seconds"] / 1e6, "M events/s", None)
    if first_loss:
        bench.add("the next rate, which lost events", first_loss.load["events"] / first_loss.load["seconds"] / 1e6, "M events/s", None)
        bench.add("of these were lost", 100 * first_loss.lost / first_loss.load["events"], "%", None)


def programs_started():
    """Number of processes and threads started on the machine since boot."""
    with open("/proc/stat", encoding="utf-8") as file:
        return int(re.search(r"^processes (\d+)", file.read(), re.MULTILINE)[1])


def measure_steady(bench):
    """A recorder that is notified of process starts inspects every new process on the machine."""
    settle, before, start = STEADY_SECONDS + 6, programs_started(), time.monotonic()
    slow = Recorded(bench, ("--rate", 10_000, "--seconds", settle), look=steady_share)
    bench.add("recorder at 10,000 events/s", slow.seen, "% of a core", "<= 0.3")
    idle = Recorded(bench, ("--rings", 1000, "--seconds", settle), ("--budget", "128M"), look=steady_share)
    bench.add("recorder idle, 1000 rings", idle.seen, "% of a core", "<= 0.1")
    bench.add("started by others meanwhile", (programs_started() - before - 1000) / (time.monotonic() - start), "a second", None)


WAKING = ("futex", "write", "writev", "pwrite64", "sendto", "sendmsg", "sendmmsg", "kill", "tgkill", "tkill", "rt_sigqueueinfo",
          "io_uring_enter", "msgsnd", "semop", "eventfd2")


def measure_calls(bench):
    """System calls of a program between its two markers, while it emits, without its own sleeps."""
    name, log = "wake-up calls in 400,000 events", bench.path("strace.log")
    if not shutil.which("strace"):
        bench.skip(name, "no strace: scripts/bootstrap bench")
        return
    Recorded(bench, ("--rate", 200_000, "--seconds", 2), wrap=("strace", "-f", "-o", log))
    with open(log, encoding="utf-8", errors="replace") as file:
        steady = re.split(r"\bgetpgid\(.*\n", file.read())[1]
    calls = [match[1] for match in re.finditer(r"^\d+ +(\w+)\(", steady, re.MULTILINE) if match[1] != "clock_nanosleep"]
    bench.add(name, sum(call in WAKING for call in calls), "calls", "<= 0")
    bench.add("other calls there: a ring that grows", len(calls), "calls", None)


def measure_steps(bench):
    flag, steps = bench.path("flag"), ("--steps", 100_000)
    window = ("--window", f"flag:{flag}")
    bench.add("step, a flag is watched and not there", Recorded(bench, steps, window).load["step_ns"], "ns", "<= 1000")
    open(flag, "w", encoding="utf-8").close()
    bench.add("step, a flag is watched and there", Recorded(bench, steps, window).load["step_ns"], "ns", "<= 1000")
    bench.add("step, recorded without a flag", Recorded(bench, steps).load["step_ns"], "ns", "<= 1000")


def measure_live(bench):
    if not os.path.isdir("/dev/shm"):
        bench.skip("live recording", "there is no /dev/shm")
        return
    for measure in (measure_emit, measure_drain, measure_launches, measure_rates, measure_steady, measure_calls, measure_steps):
        measure(bench)
