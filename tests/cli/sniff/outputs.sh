#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A running program, sampled from outside: as a timeline, a trace, and folded stacks; main thread
# only, or all.
. "$TS_SOURCE/tests/cli/python.sh"

begin the_main
echo "== a timeline"
cat >look.py <<'PY'
import collections, json, sys
pid = int(sys.argv[1])
events = json.load(open("t.json"))["traceEvents"]
open_stacks = collections.defaultdict(list)
begun = collections.Counter()
last = {}
for e in events:
    if e["ph"] not in "BE":
        continue
    key = e["pid"], e["tid"]
    assert e["ts"] >= last.get(key, 0), "times go back"
    last[key] = e["ts"]
    if e["ph"] == "B":
        open_stacks[key].append(e["name"])
        begun[e["name"].split(" ")[0]] += 1
    else:
        assert open_stacks[key], "an end without a begin"
        open_stacks[key].pop()
assert not any(open_stacks.values()), "left open: %s" % dict(open_stacks)
print("threads:", sorted({tid == pid for p, tid in last if p == pid}))
print("functions:", [name for name in ("the_main", "run", "wait_inside", "worker") if begun[name]])
print("counters:", bool([e for e in events if e["ph"] == "C" and e["name"] == "memory_bytes"]),
      bool([e for e in events if e["ph"] == "C" and e["name"].startswith("python_")]))
print("names:", sorted({e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name" and e["pid"] == pid}))
PY
# On a busy machine longer.
for seconds in 1 5 30; do
	"$TRACESMITH" sniff -p $program -d $seconds -i 0.01 --cpu-mem-usage -o t.json 2>err.txt
	python3 look.py $program >said.txt
	! grep -q 'the_main.*run.*wait_inside' said.txt || ! grep -q 'counters: True' said.txt || break
done
numbers <err.txt
ls t.*
cat said.txt

echo "== a trace of all threads"
threads() { stacks t.sbt | grep -v '_bootstrap$' | sed "s/^python[0-9.]*/PYTHON/" | cut -d';' -f1,2 | sort -u; }
functions() { stacks t.sbt | grep -o 'the_main;run;wait_inside$\|worker;wait_inside$' | sort -u; }
counters() { "$TRACESMITH" info --counters t.sbt --json | grep -o 'python_[a-z_]*' | sort -u; }
for seconds in 1 5 30; do
	"$TRACESMITH" sniff -p $program -d $seconds -i 0.01 --all-thread -o t.sbt 2>err.txt
	[ "$(threads | wc -l)" -lt 3 ] || [ "$(functions | wc -l)" -lt 2 ] || [ "$(counters | wc -l)" -lt 7 ] || break
done
numbers <err.txt
"$TRACESMITH" verify t.sbt
threads
functions
counters

echo "== folded stacks"
for seconds in 0.5 5 30; do
	"$TRACESMITH" sniff -q -p $program -d $seconds -i 0.01 -o t.folded
	samples=$(awk '{ n += $NF } END { print n + 0 }' t.folded)
	[ "$samples" -le 5 ] || break
done
grep -c 'the_main' t.folded >/dev/null && grep -q 'worker' t.folded && fail "other threads, too"
[ "$samples" -gt 5 ] || fail "only $samples samples"

echo "== default name"
mkdir empty
(cd empty && "$TRACESMITH" sniff -q -p $program -d 0.3 && ls | sed 's/[0-9]/N/g')
touch the_main.over
wait $program
