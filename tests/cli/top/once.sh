#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Without a screen: processes, exact event counts, losses, and processes that exit meanwhile.
. "$TS_SOURCE/tests/cli/live.sh"
# The same on machines with accelerators.
export TRACESMITH_BACKENDS=host

trap 'touch go over; jobs -pr | xargs -r kill 2>/dev/null || true' EXIT
# top_json PYTHON [options]: evaluates the last snapshot, `top`, with `p` by pid.
top_json() {
	local code=$1
	shift
	"$TRACESMITH" top --json -d 0.1 "$@" | python3 -c '
import json, os, sys
pictures = [json.loads(line) for line in sys.stdin]
top = pictures[-1]
p = {row["pid"]: row for row in top["processes"]}
exec(sys.argv[1])' "$code"
}
listed() { "$TRACESMITH" top --once --json -d 0.1 | grep -q "\"pid\":$1,"; }

echo "== no process"
{ "$TRACESMITH" top --once -d 0.1 >/dev/null; } 2>&1
# Vendor tools run only if selected.
mkdir tools
printf '#!/bin/sh\ntouch "%s/asked"\n' "$PWD" >tools/npu-smi
chmod +x tools/npu-smi
PATH=$PWD/tools:$PATH "$TRACESMITH" top --once -d 0.1 --backends host >/dev/null 2>&1
PATH=$PWD/tools:$PATH TRACESMITH_BACKENDS=host "$TRACESMITH" top --once -d 0.1 >/dev/null 2>&1
[ ! -e asked ] || fail "npu-smi was run"
top_json 'print(top["processes"], sorted(top))' --once
"$TRACESMITH" top --once -d 0.1 | sed -E -e '1s/  .*load/  HOST load/' -e '/^note: /d' | numbers | sed 's/N[KMGT]/N/g; s/swap used -/swap used N/'

echo "== a program and its child"
TRACESMITH_LIVE=1 "$emit" instants:1234 fork instants:100 make:ready await:over &
program=$!
await [ -e ready ]
export TARGET=$program
# Which of the two made the file is open.
both_counted() { top_json 'sys.exit(sorted(row["events"] for row in p.values()) != [100, 1334])' --once; }
await both_counted
top_json '
own, child = p[int(os.environ["TARGET"])], [row for row in p.values() if row["parent"] == int(os.environ["TARGET"])][0]
print(len(p), own["events"], own["events_per_s"], own["events_estimated"], own["events_lost"], own["recording"], own["window"])
print(child["events"], child["name"], child["state"] in "SRD")
print("instants:1234" in own["command"], own["rss_bytes"] > 0, own["vms_bytes"] > own["rss_bytes"], own["threads"], own["cpu_percent"] >= 0, own["cpu_time_s"] >= 0)
print(sorted(set(own) - {"devices", "device_percent", "device_memory_bytes"}))
s = top["system"]
print(0 <= s["cpu_percent"] <= 100, 0 < s["memory_used_bytes"] < s["memory_bytes"], s["load_1"] >= 0)' --once
# Selecting another process lists only that one.
sleep 600 &
other=$!
await grep -qx sleep /proc/$other/comm
await grep -q '^State:.S' /proc/$other/status
top_json '
print(sorted(row["name"] for row in p.values()), [key for key in top["processes"][0] if key.startswith("events")], top["processes"][0]["recording"])' --once -p $other
"$TRACESMITH" top --once -d 0.1 -p $other | tail -n +5 | grep -v '^$\|^note' | sed -E -e "s/$other/PID/" -e 's/^ +//' -e 's/[0-9.]+[KMG]|[0-9]+:[0-9.]+|0\.[0-9]/N/g' -e "s/ $(id -un) / USER /" -e 's/ +/ /g'
top_json 'print(sorted(row["name"] for row in p.values()))' --once -p $other,$program
top_json 'print({"launch_emit", "sleep", "bash"} <= {row["name"] for row in p.values()})' --once -a
kill $other
wait $other 2>/dev/null || true
t top --once -p $other | sed "s/$other/PID/"

# watch: writes snapshots of everything to a file until `unwatch`. last PYTHON: does this hold for
# the last two, `a` and `b`?
watch() {
	"$TRACESMITH" top -n 100000 -d 0.1 --json >pictures &
	watcher=$!
	await [ -s pictures ]
}
unwatch() {
	kill $watcher
	wait $watcher 2>/dev/null || true
}
last() {
	python3 -c '
import json, sys
a, b = [json.loads(line)["processes"] for line in open("pictures").read().split("\n")[:-1]][-2:]
sys.exit(not eval(sys.argv[1]))' "$1"
}

echo "== one that exits meanwhile"
watch
touch over
wait $program
await last 'not b'
unwatch
python3 -c 'import json; print(len(json.loads(open("pictures").readline())["processes"]))'
rm -f over ready

echo "== events per second"
TRACESMITH_LIVE=1 "$emit" instants:10 make:ready await:go instants:5000 make:emitted await:over &
program=$!
await [ -e ready ]
watch
await last 'b and b[0]["events_per_s"] == 0'
touch go
await last 'a[0]["events"] == 5010 and b[0]["events_per_s"] == 0'
unwatch
python3 -c '
import json
rows = [json.loads(line)["processes"][0] for line in open("pictures").read().split("\n")[:-1]]
counts = [row["events"] for row in rows]
rates = [row["events_per_s"] for row in rows]
# All events at once, or in a few passes; a rate covers at least half a delay.
print(counts == sorted(counts), counts[0], counts[-1], 0 < max(rates) <= 5000 / 0.05)
print(rates[0] == 0, rates[-1] == 0)
print({row["events_estimated"] for row in rows}, {row["events_lost"] for row in rows})'
touch over
wait $program
rm -f over ready go emitted

echo "== recorded, and lost"
"$TRACESMITH" record -q --budget 4M -o t.sbt -- "$emit" instants:10 make:ready await:go instants:300000 make:emitted await:over &
recorder=$!
await [ -e ready ]
export RECORDER=$recorder
program=$(pgrep -P $recorder launch_emit)
export TARGET=$program
await listed "$program"
await has_recorder "$program"
top_json '
row = p[int(os.environ["TARGET"])]
print(row["recording"], row["recorder_pid"] == int(os.environ["RECORDER"]), row["events"], row["events_lost"])' --once
kill -STOP $recorder
touch go
await [ -e emitted ]
# A pass reads a limited amount: later ones catch up, and then the count is exact.
top_json '
first, last = pictures[0]["processes"][0], pictures[-1]["processes"][0]
print(last["events_lost"] > 0, last["events"] + last["events_lost"], last["events_estimated"])' -n 12 -p "$program"
"$TRACESMITH" top --once -d 0.1 -p "$program" | tail -1 | sed -E -e "s/$program/PID/; s/$recorder/RECORDER/" | awk '{ print $1, $4, ($10 ~ /k$/ ? "lost" : $10) }'
kill -CONT $recorder
touch over
wait $recorder

echo "== a hostile name"
python3 -c '
import time
open("/proc/self/comm", "w").write("a\x1b]0;b\x07c")
open("named", "w").close()
time.sleep(600)' &
other=$!
await [ -e named ]
"$TRACESMITH" top --once -d 0.1 -p $other | tail -1 | sed -E 's/.* ([^ ]+)$/\1/'
top_json 'print(repr(top["processes"][0]["name"]))' --once -p $other
kill $other
