#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Where the driver does not describe the arguments of kernels, a program is built once more, in
# private: the first time that it is recorded, and never again.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

export TRACESMITH_CACHE_DIR=$PWD/cache
builds() { # trace, what
	rows_of "$1" meta | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
values = [row["value"] for row in rows if row.get("key") == "opencl_arguments"]
print(values[0][sys.argv[1]] if values else 0)' "$2"
}
# Names and types of all parameters.
functions() { rows_of "$1" object | grep -o '"parameters":\[.*\]' | sort; }

record first.sbt --replayable -- "$pipeline" --steps 2
count=$(builds first.sbt private_builds)
[ "$count" -gt 0 ] || skip "this driver describes the arguments of all kernels"
[ -n "$(ls cache/kernel-arguments)" ] || fail "nothing is cached"
record second.sbt --replayable -- "$pipeline" --steps 2
[ "$(builds second.sbt private_builds)" -eq 0 ] || fail "it was built again"
[ "$(builds second.sbt from_cache)" -eq "$count" ] || fail "not all was found in the cache"
replays "from the cache" second.sbt --check each
[ -n "$(functions second.sbt)" ] || fail "no function has parameters"
diff <(functions first.sbt) <(functions second.sbt) || fail "the cache has other arguments"

# Damaged: built again, and replaced.
for file in cache/kernel-arguments/*; do
	printf x >>"$file"
done
record third.sbt --replayable -- "$pipeline" --steps 2
[ "$(builds third.sbt private_builds)" -eq "$count" ] || fail "a damaged file was used"
record fourth.sbt --replayable -- "$pipeline" --steps 2
[ "$(builds fourth.sbt private_builds)" -eq 0 ] || fail "a damaged file was not replaced"

# Switched off.
rm -r cache
TRACESMITH_CACHE_DIR='' record off.sbt --replayable -- "$pipeline" --steps 2
[ "$(builds off.sbt private_builds)" -eq "$count" ] || fail "there is another cache"
[ ! -e cache ] || fail "the cache is written, though switched off"
echo "$count private builds, then none"
