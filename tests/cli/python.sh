# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests of Python stacks: live.sh, and programs with known stacks. Skips without a readable
# python3.
. "$TS_SOURCE/tests/cli/live.sh"

# Not a wrapper script that searches for one.
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')

trap 'jobs -pr | xargs -r kill -9 2>/dev/null || true' EXIT

# Threads that wait in known functions until the file NAME.over exists; its argument is NAME, of the
# main function.
cat >program.py <<'PY'
import os, sys, threading, time

def wait_inside(what):
    while not os.path.exists(sys.argv[1] + ".over"):
        time.sleep(0.001)

def worker():
    wait_inside("worker")

def run():
    threads = [threading.Thread(target=worker, name="worker-%d" % i) for i in range(2)]
    for thread in threads:
        thread.start()
    open(sys.argv[1] + ".ready", "w").close()
    wait_inside("main")
    for thread in threads:
        thread.join()

exec("def %s():\n    run()\n" % sys.argv[1])
globals()[sys.argv[1]]()
PY

# begin NAME: starts one in the background; sets $program to its pid.
begin() {
	"$python" program.py "$1" &
	# shellcheck disable=SC2034 # for those who source this
	program=$!
	await [ -e "$1.ready" ]
}

# stacks TRACE: prints each sampled stack once, as "PROCESS;THREAD;outermost;...;innermost".
stacks() { "$TRACESMITH" export "$1" -f folded --no-lines -o - 2>/dev/null | sed -E -e 's/ [0-9]+$//' -e 's/ \([^)]*\)//g' | sort -u; }

# A trace that is still being written: has it samples of a function; does it name a thread; has it so
# many samples of a name; has it a counter?
sampled() { copy_written "$1" && stacks copy/good.sbt | grep -q ";$2"; } # trace, end of a stack
named() { copy_written "$1" && "$TRACESMITH" view copy/good.sbt --table thread --json | grep -q "\"$2\""; } # trace, thread
samples_of() { copy_written "$1" && [ "$("$TRACESMITH" view copy/good.sbt --table sample --name "$2" --json | wc -l)" -ge "$3" ]; } # trace, name, at least
counted() { copy_written "$1" && "$TRACESMITH" info --counters copy/good.sbt --json | grep -q "\"$2\""; } # trace, counter
