#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Several users in one recording of root's (docs/live.md, section 1.1): what a user's live directory
# says about another's process changes nothing, and programs that change their user are recorded.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

[ "$(id -u)" = 0 ] || { echo "skip: only root records programs of several users"; exit 77; }
command -v setpriv >/dev/null || { echo "skip: there is no setpriv"; exit 77; }

# What the other user needs, where he may read it.
chmod 755 "$live"
theirs=$live/theirs
mkdir -m 700 "$theirs"
chown 65534:65534 "$theirs"
as_nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups -- env "TRACESMITH_LIVE_DIR=$theirs")

# It outlives the recorder if the test fails.
trap '[ ! -e stranger ] || kill -KILL "$(cat stranger)" 2>/dev/null || true; clean_up' EXIT

# ---- areas that name the processes of others ----

cat >forge.py <<'PYTHON'
"""forge.py GOOD DIRECTORY KIND PID OTHER: stores an area in DIRECTORY, as its owner could, that is
like GOOD and names process PID. Prints its name."""
import os
import random
import struct
import sys
import time


def start_time(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return int(file.read().rsplit(")", 1)[1].split()[19])


good, directory, kind, pid, other = *sys.argv[1:4], int(sys.argv[4]), int(sys.argv[5])
with open(good, "rb") as file:
    area = bytearray(file.read(0x201000))
identity = struct.unpack_from("<Q", area, 56)[0] if kind == "copy" else random.getrandbits(63) | 1
struct.pack_into("<I", area, 40, pid)
struct.pack_into("<QQQ", area, 48, start_time(pid), identity, random.getrandbits(63))
if kind != "copy":
    struct.pack_into("<q", area, 104, time.monotonic_ns())
struct.pack_into("<I", area, 256, 0)  # without rings
if kind == "nowhere":
    struct.pack_into("<Q", area, 32, 0)
if kind == "measurements":
    struct.pack_into("<I", area, 184, 1)
recorder = (other, start_time(other)) if kind == "recorded" else (0, 0)
struct.pack_into("<QQ", area, 560, *recorder)
name = f"{pid}-{start_time(pid)}-{identity:016x}"
path = os.path.join(directory, name)
with open(path + ".new", "wb") as file:
    file.write(area)
os.chmod(path + ".new", 0o600)
os.chown(path + ".new", 65534, 65534)
os.rename(path + ".new", path)
print(name)
PYTHON

# A program of root's, and a process of the other user's.
export VICTIM="$emitter --oracle $oracle --threads 2 --mode mixed --rate 5000 --seconds 600"
"$TRACESMITH" record -o t.sbt -- sh -c '"$@" & echo $! >stranger.new; mv stranger.new stranger; exec $VICTIM' \
	sh "${as_nobody[@]}" sleep 600 >log 2>&1 &
recorder=$!
await_begin
victim=$(oracle_pid)
stranger=$(cat stranger)
good=$(ls "$TRACESMITH_LIVE_DIR/$victim"-*)
is_recorded_by() { # area, pid
	[ "$(od -An -tu8 -j560 -N8 "$1" 2>/dev/null | tr -d ' ')" = "$2" ]
}
wait_until 120 is_recorded_by "$good" $recorder || fail "the program is not recorded: $(cat log)"

forge() { forged=$(python3 forge.py "$good" "$theirs" "$@"); }
survives() {
	[ -e "$good" ] || fail "$1: an area of another user ended the recording of process $victim: $(cat log)"
}
is_noticed() { grep -qF "'$forged' is skipped: it names process" log || [ ! -e "$good" ]; }
refuses() { # kind, pid
	forge "$@" 0
	wait_until 120 is_noticed || fail "$1: the area is not refused: $(cat log)"
	survives "$1"
}
refuses image "$victim"
refuses nowhere "$victim"
refuses measurements $recorder
# A copy of the program's own area that is superseded, but only in the other directory.
forge copy "$stranger" 0
forge image "$stranger" 0
refuses image "$victim"
# A process that is recorded by nobody, as only its own user says otherwise.
forge recorded "$stranger" "$victim"
wait_until 120 is_recorded_by "$theirs/$forged" $recorder || fail "process $victim passes for a recorder: $(cat log)"
survives recorded
"$TRACESMITH" ps --json >processes
grep -q "\"pid\":$victim,.*\"recorder\":\"alive\",\"recorder_pid\":$recorder," processes || fail "ps: $(cat processes)"

reached=$(oracle_returned)
wait_until 120 has_emitted $((reached + 2000)) || fail "the program does not go on"
kill_hard "$victim" "$stranger"
await_gone $recorder
reap $recorder
[ $code -eq 137 ] || fail "exit code $code: $(cat log)"
check "a program beside forged areas" t.sbt --some-stored
grep -q 'nothing lost' log || fail "something is lost: $(cat log)"

# ---- programs that change their user ----

# From an image of root's to one of the other user's.
fresh
mkdir "$live/bin"
cp "$TRACESMITH" "$TS_BUILD"/libtracesmith-agent.so "$emitter" "$live/bin"
oracle=$theirs/oracle
"$live/bin/tracesmith" record -o t.sbt -- "${as_nobody[@]}" "$live/bin/live_oracle" --oracle "$oracle" --threads 2 \
	--mode mixed --rate 5000 --seconds 0.4 >log 2>&1 || fail "record: $(cat log)"
check "a program of another user" t.sbt --all-done --some-stored
grep -q 'nothing lost' log || fail "something is lost: $(cat log)"
for area in "$TRACESMITH_LIVE_DIR"/* "$theirs"/[0-9]*; do
	[ ! -e "$area" ] || fail "an area remains: $area"
done

# The recorder is killed, and root finds what the area of the other user holds. Both live directories
# are where they are by default, in a /dev/shm of our own.
fresh
chmod 755 . ..
mkdir -p bin theirs
chown 65534 theirs
cp "$TRACESMITH" "$TS_BUILD"/libtracesmith-agent.so "$emitter" bin
oracle=$PWD/theirs/oracle
cat >killed.sh <<'SHELL'
set -euo pipefail
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
unset TRACESMITH_LIVE_DIR
bin/tracesmith record -q -o t.sbt -- setpriv --reuid 65534 --regid 65534 --clear-groups -- \
	bin/live_oracle --oracle "$1" --rate 5000 --count 4000 >log 2>&1 &
# The recorder must know the area: others of that user could claim anything.
is_recorded() { [ "$(od -An -tu8 -j560 -N8 /dev/shm/tracesmith-65534/*[0-9a-f] 2>/dev/null | tr -d ' ')" = $! ]; }
until is_recorded; do
	kill -0 $!
	sleep 0.01
done
kill -KILL $!
wait $! || true
area=$(basename /dev/shm/tracesmith-65534/*)
while [ -e "/proc/${area%%-*}" ]; do sleep 0.05; done
bin/tracesmith recover -q "$area" -o area.sbt
bin/tracesmith recover -q t.sbt -o good.sbt
bin/tracesmith record -q --resume t.sbt
SHELL
if unshare -m mount -t tmpfs tmpfs "$live" 2>/dev/null; then
	unshare -m bash killed.sh "$oracle" 2>/dev/null || fail "killed.sh: $(cat log)"
	check "recovered with another user's area" good.sbt --all-done --some-stored
	check "resumed with another user's area" t.sbt --all-done --some-stored
else
	echo "note: no file system can be mounted here: the recorder is not killed"
fi

# Without an exec: its area is still that of root.
fresh
oracle=$live/oracle
"$TRACESMITH" record -o t.sbt -- "$emitter" --oracle "$oracle" --user 65534 --rate 5000 --count 2000 >log 2>&1 || fail "record: $(cat log)"
check "a program that drops its privileges" t.sbt --all-done --none-lost --some-stored
fresh
TRACESMITH_LIVE=1 "$emitter" --oracle "$oracle" --user 65534 --count 10 --linger 600 >log 2>&1 &
dropped=$!
await_done
expect 0 record -q -p $dropped -o t.sbt --duration 10ms
check "a program that has dropped them" t.sbt --some-stored
kill_hard $dropped
reap $dropped
summary
