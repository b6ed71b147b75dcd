# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of metrics for bench/run: the cost of sampling the machine, a process and its GPUs ten
times a second."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from live_figures import thread_seconds

SECONDS = 20
SETTLE_SECONDS = 3
# Recorders with and without metrics alternate, so that other load affects both.
ROUNDS = 2
RATE = 10


def share(pid):
    """Percent of a core that a process takes, after startup."""
    time.sleep(SETTLE_SECONDS)
    before, start = thread_seconds(pid), time.monotonic()
    time.sleep(SECONDS)
    return (thread_seconds(pid) - before) / (time.monotonic() - start) * 100


def recorder_share(bench, backends):
    """CPU time of the recorder of a sleeping program, and the number of metric rows."""
    trace, live = bench.path("metrics.sbt"), tempfile.mkdtemp(prefix="tracesmith-bench-", dir="/dev/shm")
    command = [bench.tool, "record", "-q", "-o", trace, "--backends", backends, "--", "sleep", str(SECONDS + SETTLE_SECONDS + 3)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(os.environ, TRACESMITH_LIVE_DIR=live))
    taken = share(child.pid)
    if child.wait():
        raise RuntimeError(f"{' '.join(command)}: status {child.returncode}")
    info = subprocess.run([bench.tool, "info", trace, "--json"], stdout=subprocess.PIPE, check=True).stdout
    os.unlink(trace)
    shutil.rmtree(live)
    return taken, json.loads(info)["tables"].get("counter", 0)


# ---- peers ----

PSUTIL = f"""
import sys, time
import psutil
process = psutil.Process(int(sys.argv[1]))
while True:
    with process.oneshot():
        process.cpu_times(), process.memory_info(), process.num_threads(), process.num_ctx_switches(), process.io_counters()
    psutil.cpu_times(), psutil.virtual_memory(), psutil.swap_memory(), psutil.net_io_counters(), psutil.disk_io_counters(), psutil.cpu_stats()
    time.sleep(1 / {RATE})
"""


def peer_share(command):
    """The same for a program that samples a sleeping process; kills it afterwards. `{pid}`: that
    process."""
    target = subprocess.Popen(["sleep", str(SECONDS + SETTLE_SECONDS + 5)])
    child = subprocess.Popen([word.format(pid=target.pid) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        taken = share(child.pid)
        return taken if child.poll() is None else None
    finally:
        child.kill()
        child.wait()
        target.kill()
        target.wait()


def measure_peers(bench, ours):
    name = "metrics of a program and the machine"
    python = os.path.join(bench.venv, "bin", "python")
    python = python if os.path.exists(python) else sys.executable
    if subprocess.run([python, "-c", "import psutil"], stderr=subprocess.DEVNULL, check=False).returncode:
        bench.skip(f"{name}, against psutil", "not installed: bench/run --peers BUILD installs it from PyPI")
    else:
        taken = peer_share([python, "-c", PSUTIL.replace("{", "{{").replace("}", "}}"), "{pid}"])
        bench.add(name, ours, "% of a core", "<= 0.2", f"psutil, {RATE} a second", taken, taken / max(ours, 0.001))
    if not shutil.which("pidstat"):
        bench.skip(f"{name}, against pidstat", "no sysstat: scripts/bootstrap bench")
        return
    # pidstat samples at most once a second; extrapolated to ten times a second.
    taken = peer_share(["pidstat", "-u", "-r", "-d", "-w", "-v", "-p", "{pid}", "1"]) * RATE
    bench.add(name, ours, "% of a core", "<= 0.2", f"pidstat, x {RATE}: it looks once a second", taken, taken / max(ours, 0.001))


# ---- ours ----

def measure_recorder(bench):
    name = "metrics of a program and the machine"
    with_metrics, without = [], []
    for _ in range(ROUNDS):
        taken, rows = recorder_share(bench, "host")
        if not rows:
            bench.skip(name, "the recorder stores no metrics")
            return None
        with_metrics.append(taken)
        taken, none = recorder_share(bench, "none")
        if none:
            raise RuntimeError("--backends none stores metrics")
        without.append(taken)
    ours = max(min(with_metrics) - min(without), 0)
    bench.add(name, ours, "% of a core", "<= 0.2")
    bench.add("recorder without metrics", min(without), "% of a core", None)
    bench.add("rows of metrics", rows / (SECONDS + SETTLE_SECONDS + 3), "a second", None)
    return ours


def measure_samples(bench):
    for threads in (1, 16, 128):
        line = bench.program(os.path.join("live", "metrics"), "host", "--threads", str(threads))
        where = f"{threads} thread{'s' if threads > 1 else ''}"
        bench.add(f"sample of machine and process, {where}", line["paced_us"], "us of CPU", "<= 200", "open, read, close",
                  line["paced_peer_us"], line["paced_peer_us"] / line["paced_us"])
        bench.add(f"the same in a tight loop, {where}", line["tight_us"], "us of CPU", None, "open, read, close",
                  line["tight_peer_us"], line["tight_peer_us"] / line["tight_us"])
    bench.add("values of a sample", line["values_a_sample"], "values", None)


def measure_nvml(bench):
    line = bench.program(os.path.join("live", "metrics"), "nvml")
    if not line["devices"]:
        bench.skip("NVML, 8 GPUs", line["why"])
        return
    each = line["cpu_us"] / line["devices"]
    bench.add(f"NVML, a sample of {line['devices']}", line["cpu_us"], "us of CPU", None)
    bench.add("that sample, as time on the clock", line["wall_us"], "us", None)
    bench.add("NVML, 8 GPUs, each as one here", each * 8 * RATE / 1e6 * 100, "% of a core", "<= 0.5")
    bench.add("values of a GPU", line["values_a_sample"] / line["devices"], "values", None)


def measure_metrics(bench):
    if not os.path.isdir("/dev/shm"):
        bench.skip("metrics", "there is no /dev/shm")
        return
    if os.path.exists(os.path.join(bench.build, "bench", "live", "metrics")):
        measure_samples(bench)
        measure_nvml(bench)
    else:
        bench.skip("a sample of metrics", "bench/live/metrics was not built")
    ours = measure_recorder(bench)
    if ours is not None:
        measure_peers(bench, ours)
