#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Signals that end a verb in the middle of its work: once, or again before it has ended. It ends
# soon, an earlier output stays as it is, and no other file is left.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

python3 - >big.json <<'END'
import json, random
chance = random.Random(1)
print("[" + ",\n".join(json.dumps({"name": f"n{i % 1000}", "ph": "X", "ts": i * 10 + chance.random(), "dur": chance.random(),
                                   "pid": 1, "tid": i % 7, "args": {"i": chance.getrandbits(60)}}) for i in range(150000)) + "]")
END
"$TRACESMITH" import -q big.json -o big.sbt
# A journal: the recorder is killed before it has made a trace of it.
"$TRACESMITH" record -q -o killed.sbt -- "$emitter" --oracle "$oracle" --mode mixed --seconds 0 --count 400000 --linger 600 >log 2>&1 &
recorder=$!
wait_until 300 has_emitted 400000 || fail "the program does not emit: $(cat log)"
kill_hard $recorder
reap $recorder
kill_hard "$(oracle_pid)"
await_gone "$(oracle_pid)"
[ -e killed.sbt.journal ] || fail "no journal is left"

# Signals a verb when its output begins to grow, or at once. Prints how it ended.
cat >interrupt.py <<'END'
import os, subprocess, sys, time

number, count, output = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
verb = subprocess.Popen(sys.argv[4:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
while verb.poll() is None and not os.path.exists(output + ".part"):
    pass
for i in range(count):
    if verb.poll() is None:
        os.kill(verb.pid, number)
    # Signals that come together are one.
    time.sleep(0.001)
print(verb.wait(timeout=300))
END

ended=0
interrupt() { # output, argument...
	local output=$1 number count code
	shift
	for number in 15 2 1; do
		for count in 1 2 3; do
			mkdir run
			echo "earlier" >"run/$output"
			[ "$output" != out.sbt ] || cp small.sbt run/out.sbt
			cp "run/$output" earlier
			code=$(python3 interrupt.py $number $count "run/$output" "$TRACESMITH" "$@" -o "run/$output")
			[ "$(ls run)" = "$output" ] || fail "$1, $count times signal $number: it left $(ls run)"
			if [ "$code" -ne 0 ]; then
				ended=$((ended + 1))
				[ "$1" = import ] || cmp -s earlier "run/$output" || fail "$1, $count times signal $number: exit code $code, and another output"
			fi
			rm -rf run
		done
	done
}
echo '[{"name":"a","ph":"i","ts":1,"pid":1,"tid":1}]' >small.json
"$TRACESMITH" import -q small.json -o small.sbt
interrupt out.sbt import -q big.json
interrupt out.json export -q big.sbt -f chrome
interrupt out.sbt recover -q big.sbt
interrupt out.sbt recover -q killed.sbt
interrupt out.sbt align -q big.sbt
[ $ended -gt 0 ] || fail "no verb was interrupted"

# A file that may not grow is an error, not a signal.
mkdir limited
for verb in "import -q big.json -o limited/t.sbt" "export -q big.sbt -f chrome -o limited/t.json" "recover -q big.sbt -o limited/t.sbt"; do
	code=0
	# shellcheck disable=SC2086
	(ulimit -f 64 && "$TRACESMITH" $verb >stdout 2>stderr) || code=$?
	[ $code -eq 3 ] || fail "$verb: exit code $code: $(cat stderr)"
	[ ! -e "${verb##* }.part" ] || fail "$verb left $(ls limited)"
done

# A recorder passes signals on and ends with its program: the trace is complete.
fresh
"$TRACESMITH" record -q -o t.sbt -- "$emitter" --oracle "$oracle" --seconds 600 --rate 10000 >log 2>&1 &
recorder=$!
await_begin
kill -TERM $recorder
kill -TERM $recorder 2>/dev/null || true
await_gone $recorder
reap $recorder
[ $code -eq 143 ] || fail "record: exit code $code: $(cat log)"
[ "$(echo t.sbt*)" = t.sbt ] || fail "record left $(ls)"
check "two signals" t.sbt --none-lost
echo "$ended interrupted"
