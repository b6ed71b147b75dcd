#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Quirks of HTA that `--rounding hta` reproduces and that no recorded trace shows.
. "$TS_SOURCE/tests/cli/lib.sh"

# Twelve kernels, some of which get a negative length by rounding: HTA never counts those as
# "others". One has no correlation. Copies without a recorded bandwidth have none.
python3 - >t.json <<'PY'
import json

def event(cat, name, ts, dur, **args):
    return {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur,
            "args": {"stream": 7, "device": 0, **args}}

durations = [9, 8, 7, 6, 5, 4, 3, 2, 0.3, 0.3, 0.3, 0.3]
events = [event("kernel", f"k{i:02}", 100 * i + 0.5, duration, correlation=i) for i, duration in enumerate(durations)]
del events[0]["args"]["correlation"]
events += [event("gpu_memcpy", "Memcpy HtoD (Host -> Device)", 5000.5, 4, correlation=50, bytes=4000),
           event("gpu_memcpy", "Memcpy DtoH (Device -> Host)", 6000.5, 4, correlation=51, bytes=8000,
                 **{"memory bandwidth (GB/s)": 2.0})]
json.dump({"traceEvents": events}, __import__("sys").stdout)
PY

"$TRACESMITH" analyze t.json breakdown,kernels,bandwidth --rounding hta --json >hta.json
"$TRACESMITH" analyze t.json bandwidth --json >exact.json
python3 - <<'PY'
import json

with open("hta.json", encoding="utf-8") as file:
    hta = json.load(file)
print(hta["breakdown"][0]["commands"])
for row in hta["kernels"]["kernels"]:
    print(row["name"], row["count"], row["sum_us"])
print([(row["name"], row["points"], row["gbps_max"]) for row in hta["bandwidth"]])
with open("exact.json", encoding="utf-8") as file:
    print([(row["name"], row["points"], row["gbps_max"]) for row in json.load(file)])
PY
