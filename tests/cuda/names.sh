#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Native frames are resolved in all files of a recording: windows, rotation, and before text formats
# are written.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda.sh"

# Each file with unnamed frames has symbols for those of the program itself.
named() { # trace...
	local trace
	for trace; do
		expect 0 verify -q "$trace"
		found=$(of_rows "$trace" 'len(frame) == 0 or "main" in {row.get("name") for row in symbol}' frame symbol)
		[ "$found" = True ] || fail "$trace: no names: $(cat said)"
	done
}

timeout 300 "$TRACESMITH" record --backends cuda --window cuda-profiler-api --split -o s.sbt -- "$programs/call_profiler" 2>said || fail "record: exit code $?: $(cat said)"
windows=(s_pid*.sbt)
[ -e "${windows[0]}" ] || fail "no file of a window: $(cat said)"
named s.sbt "${windows[@]}"

cat >three.sh <<'SHELL'
for ((i = 0; i < 3; i++)); do
	"$1"
	sleep 0.3
done
SHELL
timeout 300 "$TRACESMITH" record --backends cuda --rotate 200ms -o r.sbt -- bash three.sh "$programs/call_profiler" 2>said || fail "record: exit code $?: $(cat said)"
files=(r.*.sbt)
[ ${#files[@]} -ge 2 ] || fail "nothing was rotated: ${files[*]}"
named "${files[@]}"
"$TRACESMITH" symbolize "${files[@]}" 2>again
! grep -qE "[1-9][0-9,]* of [0-9,]+ native frames named" again || fail "names were left out: $(cat again)"

timeout 300 "$TRACESMITH" record --backends cuda -o t.json -- "$programs/call_profiler" 2>said || fail "record: exit code $?: $(cat said)"
grep -q '^t.json: .* native frames named' said || fail "of a text: $(cat said)"
[ ! -e t.json.sbt ] || fail "the trace of the text is left"
python3 -m json.tool t.json >/dev/null || fail "the text is none"
echo "all files have names"
