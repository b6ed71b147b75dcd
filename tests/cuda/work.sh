#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The work of a program on the stand-in for the driver (call_and_work.c) is in the trace: calls,
# memory in use after each allocation, captures, polls; and forked children.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda.sh"

calls_of='Counter(row["name"] for row in api_call)'

record t.sbt -- "$programs/call_and_work"
found=$(of_rows t.sbt "$calls_of"'["cuLaunchKernel"], '"$calls_of"'["cuInit"], '"$calls_of"'["cuStreamEndCapture"]' api_call)
[ "$found" = "(105, 1, 1)" ] || fail "calls: $found"
found=$(of_rows t.sbt "$calls_of"'["cuEventQuery"], '"$calls_of"'["cuStreamQuery"]' api_call)
[ "$found" = "(2, 1)" ] || fail "polls that were answered alike are rows: $found"

found=$(of_rows t.sbt '[(row["kind"], row.get("bytes"), row.get("total_bytes")) for row in allocation if row.get("pool") in ("device", "pool", "physical")]' allocation)
expected="[('alloc', 1000, 1000), ('alloc', 2000, 3000), ('free', 1000, 2000), ('alloc', 5120, 7120), ('alloc', 700, 7820), ('free', 700, 7120), \
('alloc', 2097152, 2104272), ('free', 2097152, 7120), ('free', None, None)]"
[ "$found" = "$expected" ] || fail "memory of the device: $found; a row: $(head -n 1 rows.allocation)"
found=$(of_rows t.sbt '[(row["kind"], row.get("pool"), row.get("bytes"), row.get("total_bytes")) for row in allocation if row.get("pool") in ("pinned", "registered")]' allocation)
[ "$found" = "[('alloc', 'pinned', 4096, 4096), ('alloc', 'registered', 4096, 8192), ('free', 'pinned', 4096, 4096)]" ] ||
	fail "memory of the host: $found"
rows_of t.sbt device | grep -q '"GPU-00112233-4455-6677-8899-aabbccddeeff"' || fail "device: $(rows_of t.sbt device)"
rows_of t.sbt meta | grep -q 'driver_version.*13000' || fail "facts: $(rows_of t.sbt meta)"
rows_of t.sbt meta | grep -q '"cuda_other_calls","value":{"cuTexRefSetMipmapLevelBias":3}' || fail "calls by name without a wrapper: $(rows_of t.sbt meta)"

# A capture ends with its stream; allocations inside another capture still count no memory.
record t.sbt -- "$programs/call_and_work" abandon
found=$(of_rows t.sbt '[row.get("bytes") for row in allocation]' allocation)
[ "$found" = "[500]" ] || fail "memory beside a capture that was abandoned: $found"

# Initialized before the fork: the child's calls pass through. Initialized after it: two programs.
record t.sbt -- "$programs/call_and_work" fork_later
found=$(of_rows t.sbt 'sorted(Counter(row["pid"] for row in api_call if row["name"] == "cuLaunchKernel").values())' api_call)
[ "$found" = "[105]" ] || fail "a child that inherited CUDA: $found"
record t.sbt -- "$programs/call_and_work" fork_first
found=$(of_rows t.sbt 'sorted(Counter(row["pid"] for row in api_call if row["name"] == "cuLaunchKernel").values())' api_call)
[ "$found" = "[7, 105]" ] || fail "a child with a CUDA of its own: $found"

# Functions without a wrapper are counted by name; emitted at exit, since this program has called
# cuInit.
record t.sbt -- "$programs/call_by_handle" count
rows_of t.sbt meta | grep -q 'cuda_other_calls.*"cuDeviceGetCount":5,"cuUnheardOf":1}' || fail "counts: $(rows_of t.sbt meta)"

# Collectives are calls, and so are their launches. A group launches when it ends.
record t.sbt -- "$programs/call_nccl"
grep -qx 'result 0' printed || fail "collectives: $(cat printed)"
found=$(of_rows t.sbt '[row["name"] for row in sorted(api_call, key=lambda row: row["start"]) if row["name"] != "cuInit"]' api_call)
expected="['ncclAllReduce', 'cuLaunchKernel', 'ncclGroupStart', 'ncclSend', 'ncclSend', 'ncclSend', 'ncclSend', 'ncclGroupEnd', 'cuLaunchKernel', \
'ncclAllReduce', 'cuLaunchKernel']"
[ "$found" = "$expected" ] || fail "collectives: $found"

# Several NCCLs in one process: each library gets its own, as without us, and other functions of the
# same name are left alone.
"$programs/call_nccls" >expected || fail "without a recorder: $(cat expected)"
record t.sbt -- "$programs/call_nccls"
diff expected printed >differences || fail "several NCCLs: $(cat differences)"
grep -q ': -1$' printed && fail "several NCCLs: $(cat printed)"
found=$(of_rows t.sbt 'Counter((row["name"], row["result"]) for row in api_call if row["name"] not in ("cuInit", "cuLaunchKernel"))' api_call)
[ "$found" = "Counter({('ncclAllReduce', 0): 9})" ] || fail "several NCCLs: $found"
