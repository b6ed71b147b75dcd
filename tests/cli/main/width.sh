#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What the verbs show fits into 80 columns, or 120; losses stay in view, and settings are explained.
. "$TS_SOURCE/tests/cli/live.sh"

real=$TS_SOURCE/tests/data/real/kineto
quietly import "$real/mlp_train.json.gz" -o a.sbt
quietly import "$real/transformer_train.json.gz" -o b.sbt

# fits WIDTH ARGUMENT...: no line is longer
fits() {
	local width=$1 code=0
	shift
	"$TRACESMITH" "$@" --width "$width" >fits.txt 2>err.txt || code=$?
	[ $code -le 1 ] && [ -s fits.txt ] || fail "$*: exit code $code: $(cat err.txt)"
	LC_ALL=C.UTF-8 python3 - "$width" "$*" <<'PY'
import sys
for line in open("fits.txt", encoding="utf-8"):
    assert len(line.rstrip("\n")) <= int(sys.argv[1]), sys.argv[2] + ": " + line
PY
}

analyses=$("$TRACESMITH" analyze --list | awk '{ print $1 }' | paste -sd,)
for width in 80 120; do
	# The commands of advice are on one line each, as long as they are.
	fits $width analyze b.sbt "${analyses/,advice/}"
	fits $width diff a.sbt b.sbt
	fits $width state b.sbt
	fits $width state "$real/compiled.json.gz"
	fits $width state b.sbt --intervals
	fits $width state b.sbt --edges
	fits $width state b.sbt --why 3621
	fits $width view b.sbt
	fits $width view b.sbt --commands
	fits $width view b.sbt --table stream
	fits $width align b.sbt --dry-run
done
fits 80 info b.sbt
grep -q 'deviceProperties: .*NVIDIA H200.* \.\.\.$' fits.txt || fail "info: $(cat fits.txt)"

# A long name of what a command waited for.
python3 - >long.json <<'PY'
import json
name = "void gemm<" + ", ".join(f"float const volatile {i}" for i in range(9)) + ">"
events = []
for i in 1, 2:
    events += [{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": i * 10, "dur": 5,
                "args": {"correlation": i}},
               {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": i * 100, "dur": 100,
                "args": {"device": 0, "stream": 7, "correlation": i}}]
print(json.dumps({"schemaVersion": 1, "traceEvents": events}))
PY
fits 80 state long.json --why 2
grep -q 'waited: queue' fits.txt || fail "state: $(cat fits.txt)"
# The reason of a loss is complete.
head -c -10 b.sbt >a-trace-that-was-cut.sbt
quietly recover a-trace-that-was-cut.sbt -o lost.sbt
fits 80 view lost.sbt --table loss
grep -q '^ *damaged or cut short: left out by recover$' fits.txt || fail "view: $(cat fits.txt)"
# A verdict is wrapped on a terminal.
PYTHONPATH=$TS_SOURCE/tests/lib python3 - "$TRACESMITH" verify a-trace-that-was-cut.sbt <<'PY'
import on_terminal, sys
lines = on_terminal.run(80, sys.argv[1:]).splitlines()
assert "tracesmith recover a-trace-that-was-cut.sbt -o good.sbt" in " ".join(line.strip() for line in lines), lines
assert all(len(line) <= 80 for line in lines), lines
PY

fits 80 top -n 1 -a
# Root need not be told to become root.
[ "$(id -u)" -ne 0 ] || ! grep -q 'run as root' fits.txt || fail "top: $(cat fits.txt)"

# Messages are wrapped, too, and are one line each elsewhere.
PYTHONPATH=$TS_SOURCE/tests/lib python3 - "$TRACESMITH" record --window steps:30-40 -o w.sbt -- "$emit" steps:10 <<'PY'
import on_terminal, sys
lines = on_terminal.run(80, sys.argv[1:]).splitlines()
text = " ".join(line.strip() for line in lines)
assert "warning: the window never opened: the program did not announce step 30 with TS_STEP()" in text, lines
assert all(len(line) <= 80 for line in lines), lines
assert any(line.startswith("  ") for line in lines), lines
PY
"$TRACESMITH" record --window steps:30-40 -o w.sbt -- "$emit" steps:10 2>err.txt
grep -q 'window never opened: .*TS_STEP()$' err.txt || fail "$(cat err.txt)"

TRACESMITH_LIVE=1 "$emit" instants:10 make:ready await:over &
program=$!
await [ -e ready ]
fits 80 ps
grep -q '^ *pid .* lost$' fits.txt || fail "ps: $(cat fits.txt)"
fits 80 config $program
! grep … fits.txt || fail "a setting is cut"
touch over
wait $program
