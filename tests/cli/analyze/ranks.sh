#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Several ranks: as several files or as one trace; only some of them; clocks that disagree.
. "$TS_SOURCE/tests/cli/lib.sh"

# Three ranks whose clocks are 0, 5 and -3 ms off. A collective every ms ends
# everywhere at once.
python3 - <<'PY'
import json
offset = [0, 5000, -3000]
for rank in range(3):
    events = []
    for i in range(40):
        at = 1000 * i + offset[rank]
        name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)"
        events += [
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10 + rank, "tid": 1, "ts": at + 10 * rank,
             "dur": 5, "args": {"correlation": 2 * i + 1}},
            {"ph": "X", "cat": "kernel", "name": "gemm_%d" % rank, "pid": 0, "tid": 7, "ts": at + 20, "dur": 100 + rank,
             "args": {"device": 0, "stream": 7, "correlation": 2 * i + 1}},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 10 + rank, "tid": 1,
             "ts": at + 200 + 10 * rank, "dur": 5, "args": {"correlation": 2 * i + 2}},
            {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 20, "ts": at + 300 + 10 * rank, "dur": 200 - 10 * rank,
             "args": {"device": 0, "stream": 20, "correlation": 2 * i + 2, "Collective name": "allreduce",
                      "Process Group Name": "0", "Group size": 3, "Seq": i}},
        ]
    about = {"schemaVersion": 1, "baseTimeNanoseconds": 0, "traceEvents": events,
             "deviceProperties": [{"id": 0, "name": "GPU X"}]}
    json.dump(about, open("unsaid%d.json" % rank, "w"))
    about["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 3}
    json.dump(about, open("r%d.json" % rank, "w"))
PY
ranks() { "$TRACESMITH" analyze "$@" --json | python3 -c '
import json, sys
print([(row["rank"], row["compute_us"]) for row in json.load(sys.stdin)])'; }
quietly import r0.json r1.json r2.json -o job.sbt
ranks r2.json r0.json r1.json breakdown
ranks job.sbt breakdown
ranks unsaid0.json unsaid1.json unsaid2.json breakdown
ranks job.sbt breakdown --rank 1
ranks job.sbt breakdown --rank 2 --rank 0
ranks r0.json r1.json r2.json breakdown --rank 1
ranks unsaid0.json unsaid1.json unsaid2.json breakdown --rank 2
t analyze job.sbt breakdown --rank 3
# A rank alone, or selected from several, gives the same.
for name in breakdown idle launch critical-path; do
	"$TRACESMITH" analyze r1.json $name --json >alone.json 2>/dev/null
	"$TRACESMITH" analyze job.sbt $name --rank 1 --json 2>/dev/null | cmp - alone.json
done

# Clocks are aligned only for analyses that compare ranks.
"$TRACESMITH" analyze job.sbt breakdown,idle --json >before.json 2>notes.txt
! grep -q clocks notes.txt || fail "breakdown: no clocks are needed"
"$TRACESMITH" analyze job.sbt stragglers --json >aligned.json 2>notes.txt
grep -o 'aligned the clocks of 3 ranks by their collectives: shifted by up to 5[. 0-9]* ms' notes.txt
"$TRACESMITH" analyze job.sbt stragglers --no-align --json >apart.json 2>notes.txt
! grep -q 'aligned the clocks' notes.txt || fail "--no-align"
! cmp -s aligned.json apart.json || fail "aligning changes nothing"
"$TRACESMITH" analyze job.sbt all --json >all.json 2>/dev/null
python3 - <<'PY'
import json
load = lambda name: json.load(open(name))
everything = load("all.json")
for name, value in load("before.json").items():
    assert everything[name] == value, name
assert everything["stragglers"] == load("aligned.json")
PY
