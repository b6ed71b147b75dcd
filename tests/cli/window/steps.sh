#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a program did between two windows is no step: the last step of a window that a command closed
# does not last until the first one of the next window.
. "$TS_SOURCE/tests/cli/live.sh"

"$TRACESMITH" record -q --backends none --window command -o t.sbt -- "$emit" make:ready await:a steps:4 make:b await:c steps:9 make:d await:e steps:4 make:f await:g &
recorder=$!
await [ -e ready ]
program=$(pgrep -P $recorder)
await has_recorder "$program"
quietly window "$program" open
touch a
await [ -e b ]
quietly window "$program" close
touch c
await [ -e d ]
quietly window "$program" open
touch e
await [ -e f ]
touch g
wait $recorder
steps() {
	"$TRACESMITH" analyze t.sbt steps --json "$@" | python3 -c '
import json, sys
steps = json.load(sys.stdin)["steps"]
print(*(step["step"] for step in steps))
ends = [step["start_ns"] + round(step["duration_us"] * 1000) for step in steps]
windows = [json.loads(line) for line in open("windows.json")]
for step, end in zip(steps, ends):
    inside = [w for w in windows if w["start"] <= step["start_ns"] and end <= w["start"] + w["duration"]]
    print("" if inside else f"step {step} is not inside a window", end="")'
}
"$TRACESMITH" view t.sbt --table window --json >windows.json
steps
steps --all
