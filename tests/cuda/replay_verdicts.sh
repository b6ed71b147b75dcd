#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a replay says of programs that do not replay equally: a kernel that is not deterministic, a
# race between two streams, bytes that were not captured, and commands that do not end.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda_replay.sh"

record nondeterministic.sbt --replayable -- "$work" plain nondeterministic
for check in final each; do
	replay_json 1 nondeterministic.sbt --check $check --repeat 3
	[ "$(report 'r["verdict"]')" = nondeterministic ] || fail "$check: verdict: $(cat replay.json)"
done
[ "$(report 'r["kernel"]')" = nondeterministic ] || fail "the kernel that is named: $(cat replay.json)"
"$TRACESMITH" replay nondeterministic.sbt --check each --repeat 3 >stdout 2>stderr </dev/null || true
grep -q "'nondeterministic'" stdout || fail "the text does not name it: $(cat stdout)"

# A race: without an event between two streams, one of 20 runs has another order.
record race.sbt --replayable -- "$work" race
replay_json 1 race.sbt --check each --repeat 20
[ "$(report 'r["verdict"]')" = nondeterministic ] || fail "a race: verdict: $(cat replay.json)"
case $(report 'r["kernel"]') in add | fill) ;; *) fail "a race: $(cat replay.json)" ;; esac

# A gap: one byte that the host copied.
record gap.sbt --replayable=checked -- "$work" plain
"$targets/mutate_stream" gap.sbt mutant.sbt copy:1 flip:5 >mutated 2>&1 || fail "mutate_stream: $(cat mutated)"
replay_json 1 mutant.sbt --check each --repeat 2
[ "$(report 'r["verdict"]')" = "differs from recording" ] || fail "a gap: $(cat replay.json)"

# A kernel that does not end, by the clock and by Ctrl-C.
record hang.sbt --replayable -- "$work" plain
cp hang.sbt interrupted.sbt
STAND_IN_HANG=add cannot_replay "'add'" hang.sbt --time-limit 2
# A shell's background job ignores SIGINT, unlike one that Python starts.
STAND_IN_HANG=add python3 - "$TRACESMITH" interrupted.sbt <<'PY' >stdout 2>&1 || fail "Ctrl-C: $(cat stdout)"
import signal, subprocess, sys, time
replay = subprocess.Popen([sys.argv[1], "replay", sys.argv[2], "--time-limit", "none"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
try:
    # Until the kernel runs, Ctrl-C ends it without a name: then it is tried again.
    time.sleep(1)
    replay.send_signal(signal.SIGINT)
    text = replay.communicate(timeout=60)[0].decode()
finally:
    replay.kill()
print(text)
sys.exit("'add'" not in text)
PY

# A kernel with an illegal address ends the program's context, and the replay.
record illegal.sbt --replayable -- "$work" illegal
cannot_replay "'fill'" illegal.sbt
echo "differences and their commands are named"
