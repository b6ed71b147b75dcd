#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A trace is code: one that belongs to another user is not run without --yes, not even through a
# link.
. "$TS_SOURCE/tests/cli/lib.sh"

[ "$(id -u)" = 0 ] || { echo "skip: only root can give a file away"; exit 77; }
"$TS_BUILD/tests/targets/make_stream" theirs.sbt gap
chown 54321 theirs.sbt
ln -s theirs.sbt link.sbt
t replay theirs.sbt
t replay link.sbt
# Now it is read, and found invalid.
t replay theirs.sbt --yes
# The emulator runs nothing.
kineto_json 0 >k.json
chown 54321 k.json
"$TRACESMITH" replay k.json --target emulator >/dev/null && echo "emulated"
