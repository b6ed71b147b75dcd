#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Kernels that never end or crash, and compilations that take too long: a replay still answers
# signals, keeps its time limit, names what was running, and leaves neither processes nor files.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

"$targets/make_stream" plain.sbt plain
replay_json 0 plain.sbt
case $(report 'r["device"]') in
*"Portable Computing Language"*) ;;
*) skip "an endless kernel would block this device: $(report 'r["device"]')" ;;
esac
mix='kernel void mix_(global uint *to, global const uint *from, uint by) { size_t i = get_global_id(0); to[i] ^= from[i] + by; }'
cat >endless.cl <<CL
kernel void step_(global volatile uint *v) { while (v[0] != 0x12345678) v[1]++; }
$mix
CL
cat >crash.cl <<CL
kernel void step_(global volatile uint *v) { *(global volatile uint *)(ulong)(v[0] & 0) = 1; }
$mix
CL
# A module that takes minutes.
cat >large.cl <<CL
#define TEN(x) x x x x x x x x x x
#define MANY(x) TEN(TEN(TEN(TEN(TEN(x)))))
kernel void step_(global uint *v) { uint a = v[0]; MANY(a = a * 3 + v[a & 7]; v[a & 15] = a ^ 5;) v[0] = a; }
$mix
CL

cat >interrupt.py <<'PY'
import os, signal, subprocess, sys, time

tool, number, whom, condition, output = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]

def wait_for(what):
    end = time.monotonic() + 120
    while True:
        found = what()
        if found:
            return found
        if parent.poll() is not None or time.monotonic() > end:
            sys.exit(f"{condition}: not reached: {parent.poll()}: {open('stderr').read()}")
        time.sleep(0.01)

def read(path):
    try:
        return open(path).read()
    except OSError:
        return ""

def state(pid):
    return read(f"/proc/{pid}/stat").rpartition(")")[2].split()[0:1]

def child_of(pid):
    return read(f"/proc/{pid}/task/{pid}/children").split()

# The kernel's code is loaded right before it runs; by then the compiler is done. The recorded
# kernels run first.
def loaded(pid):
    return len({line.split()[-1] for line in read(f"/proc/{pid}/maps").splitlines() if "/step_.so" in line})

def builds(pid):
    return loaded(pid) >= 1

def runs(pid):
    return loaded(pid) >= 2

# Loading takes less time than this.
def compiles(pid):
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(fields) and int(fields[11]) >= 0.5 * os.sysconf("SC_CLK_TCK")

signal.signal(signal.SIGINT, signal.SIG_DFL)
with open("stdout", "w") as out, open("stderr", "w") as err:
    parent = subprocess.Popen([tool, "replay", "plain.sbt", "--check", "none", "-o", output] + sys.argv[6:], stdout=out,
                              stderr=err, start_new_session=True)
child = wait_for(lambda: child_of(parent.pid))[0]
wait_for(lambda: globals()[condition](child))
# Ctrl-Z, and fg.
os.killpg(parent.pid, signal.SIGSTOP)
wait_for(lambda: state(child) == state(parent.pid) == ["T"])
os.killpg(parent.pid, signal.SIGCONT)
if whom == "group":
    os.killpg(parent.pid, number)
else:
    os.kill(parent.pid, number)
code = parent.wait(timeout=120)
# If the parent was killed, its child follows.
end = time.monotonic() + 120
while os.path.exists(f"/proc/{child}") and state(child) != ["Z"]:
    if time.monotonic() > end:
        sys.exit(f"process {child} is still there")
    time.sleep(0.01)
print(code)
PY

# Signals a replay; its earlier output stays as it is, and no message but the command that had to be killed.
interrupt() { # exit code, signal, parent or group, a condition, option...
	local expected=$1 code
	mkdir run
	cp plain.sbt run/out.sbt
	code=$(python3 interrupt.py "$TRACESMITH" "$2" "$3" "$4" run/out.sbt "${@:5}") || fail "signal $2 to the $3: $code"
	[ "$code" -eq "$expected" ] || fail "signal $2 to the $3 while it $4: exit code $code, expected $expected: $(cat stderr)"
	# A compiler may say that it failed.
	[ ! -s stdout ] && ! grep -v -e "generated\.\$" -e "launch of 'step_': stopped while it ran\$" stderr || fail "signal $2: it printed '$(cat stdout stderr)'"
	[ "$(ls run)" = out.sbt ] || fail "signal $2 to the $3: it left $(ls run)"
	cmp -s plain.sbt run/out.sbt || fail "signal $2 to the $3: another output"
	rm -r run
}
interrupt 130 2 group runs --replace-kernel step_=endless.cl
interrupt 143 15 parent runs --replace-kernel step_=endless.cl
interrupt -9 9 parent runs --replace-kernel step_=endless.cl
interrupt 130 2 parent builds --replace-kernel step_=endless.cl
if [ -n "${TS_LONG:-}" ]; then
	interrupt 130 2 parent runs --replace-kernel step_=endless.cl
	interrupt 143 15 group runs --replace-kernel step_=endless.cl
	interrupt 129 1 group runs --replace-kernel step_=endless.cl
fi
interrupt 130 2 group compiles --replace-kernel step_=large.cl

# Ends with exit code 4 and a message; no output, and nothing else is left.
ends() { # trace, option...
	mkdir run
	expect 4 replay --check none -o run/out.sbt "$@"
	[ -z "$(ls run)" ] || fail "$*: it left $(ls run)"
	[ ! -s stdout ] || fail "$*: it printed '$(cat stdout)'"
	rmdir run
}
# Within a short limit a busy machine compiles not even a small kernel, and the message is another.
hangs() { # what it must say, trace, option...
	local limit
	for limit in 1s 2s 4s 8s 16s 32s 64s 128s; do
		ends "${@:2}" --time-limit $limit
		! grep -qF -- "$1" stderr || return 0
	done
	fail "no message contains '$1': $(cat stderr)"
}
hangs "command 3, launch of 'step_': not complete within " plain.sbt --replace-kernel step_=endless.cl
says --time-limit "--to 3"
# On this device a kernel runs inside the call that enqueues it.
export POCL_DEVICES=basic
interrupt 143 15 parent runs --replace-kernel step_=endless.cl
hangs "command 3, launch of 'step_': not complete within " plain.sbt --replace-kernel step_=endless.cl
unset POCL_DEVICES
ends plain.sbt --replace-kernel step_=large.cl --time-limit 500ms
says large.cl "kernel 'step_'" "not compiled within 500 ms" --time-limit
ends plain.sbt --replace-kernel step_=crash.cl
says "command 3, launch of 'step_'" crashed "signal 11" "--to 3"
# What comes before it does run.
expect 0 replay plain.sbt --check none --replace-kernel step_=endless.cl --to 3

# The message has the recorded duration.
record good.sbt --replayable -- "$pipeline" --steps 1 --work 4 --size 1024
cat >blend.cl <<'CL'
kernel void blend(global const float *scratch, global const float *history, global volatile float *output, uint work)
{ while (output[0] != 4711) output[1] += 1; }
CL
hangs "launch of 'blend': not complete within " good.sbt --kernel blend --replace-kernel blend=blend.cl
says "in the recording: "
echo "nothing holds the device for ever"
