#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What --redact leaves out (docs/privacy.md): a text that a program has in every place where one can
# be is neither in the trace nor, while it is recorded, in the journal and the live area.
. "$TS_SOURCE/tests/cli/live.sh"
unset TRACESMITH_REDACT
export TRACESMITH_RECORDER=$TRACESMITH SECRET_VARIABLE=hidden-in-environment
secrets=$TS_BUILD/tests/targets/secrets
secret=hidden-correct-horse
number=27182818284590
host=$(uname -n)

# Everything of a trace, as text.
contents() {
	local trace=$1 table
	for table in $("$TRACESMITH" info "$trace" --json | python3 -c 'import json, sys; print(*json.load(sys.stdin)["tables"])') string; do
		"$TRACESMITH" view "$trace" --table "$table" --args --json 2>/dev/null || true
	done
	"$TRACESMITH" export "$trace" -f chrome -o - 2>/dev/null
	"$TRACESMITH" info "$trace"
}
leaks() { grep -aoE "hidden-[a-z-]*|$number|\"name\":\"$host\"" | sed "s/$host/HOST/" | sort | uniq -c | sed 's/^ *//'; }
# In files as they are: also before anything is decoded.
raw() { python3 - "$number" "$@" <<-'PY'
	import re, struct, sys
	number = int(sys.argv[1])
	what = b"hidden-[a-z-]*|" + re.escape(struct.pack("=q", number)) + b"|" + re.escape(struct.pack("=d", number))
	found = {text for path in sys.argv[2:] for text in re.findall(what, open(path, "rb").read())}
	sys.exit(not [print(text) for text in sorted(found)])
PY
}
check_none() { # what, trace
	contents "$2" >contents.txt
	! leaks <contents.txt | grep . || fail "$1: found in $2"
	! raw "$2" || fail "$1: found in $2 as it is"
	grep -q stays_instant contents.txt || fail "$1: the events are missing"
	echo "$1: nothing in the trace"
}

echo "== without --redact it is there, so that the checks below can fail"
"$TRACESMITH" record -q --backends host,cuda -o all.sbt -- "$secrets" $secret $number
contents all.sbt >contents.txt
for text in $secret $number "\"name\":\"$host\""; do
	grep -q -- "$text" contents.txt || fail "'$text' is not found where it is"
done
# Not even then.
grep -q hidden-in-environment contents.txt && fail "the environment is stored"
"$TRACESMITH" view all.sbt --args --json | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
print(*sorted({row["name"] for row in rows if "hidden-correct-horse" in json.dumps(row.get("args"))}))'

echo "== --redact"
"$TRACESMITH" record -q --redact --backends host,cuda --autosave 20ms -o t.sbt -- "$secrets" $secret $number made go &
recorder=$!
await test -e made
await grep -aq stays_dynamic_watch t.sbt.journal "$TRACESMITH_LIVE_DIR"/*
! raw t.sbt t.sbt.journal "$TRACESMITH_LIVE_DIR"/* || fail "found while it is recorded"
echo "while it is recorded: nothing in trace, journal and live area"
touch go
wait $recorder
check_none redacted t.sbt
echo "what stays:"
grep -oE 'stays_[a-z_]*' contents.txt | sort -u | tr '\n' ' '
echo
"$TRACESMITH" view t.sbt -n stays_instant --args --json | grep -o '"args":{[^}]*}' | sort | uniq -c | sed 's/^ *//'
"$TRACESMITH" view t.sbt -c watch --args --json | grep -c '"args"' || true
"$TRACESMITH" info t.sbt | grep 'redact'

echo "== a successor of a killed recorder leaves out the same"
rm -f made go
"$TRACESMITH" record -q --redact --backends none -o k.sbt -- "$secrets" $secret $number made go &
recorder=$!
await test -e made
kill -9 $recorder
wait $recorder 2>/dev/null || true
"$TRACESMITH" record -q --backends none --resume k.sbt &
recorder=$!
held() { [ "$(recorder_of "$(cat made)")" = $recorder ]; }
await held
touch go
wait $recorder
check_none resumed k.sbt

echo "== a running program, which has stored events before"
rm -f made go
TRACESMITH_LIVE=1 "$secrets" $secret $number made go &
program=$!
await test -e made
"$TRACESMITH" record -q --redact --backends none -o p.sbt -p $program 2>err.txt &
recorder=$!
await held
await test -s p.sbt.journal
! raw p.sbt p.sbt.journal || fail "found in the journal"
touch go
wait $program
wait $recorder
check_none attached p.sbt
"$TRACESMITH" view p.sbt --table loss --json | grep -o '"reason":"[^"]*"'

echo "== programs with their own recorder"
finished() { [ -s "$1" ] && [ ! -e "$1.journal" ] && flock -n -x "$1" true; }
TRACESMITH_REDACT=1 TRACESMITH_OUT=own.sbt "$secrets" $secret $number
await finished own.sbt
check_none own own.sbt
TRACESMITH_REDACT=1 "$TRACESMITH" record -q --backends none -o variable.sbt -- "$secrets" $secret $number
check_none "record with the variable" variable.sbt

echo "== Python"
cat >secret.py <<PY
import asyncio, sys, time
def stays_function(hidden_argument):
    local = "hidden-local-" + "variable"
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        pass
async def main():
    task = asyncio.create_task(asyncio.sleep(0), name="hidden-task-name")
    await task
    stays_function("hidden-function-" + "argument")
asyncio.run(main(), debug=False)
PY
for seconds in 0.3 2 10; do
	"$TRACESMITH" record -q --redact --backends python --python-interval 5ms -o py.sbt -- python3 secret.py $secret $seconds
	contents py.sbt >contents.txt
	! grep -q stays_function contents.txt || break
done
grep -o stays_function contents.txt | sort -u
! leaks <contents.txt | grep . || fail "Python: found"

echo "== what cannot be redacted is refused"
t record --redact --locals -o no.sbt -- true
TRACESMITH_REDACT=1 t record --locals -o no.sbt -- true
t record --redact --replayable -o no.sbt -- true
TRACESMITH_REDACT=1 t record --replayable --keep-contents 1M -o no.sbt -- true
