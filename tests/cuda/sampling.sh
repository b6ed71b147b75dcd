#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Instruction samples reported by the stand-in for CUPTI (sampled_work.c) are in the trace with
# their code and launches; exact ones if kernels are serialized.
set -euo pipefail
. "$TS_SOURCE/tests/lib/cuda.sh"
unset NSYS_STAND_IN
cubin=$TS_SOURCE/tests/data/cubin/lines.cubin
samples='sum(row["weight"] for row in sample if row.get("name") == "pc")'

hot() { "$TRACESMITH" view t.sbt --hot scale --json | python3 -c "
import json, sys
hot = json.load(sys.stdin)
print($1)"; }

# Not requested: nothing is sampled.
record t.sbt -- "$programs/sampled_work" "$cubin"
grep -qx "period 0" printed || fail "it was configured: $(cat printed)"

# Continuous: all samples, and launches with their share of the device's time.
record t.sbt --pc-sampling -- "$programs/sampled_work" "$cubin"
grep -qx "period 14" printed || fail "the period: $(cat printed)"
found=$(of_rows t.sbt "$samples, len(object), {row.get('state') for row in sample} == {'wait', 'math_pipe_throttle'}" sample object)
[ "$found" = "(4000, 1, True)" ] || fail "samples and modules: $found"
found=$(hot '[(i["offset"], i["samples"], i["source"][0]["line"]) for i in hot["instructions"]], hot["launches_are"], [(l["launches"], l["share_pct"]) for l in hot["launches"]]')
[ "$found" = "[(208, 3000, 8), (400, 1000, 17)] candidates, by device time [(30, 75.0), (10, 25.0)]" ] || fail "hot: $found"
found=$(of_rows t.sbt '[row["value"] for row in meta if row["key"] == "pc_samples"], loss' meta loss)
[[ "$found" == *"'stored': 4000"*", [])" ]] || fail "what it says of itself: $found"

# Serialized: each sample belongs to its launch.
record t.sbt --pc-sampling=10,serialized -- "$programs/sampled_work" "$cubin"
grep -qx "period 10" printed || fail "the period: $(cat printed)"
found=$(hot 'hot["samples"], hot["launches_are"], [(l["launches"], l["samples"]) for l in hot["launches"]]')
[ "$found" = "4000 exact [(30, 3000), (10, 1000)]" ] || fail "serialized: $found"

# Redacted: the samples, without code of the program.
record t.sbt --pc-sampling --redact -- "$programs/sampled_work" "$cubin"
found=$(of_rows t.sbt "$samples, len(object), len(blob)" sample object blob)
[ "$found" = "(4000, 0, 0)" ] || fail "redacted: $found"

# Killed: all drained samples are there, with their code.
rm -f t.sbt*
timeout 300 "$TRACESMITH" record -q --backends cuda --no-symbols --pc-sampling -o t.sbt "$programs/sampled_work" "$cubin" kill >printed 2>recorded.log </dev/null && fail "it was not killed"
found=$(of_rows t.sbt "$samples, len(object)" sample object)
[ "$found" = "(4000, 1)" ] || fail "after a kill: $found"
found=$(hot 'hot["no_lines"]')
[ "$found" = None ] || fail "after a kill there are no lines: $found"
