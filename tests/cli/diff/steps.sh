#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a comparison must not miss among hundreds of names (a slower step, a call that is made more
# often), what it must not report (a few ns), and what it says of nothing and of the same twice.
. "$TS_SOURCE/tests/cli/lib.sh"

# make OUT STEP_MS CALLS KERNEL_NS: four steps of 400 operators each, with some noise.
make() {
	python3 - "$@" <<'PY'
import json, sys
out, step_ms, calls, kernel_ns = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
events, at = [], 0
for step in range(4):
    noise = 1 + 0.05 * (step % 3 - 1)
    length = step_ms * 1000 * noise
    host = {"ph": "X", "pid": 10, "tid": 20}
    events.append(dict(host, cat="user_annotation", name=f"ProfilerStep#{step}", ts=at, dur=length))
    for i in range(400):
        events.append(dict(host, cat="cpu_op", name=f"op{i}", ts=at + 10 * i, dur=5 + (i + step) % 3))
    for i in range(calls + step):
        events.append(dict(host, cat="cuda_runtime", name="cudaEventQuery", ts=at + 5000 + i, dur=0.5 * noise, args={}))
    events.append(dict(host, cat="cuda_runtime", name="cudaLaunchKernel", ts=at + 6000, dur=5, args={"correlation": step + 1}))
    events.append({"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": at + 6010, "dur": kernel_ns / 1000,
                   "args": {"device": 0, "stream": 7, "correlation": step + 1}})
    at += length + 10
json.dump({"traceEvents": events}, open(out, "w"))
PY
}

# verdicts NAME...: of the comparison in out.json.
verdicts() {
	python3 - "$@" <<'PY'
import json, sys
rows = {row["name"]: row for row in json.load(open("out.json"))["changes"]}
for name in sys.argv[1:]:
    print(name, rows[name]["kind"], rows[name]["verdict"])
print("different:", sum(row["verdict"] not in ("unchanged", "unclear") for row in rows.values()), "of", len(rows))
PY
}

make a.json 77 38 1000000
make b.json 116 802 1000027
"$TRACESMITH" diff a.json b.json --json >out.json 2>notes.txt && fail "no difference"
verdicts step cudaEventQuery gemm
cat notes.txt
"$TRACESMITH" diff a.json b.json --device gpu || fail "27 ns of 1 ms are a difference"
"$TRACESMITH" diff a.json b.json --device gpu --threshold 0 --min-change 0 --json >out.json 2>/dev/null && fail "no difference"
verdicts gemm
make c.json 77 38 1500000
t diff a.json c.json --device gpu --min-change 1ms --top 1 | tail -n 4
for time in x -1us ''; do
	t diff a.json b.json --min-change "$time"
done

echo "== the same twice"
t diff a.json a.json
t diff a.json a.json --device gpu
t diff a.json a.json --device cpu
"$TRACESMITH" diff a.json a.json --json 2>notes.txt | python3 -c '
import json, sys
print(len(json.load(sys.stdin)["changes"]), "rows")'
cat notes.txt

echo "== nothing to compare"
echo '{"traceEvents": []}' >empty.json
python3 -c 'import json; json.dump({"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}]}, open("host.json", "w"))'
t diff empty.json empty.json
t diff empty.json empty.json --json
t diff host.json host.json --device gpu
t diff empty.json empty.json --device cpu
sed 's/aten::mm/aten::add/' host.json >other.json
t diff host.json other.json
