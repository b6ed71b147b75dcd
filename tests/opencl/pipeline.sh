#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The pipeline example on one device and on two: recorded without changing its result, and replayed without difference: whole,
# each stream, every part of it, and windows in the middle of a run.
# All pairs of --from and --to with TS_LONG=1; else all that begin at the begin, end at the end, or hold one command, and some others.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

# What the table of commands says: sequence numbers and hashes of a replay that was written with -o.
sequences() { rows_of "$1" command | python3 -c '
import json, sys
rows = [json.loads(line) for line in sys.stdin]
print(*sorted({row["sequence"] for row in rows if row["kind"] not in ("open", "close", "check") and row.get("sequence")}))'; }

# Every hash of a part is that of the whole replay: behind the same command, of the same memory.
same_hashes() { # part, whole
	python3 - "$TRACESMITH" "$1" "$2" <<'PY' || fail "'$1' has other hashes than '$2'"
import json, subprocess, sys
def hashes(trace):
    lines = subprocess.run([sys.argv[1], "view", trace, "--json", "--table", "command"], check=True,
                           capture_output=True, text=True).stdout.splitlines()
    found = {}
    for row in map(json.loads, lines):
        if row["kind"] != "check":
            continue
        details = row["details"] if isinstance(row["details"], dict) else json.loads(row["details"])
        if details["why"] != "final":
            found[(row["sequence"], row.get("object"), row.get("offset"), row.get("bytes"), details["why"])] = details["hash"]
    return found
part, whole = hashes(sys.argv[2]), hashes(sys.argv[3])
assert part, "no hash at all"
for key, value in part.items():
    assert whole.get(key) == value, f"{key}: {value}, not {whole.get(key)}"
PY
}

cut() { # from, to
	replays "$devices devices, commands $1 to $2" checked.sbt --check each --from "$1" --to "$2" -o part.sbt
	same_hashes part.sbt whole.sbt
	cuts=$((cuts + 1))
}

cut_everywhere() {
	local numbers first last from to
	read -ra numbers < <(sequences checked.sbt)
	[ ${#numbers[@]} -gt 20 ] || fail "only ${#numbers[@]} commands are recorded"
	first=${numbers[0]} last=${numbers[-1]}
	for from in "${numbers[@]}"; do
		for to in "${numbers[@]}"; do
			[ "$from" -le "$to" ] || continue
			if [ -n "${TS_LONG:-}" ] || [ "$from" -eq "$first" ] || [ "$to" -eq "$last" ] || [ "$from" -eq "$to" ] ||
				[ $(((from * 7 + to) % 29)) -eq 0 ]; then
				cut "$from" $((to + 1))
			fi
		done
	done
}

streams_of() { rows_of "$1" command | python3 -c '
import json, sys
print(*sorted({row["queue"] for row in map(json.loads, sys.stdin) if row.get("queue")}))'; }

cuts=0
for devices in 1 2; do
	[ $devices -eq 1 ] || export POCL_DEVICES="pthread pthread"
	"$pipeline" --steps 6 --work 20 --size 4096 >alone
	if ! grep -q "on $devices device" alone; then
		echo "left out: $devices devices (this driver shows another number)"
		continue
	fi

	record whole-run.sbt --replayable -- "$pipeline" --steps 6 --work 20 --size 4096
	cmp alone printed || fail "recorded, it gives another result"
	# A step: map, unmap, write, five in the queue of kernels, read; before: a fill a device and one; behind: map, unmap.
	[ "$(count_of whole-run.sbt gpu_op)" -eq $((6 * 9 + devices + 1 + 2)) ] || fail "$(count_of whole-run.sbt gpu_op) commands are recorded"
	replays "$devices devices, whole" whole-run.sbt --check each --repeat 3
	replays "$devices devices, final" whole-run.sbt
	replays "$devices devices, original pace" whole-run.sbt --pace original
	for stream in $(streams_of whole-run.sbt); do
		replays "$devices devices, stream $stream" whole-run.sbt --check each --stream "$stream"
	done
	for kernel in prepare blend smooth total; do
		replays "$devices devices, kernel $kernel" whole-run.sbt --check each --kernel $kernel --repeat 2
	done

	# Small, and with a hash behind every command.
	record checked.sbt --replayable=checked -- "$pipeline" --steps 2 --work 4 --size 1024
	replays "$devices devices, checked" checked.sbt --check each -o whole.sbt
	expect 0 verify -q whole.sbt
	cut_everywhere

	# Windows in the middle of a run: what is there is what ran in them.
	record window.sbt --replayable --window steps:2-3 -- "$pipeline" --steps 6 --work 20 --size 4096
	cmp alone printed || fail "recorded in a window, it gives another result"
	replays "$devices devices, steps 2 to 3" window.sbt --check each --repeat 2
	kernels=$(rows_of window.sbt command | grep -c '"launch"')
	[ "$kernels" -ge 8 ] && [ "$kernels" -le 12 ] || fail "$kernels launches in a window of 2 steps"

	# Opened and closed from outside, twice.
	rm -f flag
	"$TRACESMITH" record -q -o flag.sbt --replayable --window flag:flag -- "$pipeline" --steps 400 --work 200 --size 4096 >printed 2>log &
	recorder=$!
	for _ in 1 2; do
		sleep 0.3
		touch flag
		sleep 0.2
		rm flag
	done
	wait $recorder || fail "record with a flag: exit code $?: $(cat log)"
	windows=$(rows_of flag.sbt command | grep -c '"open"') || true
	[ "$windows" -ge 1 ] || fail "a flag opened no window"
	replays "$devices devices, a flag" flag.sbt --check each
done
echo "$checks replays without difference, $cuts of them parts"
