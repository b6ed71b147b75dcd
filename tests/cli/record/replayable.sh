#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# record --replayable of programs without commands: options, environment, messages.
. "$TS_SOURCE/tests/cli/live.sh"

"$TRACESMITH" record --replayable -q -o t.sbt -- true 2>err.txt || {
	[ $? -eq 4 ] && grep -q 'this build has no OpenCL support' err.txt && { echo "skip: this build has no OpenCL support"; exit 77; }
	fail "$(cat err.txt)"
}
rm -f t.sbt
# shellcheck disable=SC2016
settings='echo "$TRACESMITH_AGENT" | tr ";" "\n" | grep -E "replay|from_start|snapshot|window_t|backends"'

for options in --replayable '--replayable=checked --snapshot-limit 1G --window-timeout 500ms' '--replayable --window steps:3-4'; do
	echo "$options"
	# shellcheck disable=SC2086
	"$TRACESMITH" record $options -q -o t.sbt -- sh -c "$settings" 2>/dev/null
done
t record --replayable --backends host -- true
t record --replayable --backends none -- true
t record --replayable --snapshot-limit much -- true
t record --replayable --window-timeout 0 -- true
t record --replayable --keep-contents all -- true
t record --keep-contents 1M -- true
TRACESMITH_BACKENDS=host t record --replayable -- true

# Environment of the OpenCL loader, with earlier settings preserved.
# shellcheck disable=SC2016
say='echo "$OPENCL_LAYERS|$LD_PRELOAD"'
show() { OPENCL_LAYERS=/x/own.so "$TRACESMITH" record "$@" -q -o t.sbt -- sh -c "$say" | sed "s#$TS_BUILD#BUILD#g"; }
show
show --backends opencl
show --backends host
show --backends none
# A recording inside another one: the inner one applies.
"$TRACESMITH" record -q -o outer.sbt -- "$TRACESMITH" record -q -o t.sbt -- sh -c "$say" | sed "s#$TS_BUILD#BUILD#g"

t record --replayable -o t.sbt --json --backends opencl -- true | sed -E 's/("(file_)?bytes"):[0-9]+/\1:N/g; s/, [0-9.]+ KiB/, N KiB/'
# Its own events are unchanged, and the backend adds none.
"$TRACESMITH" record --replayable -q -o t.sbt -- "$emit" instants:100 2>/dev/null || fail "it did not run"
rows t.sbt --table mark
