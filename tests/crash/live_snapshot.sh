#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What is recorded of a process can be read at any instant, while its recorder makes checkpoints,
# rotates, finishes or is killed, or without a recorder: every event that was emitted before is
# there exactly once, and the recording is not disturbed.
# TS_LONG=1 reads a hundred times.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

times=10
is_sanitized && times=4
[ -z "${TS_LONG:-}" ] || times=100
scan=$TS_BUILD/tests/targets/live_scan
mixed=7

# Reads what is recorded of a process N times; prints for each the counts of its threads before it,
# then what is there, as a line of JSON.
read_often() { # pid, times
	local i
	for ((i = 0; i < $2; i++)); do
		od -An -v -tu8 -w64 -j64 "$oracle" | awk '{ printf "%s ", $1 }'
		echo
		"$scan" $mixed "pid:$1" | tr -d '\n'
		echo
		nap_ms "$(random 60)"
	done
}

# Each thread of process 0 has one range of events, up to one that was emitted before at least. They
# begin with the first one, or with the first of a file.
verify() { # what, snapshots, [first file...]
	python3 - "$@" <<'END' || fail "$1: a snapshot is not what it should be"
import json, sys
what, snapshots, files = sys.argv[1], sys.argv[2], sys.argv[3:]
starts = {}
for file in files:
    for lane in json.load(open(file))["lanes"]:
        starts.setdefault(lane["t"], set()).add(lane["ranges"][0][0])
lines = open(snapshots).read().splitlines()
rows = grown = 0
last = {}
for before, text in zip(lines[::2], lines[1::2]):
    snapshot = json.loads(text)
    assert not snapshot["torn"] and not snapshot["damage"], snapshot
    lost = sum(row["count"] for row in snapshot["losses"] if row["what"] in ("event", "events"))
    strange = [row for row in snapshot["losses"] if not row["reason"].startswith("ring full")]
    assert not strange, strange
    lanes = {lane["t"]: lane for lane in snapshot["lanes"]}
    for thread, count in enumerate(map(int, before.split())):
        lane = lanes.get(thread)
        if not lane:
            assert files or not count, f"{what}: thread {thread} emitted {count}, nothing is there"
            continue
        assert not lane["doubles"] and not lane["disorder"], lane
        first, end = lane["ranges"][0][0], lane["highest"] + 1
        # A rotated file may begin in a span: it has the span, but not what came before its end.
        in_span = files and lane["range_count"] == 2 and lane["ranges"][0][1] - first == 1
        assert lane["range_count"] == 1 or in_span or lost, lane
        assert end >= count - lost, f"{what}: thread {thread} emitted {count}, {end} are there"
        assert first in starts.get(thread, {0}), f"{what}: thread {thread} begins with {first}"
        assert end >= last.get(thread, 0), f"{what}: thread {thread} had {last[thread]}, now {end}"
        grown += end > last.get(thread, 0)
        last[thread] = end
        rows += lane["stored"]
assert lines and rows and grown > 1, f"{what}: {len(lines)} lines, {rows} rows, grew {grown} times"
print(f"{len(lines) // 2} snapshots, {what}: {rows} rows")
END
}

# ---- the recorder makes a checkpoint every few milliseconds ----
"$TRACESMITH" record -q -o t.sbt --autosave 10ms -- "$emitter" --oracle "$oracle" --mode mixed --threads 3 --rate 8000 --seconds 600 >log 2>&1 &
recorder=$!
await_begin
pid=$(oracle_pid)
read_often "$pid" "$times" >snapshots
verify checkpoints snapshots
# The recorder's own pid is its recording.
"$scan" $mixed "pid:$recorder" >seen
grep -q '"p": 0, "t": 2' seen || fail "the recorder's recording has not all threads: $(cat seen)"
# The end comes while it is read.
for ((i = 0; ; i++)); do
	"$scan" $mixed "pid:$pid" >seen || break
	[ $i -gt 1 ] || continue
	kill -KILL "$pid" 2>/dev/null || true
done 2>late
grep -q "there is no process $pid" late || fail "read while it ended: $(cat late)"
reap $recorder
check "read while it was recorded" t.sbt
[ -z "$(ls "$TRACESMITH_LIVE_DIR")" ] || fail "left: $(ls "$TRACESMITH_LIVE_DIR")"

# ---- it rotates ----
fresh
"$TRACESMITH" record -q -o t.sbt --rotate 40ms -- "$emitter" --oracle "$oracle" --mode mixed --threads 2 --rate 8000 --seconds 600 >log 2>&1 &
recorder=$!
await_begin
pid=$(oracle_pid)
read_often "$pid" "$times" >snapshots
kill -KILL "$pid"
reap $recorder
files=()
for trace in t*.sbt; do
	"$scan" $mixed "$trace" >"$trace.scan"
	files+=("$trace.scan")
done
[ ${#files[@]} -gt 2 ] || fail "it did not rotate: $(ls)"
verify rotations snapshots "${files[@]}"
check "rotated while it was read" t*.sbt

# ---- the recorder is killed, then the program ----
fresh
TRACESMITH_OUT=$PWD/t.sbt "$emitter" --oracle "$oracle" --mode mixed --threads 2 --rate 5000 --seconds 600 >log 2>&1 &
await_begin
await_recorder
pid=$(oracle_pid)
kill_hard "$recorder"
await_gone "$recorder"
cksum t.sbt t.sbt.journal >before
read_often "$pid" 4 >snapshots
verify "killed recorder" snapshots
kill_hard "$pid"
await_gone "$pid"
"$scan" $mixed "pid:$pid" >seen
cksum t.sbt t.sbt.journal >after
cmp before after || fail "a snapshot changed the recording"
expect 0 recover -q t.sbt -o r.sbt
"$scan" $mixed r.sbt >recovered
cmp seen recovered || fail "a snapshot of dead ones is not what recover finds: $(diff seen recovered)"
rm -f "$TRACESMITH_LIVE_DIR"/*

# ---- no recorder: the newest events, while they are overwritten ----
fresh
TRACESMITH_LIVE=1 TRACESMITH_BUDGET=256K "$emitter" --oracle "$oracle" --mode mixed --threads 2 --rate 100000 --seconds 600 >log 2>&1 &
await_begin
pid=$(oracle_pid)
wait_until 120 has_emitted 40000 || fail "the program is too slow"
for ((i = 0; i < times; i++)); do
	before=$(oracle_returned)
	"$scan" $mixed "pid:$pid" >seen
	python3 - "$before" seen <<'END' || fail "flight mode: $(cat seen)"
import json, sys
before, snapshot = int(sys.argv[1]), json.load(open(sys.argv[2]))
lanes = snapshot["lanes"]
lane = {lane["t"]: lane for lane in lanes}[0]
lost = sum(row["count"] for row in snapshot["losses"] if row["what"] in ("event", "events"))
assert not snapshot["torn"] and not snapshot["damage"], snapshot
assert not any(lane["doubles"] or lane["disorder"] for lane in lanes), lanes
# The newest ones, and what is counted; a ring that a thread has left keeps what is in it.
first, end = lane["ranges"][-1]
assert end >= before and end - first > 100, (before, lane)
assert sum(lane["highest"] + 1 - lane["stored"] for lane in lanes) == lost, (lanes, lost)
END
done
kill_hard "$pid"
await_gone "$pid"
"$scan" $mixed "pid:$pid" >seen
expect 0 recover -q "$pid" -o r.sbt
"$scan" $mixed r.sbt >recovered
cmp seen recovered || fail "a snapshot of a dead process is not what recover finds: $(diff seen recovered)"
rm -f "$TRACESMITH_LIVE_DIR"/*

# ---- nothing to read ----
expect 3 view -p "$pid"
says "process $pid" "tracesmith ps"
expect 3 info -p $$
says "TRACESMITH_LIVE=1" "tracesmith record"
summary
