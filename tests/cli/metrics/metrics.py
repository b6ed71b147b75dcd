# SPDX-License-Identifier: Apache-2.0
"""For these tests: reads the metrics of a trace with `tracesmith view`, and sums them up."""
import json
import math
import os
import subprocess

TOOL = os.environ["TRACESMITH"]

# Every metric that the recorder reads from /proc, and its series.
PROCESS = {
    "cpu_percent": {"all"}, "cpu_mode_percent": {"user", "system"}, "children_cpu_percent": {"ended"},
    "memory_bytes": {"rss", "vms", "shared"}, "threads": {"count"}, "faults_per_s": {"minor", "major"},
    "disk_bytes_per_s": {"read", "written"}, "io_bytes_per_s": {"read", "written"},
    "context_switches_per_s": {"voluntary", "involuntary"},
}
SYSTEM = {
    "cpu_percent": {"user", "system", "iowait", "steal"}, "memory_bytes": {"used", "available"}, "swap_bytes": {"used"},
    "network_bytes_per_s": {"received", "sent"}, "disk_bytes_per_s": {"read", "written"}, "context_switches_per_s": {"all"},
    "pressure_percent": {"cpu", "memory", "io"}, "pressure_full_percent": {"memory", "io"}, "tasks": {"running", "blocked"},
    "faults_per_s": {"minor", "major"}, "swap_bytes_per_s": {"in", "out"},
}


def near(value, truth, part, least, what):
    """The value is within a fraction of the truth, or within `least` of it."""
    if abs(value - truth) > max(abs(truth) * part, least):
        raise AssertionError(f"{what}: {value:g}, but it was {truth:g}")


class Trace:
    def __init__(self, path):
        lines = subprocess.run([TOOL, "view", path, "--json", "--table", "counter"], stdout=subprocess.PIPE, check=True).stdout
        self.rows = [row for row in map(json.loads, lines.splitlines()) if row.get("category") in ("system", "process", "device")]
        self.check()

    def check(self):
        """Invariants of every trace: known names and series, plausible numbers, time order."""
        cpus = os.cpu_count()
        for row in self.rows:
            if "tid" in row:
                raise AssertionError(f"a thread has metrics: {row}")
            for value in row["args"].values():
                if not isinstance(value, (int, float)) or not math.isfinite(value) or value < 0:
                    raise AssertionError(f"no number: {row}")
            if "device" in row:
                continue
            known = PROCESS if "pid" in row else SYSTEM
            if row["category"] != ("process" if "pid" in row else "system") or not set(row["args"]) <= known.get(row["name"], set()):
                raise AssertionError(f"not a metric of docs/metrics.md: {row}")
            if row["name"] == "cpu_percent":
                # A process may have more ticks in an interval than fit: one per thread at either
                # end.
                most = 100.5 if "pid" not in row else 100 * cpus + 25
                if sum(row["args"].values()) > most:
                    raise AssertionError(f"more than there is: {row}")

    def of(self, name, pid=None, **where):
        return [row for row in self.rows if row["name"] == name and row.get("pid") == pid and
                all(row.get(key) == value for key, value in where.items()) and ("device" in where) == ("device" in row)]

    def pids(self):
        return {row["pid"] for row in self.rows if "pid" in row}

    def times(self, name, pid=None):
        return [row["start"] / 1e9 for row in self.of(name, pid)]

    def values(self, name, series, pid=None):
        return [row["args"][series] for row in self.of(name, pid) if series in row["args"]]

    def total(self, name, series, pid=None):
        """A rate times its interval: each covers the time since the previous sample."""
        last = min(row["start"] for row in self.rows if row.get("pid") == pid and "device" not in row)
        total = 0
        for row in self.of(name, pid):
            total += row["args"].get(series, 0) * (row["start"] - last) / 1e9
            last = row["start"]
        return total
