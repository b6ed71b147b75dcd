# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# For tests of stacks: live.sh, and Python programs that stand still at known lines. Frames of
# Python's own library are ignored: they differ between versions.
. "$TS_SOURCE/tests/cli/live.sh"
. "$TS_SOURCE/tests/lib/processes.sh"

export PYTHONDONTWRITEBYTECODE=1
unset PYTHONSTARTUP RANK LOCAL_RANK WORLD_SIZE

# Only root can always read processes that are not its children.
scope=$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)
[ "$scope" = 0 ] || [ "$(id -u)" = 0 ] || { echo "skip: Yama restricts who may read processes"; exit 77; }

trap kill_remembered EXIT

# start NAME FILE [argument...]: starts a program that creates the directory NAME when it is idle;
# sets $program.
start() {
	local name=$1
	shift
	READY=$name python3 "$PWD/$1" "${@:2}" </dev/null &
	program=$!
	remember $program
	await [ -d "$name" ]
}

# Do all threads of these processes wait? They report shortly before they do.
all_wait() { ! "$TRACESMITH" stack --json "$@" | grep -q '"running":true'; }

# Removes what differs between runs: ids of processes and threads, paths, versions, Python's own
# library.
still() {
	sed -E -e "s#$(pwd -P)#HERE#g" -e 's/^process [0-9]+: [^ ]*python3[0-9.]*/process PID: python3/' -e 's/thread [0-9]+/thread TID/' -e 's/Python 3[0-9.a-z+]*/Python V/' \
		-e '/\/(threading|runpy|selectors|subprocess)\.py:/d' -e '/<frozen /d'
}
