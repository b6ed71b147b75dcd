#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Accelerators without a screen: in the first output, even if one gives no values; messages appear
# once.
. "$TS_SOURCE/tests/cli/live.sh"

export LD_LIBRARY_PATH=$TS_BUILD/examples/backends${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} MYDEVICE_STATUS=$PWD/status
trap 'jobs -pr | xargs -r kill 2>/dev/null || true' EXIT
picture() { "$TRACESMITH" top --once -d 0.1 --backends host,mydevice 2>&1 | grep -E '^(Example|note: .*mydevice)|MyDevice|status' | sed "s#$PWD#HERE#g"; }

sleep 600 &
user=$!
printf 'utilization 25\npower 350500\ntemperature 54\nmemory 1048576\nprocess %d 2048\n' $user >status
picture
"$TRACESMITH" top --once -d 0.1 --backends host,mydevice --json | python3 -c '
import json, sys
top = json.loads(sys.stdin.read())
print([(row["pid"] == int(sys.argv[1]), row["devices"], row["device_memory_bytes"]) for row in top["processes"] if "devices" in row])' $user
echo "== silent"
echo "nothing 1" >status
picture
echo "== broken"
rm status
picture
