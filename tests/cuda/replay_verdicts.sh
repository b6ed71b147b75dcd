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

# Parameters that point to memory of the driver's own.
STAND_IN_OWN=0x5555aaaa0000 record foreign.sbt --replayable -- "$work" foreign
replay_json 0 foreign.sbt
for address in 0x5555aaaa0010 0x5555aaaa0020; do
	grep -q "capture gap: pointer to $address, kernel 'take_structure'" replay.json || fail "$address: $(cat replay.json)"
done

# A kernel with an illegal address: known only by some command behind it, until it runs alone.
record alone.sbt --replayable -- "$work" plain
"$targets/mutate_stream" alone.sbt mutant.sbt launch:2 flip:5 >mutated 2>&1 || fail "mutate_stream: $(cat mutated)"
STAND_IN_LAZY=1 cannot_replay "it, or a command shortly before or after it: CUDA_ERROR_ILLEGAL_ADDRESS" mutant.sbt
grep -q "launch of 'add': CUDA_ERROR_ILLEGAL_ADDRESS" stderr || fail "the kernel is not named: $(cat stderr)"

# A kernel that does not end, by the clock and by Ctrl-C.
record hang.sbt --replayable -- "$work" plain
cp hang.sbt interrupted.sbt
STAND_IN_HANG=add cannot_replay "'add'" hang.sbt --time-limit 2
# In a second context, where nothing measures it: known only when all have been submitted.
record contexts.sbt --replayable -- "$work" contexts
limit_seconds=60 STAND_IN_HANG=add cannot_replay "'add'" contexts.sbt --to 5 --time-limit 2
# A shell's background job ignores SIGINT, unlike one that Python starts.
interrupt() { # trace, text that comes before
	rm -f hung
	STAND_IN_HUNG=hung python3 - "$TRACESMITH" "$@" <<-'PY' >stdout 2>&1 || fail "Ctrl-C: $1: $(cat stdout stderr)"
		import os, signal, subprocess, sys, time

		def has_said(text):
		    with open("stderr") as stderr:
		        return text in stderr.read()

		signal.signal(signal.SIGINT, signal.SIG_DFL)
		with open("stderr", "w") as stderr:
		    replay = subprocess.Popen([sys.argv[1], "replay", sys.argv[2], "--time-limit", "none"], stdin=subprocess.DEVNULL, stderr=stderr)
		try:
		    end = time.monotonic() + 60
		    while not (has_said(sys.argv[3]) and os.path.exists("hung")):
		        if time.monotonic() > end:
		            sys.exit("the kernel does not hang")
		        time.sleep(0.02)
		    replay.send_signal(signal.SIGINT)
		    code = replay.wait(timeout=60)
		finally:
		    replay.kill()
		sys.exit(0 if code == 130 else f"exit code {code}")
	PY
}
STAND_IN_HANG=add interrupt interrupted.sbt ""

# Ctrl-C while another run looks for the command that failed: it hangs at one before.
record race.sbt --replayable -- "$work" race
"$targets/mutate_stream" race.sbt mutant.sbt launch:add flip:5 >mutated 2>&1 || fail "mutate_stream: $(cat mutated)"
STAND_IN_HANG=fill STAND_IN_LAZY=1 interrupt mutant.sbt "running again, one command at a time"

# A driver that crashes, while a kernel runs: simulators of OpenCL are of no help.
crash() { # seconds that the one who watches has to see the kernel
	local code=0 replay
	rm -f hung
	STAND_IN_HANG=add STAND_IN_HUNG=hung "$TRACESMITH" replay hang.sbt --time-limit none >stdout 2>stderr </dev/null &
	replay=$!
	wait_until 60 test -e hung || fail "the kernel does not hang: $(cat stderr)"
	sleep "$1"
	kill -SEGV "$(pgrep -P $replay)"
	wait $replay || code=$?
	[ $code -eq 4 ] || fail "a crash: exit code $code: $(cat stderr)"
	! grep "oclgrind" stderr || fail "a crash in CUDA: $(cat stderr)"
	grep -q "'add': the target crashed (signal 11, Segmentation fault) while it ran; '--to" stderr
}
crash 0.2 || crash 2 || crash 30 || fail "a crash: $(cat stderr)"

# A kernel with an illegal address breaks the context of the program: nothing is known after it.
record illegal.sbt --replayable -- "$work" plain illegal
cannot_replay "cannot be replayed" illegal.sbt
echo "differences and their commands are named"
