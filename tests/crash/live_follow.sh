#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# `tracesmith record -- CMD` behaves like CMD: exit code, signals, streams. Grandchildren, daemons
# and programs that the agent cannot enter are followed, or reported.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

# Exit code and signal.
for code in 0 1 42 255; do
	expect $code record -q -o t.sbt -- sh -c "exit $code"
done
expect 143 record -q -o t.sbt -- sh -c 'kill -TERM $$'
expect 137 record -q -o t.sbt -- sh -c 'kill -KILL $$'
rm -f t.sbt
expect 127 record -q -o t.sbt -- ./there-is-none
says there-is-none
[ ! -e t.sbt ] || fail "a missing program left a trace"
echo text >no-program
chmod +x no-program 2>/dev/null
chmod -x no-program
expect 126 record -q -o t.sbt -- ./no-program
[ ! -e t.sbt ] || fail "a program that cannot be started left a trace"

# Streams: byte for byte, without anything of ours in between.
head -c 3000000 /dev/urandom >bytes
"$TRACESMITH" record -q -o t.sbt -- cat <bytes >copy 2>stderr
cmp bytes copy || fail "standard input or output was touched"
[ ! -s stderr ] || fail "something is on standard error: $(cat stderr)"
"$TRACESMITH" record -q -o t.sbt -- sh -c 'echo one; echo two >&2' >out 2>err
[ "$(cat out)" = one ] && [ "$(cat err)" = two ] || fail "streams are mixed up: $(cat out err)"
# The environment is unchanged except for what makes it a target: LD_PRELOAD, PYTHONPATH and TRACESMITH_AGENT.
env | grep -vE '^(_|LD_PRELOAD|PYTHONPATH|TRACESMITH_AGENT)=' | sort >before
"$TRACESMITH" record -q -o t.sbt -- env | grep -vE '^(_|LD_PRELOAD|PYTHONPATH|TRACESMITH_AGENT)=' | sort >after
cmp -s before after || fail "the environment differs: $(diff before after)"

# Signals to the recorder go to the program.
"$TRACESMITH" record -q -o t.sbt -- sh -c 'trap "exit 5" TERM; : >ready; while :; do sleep 0.02; done' >log 2>&1 &
recorder=$!
wait_until 120 test -e ready || fail "the program did not start: $(cat log)"
kill -TERM $recorder
reap $recorder
[ $code -eq 5 ] || fail "SIGTERM: exit code $code, expected 5: $(cat log)"
expect 0 verify -q t.sbt

# Children of children of children, through a shell and an exec.
"$TRACESMITH" record -q -o t.sbt -- sh -c "sh -c 'exec env \"\$0\" \"\$@\"' \"\$0\" \"\$@\"; exit 3" \
	"$emitter" --oracle "$oracle" --chain --processes 5 --threads 2 --mode mixed --rate 5000 --seconds 0.4 >log 2>&1 && code=0 || code=$?
[ $code -eq 3 ] || fail "exit code $code, expected 3: $(cat log)"
check "a chain" t.sbt --all-done --some-stored
python3 - <(rows_of t.sbt process) <<'END' || fail "parents are missing: $(rows_of t.sbt process)"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
emitters = [row for row in rows if row.get("name") == "live_oracle"]
assert len(emitters) >= 5, rows
assert len({row["pid"] for row in emitters}) == 5, rows
assert sum(1 for row in emitters if row.get("parent")) >= 4, rows
END

# A daemon outlives its parent; its recording ends with it.
fresh
"$TRACESMITH" record -q -o t.sbt -- "$emitter" --oracle "$oracle" --daemon --rate 20000 --seconds 0.6 >log 2>&1 || fail "record: $(cat log)"
is_done || fail "record ended before the daemon did"
check "a daemon" t.sbt --all-done --some-stored

# A child that the agent cannot enter is named, with the reason.
echo 'int main(void) { for (volatile long i = 0; i < 1500000000; i++) ; return 0; }' >still.c
if cc -O0 -static still.c -o still 2>/dev/null; then
	fresh
	"$TRACESMITH" record -q -o t.sbt -- sh -c "./still & \"\$0\" \"\$@\"; wait" \
		"$emitter" --oracle "$oracle" --rate 5000 --seconds 0.6 >log 2>&1 || fail "record: $(cat log)"
	check "beside a static program" t.sbt --all-done --some-stored
	rows_of t.sbt loss >rows
	grep -qi '"what":"process".*static' rows || fail "no message about the static program: $(cat rows)"
	static=""
else
	static="no static program can be made here, so none was followed"
fi

# A process that becomes another program: both are there.
fresh
"$TRACESMITH" record -q -o t.sbt -- "$emitter" --oracle "$oracle" --threads 2 --mode mixed --count 5000 --seconds 0 -- \
	"$emitter" --oracle "$oracle.2" --first 1 --mode mixed --threads 3 --count 7000 --seconds 0 >log 2>&1 || fail "record: $(cat log)"
oracle=$oracle,$oracle.2 check "exec" t.sbt --all-done --some-stored

summary "$static"
