#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A third-party source, the example in examples/backends: its values, unreadable values, and its
# end.
. "$TS_SOURCE/tests/cli/metrics.sh"

export LD_LIBRARY_PATH=$TS_BUILD/examples/backends${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} MYDEVICE_STATUS=$PWD/status
status() { printf '%s\n' "$@" >status.new && mv status.new status; }

status 'utilization 42.5' 'power 61500' 'temperature NA' 'memory 2048'
record -o t.sbt --backends host,mydevice -- "$load" make:begun await:over 2>log &
recorder=$!
await holds t.sbt 'trace.of("power_W", device=0)'
status 'utilization 90' 'temperature 55' 'memory 4096' "process $$ 1024"
await holds t.sbt 'trace.of("memory_bytes", pid, device=0)' $$
rm status
await grep 'mydevice: the status of the device has gone' log
await holds t.sbt 'len([t for t in trace.times("memory_bytes") if t > trace.of("memory_bytes", device=0)[-1]["start"] / 1e9]) >= 3'
: >over
wait $recorder || fail "recording ends with $?: $(cat log)"
"$TRACESMITH" info --counters --json t.sbt | python3 -c '
import json, sys
rows = {(row["name"], row["series"]): row for row in json.load(sys.stdin)["counters"] if row["subject"] == "device"}
shared = {"vendor": "Example", "model": "MyDevice 1", "device": 0}
assert all(row[key] == value for row in rows.values() for key, value in shared.items()), rows
def check(name, series, least, greatest):
    row = rows.pop((name, series))
    assert (row["min"], row["max"]) == (least, greatest), row
check("utilization_percent", "compute", 42.5, 90)
check("power_W", "draw", 61.5, 61.5)
check("temperature_C", "core", 55, 55)
check("memory_bytes", "used", 2048 << 10, 4096 << 10)
assert not rows, rows'
"$TRACESMITH" info --counters --json t.sbt --process $$ | python3 -c '
import json, sys
(row,) = json.load(sys.stdin)["counters"]
assert row["subject"] == "process_on_device" and row["last"] == 1 << 20 and row["device"] == 0, row'
python3 -c '
from metrics import Trace
trace = Trace("t.sbt")
last = max(row["start"] for row in trace.rows if "device" in row)
assert len([row for row in trace.of("memory_bytes") if row["start"] > last]) >= 3, "others end with it"'

# A source that cannot be opened says why.
rm over
record -o u.sbt --backends mydevice -- "$load" await:over 2>log &
recorder=$!
await grep "mydevice: cannot read '$PWD/status'" log
: >over
wait $recorder || fail "recording ends with $?: $(cat log)"
