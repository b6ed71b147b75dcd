#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Processes and threads, created and ended in every way: each event is stored or counted, in an area
# of the process that emitted it.
set -euo pipefail
. "$TS_SOURCE/tests/lib/agent.sh"

check() { # program, case, what else must hold
	in_mode $each
	and=${3:-} all_there "$1" "$2"
}
for each in flight stream small; do
	check agent_fork tree 'sorted(area.total for area in areas) == [3, 9, 16]'
	[ $each = small ] || check agent_fork late
	[ $each = small ] || check agent_fork clone
	[ $each = small ] || check agent_fork vfork
	# exec keeps pid and start time: another area of the same process.
	[ $each = small ] || check agent_fork exec 'len(areas) == 2 and len({area.pid for area in areas}) == 1 and len({area.image for area in areas}) == 2'
	# (In flight mode eight areas of dead processes are kept.)
	[ $each = flight ] || check agent_fork busy 'len(areas) == 61'
	export TRACESMITH_RECORDER=/nonexistent
	check agent_fork hand 'sorted(area.total for area in areas) == [2, 3, 4, 7]' 2>hints
	[ "$(grep -c 'no recorder found' hints)" -eq 2 ] || fail "hints: $(cat hints)"
	check agent_threads early
	# Ten thousand threads share a few rings.
	also='one.fits and one.rings < 100'
	[ $each = flight ] || also+=' and one.overwritten == 0'
	[ $each != stream ] || also+=' and one.stored == 100000 and len(one.thread_ids) == 10000'
	check agent_threads short "$also"
	check agent_threads many
	check agent_threads ends 'one.stored == 356 and sum(ring["state"] == 1 for ring in one.rings_read) == 1 and len(one.thread_ids) == 51'
	check agent_threads cancel
	check agent_threads storm 'one.lost_nested < one.total // 1000'
	is_sanitized || check agent_threads stack
	# An emit that a handler jumps out of may be stored or not; later ones are stored or
	# counted.
	in_mode $each
	"$targets/agent_threads" jumps >counts || fail "jumps: exit code $?"
	holds 'one.total >= 1000'
done

# The default settings: 2,000 threads at once lose nothing, and nobody drains their rings.
in_mode stream
export TRACESMITH_AGENT=session=5
and='one.lost == 0 and one.stored == 400000 and len(one.thread_ids) == 2000' all_there agent_threads crowd
