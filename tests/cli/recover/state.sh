#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A journal that lost the state of its checkpoint, or a trace that lost its rows about processes:
# events keep their process, and losses are not made up.
. "$TS_SOURCE/tests/cli/live.sh"
export TRACESMITH_BACKENDS=none

# Two programs, one after the other. The second one's last 50 events are not in the trace.
setsid "$TRACESMITH" record -q -o t.sbt --autosave 10ms -- sh -c "'$emit' instants:100 make:first await:on; '$emit' instants:100 make:ready await:go instants:50 make:ended; true" &
recorder=$!
is_saved() { [ "$(rows t.sbt -n tick)" = "$1" ]; }
await [ -e first ]
await is_saved 100
touch on
await [ -e ready ]
await is_saved 200
kill -9 $recorder
wait $recorder 2>/dev/null || true
touch go
await [ -e ended ]
mkdir killed && mv t.sbt t.sbt.journal killed
again() { rm -rf t.sbt* good.sbt && cp -r killed/* .; }
by_process() { "$TRACESMITH" view good.sbt --json -n tick | grep -o '"pid":[0-9]*' | sort | uniq -c | awk '{ print $1 }' | sort -n | xargs; }
lost() { "$TRACESMITH" recover t.sbt -o good.sbt --json 2>/dev/null | grep -o '"lost":[0-9]*'; }

again
[ "$(lost)" = '"lost":0' ] || fail "events are lost: $(lost)"
[ "$(by_process)" = "100 150" ] || fail "intact: $(by_process)"

# The first block of the state has the processes. Its number of events is not needed.
again
python3 - <<'END'
import struct
journal = bytearray(open('t.sbt.journal', 'rb').read())
size, = struct.unpack_from('<I', journal, 8)
state = 64 + (size + 7) // 8 * 8
assert struct.unpack_from('<H', journal, state + 4)[0] == 10
journal[state + 70] ^= 1
open('t.sbt.journal', 'wb').write(journal)
END
[ "$(lost)" = '"lost":0' ] || fail "without the processes: $(lost)"
[ "$(by_process)" = "100 150" ] || fail "without the processes: $(by_process)"

# Only the header of the trace is left.
again
truncate -s 64 t.sbt
[ "$(lost)" = '"lost":0' ] || fail "without rows: $(lost)"
[ "$(by_process)" = "50" ] || fail "without rows: $(by_process)"
quietly verify good.sbt
