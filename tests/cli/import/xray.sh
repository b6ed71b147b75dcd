#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A program with XRay enabled: threads, recursion, tail calls, deep stacks, longjmp. The trace has
# every entry and exit of the log in order, as counted by the program itself and, if installed, by
# llvm-xray.
. "$TS_SOURCE/tests/cli/lib.sh"
data=$TS_SOURCE/tests/data/xray

skip() {
	echo "skip: $*"
	exit 77
}

clang=$(command -v clang || command -v clang-14 || true)
[ -n "$clang" ] || skip "no clang to build an instrumented program"
# Position-independent and not: the function addresses are stored differently in the program.
"$clang" -O1 -fxray-instrument -fPIE -pie "$data/calls.c" -o calls -lpthread 2>build.log ||
	skip "clang cannot link XRay's runtime (Debian: libclang-rt-14-dev): $(grep -m 1 error build.log)"
"$clang" -O1 -fxray-instrument -fno-pie -no-pie "$data/calls.c" -o fixed -lpthread

# run_program NAME PROGRAM MODE OPTIONS: writes NAME.log and NAME.list.
run_program() {
	XRAY_OPTIONS="patch_premain=false xray_logfile_base=$1-xray." "./$2" "$3" "func_duration_threshold_us=0:$4" >"$1.list"
	mv "$1"-xray.* "$1.log"
}

# check NAME PROGRAM whole|end: imports it and compares.
check() {
	"$TRACESMITH" import -q "$1.log" --binary "$2" -o "$1.sbt" 2>"$1.warnings" || fail "$(cat "$1.warnings")"
	"$TRACESMITH" verify "$1.sbt" >/dev/null
	"$TRACESMITH" view --json "$1.sbt" >"$1.json"
	yaml=()
	if command -v llvm-xray >/dev/null; then
		llvm-xray convert --output-format=yaml --symbolize --instr_map="$2" "$1.log" >"$1.yaml"
		yaml=("$1.yaml")
	fi
	python3 "$data/check.py" "$3" "$1.json" "$1.list" "${yaml[@]}"
}

for mode in fdr basic; do
	echo "$mode:"
	limits=buffer_size=65536:buffer_max=20
	[ $mode = fdr ] || limits=max_stack_depth=100000
	run_program $mode calls xray-$mode $limits
	check $mode calls whole
	cat $mode.warnings
	run_program $mode-fixed fixed xray-$mode $limits
	check $mode-fixed fixed whole
done

echo "small buffers, the oldest used again:"
# Which buffers are used again depends on the order of the threads: whole calls only, now and then.
for ((i = 0; i < 50; i++)); do
	run_program small calls xray-fdr buffer_size=4096:buffer_max=12
	check small calls end >small.said
	! grep -q 'whose exit' small.warnings || break
done
cat small.said
sed -E 's/[0-9]+ entr(y|ies) whose exits? (is|are) in the log.*/entries are missing/' small.warnings
python3 - small.json <<'PY'
import json, sys
losses = [row for row in map(json.loads, open(sys.argv[1])) if row["table"] == "loss"]
assert len(losses) == 1 and losses[0]["count"] > 0, losses
PY

echo "packed, from a pipe, without the program:"
gzip -k fdr.log
"$TRACESMITH" import -q fdr.log.gz --binary calls -o gzip.sbt
"$TRACESMITH" import -q - --binary calls -o pipe.sbt <fdr.log
for copy in gzip pipe; do
	cmp fdr.json <("$TRACESMITH" view --json $copy.sbt) || fail "$copy"
done
t import -q fdr.log -o numbers.sbt
"$TRACESMITH" view --json numbers.sbt | grep -c '"name":"function [0-9]*"' | numbers

echo "wrong programs:"
t import -q fdr.log --binary /bin/sh -o wrong.sbt
cp "$data/calls.c" .
t import -q fdr.log --binary calls.c -o wrong.sbt
t import -q fdr.log --binary nowhere -o wrong.sbt
"$clang" -O1 -fxray-instrument -fxray-instruction-threshold=1 -x c - -o other <<'C'
int main(void)
{
	return 0;
}
C
t import -q fdr.log --binary other -o wrong.sbt | sed -E "s/function [0-9]+/function N/"

echo "broken off:"
for bytes in 30 40 1000 70000; do
	rm -f cut.sbt
	head -c $bytes fdr.log >cut.log
	t import -q cut.log --format xray --binary calls -o cut.sbt | numbers
done
