# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of replay for bench/run: what recording adds to a launch of CUDA (on the stand-in driver)
and a command of OpenCL, and how long a replay of many small commands takes, compared with the
recording and the program alone."""
import json
import os
import resource
import subprocess
import time

# Of each pair of recording and replay.
TURNS = 5
REPEAT = 5
MODES = (("launches", "100"), ("mixed", "2000"))
# Of written data: content, bytes of a write, bytes in total.
MIB = 1 << 20
WRITES = (("random", 1 * MIB, 512 * MIB), ("random", 256 * MIB, 1024 * MIB), ("floats", 256 * MIB, 1024 * MIB),
          ("zeros", 256 * MIB, 1024 * MIB), ("same", 1 * MIB, 512 * MIB))
WRITE_TURNS = 3


def spans(bench, mode, rounds):
    """One turn: ms of the program alone, recorded, and replayed."""
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


def measure_capture(bench):
    """What recording adds to an empty command; the peer is a program that requests all times
    itself."""
    done = subprocess.run([os.path.join(bench.build, "bench", "opencl_enqueue"), bench.tool, "15"], stdout=subprocess.PIPE,
                          check=True, text=True)
    rows = {line[:34].strip(): [float(word) for word in line[34:].split()] for line in done.stdout.splitlines()[1:]}
    peer = next((row[1] for name, row in rows.items() if "ask" in name), None)
    for name, target in (("recorded", "<= 500"), ("replayable, outside of a window", "<= 1000")):
        added = rows[name][1]
        if peer and name == "recorded":
            bench.add(f"an empty command, {name}: added", added, "ns", target, "asking for times itself", peer, peer / added)
        else:
            bench.add(f"an empty command, {name}: added", added, "ns", target)


def measure_launch(bench):
    """What capture adds to a launch in CUDA, inside of a window over plain recording; the peer is what any capture has to
    do: to copy the parameters and a record to shared memory, under a lock."""
    build, image = bench.build, os.path.join(os.path.dirname(os.path.realpath(__file__)), "../tests/cuda/work_kernels.fatbin")
    environment = {**os.environ, "LD_LIBRARY_PATH": os.path.join(build, "tests", "cuda", "driver"), "NSYS_STAND_IN": "1", "STAND_IN_LAZY": "1"}
    done = subprocess.run([os.path.join(build, "bench", "cuda_launch"), bench.tool, image, "9"], stdout=subprocess.PIPE, check=True, text=True,
                          env=environment)
    rows = {line[:34].strip(): [float(word) for word in line[34:].split()] for line in done.stdout.splitlines()[1:]}
    peer = next(row[0] for name, row in rows.items() if "copy" in name)
    for name in ("replayable, outside of a window", "replayable, inside of a window"):
        added = rows[name][1]
        bench.add(f"a launch of CUDA, {name}: added", added, "ns", None, "a copy to shared memory, locked", peer,
                  peer / added if added > 0 else None)


def checked_span(bench, mode, rounds, *options):
    """ms of the program, recorded with these options."""
    trace = bench.path("checked.sbt")
    program = os.path.join(bench.build, "bench", "opencl_small")
    done = subprocess.run([bench.tool, "record", "-q", *options, "-o", trace, "--", program, mode, rounds],
                          stdout=subprocess.PIPE, check=True)
    os.unlink(trace)
    return json.loads(done.stdout)["span_ms"]


def measure_checked(bench):
    """What checks of each command cost, compared with a replayable recording without them. The two
    take turns, so that other load on the machine meets both."""
    for mode, rounds in MODES:
        turns = [(checked_span(bench, mode, rounds, "--replayable=checked"), checked_span(bench, mode, rounds, "--replayable"))
                 for _ in range(TURNS)]
        checked, plain = sorted(turns, key=lambda turn: turn[0] / turn[1])[TURNS // 2]
        bench.add(f"{mode}, small, recorded with checks: span by without", checked / plain, "x",
                  "<= 1.5" if mode == "launches" else None)


def cpu_seconds(command):
    """Runs a command; its output, and the CPU time of it and all its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return json.loads(done.stdout), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def plain_write(path, total):
    """GB per CPU second of write(): what storing bytes that do not compress costs at least."""
    data = os.urandom(16 * MIB)
    before = time.process_time()
    with open(path, "wb", buffering=0) as file:
        for _ in range(total // len(data)):
            file.write(data)
    seconds = time.process_time() - before
    os.unlink(path)
    return total / max(seconds, 1e-3) / 1e9


def measure_written(bench):
    """Capture of written data: how fast the program gets rid of it, and how much of it one core
    captures; with the program alone and a plain write() to the same file system, in turns."""
    program = os.path.join(bench.build, "bench", "opencl_write")
    trace = bench.path("written.sbt")
    for content, size, total in WRITES:
        turns = []
        for _ in range(WRITE_TURNS):
            arguments = [program, content, str(size), str(total)]
            alone, alone_s = cpu_seconds(arguments)
            recorded, recorded_s = cpu_seconds([bench.tool, "record", "-q", "--replayable", "-o", trace, "--"] + arguments)
            os.unlink(trace)
            turns.append((recorded["write_gbs"], total / max(recorded_s - alone_s, 1e-3) / 1e9, alone["write_gbs"],
                          plain_write(trace, total)))
        gbs, core_gbs, alone_gbs, plain_gbs = (max(turn[i] for turn in turns) for i in range(4))
        name = f"written data, {content}, {size // MIB} MiB each"
        bench.add(f"{name}: the program", gbs, "GB/s", ">= 2", "the program alone", alone_gbs, gbs / alone_gbs)
        bench.add(f"{name}: captured per core", core_gbs, "GB/s", None, "write()", plain_gbs, core_gbs / plain_gbs)


def measure_replay(bench):
    if os.path.exists(os.path.join(bench.build, "tests", "cuda", "driver", "libcuda.so.1")):
        measure_launch(bench)
    else:
        bench.skip("a launch of CUDA", "this build has no stand-in driver")
    if not os.path.exists(os.path.join(bench.build, "bench", "opencl_small")):
        bench.skip("replay on OpenCL", "this build has no OpenCL")
        return
    if subprocess.run([os.path.join(bench.build, "bench", "opencl_small"), "launches", "1"], stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL, check=False).returncode:
        bench.skip("replay on OpenCL", "no OpenCL device")
        return
    measure_capture(bench)
    measure_written(bench)
    measure_checked(bench)
    for mode, rounds in MODES:
        turns = sorted((spans(bench, mode, rounds) for _ in range(TURNS)), key=lambda turn: turn[2] / turn[1])
        alone, recorded, replayed = turns[TURNS // 2]
        bench.add(f"replay of {mode}, small: span by recorded", replayed / recorded, "x", "<= 1.1")
        bench.add(f"replay of {mode}, small: span", replayed, "ms", None, "the program alone", alone, alone / replayed)
