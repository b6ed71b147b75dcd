#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Processes without an agent whose metrics are recorded; and processes of other users.
. "$TS_SOURCE/tests/cli/live.sh"

trap 'jobs -pr | xargs -r kill 2>/dev/null || true' EXIT
sleep 600 &
program=$!
hint() { "$TRACESMITH" config $program sample_rate=1 2>&1 | grep -o '; process [0-9]* can record.*' | sed -E 's/[0-9]{2,}/RECORDER/g' || true; }
samples() { "$TRACESMITH" ps --all | grep -q "^ *$1 "; }

echo "== no recorder"
hint
echo "== a recorder"
"$TRACESMITH" record -q -p $program --backends host -o a.sbt &
first=$!
await samples $first
hint
quietly config $first sample_rate=0.5
"$TRACESMITH" config $first --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["sample_rate"])'
echo "== ambiguous"
"$TRACESMITH" record -q -p $program --backends host -o b.sbt &
second=$!
await samples $second
hint
kill -INT $first $second
wait $first $second || true

echo "== another user's"
if [ "$(id -u)" -ne 0 ] || ! command -v setpriv >/dev/null; then
	echo "skip: only root can become another user"
	exit 77
fi
public=$(mktemp -d /tmp/tracesmith-config.XXXXXX)
trap 'rm -rf "$public"; jobs -pr | xargs -r kill 2>/dev/null || true' EXIT
chmod 755 "$public"
cp "$TRACESMITH" "$public"
mkdir -m 700 "$public/live"
chown 65534:65534 "$public/live"
as_nobody() {
	local code=0
	setpriv --reuid 65534 --regid 65534 --clear-groups "$public/tracesmith" "$@" >out.txt 2>&1 || code=$?
	sed "s/$program/PID/" out.txt
	echo "exit $code"
}
# With an environment that names a folder of user nobody, one of root, and none.
TRACESMITH_LIVE_DIR=$public/live as_nobody config $program
as_nobody config $program
TRACESMITH_LIVE_DIR='' as_nobody config $program
# As root, with an environment that names root's own.
setpriv --reuid 65534 --regid 65534 --clear-groups sleep 600 &
program=$!
is_sleep() { [ "$(cat /proc/$program/comm)" = sleep ]; }
await is_sleep
t config $program | sed -e "s/$program/PID/" -e "s#'/.*'#HERE#"
