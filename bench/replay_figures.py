# SPDX-License-Identifier: Apache-2.0
"""The figures of replay on OpenCL for bench/run: how long a replay of many small commands takes, against the recording and the program alone."""
import json
import os
import subprocess

# Of each pair of recording and replay.
TURNS = 5
REPEAT = 5
MODES = (("launches", "100"), ("mixed", "2000"))


def spans(bench, mode, rounds):
    """ms of the program alone, recorded, and replayed, of one turn."""
    trace = bench.path("replay.sbt")
    program = os.path.join(bench.build, "bench", "opencl_small")
    alone = min(bench.program("opencl_small", mode, rounds)["span_ms"] for _ in range(REPEAT))
    subprocess.run([bench.tool, "record", "-q", "--replayable", "-o", trace, "--", program, mode, rounds],
                   stdout=subprocess.DEVNULL, check=True)
    done = subprocess.run([bench.tool, "replay", trace, "--check", "none", "--repeat", str(REPEAT), "--json"],
                          stdout=subprocess.PIPE, check=True)
    os.unlink(trace)
    report = json.loads(done.stdout)
    return alone, report["recorded_span_ns"] / 1e6, report["span_ns"] / 1e6


def measure_replay(bench):
    if not os.path.exists(os.path.join(bench.build, "bench", "opencl_small")):
        bench.skip("replay on OpenCL", "this build has no OpenCL")
        return
    if subprocess.run([os.path.join(bench.build, "bench", "opencl_small"), "launches", "1"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL, check=False).returncode:
        bench.skip("replay on OpenCL", "there is no OpenCL device")
        return
    for mode, rounds in MODES:
        turns = sorted((spans(bench, mode, rounds) for _ in range(TURNS)), key=lambda turn: turn[2] / turn[1])
        alone, recorded, replayed = turns[TURNS // 2]
        bench.add(f"replay of {mode}, small: span by recorded", replayed / recorded, "x", "<= 1.1")
        bench.add(f"replay of {mode}, small: span", replayed, "ms", None, "the program alone", alone, alone / replayed)
