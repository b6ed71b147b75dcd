# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of formats for bench/run: how fast each is read and written, compared with other
tools.

Input files are generated, always with the same size; formats that cannot be generated are listed
with the reason. Rates are per CPU second on one core, the best of several turns in which we and
the peer alternate.
"""
import importlib.util
import json
import os
import pickle
import random
import shutil
import subprocess
import sys

RUNS = 3
ENTRIES = 600_000  # of a memory snapshot
ROWS = 1_000_000   # of an export of Nsight Systems
RECORDS = 400_000  # of an XRay log; llvm-xray takes minutes for ten times as many
EVENTS = 200_000   # of a Kineto trace, that is exported
SAMPLES = 100_000  # of a perf script
# The Python peers do what users' scripts do.
LOAD = {
    "pickle.load": "import pickle, sys; pickle.load(open(sys.argv[1], 'rb'))",
    "json.load": "import json, sys; json.load(open(sys.argv[1]))",
    "lines of Python": "import sys; [line.split() for line in open(sys.argv[1])]",
    "sqlite3 of Python": "import sqlite3, sys; d = sqlite3.connect(sys.argv[1]); "
                         "[d.execute('SELECT * FROM ' + t).fetchall() for t, in d.execute(\"SELECT name FROM sqlite_master WHERE type = 'table'\").fetchall()]",
}


def cpu_seconds(command):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status:
        raise RuntimeError(f"{' '.join(command)}: status {status}")
    return usage.ru_utime + usage.ru_stime


def alternate(ours, theirs):
    """The minimum CPU seconds of both, in turns, so that other load affects both."""
    best = [None, None]
    for _ in range(RUNS):
        for place, command in enumerate((ours, theirs)):
            if command:
                seconds = cpu_seconds(command)
                best[place] = seconds if best[place] is None else min(best[place], seconds)
    return best


def compare(bench, name, path, ours, peer, theirs):
    size = os.path.getsize(path)
    mine, other = alternate(ours, theirs)
    bench.add(name, size / mine / 1e6, "MB/s", None, peer, size / other / 1e6 if other else None, other / mine if other else None)


def import_of(bench, name, path, peer):
    compare(bench, f"import of {name}, one core", path, [bench.tool, "import", "-q", "--threads", "0", path, "-o", bench.path("formats.sbt")], peer,
            [sys.executable, "-c", LOAD[peer], path])


def can(bench, verb, name):
    listed = subprocess.run([bench.tool, verb, "--list"], stdout=subprocess.PIPE, check=True).stdout.decode()
    return any(line.split()[:1] == [name] for line in listed.splitlines())


# ---- imports ----

def make_snapshot(path, entries):
    """A snapshot as of a training loop: 200 allocation sites, 30 frames deep, a frame list per
    entry."""
    source = random.Random(1)
    frames = [{"name": f"function_{i}", "filename": f"/usr/lib/python3/site-packages/torch/nn/modules/module_{i % 90}.py", "line": i} for i in range(900)]
    places = [[frames[source.randrange(300, 900)] for _ in range(6)] + frames[k % 7:k % 7 + 24] for k in range(200)]
    trace, live = [], []

    def entry(action, what, time, stack):
        return {"action": action, "addr": what[0], "size": what[1], "stream": 0, "time_us": time, "compile_context": "N/A", "user_metadata": "", "frames": stack}

    for i in range(entries // 3):
        time = 1_700_000_000_000_000 + 3 * i
        live.append((0x7f0000000000 + i % 4096 * 2097152, 512 + i % 1000 * 512))
        trace.append(entry("alloc", live[-1], time, list(places[source.randrange(200)])))
        if len(live) > 1000:
            what, stack = live.pop(0), list(places[source.randrange(200)])
            trace += [entry("free_requested", what, time, stack), entry("free_completed", what, time, stack)]
    with open(path, "wb") as file:
        pickle.dump({"segments": [], "device_traces": [trace]}, file)


def measure_snapshot(bench, scale):
    path = bench.path("snapshot.pickle")
    make_snapshot(path, int(ENTRIES * scale))
    import_of(bench, "a PyTorch memory snapshot", path, "pickle.load")


def sibling(name):
    """A program of this folder as a module; None if it does not exist."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), name + ".py")
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8") as file:
        if "__main__" not in file.read():
            return None
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def measure_nsys(bench, scale):
    module = sibling("nsys_import")
    if not module or not hasattr(module, "make"):
        bench.skip("import of Nsight Systems", "no bench/nsys_import.py, which generates its database")
        return
    path = bench.path("nsys.sqlite")
    module.make(path, ROWS * scale / 1e6)
    import_of(bench, "Nsight Systems' SQLite", path, "sqlite3 of Python")


def measure_xray(bench, scale):
    maker = os.path.join(bench.build, "bench", "xray_import")
    if not os.path.exists(maker):
        bench.skip("import of XRay", "bench/xray_import, which makes its log, is not built")
        return
    path, out, peer = bench.path("xray.log"), bench.path("xray.out"), shutil.which("llvm-xray")
    subprocess.run([maker, path, str(max(1000, int(RECORDS * scale)))], check=True)
    compare(bench, "import of an XRay log, one core", path, [bench.tool, "import", "-q", "--threads", "0", path, "-o", bench.path("formats.sbt")],
            "llvm-xray account" if peer else None, [peer, "account", "-k", path, "-o", out] if peer else None)
    if not peer:
        bench.skip("import of XRay against llvm-xray", "it is not installed")


def measure_perf(bench, scale):
    path = bench.path("perf.txt")
    with open(path, "w", encoding="utf-8") as file:
        for i in range(int(SAMPLES * scale)):
            print(f"python  4242/{4242 + i % 8} [00{i % 4}] {100 + i / 1000:.6f}:     250000 cpu-clock:u: ", file=file)
            for depth in range(12):
                print(f"\t    {0x7f0000000000 + (i * 7 + depth) % 500 * 16:x} function_{(i * 7 + depth) % 500}+0x{depth:x} (/usr/lib/libwork.so)", file=file)
            print(file=file)
    import_of(bench, "perf script", path, "lines of Python")


def measure_rocprof(bench, scale):
    path = bench.path("rocprof.json")
    count = int(EVENTS * scale)
    dispatches = [{"size": 128, "thread_id": 7, "correlation_id": {"internal": i + 1, "external": 0}, "start_timestamp": 10_000 + 900 * i,
                   "end_timestamp": 10_700 + 900 * i, "dispatch_info": {
                       "size": 64, "agent_id": {"handle": 2}, "queue_id": {"handle": 1}, "kernel_id": 1 + i % 20, "dispatch_id": i + 1,
                       "private_segment_size": 0, "group_segment_size": 0, "workgroup_size": {"x": 256, "y": 1, "z": 1},
                       "grid_size": {"x": 1024, "y": 1, "z": 1}}} for i in range(count)]
    tool = {"metadata": {"pid": 7, "init_time": 0, "fini_time": 10_000 + 900 * count},
            "agents": [{"size": 0, "id": {"handle": 2}, "type": 2, "node_id": 1, "logical_node_id": 1, "name": "gfx90a", "product_name": "GPU"}],
            "kernel_symbols": [{"kernel_id": 1 + i, "code_object_id": 1, "kernel_name": f"kernel_{i}.kd", "formatted_kernel_name": f"kernel_{i}(float *)"}
                               for i in range(20)],
            "strings": {"callback_records": [], "buffer_records": []}, "buffer_records": {"kernel_dispatch": dispatches}, "callback_records": {}}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"rocprofiler-sdk-tool": [tool]}, file)
    import_of(bench, "rocprofv3's JSON", path, "json.load")


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def field(number, content):
    """A protobuf field: an integer or bytes."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    return varint(number << 3 | 2) + varint(len(content)) + content


def measure_pprof(bench, scale):
    path, go = bench.path("cpu.pprof"), shutil.which("go")
    with open(path, "wb") as file:
        file.write(field(1, field(1, 1) + field(2, 2)))
        for i in range(int(SAMPLES * scale)):
            file.write(field(2, field(1, b"".join(varint(1 + (i * 7 + depth * depth) % 500) for depth in range(16))) + field(2, varint(1 + i % 9))))
        for i in range(1, 501):
            file.write(field(4, field(1, i) + field(4, field(1, i) + field(2, i))))
            file.write(field(5, field(1, i) + field(2, i + 2)))
        for text in [b"", b"samples", b"count"] + [b"function_%d" % i for i in range(1, 501)]:
            file.write(field(6, text))
    compare(bench, "import of a pprof profile, one core", path, [bench.tool, "import", "-q", "--threads", "0", path, "-o", bench.path("formats.sbt")],
            "go tool pprof -raw" if go else None, [go, "tool", "pprof", "-raw", "-output", bench.path("pprof.out"), path] if go else None)
    if not go:
        bench.skip("import of pprof against go tool pprof", "Go is not installed")


# ---- exports ----

CHROME = """
import json, sys
rows = json.load(open(sys.argv[1]))
json.dump(rows, open(sys.argv[2], "w"))
"""


def measure_exports(bench, scale):
    """Exports of one trace; the peer is Python, which reads and writes the same content as JSON."""
    made, trace = bench.path("formats.json"), bench.path("exported.sbt")
    with open(made, "wb") as out:
        subprocess.run([os.path.join(bench.build, "tests", "targets", "make_kineto"), str(int(EVENTS * scale))], stdout=out, check=True)
    subprocess.run([bench.tool, "import", "-q", made, "-o", trace], check=True)
    events = json.loads(subprocess.run([bench.tool, "info", trace, "--json"], stdout=subprocess.PIPE, check=True).stdout)["events"]
    os.makedirs(bench.path("tables"), exist_ok=True)
    for name, written in (("chrome", bench.path("formats.out")), ("perfetto", bench.path("formats.out")), ("csv", bench.path("tables"))):
        if not can(bench, "export", name):
            bench.skip(f"export as {name}", "this build does not have it")
            continue
        ours, theirs = alternate([bench.tool, "export", "-q", trace, "-f", name, "-o", written], [sys.executable, "-c", CHROME, made, bench.path("copy.json")])
        bench.add(f"export as {name}, one core", events / ours / 1e6, "M events/s", None, "JSON through Python", events / theirs / 1e6, theirs / ours)
        if name == "perfetto" and can(bench, "import", "perfetto"):
            subprocess.run([bench.tool, "export", "-q", trace, "-f", name, "-o", written], check=True)
            read, load = alternate([bench.tool, "import", "-q", "--threads", "0", written, "-o", bench.path("formats.sbt")], [sys.executable, "-c", LOAD["json.load"], made])
            bench.add("import of Perfetto's protobuf, one core", events / read / 1e6, "M events/s", None, "json.load of the same events", events / load / 1e6, load / read)


def measure_formats(bench, scale=1.0):
    for measure in (measure_snapshot, measure_nsys, measure_xray, measure_perf, measure_pprof, measure_rocprof, measure_exports):
        try:
            measure(bench, scale)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            bench.skip(measure.__name__.replace("measure_", ""), f"failed: {error}"[:200])
