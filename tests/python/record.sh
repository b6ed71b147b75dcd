#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# oracle.py recorded with the tool: every stack in the trace is a possible one.
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"

least=2000
! is_sanitized || least=200
oracle=(python3 "$TS_SOURCE/tests/python/check.py")

# Attached to, and started: both give the same.
start_python "$python" "$TS_SOURCE/tests/python/oracle.py" --log log.json --seconds 300 --hold 0.08
start_recording attached.sbt --python-interval 0.001
await "stacks in attached.sbt" has_samples attached.sbt $((least * 2))
touch log.json.stop
wait "$pid"
end_recording
samples_of attached.sbt >stacks
"${oracle[@]}" --log log.json --name attached --least $least stacks

rm -f log.json log.json.stop
"$TRACESMITH" record -q -o started.sbt --backends python --python-interval 0.001 -- \
	"$python" "$TS_SOURCE/tests/python/oracle.py" --log log.json --seconds 300 --hold 0.08 >/dev/null 2>"$work/record.err" &
recorder=$!
remember $recorder
await "the recording started.sbt to begin" has_begun started.sbt
await "stacks in started.sbt" has_samples started.sbt $((least * 2))
touch log.json.stop
end_recording
samples_of started.sbt >stacks
"${oracle[@]}" --log log.json --name started --least $least stacks

# Threads have the names that the program gave them.
"$TRACESMITH" view started.sbt --table thread --json >threads
for part in storm waves generators coroutines callbacks makes; do
	grep -q "\"oracle-$part\"" threads || fail "no thread 'oracle-$part': $(cat threads)"
done
# The cost is reported.
"$TRACESMITH" view started.sbt --table counter --json --name 'python_*' | grep -q python_stacks_per_s || fail "no counters of the sampler"
