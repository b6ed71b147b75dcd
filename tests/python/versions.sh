#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Correct stacks on every CPython installed: runs oracle.py, reads its stacks as fast as possible,
# and checks them with check.py.
#
# One interpreter of each version for a few seconds, or longer if that gives too few stacks;
# TS_PYTHON_FULL=1: all of them, until 200,000 moving stacks were seen, half of them with all parts
# of the oracle together, half with the part that calls most, alone. TS_PYTHON_ONLY: a regular
# expression of names. PYTHON_VERSIONS: where scripts/python-versions put them. TS_PYTHON_TABLE: a
# file that gets the table.
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"

sweeps=$TS_BUILD/tests/targets/python_sweeps
[ -x "$sweeps" ] || { echo "skip: tests/targets/python_sweeps was not built"; exit 77; }
full=${TS_PYTHON_FULL:-}
# Sweeps follow closely to see much in a short time; a pause between them lets the target progress.
strict='' seconds=2 least=500 interval_us=60 hold=0.08
if [ -n "$full" ]; then
	strict=--strict seconds=600 least=100000
fi
! is_sanitized || least=$((least / 10))
known="3.8 3.9 3.10 3.11 3.12 3.13 3.14 3.15"

# The folder of its files as the interpreter sees it, and as seen from outside.
folder_for() { # command...
	inside=$work/oracle outside=$work/oracle
	if [ "$1" = chroot ]; then
		inside=$(chroot "$2" mktemp -d /tmp/tracesmith-oracle.XXXXXX) outside=$2$inside
	fi
	mkdir -p "$outside"
	cp "$TS_SOURCE/tests/python/oracle.py" "$outside"
}

# One run of the oracle; a row of the table.
check_stacks() { # name, parts, command...
	local name=$1 parts=$2 code=0
	shift 2
	folder_for "$@"
	start_python "$@" "$inside/oracle.py" --log "$inside/log.json" --seconds 1000 --hold "$hold" ${parts:+--parts "$parts"}
	if ! "$sweeps" "$pid" --stacks --seconds "$seconds" ${full:+--moved $((least + 100))} --interval-us "$interval_us" >"$work/stacks" 2>"$work/sweeps.err"; then
		echo "$name: $(cat "$work/sweeps.err")"
		code=1
	fi
	touch "$outside/log.json.stop"
	wait "$pid" || fail "$name: the oracle ended with $?: $(tail -n 3 "$work/said.err")"
	# shellcheck disable=SC2086 # an option or none
	[ $code -ne 0 ] || python3 "$TS_SOURCE/tests/python/check.py" --log "$outside/log.json" --name "$name${parts:+ $parts}" \
		--least "$least" $strict --row "$work/table" "$work/stacks" >"$work/checked" 2>&1 || code=1
	[ $code -ne 0 ] || cat "$work/checked"
	rm -rf "$outside"
	return $code
}

# A few seconds show little on a busy machine: then it runs longer. Errors fail the first time.
check_long_enough() { # name, parts, command...
	local first=$seconds seconds
	for seconds in "$first" 30 90; do
		: >"$work/checked"
		! check_stacks "$@" || return 0
		grep -q 'only [0-9]* stacks\|hardly any stack' "$work/checked" || break
		! grep -q 'impossible stacks of\|wrong line of\|are wrong' "$work/checked" || break
	done
	cat "$work/checked"
	return 1
}

# Interpreters to run: the first of each version, or all.
"$TS_SOURCE/scripts/python-versions" --into "${PYTHON_VERSIONS:-$TS_SOURCE/build/python-versions}" --list >"$work/list" 2>/dev/null ||
	echo "system-python $("$python" -c 'import platform; print(platform.python_version())') release $python" >"$work/list"
python3 "$TS_SOURCE/tests/python/check.py" --headline | tee "$work/table"
failed=() seen=' '
while read -r name version _ command; do
	[[ $name =~ ${TS_PYTHON_ONLY:-.} ]] || continue
	minor=${version%.*}
	case $version in *[!0-9.]*) minor=$(echo "$version" | cut -d. -f1,2) ;; esac
	if [ -z "$full" ]; then
		case $seen in *" $minor "*) continue ;; esac
	fi
	seen="$seen$minor "
	# shellcheck disable=SC2086 # a command and its arguments
	check_long_enough "$name" '' $command </dev/null || failed+=("$name")
	# shellcheck disable=SC2086
	[ -z "$full" ] || check_stacks "$name" storm $command </dev/null || failed+=("$name storm")
done <"$work/list"

for version in $known; do
	case $seen in *" $version "*) ;; *) echo "$version: not run: no interpreter" ;; esac
done
[ -z "${TS_PYTHON_TABLE:-}" ] || cp "$work/table" "$TS_PYTHON_TABLE"
[ ${#failed[@]} -eq 0 ] || fail "not right on: ${failed[*]}"
