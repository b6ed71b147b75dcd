#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Rows of torch_trace from several threads: each with the device time that another thread added, also
# when the program is killed, and the newest ones in flight mode.
. "$TS_SOURCE/tests/cli/live.sh"

program=$TS_BUILD/tests/targets/torch_rows
export RANK=3

# check TRACE THREADS LEAST MOST [late]: each thread stored MOST rows, of which at least the newest
# LEAST are there, and right.
check() {
	"$TRACESMITH" view "$1" --table torch_trace --json >rows
	"$TRACESMITH" view "$1" --table loss --json >losses
	python3 - "${@:2}" <<-'END'
	import collections, json, sys
	threads, least, most = map(int, sys.argv[1:4])
	late = sys.argv[4:] == ["late"]
	steps = collections.defaultdict(list)
	timed = untimed = 0
	for line in open("rows"):
	    row = json.loads(line)
	    steps[row["seq"]].append(row["step"])
	    i = row["step"]
	    assert row["module"] == f"thread.{row['seq']}", row
	    assert row["stage"] == "forward" and row["rank"] == 3 and row.get("allocated", 0) == i, row
	    assert abs(row["duration"] - (i + 1) * 1e-6) < 1e-12, row
	    if i % 3 == 2:
	        assert row.get("device") is None and not row.get("device_time"), row
	    elif late and i % 10 == 0:
	        assert row["device"] == 0 and not row.get("device_time"), row
	    elif row.get("device_time"):
	        assert row["device"] == 0, row
	        assert abs(row["device_time"] - (i + 1) * 2e-6) < 1e-12, row
	        timed += 1
	    else:
	        untimed += 1
	assert len(steps) == threads, steps.keys()
	for seq, found in steps.items():
	    found.sort()
	    assert found[-least:] == list(range(most - least, most)), (seq, len(found))
	lost = sum(row["count"] for row in map(json.loads, open("losses")) if row["what"] == "device times")
	# Those of overwritten rows are lost, too.
	assert timed > 0 and (untimed == lost or untimed < lost and least < most), (timed, untimed, lost)
	print(f"{threads} threads: rows and device times are right")
	END
}

echo "== recorded"
"$TRACESMITH" record -q -o t.sbt -- "$program" 3 20000
check t.sbt 3 20000 20000
t view t.sbt --table torch_trace --sort duration --limit 4 --columns duration,table
echo "== a device that never answers for some"
"$TRACESMITH" record -q -o late.sbt -- "$program" 2 3000 late
check late.sbt 2 3000 3000 late

echo "== killed, in flight mode"
TRACESMITH_LIVE=1 "$program" 2 40000 wait >output &
killed=$!
await grep -q "done" output
kill -9 $killed
wait $killed 2>/dev/null || true
"$TRACESMITH" recover $killed -o flight.sbt >/dev/null 2>&1
check flight.sbt 2 10000 40000
