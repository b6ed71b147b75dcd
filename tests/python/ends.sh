#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A target that exits, becomes another program, crashes or is stopped while it is sampled: the
# recorder finishes with a complete trace, which has everything from before.
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"

# Works in work() until a file exists, then executes its order.
cat >target.py <<'PY'
import os, signal, sys, time


def work():
    while not os.path.exists("go"):
        sum(range(1000))


def second():
    while not os.path.exists("end"):
        sum(range(1000))


print("ready", os.getpid(), flush=True)
if sys.argv[1] != "again":
    work()
what = sys.argv[1]
if what == "crash":
    os.kill(os.getpid(), signal.SIGSEGV)
elif what == "exec":
    os.execv(sys.executable, [sys.executable, __file__, "again"])
elif what == "exec-other":
    os.execv("/bin/sleep", ["sleep", "0.3"])
elif what == "again":
    second()
PY

# Runs it under a recorder until both have ended.
record_until_end() { # what
	rm -f go end t.sbt
	start_python "$python" target.py "$1"
	await_stack "any('work' in functions(thread) for thread in threads)"
	start_recording t.sbt
	await_samples t.sbt
	touch go
}

for what in exit crash exec-other; do
	record_until_end $what
	await "$what: the target to be gone" is_gone "$pid"
	end_recording
	trace_holds t.sbt "sum('work' in functions(sample) for sample in samples) >= 5"
done

# Another Python in the same process: it is found again, and has its own stacks.
record_until_end exec
await_stack "any('second' in functions(thread) for thread in threads)"
# The next sample may still be of the old one; later samples are not.
await_samples t.sbt
await_samples t.sbt
touch end
end_recording
trace_holds t.sbt "any('work' in functions(sample) for sample in samples)"
trace_holds t.sbt "any('second' in functions(sample) for sample in samples)"
trace_holds t.sbt "not any({'work', 'second'} <= set(functions(sample)) for sample in samples)"

# Stopped: it can still be sampled, and stays stopped.
rm -f go end
start_python "$python" target.py exit
await_stack "any('work' in functions(thread) for thread in threads)"
kill -STOP "$pid"
is_stopped() { grep -q '^State:.*T' "/proc/$pid/status"; }
await "the target to be stopped" is_stopped
stack_holds "any('work' in functions(thread) for thread in threads)" || fail "stopped: $(cat "$work/stack.err" "$work/stack.json")"
is_stopped || fail "the target runs again"
start_recording t.sbt
await_samples t.sbt
is_stopped || fail "the target runs again under the recorder"
kill -CONT "$pid"
touch go
end_recording
trace_holds t.sbt "any('work' in functions(sample) for sample in samples)"

# A process that has exited, and one that never existed.
expect 3 stack -p "$pid"
says "$pid"
expect 3 stack -p 4194303
says 4194303
