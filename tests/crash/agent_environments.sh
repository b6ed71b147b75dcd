#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Environments of an observed program: directories of other users, limits of every kind, full
# memory, no /proc, namespaces, daemons. Events are stored or counted, or the agent is off; the
# program is never harmed.
set -euo pipefail
. "$TS_SOURCE/tests/lib/agent.sh"

for each in flight stream; do
	in_mode $each
	all_there agent_odd unseen
	in_mode $each
	all_there agent_odd environment
	# Daemons.
	in_mode $each
	daemon=$live/daemon # on the file system of the area, so that they could be confused
	rm -rf "$daemon" && mkdir "$daemon"
	"$targets/agent_odd" daemon "$daemon" >counts
	for ((i = 0; i < 4000; i++)); do [ ! -e "$daemon/counts" ] || break; sleep 0.05; done
	cat "$daemon/counts" >>counts || fail "the daemon has ended: $mode"
	read_areas "$TRACESMITH_LIVE_DIR" --counts counts || fail "daemon: $mode"
	[ ! -s "$daemon/data" ] || fail "something was written into the daemon's file: $mode"
done

# Limits set after the area was created, or before.
for limit in "file_limit 1000000" "descriptor_limit 3" "memory_limit 100000" sandbox; do
	is_sanitized && [ "${limit% *}" = memory_limit ] && continue
	in_mode flight
	# shellcheck disable=SC2086 # two words
	is_off agent_odd $limit
	in_mode stream
	# shellcheck disable=SC2086
	all_there agent_odd $limit
done
in_mode flight
all_there agent_odd file_limit 2200000
holds 'one.rings == 1'
in_mode flight
all_there agent_odd descriptor_limit 64

# Live directories that others can write to.
refused() { # what
	local code=0
	TRACESMITH_LIVE=1 "$targets/agent_odd" plain >counts || code=$?
	[ $code -eq 0 ] || fail "$1: exit code $code"
	[ -z "$(find -L "$live/dir" -type f 2>/dev/null)" ] || fail "$1: there is an area"
}
mode=flight
export TRACESMITH_LIVE_DIR=$live/dir
mkdir -m 777 "$live/dir" && refused "a directory for all"
chmod 750 "$live/dir" && refused "a directory for the group"
chmod 700 "$live/dir" && mv "$live/dir" "$live/real" && ln -s real "$live/dir" && refused "a symbolic link"
rm "$live/dir" && touch "$live/dir" && TRACESMITH_LIVE=1 "$targets/agent_odd" plain >counts
rm "$live/dir" && TRACESMITH_LIVE_DIR=$live/no/such refused "a missing path"
TRACESMITH_LIVE_DIR=$(printf '/%0300d' 1 2 3 4 5) refused "a long path"
export TRACESMITH_LIVE_DIR=$live/areas

# A start removes unused areas of dead processes: the newest two that exited stay, the newest eight
# that were killed, and those of a recording. (The last one has not started another since.)
in_mode stream
"$targets/agent_odd" plain >counts
unset TRACESMITH_AGENT
for ((i = 0; i < 20; i++)); do TRACESMITH_LIVE=1 "$targets/agent_odd" plain >counts; done
holds 'len(areas) == 4 and sum(area.session == 5 for area in areas) == 1'
for ((i = 0; i < 12; i++)); do (TRACESMITH_LIVE=1 exec "$targets/agent_odd" killed) >counts 2>&1 || true; done
holds 'sum(area.target_state == 1 for area in areas) == 9 and sum(area.target_state == 2 for area in areas) == 3'
# And not more than 32 MiB of them.
TRACESMITH_LIVE=1 "$targets/agent_threads" crowd >counts
TRACESMITH_LIVE=1 "$targets/agent_odd" plain >counts
holds 'sum(area.file_bytes for area in areas) < 32 << 20 and sum(area.target_state == 1 for area in areas) == 8'
# A spool counts, and goes with its area.
area=$(find "$TRACESMITH_LIVE_DIR" -type f -printf '%T@ %p\n' | sort -rn | sed -n '5s/.* //p')
fallocate -l 33m "$area.spool"
TRACESMITH_LIVE=1 "$targets/agent_odd" plain >counts
if [ -e "$area" ] || [ -e "$area.spool" ]; then fail "33 MiB of a dead process stay"; fi
holds 'sum(area.target_state == 1 for area in areas) == 7'

is_root || exit 0
mkdir "$live/dir"
chown 65534 "$live/dir" && TRACESMITH_LIVE_DIR=$live/dir refused "a directory of another user"
rm -rf "$live/dir"
for each in flight stream; do
	in_mode $each
	mkdir -p empty
	all_there agent_odd chroot empty
done

# Mount and pid namespaces: little shared memory, which fills up; none; no /proc; pid 1.
unshare -mpf true 2>/dev/null || { echo "no namespaces here: the rest is left out"; exit 0; }
inside() { # shell command
	unshare -m bash -euc ". \"\$TS_SOURCE/tests/lib/agent.sh\"; in_mode $each; [ $each = flight ] || export TRACESMITH_AGENT=session=5; $1" || fail "$1: $each"
}
for each in flight stream; do
	in_mode $each
	for size in 1m 64m; do
		inside "mount -t tmpfs -o size=$size tmpfs /dev/shm; export TRACESMITH_LIVE_DIR=/dev/shm/tracesmith-0
			all_there agent_odd full /dev/shm/filler
			holds 'one.lost > 0 and one.budget <= 64 << 18'"
	done
	inside "mount -t tmpfs -o size=40k tmpfs /dev/shm; export TRACESMITH_LIVE_DIR=/dev/shm/tracesmith-0; is_off agent_odd full /dev/shm/filler"
	inside "mount -t tmpfs -o ro tmpfs /dev/shm; unset TRACESMITH_LIVE_DIR; '$targets/agent_odd' plain >counts"
	# (A sanitizer reads its settings there.)
	is_sanitized || inside "mount -t tmpfs tmpfs /proc; all_there agent_odd plain; holds 'one.start_time == 0'"
	in_mode $each
	unshare -mpf --mount-proc "$targets/agent_odd" plain >counts || fail "pid 1: $each"
	read_areas "$TRACESMITH_LIVE_DIR" --counts counts || fail "pid 1: $each"
	holds 'one.pid == 1'
done

# A process that looks dead may be alive in another pid namespace.
in_mode flight
for ((i = 0; i < 10; i++)); do unshare -mpf --mount-proc "$targets/agent_odd" plain >counts; done
"$targets/agent_odd" plain >counts
holds 'len(areas) == 11'
