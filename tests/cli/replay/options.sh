#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Invalid options and combinations, and selections that do not exist.
. "$TS_SOURCE/tests/cli/lib.sh"

"$TS_BUILD/tests/targets/make_stream" plain.sbt plain
make_trace k
t replay
t replay plain.sbt plain.sbt
t replay missing.sbt
t replay plain.sbt --target opencll
t replay plain.sbt --target nothing
t replay plain.sbt --check all
t replay plain.sbt --pace slow
t replay plain.sbt --repeat 0
t replay plain.sbt --tolerance 4 --as f32
t replay plain.sbt --tolerance ulp=4
t replay plain.sbt --as f8
t replay plain.sbt --at 3
t replay plain.sbt --dump 10
t replay plain.sbt --at x --dump 10
t replay plain.sbt --at 3 --dump 99
t replay plain.sbt --at 99 --dump 10
t replay plain.sbt --from x
t replay plain.sbt --from 7
t replay plain.sbt --stream 5
t replay plain.sbt --kernel gemm
t replay plain.sbt --kernel 'step_#0'
t replay plain.sbt --kernel 'step_#9'
t replay plain.sbt --step 3-x
t replay plain.sbt --step 3
t replay plain.sbt --at 3 --dump 0x1000
t replay plain.sbt --at 3 --dump 0x1000:many
t replay plain.sbt --at 3 --dump arg
t replay plain.sbt --window 2
t replay plain.sbt --process 7
t replay plain.sbt --what-if streams=2
t replay plain.sbt --hashes
t replay plain.sbt --replace-kernel step_
t replay plain.sbt --replace-kernel step_=missing.cl
t replay plain.sbt --replace-kernel step_=/
t replay plain.sbt -o plain.sbt
t replay plain.sbt -o k.json
t replay plain.sbt --png picture.png
t replay plain.sbt --at 3 --dump 10 --png ./plain.sbt
t replay plain.sbt --at 3 --dump 10 --png .
t replay k.sbt
t replay k.sbt --target emulator --kernel gemm
t replay k.sbt --target emulator --check each
t replay k.sbt --target emulator --json --hashes
t replay k.sbt --target emulator --what-if streams=0
# Each target is on the man page and in --help.
"$TRACESMITH" replay --help | sed -n '/^targets:/,/^$/p' | awk '/^  [a-z]/ { print $1 }' | while read -r name; do
	grep -qF ".B $name" "$TS_SOURCE/docs/man/tracesmith-replay.1" || fail "$name: not on the man page"
	echo "$name"
done
