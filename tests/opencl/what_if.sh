#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks a what-if by changing the program: the pipeline is recorded with full and with half the
# work in its kernel `blend`. The emulator's prediction for the first, with that kernel twice as
# fast, is compared with the second. Compares ratios of spans of consecutive runs, on a machine with
# other load: they must agree within a fifth in one of several attempts. Asserts no absolute time.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

attempts=20
tolerance=0.2
rounds=${TS_WHAT_IF_WORK:-400}

# The span of all commands, first start to last end, in ns.
span_of() { # trace
	rows_of "$1" gpu_op | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
print(max(row["start"] + row["duration"] for row in rows) - min(row["start"] for row in rows))'
}
record_with() { # trace, rounds
	record "$1" -- "$pipeline" --steps 24 --work "$2"
}

# Kernels are compiled once, before measuring.
record_with warm.sbt 1
for attempt in $(seq $attempts); do
	record_with whole.sbt "$rounds"
	record_with half.sbt $((rounds / 2))
	replay_json 0 whole.sbt --target emulator --what-if kernel:blend=0.5x
	if python3 - "$(span_of whole.sbt)" "$(span_of half.sbt)" $tolerance <<-'END'
	import json, sys
	whole, half, tolerance = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
	report = json.load(open("replay.json"))
	assert report["baseline_span_ns"] > 0 and report["span_ns"] > 0 and "kernel:blend=0.5x" in report["what_if"], report
	said, was = report["span_ns"] / report["baseline_span_ns"], half / whole
	print(f"half the work: said {said:.3f}, was {was:.3f} of the span; error of the baseline {report['span_error']:+.3f}, "
	      f"starts p95 {report['start_error_p95']:.3f}")
	assert said < 0.95, "it says that nothing would change"
	sys.exit(abs(said - was) > tolerance * was)
	END
	then
		echo "attempt $attempt: within $tolerance"
		exit 0
	fi
done
fail "the emulator was wrong $attempts times"
