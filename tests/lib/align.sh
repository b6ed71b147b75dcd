# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests of align: jobs of known skews and drifts, and what must hold of their traces.

# Makes FOLDER/rankN.json, FOLDER/rankN.sbt and FOLDER/job.sbt.
make_job() { # folder, collectives, RANK:SKEW_NS:DRIFT_PPM...
	local folder=$1 file
	python3 "$TS_SOURCE/tests/lib/align_job.py" "$@"
	for file in "$folder"/rank*.json; do
		"$TRACESMITH" import -q "$file" -o "${file%.json}.sbt"
	done
	"$TRACESMITH" import -q "$folder"/rank*.json -o "$folder/job.sbt"
}

# Checks that the measured clock offsets match the true ones within the stated uncertainty, and that
# this is small enough.
check_clocks() { # most uncertain us, RANK:SKEW_NS:DRIFT_PPM... -- trace...
	"$TRACESMITH" align --dry-run --json "${@:$(($# - traces + 1))}" 2>/dev/null >clocks.json
	python3 - "$@" <<'PY'
import json, sys

START = 1_700_000_000_000_000_000
most = float(sys.argv[1])
job = [word.split(":") for word in sys.argv[2:] if ":" in word]
found = {row["rank"]: row for row in json.load(open("clocks.json"))["ranks"]}
for rank, skew, ppm in job[1:]:
    row, skew, drift = found[int(rank)], int(skew), float(ppm) / 1e6
    since = (row["at_ns"] - START - skew) / (1 + drift)
    expected = (int(job[0][1]) - skew + (float(job[0][2]) / 1e6 - drift) * since) / 1000
    if abs(row["offset_us"] - expected) > row["uncertainty_us"] or row["uncertainty_us"] > most:
        sys.exit(f"FAILED: rank {rank}: expected {expected} us, found {row}")
    if abs(row["drift_ppm"] + float(ppm) - float(job[0][2])) > 2 + abs(float(ppm)) / 20:
        sys.exit(f"FAILED: rank {rank}: drift {row}")
PY
}

# Every chunk of the first is unchanged in the second: rows were only appended.
check_appended() { # before, after
	python3 - "$@" <<'PY'
import sys

before, after = (open(path, "rb").read() for path in sys.argv[1:])
index = before.rindex(b"\x89SBTchk\n")
if before[:index] != after[:index] or len(after) <= index:
    sys.exit(f"FAILED: chunks changed ({index} bytes)")
PY
}
