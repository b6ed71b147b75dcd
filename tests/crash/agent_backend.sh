#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Third-party backends (include/tracesmith/backend.h): started by name, emit into the trace, stopped
# at exit. If one cannot be used, the trace says so, and the program runs on.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

command -v cc >/dev/null || { echo "skip: no C compiler"; exit 77; }
cat >backend.c <<'END'
#include <tracesmith/backend.h>
#include <tracesmith/emit.h>
static int start(void)
{
	TS_INSTANT("device found", "vendor", TS_INT("number", 7));
	return RETURNS;
}
static void stop(void)
{
	TS_INSTANT("device closed", "vendor");
}
const struct ts_backend ts_backend = { TS_BACKEND_ABI + NEWER, sizeof(ts_backend), "x", "a test", start, stop };
END
make_backend() { # name, what start returns, how much newer
	cc -shared -fPIC -I "$TS_SOURCE/include" -DRETURNS="$2" -DNEWER="$3" -o "libtracesmith-backend-$1.so" backend.c \
		-L "$TS_BUILD" -ltracesmith-agent
}
make_backend good 0 0
make_backend unwilling 1 0
make_backend newer 0 1

code=0
LD_LIBRARY_PATH=$PWD:$TS_BUILD "$TRACESMITH" record -q --backends good,unwilling,newer -o t.sbt -- \
	"$TS_BUILD/examples/emit_spans" --threads none 2>/dev/null || code=$?
[ $code -eq 2 ] || fail "exit code $code"
"$TRACESMITH" view t.sbt --table mark --json >rows
for words in '"device found".*"number":7' '"device closed"' '"good".*"started"' '"unwilling".*"declined to start"' \
	'"newer".*"was built for another version'; do
	grep -q "$words" rows || { cat rows; fail "not in the trace: $words"; }
done
[ "$(grep -c '"device found"' rows)" -eq 2 ] || fail "one that is too new was started"
[ "$(grep -c '"device closed"' rows)" -eq 1 ] || fail "one that declined was stopped"
