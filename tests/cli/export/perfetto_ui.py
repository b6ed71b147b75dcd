#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""perfetto_ui.py make FILE: writes a small Kineto file. perfetto_ui.py check ANSWERS PLAIN: checks
what trace_processor reports of its exports (perfetto-ui.sh).
"""
import json
import sys

EVENTS = [
    {"ph": "M", "name": "process_name", "pid": 7, "tid": 7, "args": {"name": "trainer"}},
    {"ph": "M", "name": "thread_name", "pid": 7, "tid": 8, "args": {"name": "loader"}},
    {"ph": "X", "cat": "cpu_op", "name": "outer", "pid": 7, "tid": 7, "ts": 100, "dur": 50, "args": {"step": 3, "path": "a/b", "share": 0.25}},
    {"ph": "X", "cat": "cpu_op", "name": "inner", "pid": 7, "tid": 7, "ts": 100, "dur": 50},
    {"ph": "X", "cat": "cpu_op", "name": "next", "pid": 7, "tid": 7, "ts": 150, "dur": 10},
    {"ph": "X", "cat": "cpu_op", "name": "none", "pid": 7, "tid": 7, "ts": 155, "dur": 0},
    {"ph": "X", "cat": "cpu_op", "name": "load", "pid": 7, "tid": 8, "ts": 90, "dur": 100},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 7, "tid": 7, "ts": 170, "dur": 5, "args": {"correlation": 11}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaMemcpyAsync", "pid": 7, "tid": 7, "ts": 180, "dur": 5, "args": {"correlation": 12}},
    # Two overlapping kernels of a stream: both complete, on two lanes.
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 20, "ts": 200, "dur": 30,
     "args": {"device": 0, "stream": 20, "correlation": 11, "grid": [4, 1, 1], "block": [128, 1, 1]}},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD", "pid": 0, "tid": 20, "ts": 220, "dur": 30,
     "args": {"device": 0, "stream": 20, "correlation": 12, "bytes": 4096}},
    {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 11, "pid": 7, "tid": 7, "ts": 170},
    {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 11, "pid": 0, "tid": 20, "ts": 200, "bp": "e"},
    {"ph": "s", "cat": "ac2g", "name": "ac2g", "id": 12, "pid": 7, "tid": 7, "ts": 180},
    {"ph": "f", "cat": "ac2g", "name": "ac2g", "id": 12, "pid": 0, "tid": 20, "ts": 220, "bp": "e"},
    {"ph": "i", "name": "mark", "s": "t", "pid": 7, "tid": 7, "ts": 300},
    {"ph": "C", "name": "memory_bytes", "pid": 7, "tid": 7, "ts": 100, "args": {"used": 10}},
    {"ph": "C", "name": "memory_bytes", "pid": 7, "tid": 7, "ts": 200, "args": {"used": 30}},
    {"ph": "C", "name": "requests_per_s", "pid": 7, "tid": 7, "ts": 100, "args": {"all": 1.5}},
]


def rows(answer):
    if "error" in answer:
        raise SystemExit(f"trace_processor: {answer['error']}")
    return answer["rows"]


def expect(what, got, wanted):
    if got != wanted:
        raise SystemExit(f"{what}:\n got    {json.dumps(got)}\n wanted {json.dumps(wanted)}")


def check(answers, plain):
    faults, spans, arrows, counters, stages, arguments, total = (rows(answer) for answer in answers)
    expect("faults", faults, [])
    base = spans[0][1]
    timeless = [[name, ts - base, dur, depth, tid, pid] for name, ts, dur, depth, tid, pid in spans]
    us = 1000
    expect("spans", timeless, [
        ["load", 0, 100 * us, 0, 8, 7], ["outer", 10 * us, 50 * us, 0, 7, 7], ["inner", 10 * us, 50 * us, 1, 7, 7],
        ["next", 60 * us, 10 * us, 0, 7, 7], ["none", 65 * us, 0, 1, 7, 7], ["cudaLaunchKernel", 80 * us, 5 * us, 0, 7, 7],
        ["cudaMemcpyAsync", 90 * us, 5 * us, 0, 7, 7], ["mark", 210 * us, 0, 0, 7, 7]])
    expect("arrows", arrows, [["cudaLaunchKernel", "gemm"], ["cudaMemcpyAsync", "Memcpy HtoD"]])
    expect("counters", [[name, unit, ts - base, value] for name, unit, ts, value in counters], [
        ["memory_bytes", "bytes", 10 * us, 10], ["memory_bytes", "bytes", 110 * us, 30],
        ["requests_per_s", "1/s", 10 * us, 1.5]])
    expect("GPU stages", [[name, ts - base, dur] for name, ts, dur, _ in stages],
           [["gemm", 110 * us, 30 * us], ["Memcpy HtoD", 130 * us, 30 * us]])
    expect("arguments", arguments, [[3, "a/b", 0.25]])
    # 8 of threads, 2 of the stream, 2 stages
    expect("all", total, [[12]])
    expect("faults without stages", rows(plain[0]), [])
    expect("no stages", rows(plain[1]), [[0]])
    print("ok")


if sys.argv[1] == "make":
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}], "traceEvents": EVENTS}, file)
else:
    check(*(json.load(open(name, encoding="utf-8")) for name in sys.argv[2:4]))
