#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program's metrics match its own accounting, and the machine's match /proc.
. "$TS_SOURCE/tests/cli/metrics.sh"

# matches SLEEP_MS: records, and compares. The longer sleeps leave time for samples before the work
# and after it.
matches() {
	rm -f data
	cat /proc/stat >stat.before
	record -q -o t.sbt --backends host -- "$load" sleep:$(($1 - 300)) cpu:1500 memory:96 sleep:300 naps:400 write:data threads:5 sleep:"$1" say sleep:300 >truth ||
		fail "recording ends with $?"
	cat /proc/stat >stat.after
	python3 compare.py 2>differences
}
cat >compare.py <<'PY'
import json, os, re
from metrics import Trace, near
trace, truth = Trace("t.sbt"), json.load(open("truth"))
pid = truth["pid"]
assert trace.pids() == {pid}, trace.pids()

# ---- the program ----
# The CPU clock of a running process lags by up to a tick; work before the first sample is not
# included.
near(trace.total("cpu_percent", "all", pid) / 100, truth["cpu_s"], 0.05, 0.08, "CPU seconds")
modes = trace.total("cpu_mode_percent", "user", pid) + trace.total("cpu_mode_percent", "system", pid)
near(modes / 100, truth["cpu_s"], 0.05, 0.1, "CPU seconds, user and system")
near(max(trace.values("memory_bytes", "rss", pid)), truth["rss"], 0.02, 1 << 20, "rss")
assert all(row["args"]["vms"] >= row["args"]["rss"] >= row["args"]["shared"] for row in trace.of("memory_bytes", pid))
assert max(trace.values("threads", "count", pid)) == 6 and min(trace.values("threads", "count", pid)) == 1
near(trace.total("io_bytes_per_s", "written", pid), truth["wchar"], 0.02, 65536, "bytes written by calls")
near(trace.total("disk_bytes_per_s", "written", pid), truth["write_bytes"] - truth["cancelled_bytes"], 0.05, 1 << 20, "bytes to disk")
near(trace.total("faults_per_s", "minor", pid), truth["faults"], 0.1, 1500, "page faults")
near(trace.total("context_switches_per_s", "voluntary", pid), truth["voluntary"], 0.15, 60, "voluntary context switches")
assert trace.total("children_cpu_percent", "ended", pid) == 0

# ---- the machine ----
total = int(re.search(r"MemTotal: +(\d+) kB", open("/proc/meminfo").read())[1]) * 1024
for row in trace.of("memory_bytes"):
    assert row["args"]["used"] + row["args"]["available"] == total, row
def number(path, pattern):
    return int(re.search(pattern, open(path).read(), re.MULTILINE)[1])
times = trace.times("context_switches_per_s")
switches = number("stat.after", r"^ctxt (\d+)") - number("stat.before", r"^ctxt (\d+)")
assert 0.5 * switches <= trace.total("context_switches_per_s", "all") <= switches * 1.02, (trace.total("context_switches_per_s", "all"), switches)
# Ticks of all CPUs between the two readings of /proc/stat; the recording is within.
def ticks(path):
    user, nice, system, idle, iowait, irq, softirq, steal = map(int, open(path).readline().split()[1:9])
    return user + nice + system + irq + softirq, user + nice + system + idle + iowait + irq + softirq + steal
busy = (ticks("stat.after")[0] - ticks("stat.before")[0]) / os.sysconf("SC_CLK_TCK")
cpus = os.cpu_count()
seen = (trace.total("cpu_percent", "user") + trace.total("cpu_percent", "system")) / 100 * cpus
assert truth["cpu_s"] * 0.9 - 0.1 <= seen <= busy * 1.05 + 0.1, (seen, busy, truth["cpu_s"])

# ---- intervals ----
# At least 4 s, 10 times a second; fewer on a busy machine, but never more.
rows = len(trace.of("cpu_percent", pid))
assert 8 <= rows <= (times[-1] - times[0]) * 10 + 3, rows
assert len(trace.of("cpu_mode_percent", pid)) <= rows / 5 + 1, len(trace.of("cpu_mode_percent", pid))
PY
matched=
for sleep_ms in 1300 8000 30000; do
	if matches $sleep_ms; then
		matched=1
		break
	fi
done
[ "$matched" ] || fail "$(cat differences)"

# The same numbers in the summary.
"$TRACESMITH" info --counters --json t.sbt | python3 -c '
import json, sys
truth, rows = json.load(open("truth")), json.load(sys.stdin)["counters"]
own = {(row["name"], row["series"]): row for row in rows if row["subject"] == "process"}
assert all(row["pid"] == truth["pid"] for row in own.values())
assert own["threads", "count"]["max"] == 6 and own["memory_bytes", "rss"]["max"] >= 96 << 20
assert {row["subject"] for row in rows} == {"system", "process"}'
