#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A trace exported to Perfetto and imported again is the same in every table: those of tests/golden,
# also compressed, piped and truncated; and recorded ones, whose exports are also read with
# Perfetto's own schema (check_perfetto.py).
set -euo pipefail
. "$TS_SOURCE/tests/lib/real-traces.sh"

same() { # trace, again
	python3 - "$1" "$2" <<-'END'
	import os, sys
	sys.path.insert(0, os.environ["TS_SOURCE"] + "/tests/real")
	import tool
	faults = tool.Faults()
	tool.compare_tables(faults, sys.argv[1], sys.argv[2], "import of the export")
	print("\n".join(faults), end="\n" if faults else "")
	sys.exit(bool(faults))
	END
}

code=0
round_trip() { # trace
	rm -f trip.pftrace trip.sbt
	"$TRACESMITH" export "$1" -f perfetto -o trip.pftrace
	"$TRACESMITH" import -q trip.pftrace -o trip.sbt
	"$TRACESMITH" verify -q trip.sbt
	same "$1" trip.sbt || { echo "$2 is not the same"; code=1; }
}

for trace in "$TS_SOURCE"/tests/golden/*.sbt; do
	round_trip "$trace" "$trace"
done

# Compressed on the way, and from a pipe.
golden=$TS_SOURCE/tests/golden/v1.sbt
"$TRACESMITH" export "$golden" -f perfetto -o golden.pftrace
gzip -k golden.pftrace
"$TRACESMITH" import -q golden.pftrace.gz -o packed.sbt
same "$golden" packed.sbt || { echo "packed: not the same"; code=1; }
"$TRACESMITH" import -q - -o piped.sbt <golden.pftrace
same "$golden" piped.sbt || { echo "from a pipe: not the same"; code=1; }

# A truncated file: what came before is kept, and a message says so.
head -c $(($(stat -c %s golden.pftrace) * 2 / 3)) golden.pftrace >cut.pftrace
status=0
"$TRACESMITH" import -q cut.pftrace -o cut.sbt 2>cut.err || status=$?
[ "$status" = 3 ] || { echo "a cut file: exit code $status"; code=1; }
grep -q 'is truncated' cut.err || { cat cut.err; code=1; }
"$TRACESMITH" verify -q cut.sbt

[ $code = 0 ] || exit $code

mapfile -d '' files < <(real_files kineto chrome)
if ! python=$("$TS_SOURCE/scripts/perfetto-peer" "$TS_BUILD"); then
	# The re-imported trace is compared all the same.
	python3 "$TS_SOURCE/tests/real/check_perfetto.py" - "${files[@]}"
	echo "$python"
	exit 77
fi
python3 "$TS_SOURCE/tests/real/check_perfetto.py" "$python" "${files[@]}"
