#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Two million events, 800 MB of JSON (TS_LONG=1: five times as many), through every verb: memory use
# does not grow.
set -euo pipefail
. "$TS_SOURCE/tests/lib/crash.sh"
is_sanitized && { echo "skip: sanitizers need memory of their own"; exit 77; }

events=2000000
[ -z "${TS_LONG:-}" ] || events=10000000
run() { # MiB resident, argument...
	local mib=$1
	shift
	python3 "$TS_SOURCE/tests/lib/limited.py" --rss "$mib" --as 1024 "$TRACESMITH" "$@"
}

"$targets/make_kineto" $events | run 192 import -q --threads 1 - -o big.sbt
[ "$(info_of big.sbt 'info["events"]')" = $events ] || fail "not all events are there"
run 64 info big.sbt >/dev/null
run 64 view big.sbt --limit 100 >/dev/null
run 64 view big.sbt --from 10s --to 10.1s --stats >/dev/null
# These two keep decoded chunks for the next window, about 256 MiB of them.
run 512 view big.sbt --sort duration --limit 100 >/dev/null
run 384 view big.sbt --json | tail -n 1 >/dev/null
run 64 verify -q big.sbt
run 128 export big.sbt -f chrome -o /dev/null
run 128 export big.sbt -f csv --table slice -o /dev/null
run 192 export big.sbt -f folded --count spans -o /dev/null
run 64 recover -q big.sbt -o again.sbt
[ "$(info_of again.sbt 'info["events"]')" = $events ] || fail "recover lost events"
