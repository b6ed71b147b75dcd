#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The summary as text. Sizes depend on the compressor and are removed.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
"$TRACESMITH" info t.sbt | sed -E -e '/^size/s/ .*//' -e 's/created .*/created/' \
	-e '/^events/s/\(.*/.../' -e '/^table/,/^$/s/^([a-z_]+ +[a-z0-9]+ +[a-z0-9]+) .*/\1/'
kineto_json 1 >u.json
quietly import t.json u.json -o two.sbt
"$TRACESMITH" info two.sbt | sed '/^table/,/^$/d' | grep -E '^(source|places|meta)'
# Several traces, one of which does not exist.
t info t.sbt missing.sbt two.sbt | grep -E '^(trace|exit|\$)'
