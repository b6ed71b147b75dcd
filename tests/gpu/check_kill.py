# SPDX-License-Identifier: Apache-2.0
"""kill -9 with a backlog of a thousand launches: every launch whose return the program had logged
is there; every kernel that had completed 250 ms before, as the program knew from an event, has
its times; the rest is counted in loss. The same for a recovered trace, when the recorder was
killed first and the program later. check_kill.py [TIMES]
"""
import os, signal, struct, subprocess, sys, time

from common import *

PROMISED_NS = 250_000_000


def read_progress(path):
    """(launches that returned, [(time, launches that ended)])"""
    data = open(path, "rb").read()
    launched, steps = struct.unpack_from("=QQ", data)
    return launched, [struct.unpack_from("=QQ", data, 16 + 16 * i) for i in range(steps)]


def find_program(path):
    """The program's pid, once it has launched for a while."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if os.path.exists(path) and os.path.getsize(path) and read_progress(path)[0] > 2000:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    command = open(f"/proc/{pid}/cmdline").read().split("\0")
                except OSError:
                    continue
                if command[:2] == [LAUNCHES, "backlog"] and command[2] == path:
                    return int(pid)
        time.sleep(0.05)
    return None


def kill_once(number):
    path, name = os.path.join(WORK, f"progress-{number}"), f"kill-{number}"
    recorder = subprocess.Popen(record_command(name, [LAUNCHES, "backlog", path]), stdin=subprocess.DEVNULL)
    pid = find_program(path)
    if not expect(pid, "the program did not begin"):
        recorder.kill()
        return
    time.sleep(1 + 0.137 * number)
    killed_ns = now_ns()
    os.kill(pid, signal.SIGKILL)
    try:
        recorder.wait(60)
    except subprocess.TimeoutExpired:
        expect(False, "the recorder did not end")
        recorder.kill()
    trace = Trace(trace_path(name))
    check_trace(trace, *read_progress(path), killed_ns)


def is_running(pid):
    try:
        return open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def kill_recorder():
    """The program continues for a moment, and is killed as well: what neither could write to a file
    is in memory that outlives both."""
    path, name = os.path.join(WORK, "progress-recorder"), "kill-recorder"
    recorder = subprocess.Popen(record_command(name, [LAUNCHES, "backlog", path]), stdin=subprocess.DEVNULL)
    pid = find_program(path)
    if pid:
        time.sleep(1)
    recorder.kill()
    recorder.wait()
    if not expect(pid, "the program did not begin"):
        return
    time.sleep(0.2)
    expect(is_running(pid), "the program ended with its recorder")
    killed_ns = now_ns()
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    deadline = time.monotonic() + 20
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    done = run([TOOL, "recover", trace_path(name), "-o", trace_path("recovered")], 60)
    if expect(done.returncode == 0, f"recover: exit code {done.returncode}: {done.stdout[-200:]}"):
        check_trace(Trace(trace_path("recovered")), *read_progress(path), killed_ns)


def check_trace(trace, launched, steps, killed_ns):
    ended = max((ended for when, ended in steps if when <= killed_ns - PROMISED_NS), default=0)
    calls = sorted(trace.launches(), key=lambda call: call["start"])
    timed = {op["correlation"] for op in trace.kernels() if op.get("start") and op.get("duration", -1) >= 0}
    untimed = [i for i, call in enumerate(calls[:ended]) if call.get("correlation") not in timed]
    lost = sum(row.get("count") or 0 for row in trace.losses() if row["what"] == "gpu_op")
    print(f"launched {launched}, ended 250 ms before {ended}; calls {len(calls)}, timed {len(timed)}, loss {trace.losses()}")
    expect(launched - ended > 1000, f"a backlog of {launched - ended} only")
    expect(launched <= len(calls) <= launched + 1, f"{len(calls)} calls, where {launched} had returned")
    expect(not untimed, f"{len(untimed)} of {ended} kernels that had ended have no times, from launch {untimed[:1]} on")
    expect(lost >= launched - len(timed), f"{launched - len(timed)} commands without times, but loss has {lost}")
    figures.setdefault("launched", []).append(launched)
    figures.setdefault("timed", []).append(len(timed))
    # Age of the newest time: what is really lost.
    newest = max((op["start"] + op["duration"] for op in trace.kernels() if op.get("start")), default=0)
    figures.setdefault("newest_ms_before_kill", []).append(round((killed_ns - newest) / 1e6, 1))


for number in range(int(sys.argv[1]) if len(sys.argv) > 1 else 3):
    kill_once(number)
kill_recorder()
finish()
