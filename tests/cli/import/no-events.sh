#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Files that a format accepts, but in which nothing is an event: refused, and no trace is written.
. "$TS_SOURCE/tests/cli/lib.sh"

echo '[[1, 2, 3], [100, 200, 300]]' >timeline.json # torch.cuda's memory timeline
echo '{"some": "thing"}' >other.json
for file in timeline other; do
	t import $file.json -o none.sbt
	t analyze $file.json kernels
	[ ! -e none.sbt ] || fail "a trace without events is left"
done
