#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A stripped binary: a debug file of the same build names its functions, one of another build does
# not.
. "$TS_SOURCE/tests/cli/stack.sh"

command -v objcopy >/dev/null || { echo "skip: no objcopy"; exit 77; }
built=$TS_BUILD/tests/targets/accelerator_work
objcopy --strip-all "$built" stripped 2>/dev/null
id=$(readelf -n "$built" | sed -n 's/.*Build ID: //p')
folder=debug/.build-id/${id:0:2}
mkdir -p "$folder"
objcopy --only-keep-debug "$built" "$folder/${id:2}.debug"
objcopy --only-keep-debug "$TS_BUILD/tests/targets/agent_stepper" other.debug

./stripped make:ready await:go &
remember $!
other=$!
waits() { [ -e ready ] && grep -q '^State:.S' /proc/$other/status; }
await waits
# The thread may be awake between two waits.
sees() { "$TRACESMITH" stack --native --json $other >seen.json && grep -q /stripped seen.json; }
functions() {
	await sees
	python3 -c '
import json
frames = [frame for thread in json.load(open("seen.json"))["threads"] for frame in thread["frames"]]
own = [frame["func"] for frame in frames if frame["file"].endswith("/stripped")]
print("main" in own, any(name.startswith("0x") for name in own))'
}
echo "-- main, unnamed"
functions
TRACESMITH_DEBUG_PATH=/nowhere:$PWD/debug functions
cp other.debug "$folder/${id:2}.debug"
TRACESMITH_DEBUG_PATH=$PWD/debug functions
touch go
wait $other
