#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# An npu-smi that hangs delays nothing, is reported, gives no values and is not left behind. One
# that works gives rows.
. "$TS_SOURCE/tests/cli/metrics.sh"

mkdir bin
cat >bin/npu-smi <<END
#!/bin/bash
echo \$\$ >>'$PWD/pids'
exec sleep 1000
END
chmod +x bin/npu-smi
PATH=$PWD/bin:$PATH record -o t.sbt --backends host,npu-smi -- "$load" await:over 2>log &
recorder=$!
await grep npu-smi log
await holds t.sbt 'all(len(trace.times("memory_bytes", each)) > 20 for each in [None, *trace.pids()])'
: >over
wait $recorder || fail "recording ends with $?: $(cat log)"
rm over
"$TRACESMITH" view t.sbt --table mark --name metrics --json | grep npu-smi >/dev/null || fail "the trace does not say so"
while read -r pid; do
	await gone "$pid"
done <pids
python3 - <<'PY'
from metrics import Trace
trace = Trace("t.sbt")
(pid,) = trace.pids()
assert not [row for row in trace.rows if "device" in row], "values of a device that says nothing"
for times in trace.times("memory_bytes"), trace.times("memory_bytes", pid):
    # It hangs all the time: a sampler that waited for it would have no samples.
    assert len(times) > 20 and max(b - a for a, b in zip(times, times[1:])) < 5, len(times)
PY

# The table of an Atlas card in its tool's layout: one chip, one process.
cat >bin/npu-smi <<'END'
#!/bin/bash
cat <<'TABLE'
+------------------------------------------------------------------------------------------------+
| npu-smi 23.0.3                   Version: 23.0.3                                               |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 3     910B3               | OK            | 94.5        48                0    / 0             |
| 0                         | 0000:81:00.0  | 37          0    / 0          4224 / 65536         |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| No running processes found in NPU 3                                                            |
+===========================+===============+====================================================+
TABLE
END
PATH=$PWD/bin:$PATH record -o u.sbt --backends npu-smi -- "$load" await:over 2>log &
recorder=$!
await holds u.sbt 'trace.of("power_W", device=3)'
: >over
wait $recorder || fail "recording ends with $?: $(cat log)"
"$TRACESMITH" info --counters --json u.sbt | python3 -c '
import json, sys
rows = {(row["name"], row["series"]): row for row in json.load(sys.stdin)["counters"]}
assert all(row["subject"] == "device" and row["vendor"] == "Ascend" for row in rows.values()), rows
utilization = [row["last"] for (name, _), row in rows.items() if name == "utilization_percent"]
assert 37 in utilization, rows.keys()
assert rows["power_W", "draw"]["last"] == 94.5 and rows["memory_bytes", "used"]["last"] == 4224 << 20, rows.keys()
assert rows["temperature_C", "core"]["last"] == 48, rows.keys()' || fail "$(cat log; "$TRACESMITH" info --counters u.sbt)"
