#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A view of one table in a short time range reads a small part of the file, and of a few columns
# even less.
set -euo pipefail
. "$TS_SOURCE/tests/lib/crash.sh"

events=2000000
is_sanitized && events=500000
"$targets/make_kineto" $events | "$TRACESMITH" import -q - -o big.sbt

# Bytes that a view reads, in thousandths of the file.
read_part() { # argument...
	expect 0 view big.sbt "$@" --stats
	sed -n 's/.*bytes read: \([0-9]*\) of \([0-9]*\),.*/\1 \2/p' stderr | awk '{ print int($1 * 1000 / $2) }'
}
at_most() { # thousandths, argument...
	local most=$1 part
	shift
	part=$(read_part "$@")
	[ -n "$part" ] || fail "view $*: says nothing of bytes read: $(cat stderr)"
	echo "view $*: $part of 1000"
	[ "$part" -le "$most" ] || fail "view $*: read $part thousandths of the file, more than $most"
}

at_most 200 --table gpu_op --from 1s --to 1.001s
at_most 300 --from 1s --to 1.001s
at_most 300 --limit 10
at_most 150 --table gpu_op --columns start --from 1s --to 1.001s
at_most 60 --table process,thread,device,stream
