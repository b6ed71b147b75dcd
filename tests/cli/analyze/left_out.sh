#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Commands outside the selected part still occupied the device: idle causes use them, and breakdown
# reports them.
. "$TS_SOURCE/tests/cli/lib.sh"

# Two steps. A kernel of 400 us that was issued before the trace began (its call is missing) runs
# first, another one in between; one has no call at all. An operator lasts longer than everything
# else. The device's span of the last step begins after the step.
python3 - >t.json <<'PY'
import json

def event(cat, name, ts, dur, tid, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 1 if tid < 2 else 0, "tid": tid, "ts": ts, "dur": dur, "args": args}

def launch(correlation, ts):
    return event("cuda_runtime", "cudaLaunchKernel", ts, 2, 1, correlation=correlation)

def kernel(name, ts, dur, **args):
    return event("kernel", name, ts, dur, 7, stream=7, device=0, **args)

json.dump({"traceEvents": [
    event("user_annotation", "ProfilerStep#1", 0, 1000, 1), event("user_annotation", "ProfilerStep#2", 1000, 500, 1),
    event("cpu_op", "aten::all", 0, 3000, 1), event("gpu_user_annotation", "ProfilerStep#2", 1020, 100, 7),
    launch(1, 10), launch(2, 20), launch(3, 1010),
    kernel("earlier", 0, 400, correlation=90), kernel("a", 401, 100, correlation=1),
    kernel("earlier", 502, 50, correlation=91), kernel("nameless", 553, 20), kernel("b", 574, 100, correlation=2),
    kernel("c", 1020, 100, correlation=3)]}, __import__("sys").stdout)
PY

# The part is a, nameless, b: 220 us of 273; what ran in between counts as idle, and a note says so.
"$TRACESMITH" analyze t.json breakdown --json 2>notes.txt >breakdown.json
cat notes.txt
"$TRACESMITH" analyze t.json idle --json 2>notes.txt >idle.json
"$TRACESMITH" analyze t.json all --json 2>notes.txt >all.json
"$TRACESMITH" analyze t.json idle --all --json >whole.json
python3 - <<'PY'
import json

def load(name):
    with open(f"{name}.json", encoding="utf-8") as file:
        return json.load(file)

row = load("breakdown")[0]
print(row["commands"], row["kernel_time_us"], row["busy_us"], row["idle_us"])
idle = load("idle")
# From the first call at 10 us to the end of b at 674 us the device was idle for 1 us between each
# of five kernels.
device = [row for row in idle["causes"] if row["stream"] is None]
print("not running:", sum(row["time_us"] for row in device), sorted((row["state"], row["cause"]) for row in device))
print("with all:", load("all")["idle"] == idle)
print("everything:", sum(row["time_us"] for row in load("whole")["causes"] if row["stream"] is None))
PY
