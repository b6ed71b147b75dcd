#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Processes to kill when a script ends, however it ends: pids with start times, because a pid may
# belong to another process by then.

declare -A remembered=()
remember() { # pid...
	local pid
	for pid in "$@"; do
		remembered[$pid]=$(start_time "$pid")
	done
}

start_time() { # pid
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
	# shellcheck disable=SC2086
	set -- ${stat##*) }
	echo "${20}"
}

kill_remembered() {
	local pid
	for pid in "${!remembered[@]}"; do
		[ -n "${remembered[$pid]}" ] || continue
		[ "$(start_time "$pid")" = "${remembered[$pid]}" ] || continue
		kill -CONT "$pid" 2>/dev/null || true
		kill -KILL "$pid" 2>/dev/null || true
	done
}
