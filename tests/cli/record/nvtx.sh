#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# NVTX ranges and marks, by NVIDIA's client if its headers are installed, and by ours; windows that
# they open. Needs no device.
. "$TS_SOURCE/tests/cli/live.sh"

# record NAME [options] -- words: runs the client in $marks; prints its output and exit code.
record() {
	local output=$1 code=0
	shift
	"$TRACESMITH" record -o "$output" --backends cuda "${options[@]}" -- "$marks" "$@" 2>err.txt || code=$?
	grep -ve "^$output:" -e "^  no program used CUDA$" -e "^  .*: killed by" err.txt || true
	[ $code -eq 0 ] || echo "exit $code"
}
options=()

# slices TRACE: nesting, category, name, whether it has ended, arguments; by thread and start.
slices() {
	"$TRACESMITH" view "$1" --table slice --json | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
rows.sort(key=lambda row: row["start"])
names, open_until = [], {}
for row in rows:
    where = row.get("thread_name", row.get("tid"))
    ends = open_until.setdefault(where, [])
    while ends and ends[-1] <= row["start"]:
        ends.pop()
    length = row.get("duration", -1)
    ended = length is not None and length >= 0
    print("  " * len(ends) + row["category"], row["name"], "" if ended else "open", row.get("args", ""), sep="|")
    ends.append(row["start"] + length if ended else float("inf"))'
}

check() {
	marks=$TS_BUILD/tests/targets/$1
	echo "== levels and nesting"
	record t.sbt levels push:outer push:inner pop domain:NCCL push:reduce pop domain: pop pop | tr '\n' ' '
	echo
	slices t.sbt
	echo "== their attributes, the first time and again"
	record t.sbt rich:load pop rich:load pop real:loss pop real:loss pop wide:caf pop
	slices t.sbt
	echo "== overlapping domains: one is split, and continues"
	record t.sbt push:a domain:D push:b domain: pop domain:D pop
	slices t.sbt
	echo "== any thread may end it; threads have their own names"
	record t.sbt start:first start:second end-elsewhere:0 end:1 start:never threads:2
	slices t.sbt | sort
	"$TRACESMITH" view t.sbt --table thread --json | grep -oE '"name":"(ranges|worker)[^"]*"' | sort
	echo "== an unlimited number of names does not fill the dictionary"
	record t.sbt names:6000 repeat:5000
	echo "$(rows t.sbt -c nvtx) $(rows t.sbt -n again) $(rows t.sbt -n 'aten::add, seq = 5999, op_id = 17997') $(rows t.sbt --table loss)"
	echo "== too deep ranges are counted, and levels are right"
	record t.sbt deep:200
	echo "$(rows t.sbt -n deep) $("$TRACESMITH" view t.sbt --table loss --json | grep -oE '"(count|reason)":[^,}]*' | tr '\n' ' ')"
	echo "== invalid handles"
	record t.sbt handles
	"$TRACESMITH" view t.sbt --table mark --json | grep -oE '"name":"[^"]*"'
	echo "== a kill leaves them open; a child has its own"
	record t.sbt push:outer push:inner mark:here kill:9 2>/dev/null
	slices t.sbt
	record t.sbt push:outer fork push:both pop pop
	slices t.sbt | sort
	rows t.sbt --table loss
}

check nvtx_marks_bundled >bundled.txt 2>&1
check nvtx_marks >theirs.txt 2>&1
cat bundled.txt
diff bundled.txt theirs.txt || fail "NVIDIA's client and ours differ"

windows() {
	"$TRACESMITH" view "$1" --table window --json | grep -oE '"(opened_by|closed_by)":"[^"]*"' | sort | uniq -c | sed 's/^ *//'
}

echo "== a window: nested ranges are one, each later range another"
options=(--window nvtx:step)
record w.sbt mark:out push:step mark:in push:step pop mark:in pop mark:out push:step mark:in pop mark:out
echo "$(rows w.sbt -n in) $(rows w.sbt -n out)"
windows w.sbt
echo "== held open by several threads"
record w.sbt inside:4:step mark:out
echo "$(rows w.sbt -n inside) $(rows w.sbt -n out)"
echo "== begun inside, ended after it"
# ts_now() and the counter of the ring agree to some 100 ns.
record w.sbt start:step sleep:20 push:late end:0 mark:out pop push:step push:next pop pop
slices w.sbt
rows w.sbt -n out
echo "== killed inside"
record w.sbt start:step mark:in kill:9 2>/dev/null
echo "$(rows w.sbt -n in) $(windows w.sbt)"
echo "== a domain"
options=(--window 'nvtx:step@D')
record w.sbt push:step mark:other pop domain:D push:step mark:in pop
echo "$(rows w.sbt -n in) $(rows w.sbt -n other)"
windows w.sbt
echo "== a file each"
options=(--window nvtx:step --split)
record s.sbt push:step mark:in pop sleep:50 push:step mark:in pop
find . -name 's*.sbt' | wc -l
echo "== never"
options=(--window nvtx:epoch)
record w.sbt push:step pop
options=(--window cuda-profiler-api)
record w.sbt push:step pop

echo "== a program started with it, attached to later"
TRACESMITH_LIVE=1 TRACESMITH_BACKENDS=cuda,host NVTX_INJECTION64_PATH=$TS_BUILD/libtracesmith-backend-cuda.so \
	LD_PRELOAD=$TS_BUILD/libtracesmith-agent.so:$TS_BUILD/libtracesmith-backend-cuda.so \
	"$marks" push:before pop push:meanwhile make:ready await:go pop mark:late &
program=$!
await [ -e ready ]
"$TRACESMITH" record -q --backends none -p $program -o a.sbt &
recorder=$!
await has_recorder $program
touch go
wait $program
wait $recorder
slices a.sbt
rows a.sbt -n late
