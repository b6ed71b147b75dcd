#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Counter values as JSON, compared with what was written.
. "$TS_SOURCE/tests/cli/lib.sh"

"$TS_BUILD/tests/targets/make_counters" m.sbt
"$TRACESMITH" info --counters --json m.sbt >m.json
python3 - <<'PY'
import json
info = json.load(open("m.json"))
assert info["file"] == "m.sbt" and info["time_range_ns"] == [0, 10 ** 10] and info["left_out"] == 0, info
rows = {}
for row in info["counters"]:
    key = (row["subject"], row.get("pid"), row.get("device"), row["name"], row["series"])
    assert key not in rows, key
    rows[key] = row

def check(row, values, least, mean, greatest, last, unit):
    assert row["values"] == values and row["unit"] == unit, row
    assert (row["min"], row["max"], row["last"]) == (least, greatest, last), row
    assert abs(row["mean"] - mean) <= 1e-9 * abs(mean), row
    assert len(row["points"]) == 120, row

def gaps(row):
    """Where nothing is known, as indexes of the 120 points."""
    return [i for i, point in enumerate(row["points"]) if point is None]

# A rate covers the 100 ms before it: nothing is known from 3.9 s to 7.9 s.
user = rows["system", None, None, "cpu_percent", "user"]
check(user, 61, 0.0, 6 * 450 / 60, 90.0, 0.0, "percent")
assert gaps(user) == list(range(47, 94)), gaps(user)
assert user["points"][0] == 10, user
# A series missing from a row is unknown from there on; the other continues until the process ends.
rss = rows["process", 100, None, "memory_bytes", "rss"]
check(rss, 30, 100 << 16, sum((i + 1) * 100 << 16 for i in range(30)) / 30, 3000 << 16, 3000 << 16, "bytes")
assert gaps(rss) == list(range(36, 120)), gaps(rss)
vms = rows["process", 100, None, "memory_bytes", "vms"]
check(vms, 60, 3 << 30, 3 << 30, 3 << 30, 3 << 30, "bytes")
assert gaps(vms) == list(range(72, 120)), gaps(vms)
written = rows["process", 100, None, "disk_bytes_per_s", "written"]
check(written, 60, 0, (50 << 20) / 59, 50 << 20, 0, "bytes_per_s")
# One value: a point.
threads = rows["process", 99, None, "threads", "count"]
check(threads, 1, 8, 8, 8, 8, "")
assert len(gaps(threads)) == 119 and threads["points"][60] == 8, threads
gpu = rows["device", None, 0, "utilization_percent", "compute"]
check(gpu, 21, 0, 55, 100, 100, "percent")
assert gpu["vendor"] == "NVIDIA" and gpu["model"] == "NVIDIA H100 80GB HBM3", gpu
assert gpu["points"] == [0] * 54 + [100] * 66 and not gaps(gpu), gpu
check(rows["device", None, 1, "power_W", "draw"], 21, 350.5, 350.5, 350.5, 350.5, "W")
used = rows["process_on_device", 100, 0, "memory_bytes", "used"]
check(used, 21, 2 << 30, 2 << 30, 2 << 30, 2 << 30, "bytes")
# A program's counter holds until the next value, or the end.
depth = rows["thread", 100, None, "queue", "depth"]
check(depth, 2, 4, (4 * 8 + 8) / 9, 8, 8, "")
assert gaps(depth) == list(range(12)) and depth["tid"] == 100 and depth["thread_name"] == "main", depth
# Integers are exact; values that are not numbers are neither 0 nor drawn; null ends a value.
huge = rows["thread", 100, None, "huge", "integer"]
assert (huge["min"], huge["max"], huge["last"]) == (2 ** 63 - 3, 2 ** 63 - 1, 2 ** 63 - 3) and huge["id"] == 7, huge
real = rows["thread", 100, None, "huge", "real"]
assert real["values"] == 2 and real["min"] == 1e-9 and real["last"] == 1.0, real
mode = rows["thread", 100, None, "state", "mode"]
assert mode["texts"] == 1 and mode["last_text"] == "busy\nwaiting" and mode["values"] == 0 and "points" not in mode, mode
load = rows["thread", 100, None, "state", "load"]
assert load["values"] == 0 and "min" not in load and "last" not in load, load
assert len(rows) == 14, sorted(rows)
PY

# More unordered rows than a chunk holds: one pass in time order, with little memory.
"$TS_BUILD/tests/targets/make_counters" many.sbt 400000
"$TRACESMITH" info --counters --json many.sbt --name many | python3 -c '
import json, sys
info = json.load(sys.stdin)
value, constant = info["counters"]
assert info["rows"] == value["values"] == 400000 and value["series"] == "value"
assert (value["min"], value["max"], constant["min"], constant["max"]) == (0, 999, 7, 7)
assert abs(value["mean"] - 499.5) < 0.01 and constant["mean"] == 7 and None not in constant["points"][:119]'

# A thousand counters of ten series each: at most 8192 series are kept, the rest is counted.
python3 - >wide.json <<'PY'
import json
events = [{"ph": "C", "name": f"c{i}", "pid": 1, "tid": 1, "ts": i, "args": {f"s{k}": k for k in range(10)}} for i in range(1000)]
print(json.dumps(events))
PY
quietly import wide.json -o wide.sbt
"$TRACESMITH" info --counters --json wide.sbt | python3 -c '
import json, sys
info = json.load(sys.stdin)
assert len(info["counters"]) == 8192 and 0 < info["left_out"] <= 10000 - 8192, info["left_out"]'
"$TRACESMITH" info --counters wide.sbt | grep '^left out' >/dev/null || fail "no message about omitted rows"
