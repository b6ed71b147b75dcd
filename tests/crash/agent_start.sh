#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# How the agent is loaded and starts a recorder: the program does not notice. The agent is off where
# it must be.
set -euo pipefail
. "$TS_SOURCE/tests/lib/agent.sh"

# A recorder that only prints how it was started.
cat >recorder <<'END'
#!/bin/sh
open=$(ls -l /proc/$$/fd | sed -n 's/.* \([0-9]*\) -> \(.*\)/fd \1 \2/p')
{
	echo "arguments $*"
	echo "directory $(pwd)"
	echo "session $(ps -o sid= -p $$ | tr -d ' ') pid $$ parent $PPID"
	echo "$open"
	# Read by the shell itself: while it waits for a child it has signals blocked.
	while read -r key value; do case $key in SigBlk: | SigIgn:) echo "$key $value" ;; esac; done </proc/self/status
	env | grep -E '^(LD_PRELOAD|TRACESMITH_(OUT|AGENT|LIVE)|FERRUM_TRACE_OUT)=' || true
} >"$TEST_SAID.new" 2>&1
mv "$TEST_SAID.new" "$TEST_SAID"
END
chmod +x recorder
export TRACESMITH_RECORDER=$PWD/recorder TEST_SAID=$PWD/said

mode=out
rm -rf "$TRACESMITH_LIVE_DIR" said
# Signals blocked or ignored, a closed standard input, open descriptors: the recorder inherits none
# of it.
(
	trap '' HUP PIPE
	exec 7</dev/null 0<&-
	env TRACESMITH_OUT="t-%p-%%.sbt" LD_PRELOAD="$agent" "$targets/agent_odd" unseen
) >counts || fail "recorder: exit code $?"
read_areas "$TRACESMITH_LIVE_DIR" --counts counts
pid=$(cut -d' ' -f1 counts)
for ((i = 0; i < 4000; i++)); do [ ! -e said ] || break; sleep 0.05; done
area=$(ls "$TRACESMITH_LIVE_DIR")
grep -qFx "arguments record --detached --area $area -o $PWD/t-$pid-%.sbt --make-folders" said || fail "recorder: $(cat said)"
grep -qFx "directory /" said || fail "recorder: $(cat said)"
! grep -qE 'LD_PRELOAD|TRACESMITH|FERRUM' <(grep -v ^arguments said) || fail "environment: $(cat said)"
[ "$(grep '^fd' said | grep -vE '/recorder$|pipe:')" = $'fd 0 /dev/null\nfd 1 /dev/null\nfd 2 /dev/null' ] || fail "descriptors: $(cat said)"
# (32 and 33 belong to the C library, which lets nobody change them: a caller may have ignored them
# by other means.)
! sed 's/0000000180000000$/0000000000000000/' said | grep -qE 'Sig(Blk|Ign):.*[1-9a-f]' || fail "signals: $(cat said)"
! grep -qE "session $(ps -o sid= -p $$ | tr -d ' ') |parent $pid$" said || fail "it is not detached: $(cat said)"
holds "one.output == '$PWD/t-$pid-%.sbt' and one.mode == 1 and one.session & 1 and one.flush_request == 1"

# No recorder: a hint, flight mode, and the program continues.
export TRACESMITH_RECORDER=/nonexistent
rm -rf "$TRACESMITH_LIVE_DIR"
FERRUM_TRACE_OUT=$PWD/t.sbt "$targets/agent_odd" plain >counts 2>hint || fail "no recorder: exit code $?"
[ "$(grep -c "no recorder found for '$PWD/t.sbt'.*tracesmith recover" hint)" -eq 1 ] || fail "no recorder: $(cat hint)"
read_areas "$TRACESMITH_LIVE_DIR" --counts counts
holds 'one.mode == 0'
# If standard error has no reader or is closed, the program survives.
for errors in '2> >(exec 0<\&-)' '2>\&-' '2>/dev/full'; do
	rm -rf "$TRACESMITH_LIVE_DIR"
	eval "sleep 0.05; TRACESMITH_OUT=t.sbt '$targets/agent_odd' plain >counts ${errors//\\/}" || fail "$errors: exit code $?"
	read_areas "$TRACESMITH_LIVE_DIR" --counts counts
done
[ ! -e t.sbt ] || fail "there is a trace without a recorder"

# Preloaded into unrelated programs: the same output, the same exit. (sort writes its line at once;
# output of ls and cat may interleave. Python warns of fork() while a joined thread still ends.)
export TRACESMITH_AGENT=session=5
printf 'set -u; x=$(echo a | tr a b); (exit 3) || echo "$x $?"; for i in 1 2 3; do ls /nonexistent 2>&1 | sort & done; wait; exit 4\n' >script.sh
printf 'import os, subprocess, threading\nt = threading.Thread(target=print, args=("thread",)); t.start(); t.join()\npid = os.fork()\nif pid == 0: os._exit(7)\nprint(os.waitpid(pid, 0)[1], subprocess.run(["sh", "-c", "exit 5"]).returncode, sorted(os.listdir("/proc/self/fd"))[:3])\n' >script.py
for command in "ls -la /usr" "bash script.sh" "python3 -W ignore script.py" "sort script.sh" "/bin/false"; do
	rm -rf "$TRACESMITH_LIVE_DIR"
	code=0 preloaded=0
	$command >plain 2>&1 || code=$?
	LD_PRELOAD=$agent $command >loaded 2>&1 || preloaded=$?
	[ $code -eq $preloaded ] || fail "$command: exit code $code, preloaded $preloaded: $(cat loaded)"
	diff plain loaded >&2 || fail "$command: says something else when preloaded"
	holds 'areas and all(area.total == 0 for area in areas)'
done

# Set-user-ID programs: off.
if is_root && command -v setpriv >/dev/null; then
	mkdir "$live/setuid" && chmod 755 "$live/setuid" "$live"
	cp "$targets/agent_odd" "$agent" "$live/setuid"
	chmod 4755 "$live/setuid/agent_odd"
	mkdir -m 777 "$live/open"
	for setting in TRACESMITH_LIVE=1 TRACESMITH_AGENT=session=5 TRACESMITH_OUT=t.sbt; do
		code=0
		(cd / && env -u TRACESMITH_AGENT "$setting" TRACESMITH_LIVE_DIR="$live/open/areas" setpriv --reuid 65534 --regid 65534 \
			--clear-groups "$live/setuid/agent_odd" plain) >counts 2>errors || code=$?
		if [ $code -eq 127 ] || [ $code -eq 126 ]; then
			echo "setuid: it cannot be run here: $(head -n 1 errors)"
			break
		fi
		[ $code -eq 0 ] || fail "setuid: exit code $code: $(cat errors)"
		[ ! -e "$live/open/areas" ] || fail "setuid: $setting: there is an area"
	done
fi
