#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Profiles made by pprof_profiles.py, and by real tools if installed: an independent decoder counts
# samples per function, and the trace must agree.
. "$TS_SOURCE/tests/cli/lib.sh"

program=$TS_SOURCE/tests/cli/import/pprof_profiles.py
compared=()

# check NAME: imports NAME.pb (packed or not) and compares the trace with the decoder's result.
check() {
	"$TRACESMITH" import "$1.pb" -o "$1.sbt" >import.log 2>&1 || { cat import.log; fail "import $1"; }
	grep -q ': pprof, ' import.log || { cat import.log; fail "$1 was not recognised"; }
	if grep -q 'lost:' import.log; then cat import.log; fail "something of $1 is lost"; fi
	"$TRACESMITH" verify -q "$1.sbt" || fail "verify"
	"$TRACESMITH" export -f folded --count time --no-lines "$1.sbt" -o "$1.time" 2>/dev/null || : >"$1.time"
	"$TRACESMITH" export -f folded --no-lines "$1.sbt" -o "$1.count" 2>/dev/null
	"$TRACESMITH" export -f speedscope "$1.sbt" -o "$1.speedscope" 2>/dev/null
	"$TRACESMITH" info --json "$1.sbt" >info.json
	python3 "$program" compare "$1.pb" info.json "$1.time" "$1.count" "$1.speedscope" || fail "$1 differs"
	compared+=("$1")
}

python3 "$program" make
for name in cpu heap counts shuffled; do check $name; done

gzip -c cpu.pb >packed.pb
if "$TRACESMITH" import -q packed.pb -o packed.sbt 2>/dev/null; then check packed; fi

# A truncated file: what came before is kept, and a message says so.
size=$(stat -c %s shuffled.pb)
head -c $((size - 5)) shuffled.pb >cut.pb
code=0
"$TRACESMITH" import cut.pb -o cut.sbt >cut.log 2>&1 || code=$?
[ $code -eq 3 ] || fail "a cut profile gives exit code $code"
grep -q 'the file is truncated; everything before it was kept' cut.log || { cat cut.log; fail "a cut profile"; }

# Profiles written by Go, if it is installed.
if command -v go >/dev/null; then
	mkdir program
	cat >program/main.go <<'GO'
package main

import (
	"context"
	"os"
	"runtime"
	"runtime/pprof"
	"time"
)

var sum uint64
var kept [][]byte

//go:noinline
func hot(n uint64) { for i := uint64(0); i < n; i++ { sum += i * 3 } }

//go:noinline
func cold(n uint64) { for i := uint64(0); i < n; i++ { sum ^= i } }

//go:noinline
func keep() { kept = append(kept, make([]byte, 1<<20)) }

func work(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); { hot(900000); cold(100000) }
}

func main() {
	cpu, _ := os.Create("gocpu.pb")
	pprof.StartCPUProfile(cpu)
	pprof.Do(context.Background(), pprof.Labels("request", "a b"), func(context.Context) { work(500 * time.Millisecond) })
	work(500 * time.Millisecond)
	pprof.StopCPUProfile()
	cpu.Close()
	for i := 0; i < 20; i++ { keep() }
	runtime.GC()
	heap, _ := os.Create("goheap.pb")
	pprof.WriteHeapProfile(heap)
	heap.Close()
}
GO
	if (cd program && HOME=$PWD GOFLAGS=-mod=mod go mod init program && HOME=$PWD go build -o ../goprogram .) >go.log 2>&1; then
		./goprogram
		check gocpu
		check goheap
	fi
	[ ! -d program ] || chmod -R u+w program
fi
echo "compared: ${compared[*]}" >&2
echo "ok"
