#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Verbs that read a trace take files of other tools as well, compressed or from standard input, and
# say the same about them as about the imported trace.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
gzip -k t.json
for arguments in "info --counters" view "view --json" "export -q -o - -f csv --table slice" "export -q -o - -f folded"; do
	for file in t.sbt t.json t.json.gz -; do
		# shellcheck disable=SC2086
		"$TRACESMITH" $arguments $file <t.json >out 2>&1 || fail "$arguments $file: $(cat out)"
		# Without the name of the file.
		grep -avE '^trace ' out >"out.$file"
		cmp "out.t.sbt" "out.$file" || { diff -a "out.t.sbt" "out.$file"; fail "$arguments $file"; }
	done
	echo "$arguments: the same"
done
