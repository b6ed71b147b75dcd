#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Impossible times: negative durations, equal times, the limits of the range, deep overlaps.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 - <<'PY'
import json, random
random.seed(5)
times = [0, 1, 0.001, -5, 9e12, -9e12, 4e15, -4e15, 1e3]
def events(count):
    for i in range(count):
        call = {"ph": "X", "cat": "cuda_runtime", "pid": 9, "tid": random.randrange(2), "ts": random.choice(times),
                "dur": random.choice(times), "name": random.choice(["cudaLaunchKernel", "cudaDeviceSynchronize", "cudaMemcpy"]),
                "args": {"correlation": random.randrange(count)}}
        command = {"ph": "X", "cat": random.choice(["kernel", "gpu_memcpy", "gpu_memset"]), "name": "Memcpy HtoD",
                   "pid": 0, "tid": random.randrange(3), "ts": random.choice(times), "dur": random.choice(times),
                   "args": {"device": random.randrange(2), "stream": random.randrange(3), "correlation": random.randrange(count)}}
        yield from (call, command)
for number, count in enumerate((1, 10, 300)):
    json.dump({"schemaVersion": 1, "traceEvents": list(events(count))}, open(f"h{number}.json", "w"))
PY
for trace in h0 h1 h2; do
	"$TRACESMITH" state $trace.json >/dev/null
	"$TRACESMITH" state $trace.json --commands --csv >/dev/null
	"$TRACESMITH" state $trace.json --intervals --json >$trace.intervals
done
python3 - <<'PY'
import json
from collections import defaultdict
from decimal import Decimal
for number in range(3):
    lanes, last = defaultdict(list), {}
    for row in json.load(open(f"h{number}.intervals"), parse_float=Decimal):
        lanes[row["rank"], row["device"], row["stream"]].append((row["start_ns"], row["start_ns"] + int(row["duration_us"] * 1000)))
    for lane in lanes.values():
        assert all(a[1] == b[0] for a, b in zip(lane, lane[1:])) and all(a[0] < a[1] for a in lane), lane
    assert len({(lane[0][0], lane[-1][1]) for lane in lanes.values()}) == 1, number
PY
