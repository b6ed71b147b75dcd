#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Traces that are refused, and why: everything is validated before anything runs, so no device is
# needed.
. "$TS_SOURCE/tests/cli/lib.sh"

for kind in bad-hash no-blob beyond no-memory gap native failed empty nothing processes; do
	"$TS_BUILD/tests/targets/make_stream" $kind.sbt $kind
	t replay $kind.sbt
done
# A changed byte in a chunk of blobs (26), and of strings (1).
for table in 26 1; do
	"$TS_BUILD/tests/targets/make_stream" changed.sbt plain
	damage_chunk changed.sbt $table
	t replay changed.sbt | sed -E 's/chunk [0-9]+ at byte [0-9]+/chunk N at byte N/'
done
# A command that cannot be replayed does no harm in a part that does not need it: at most the device
# is missing.
t replay native.sbt --kernel 'nothing*'
