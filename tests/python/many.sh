#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A lot of everything: 500 threads, 5,000 frames, children that come and go, several interpreters.
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"

# ---- 500 threads ----
cat >threads.py <<'PY'
import os, threading, time

count = 500
threading.stack_size(256 * 1024)
barrier = threading.Barrier(count + 1)


def leaf():
    barrier.wait()
    time.sleep(600)


for i in range(count):
    threading.Thread(target=leaf, name=f"worker-{i}", daemon=True).start()
barrier.wait()
print("ready", os.getpid(), flush=True)
time.sleep(600)
PY
start_python "$python" threads.py
await_stack "sum('leaf' in functions(thread) for thread in threads) == 500"
stack_holds "len({thread['name'] for thread in threads if 'leaf' in functions(thread)}) == 500" || fail "names of 500 threads: $(head -c 500 "$work/stack.json")"
stack_holds "len({thread['tid'] for thread in threads}) == 501 or None in {thread['tid'] for thread in threads}" || fail "tids of 500 threads"
start_recording t.sbt
await "two sweeps" has_samples t.sbt 1100
stop_python "$pid"
end_recording
trace_holds t.sbt "len({sample['tid'] for sample in samples if 'leaf' in functions(sample)}) == 500"

# ---- 5,000 deep ----
cat >deep.py <<'PY'
import os, sys, threading, time

sys.setrecursionlimit(20000)
threading.stack_size(512 * 1024 * 1024)


def descend(depth):
    if depth == 0:
        print("ready", os.getpid(), flush=True)
        time.sleep(600)
        return 0
    return descend(depth - 1) + 1


def begin():
    descend(5000)


thread = threading.Thread(target=begin, name="deep")
thread.start()
thread.join()
PY
start_python "$python" deep.py
await_stack "any(functions(thread).count('descend') == 5001 and 'begin' in functions(thread) for thread in threads)"
start_recording t.sbt
await_samples t.sbt
stop_python "$pid"
end_recording
# Too many to store: the outermost, the innermost, and the number omitted in between.
trace_holds t.sbt "any('begin' in functions(sample) and 1000 < functions(sample).count('descend') <= 5001 for sample in samples)"

# ---- deeper than is read: what is left out is marked ----
# Before 3.11 every call needs stack of the thread.
if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
	cat >deeper.py <<'PY'
import os, sys, time

sys.setrecursionlimit(1000000)


def descend(depth):
    if depth == 0:
        print("ready", os.getpid(), flush=True)
        time.sleep(600)
        return 0
    return descend(depth - 1) + 1


descend(250000)
PY
	start_python "$python" deeper.py
	await_stack "any(functions(thread).count('descend') == 200000 and '(outer frames left out)' in functions(thread) for thread in threads)"
	start_recording t.sbt
	await_samples t.sbt
	stop_python "$pid"
	end_recording
	trace_holds t.sbt "any('(outer frames left out)' in functions(sample) and functions(sample).count('descend') > 1000 for sample in samples)"
fi

# ---- children that come and go ----
cat >storm.py <<'PY'
import os, sys, time


def child():
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        sum(range(100))


print("ready", os.getpid(), flush=True)
while not os.path.exists("enough"):
    pids = []
    for _ in range(4):
        pid = os.fork()
        if pid == 0:
            child()
            os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
PY
has_samples_of() { # trace, processes
	count_samples "$1" >/dev/null
	[ "$(samples_of "$work/copy/good.sbt" 2>/dev/null | grep -o '"pid":[0-9]*' | sort -u | wc -l)" -ge "$2" ]
}
rm -f enough
start_python "$python" storm.py
start_recording t.sbt
await "samples of children" has_samples_of t.sbt 5
touch enough
await "the storm to end" is_gone "$pid"
end_recording
trace_holds t.sbt "any('child' in functions(sample) for sample in samples)"
trace_holds t.sbt "len({sample['pid'] for sample in samples}) > 4"
# Threads belong to the process from the start.
trace_holds t.sbt "all(sample['tid'] == sample['pid'] for sample in samples)"

# ---- children of native code ----
# Python does not know that it has been forked: its state has the parent's threads and their ids, as
# in every child for an instant.
cat >forked.py <<'PY'
import ctypes, os, threading, time


def wait():
    time.sleep(600)


def child():
    print("ready", os.getpid(), flush=True)
    time.sleep(600)


def states_of_others():
    texts = [open(f"/proc/self/task/{tid}/status").read() for tid in os.listdir("/proc/self/task") if int(tid) != threading.get_native_id()]
    return [[line for line in text.splitlines() if line.startswith("State") or "ctxt" in line] for text in texts]


def others_sleep():
    before = states_of_others()
    time.sleep(0.05)
    return states_of_others() == before and all("S (sleeping)" in state[0] for state in before)


def fork_here():
    # A lock that another thread has at the fork stays locked in the child.
    while not others_sleep():
        pass
    if ctypes.PyDLL(None).fork() == 0:
        child()
    os.wait()


threading.Thread(target=wait, name="other", daemon=True).start()
if os.environ["FORK_IN"] == "main":
    fork_here()
else:
    thread = threading.Thread(target=fork_here, name="forks")
    thread.start()
    thread.join()
PY
forks=(main thread)
# 3.8 to 3.10 do not store the kernel's ids of threads.
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
	{ echo "left out: children of native code: $python is older than 3.11"; forks=(); }
for thread in "${forks[@]}"; do
	FORK_IN=$thread start_python "$python" forked.py
	await_stack "[functions(thread)[0] for thread in threads] == ['child']"
	stack_holds "[(thread['tid'], thread['main']) for thread in threads] == [($pid, True)]" ||
		fail "a child forked in $thread: $(head -c 2000 "$work/stack.json")"
	start_recording t.sbt
	await_samples t.sbt
	stop_python "$pid"
	end_recording
	trace_holds t.sbt "samples and all(sample['tid'] == sample['pid'] and 'child' in functions(sample) for sample in samples)"
done

# ---- several interpreters ----
cat >interpreters.py <<'PY'
import os, sys, threading, time

try:
    import _interpreters as interpreters  # 3.13 on
except ImportError:
    import _xxsubinterpreters as interpreters  # 3.8 to 3.12

SOURCE = """
import time
def inside_%d():
    while True:
        time.sleep(0.05)
inside_%d()
"""


def run(number):
    one = interpreters.create()
    (getattr(interpreters, "run_string", None) or interpreters.exec)(one, SOURCE % (number, number))


for number in range(3):
    threading.Thread(target=run, args=(number,), daemon=True).start()
print("ready", os.getpid(), flush=True)
time.sleep(600)
PY
if "$python" -c 'import _interpreters' 2>/dev/null || "$python" -c 'import _xxsubinterpreters' 2>/dev/null; then
	start_python "$python" interpreters.py
	await_stack "all(any('inside_%d' % number in functions(thread) for thread in threads) for number in range(3))"
	stack_holds "len({thread['interpreter'] for thread in threads if any(name.startswith('inside_') for name in functions(thread))}) == 3" ||
		fail "three interpreters: $(head -c 2000 "$work/stack.json")"
	stop_python "$pid"
else
	echo "left out: several interpreters: $python has no module for them"
fi
