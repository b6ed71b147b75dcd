#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A full disk: the message names the file and what to do, and the partial output is readable.
set -euo pipefail
. "$TS_SOURCE/tests/lib/crash.sh"

mkdir disk
mount -t tmpfs -o size=1m tmpfs disk 2>/dev/null || { echo "skip: this user may not mount a small file system"; exit 77; }
trap 'umount -l disk' EXIT

events=1000000
is_sanitized && events=300000
"$targets/make_kineto" $events >made.json

expect 3 import -q made.json -o disk/t.sbt
says disk/t.sbt "No space left on device" "free some space"
[ "$(info_of disk/t.sbt 'info["events"] > 0 and info["damaged_bytes"] == 0')" = True ] ||
	fail "what was stored before the disk was full cannot be read"
expect 1 verify -q disk/t.sbt
expect 0 view disk/t.sbt --limit 10
expect 0 recover -q disk/t.sbt -o good.sbt
expect 0 verify -q good.sbt
expect 0 import -q made.json -o whole.sbt
rm disk/t.sbt

# Space for half of it.
expect 3 recover -q whole.sbt -o disk/r.sbt
says disk/r.sbt "No space left on device"
[ ! -e disk/r.sbt ] || expect 0 info disk/r.sbt
rm -f disk/r.sbt

expect 3 export whole.sbt -f chrome -o disk/t.json
says disk/t.json "No space left on device"
rm -f disk/t.json

# Standard output on a full disk.
code=0
"$TRACESMITH" view whole.sbt --json >/dev/full 2>stderr || code=$?
[ $code -eq 3 ] || fail "view to a full disk: exit code $code, expected 3"
says "No space left on device"
code=0
"$TRACESMITH" info whole.sbt >/dev/full 2>stderr || code=$?
[ $code -eq 3 ] || fail "info to a full disk: exit code $code, expected 3"
