#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Test programs under perf: an independent parser (perf_count.py) counts the output of perf script,
# and the trace must agree.
. "$TS_SOURCE/tests/cli/lib.sh"

skip() {
	echo "skip: $*"
	exit 77
}
command -v perf >/dev/null || skip "there is no perf (Debian: linux-perf)"
perf record -e cpu-clock -o probe.data -- true >probe.log 2>&1 || skip "perf may not record here: $(head -1 probe.log)"
compiler=${CC:-cc}
command -v "$compiler" >/dev/null || skip "there is no C compiler"

cat >target.c <<'C'
#define _GNU_SOURCE
#include <pthread.h>

static volatile unsigned long sum;

/* A function that calls nothing has no frame otherwise, and perf does not see who called it. */
#define HAS_FRAME __asm__ volatile("" : : "r"(__builtin_frame_address(0)))

__attribute__((noinline)) static void hot(long n) { HAS_FRAME; for (long i = 0; i < n; i++) sum += (unsigned long)i * 3; }
__attribute__((noinline)) static void cold(long n) { HAS_FRAME; for (long i = 0; i < n; i++) sum ^= (unsigned long)i; }

__attribute__((noinline)) static void *work(void *unused)
{
	for (int i = 0; i < 60; i++) {
		hot(900000);
		cold(100000);
	}
	return unused;
}

int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, work, NULL);
	pthread_setname_np(thread, "worker 1/2 a");
	work(NULL);
	pthread_join(thread, NULL);
	return 0;
}
C
"$compiler" -O1 -g -fno-omit-frame-pointer target.c -o target -lpthread

# check NAME [option of perf script]...: imports the text and compares the trace with the parser's
# counts.
check() {
	local name=$1
	shift
	perf script -i "$name.data" "$@" >"$name.txt" 2>script.log || { cat script.log; fail "perf script $*"; }
	"$TRACESMITH" import "$name.txt" -o "$name.sbt" >import.log 2>&1 || { cat import.log; fail "import: $*"; }
	if grep -q 'lost:' import.log; then cat import.log; fail "something is lost: $*"; fi
	"$TRACESMITH" verify -q "$name.sbt" || fail "verify"
	"$TRACESMITH" export -f folded --no-lines "$name.sbt" -o "$name.folded" 2>export.log
	"$TRACESMITH" info --json "$name.sbt" >info.json
	python3 "$TS_SOURCE/tests/cli/import/perf_count.py" "$name.txt" info.json "$name.folded" || fail "perf script $*"
	echo "ok: $name ${*//+/}"
}

perf record -e cpu-clock -F 2000 -g -o native.data -- ./target >record.log 2>&1 || { cat record.log; fail "perf record"; }
check native
check native -F +pid
check native -F +pid --header --show-mmap-events --show-task-events
check native -F +pid,-period --ns
check native -F comm,tid,time,event,ip,sym
check native -F +pid,+srcline
check native -G

# The hot function has nine tenths of the work, and its thread its name.
perf script -i native.data -F +pid --show-task-events >native.txt 2>/dev/null
quietly import native.txt -o native.sbt
"$TRACESMITH" analyze native.sbt functions --json >functions.json
python3 - <<'PY'
import json
rows = json.load(open("functions.json"))["functions"]
own = {r["function"]: r["own_samples"] for r in rows if r["function"] in ("hot", "cold")}
share = own["hot"] / (own["hot"] + own["cold"])
assert 0.8 < share < 0.97, share
PY
"$TRACESMITH" export -f folded native.sbt -o - 2>/dev/null | grep -q '^target ([0-9]*);worker 1/2 a ([0-9]*);.*work .*hot' || fail "the thread's name"
for format in speedscope timeline chrome; do
	"$TRACESMITH" export -f $format native.sbt -o out.json 2>/dev/null || fail "export $format"
	python3 -c 'import json; json.load(open("out.json"))'
done

# Python, with and without names of its functions in perf's map (3.12 and later).
cat >target.py <<'PY'
def hot(n):
    return sum(i * i for i in range(n))

for _ in range(40):
    hot(20000)
PY
options=()
python3 -X perf -c 0 2>/dev/null && python3 -c 'import sys; sys.exit(sys.version_info < (3, 12))' && options=(-X perf)
perf record -e cpu-clock -F 2000 -g -o python.data -- python3 "${options[@]}" target.py >record.log 2>&1 || { cat record.log; fail "perf record python3"; }
check python -F +pid

# All processors, faults with their addresses, switches. Only our program is printed: others on
# the machine may have symbols of any form.
# shellcheck disable=SC2016 # for the inner shell
if perf record -a -e cpu-clock,page-faults -d --switch-events -o all.data -- sh -c 'echo $$ >pid; exec ./target' >record.log 2>&1; then
	check all -F +pid,+misc,+addr --show-switch-events --show-task-events --ns --pid "$(cat pid)"
fi
