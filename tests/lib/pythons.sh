#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that run a Python program on each available CPython: those that
# scripts/python-versions lists (PYTHON_VERSIONS: their directory), and the commands in
# TRACESMITH_PYTHONS, separated by ':'. Uses the first of each version and build; TS_PYTHON_FULL=1:
# all.

# A file where the interpreter sees it: in its own root, removed by forget_file.
put_file() { # file, command...
	local file=$1
	shift
	inside=$file copied=
	if [ "$1" = chroot ]; then
		copied=$(mktemp -d "$2/tmp/tracesmith.XXXXXX")
		chmod 755 "$copied"
		cp "$file" "$copied"
		inside=/tmp/${copied##*/}/${file##*/}
	fi
}
forget_file() { [ -z "$copied" ] || rm -rf "$copied"; }

list_pythons() {
	local folder=${PYTHON_VERSIONS:-$TS_SOURCE/build/python-versions} commands=() command
	"$TS_SOURCE/scripts/python-versions" --into "$folder" --list 2>/dev/null || true
	IFS=: read -ra commands <<<"${TRACESMITH_PYTHONS:-}"
	for command in "${commands[@]}"; do
		echo "$command - named-$command $command"
	done
}

# Calls FUNCTION NAME COMMAND... FILE for each; false if one failed. 77 means skipped.
each_python() { # file, function
	local name version build command code failed=0 count=0 seen=' '
	while read -r name version build command; do
		if [ -z "${TS_PYTHON_FULL:-}" ] && [[ $seen == *" ${version%.*}:${build/#shared/release} "* ]]; then
			continue
		fi
		seen+="${version%.*}:${build/#shared/release} "
		# shellcheck disable=SC2086 # a command of some words
		put_file "$1" $command
		code=0
		# shellcheck disable=SC2086
		"$2" "$name" $command "$inside" </dev/null || code=$?
		forget_file
		[ $code -ne 77 ] || continue
		[ $code -eq 0 ] || { echo "$name: failed"; failed=1; }
		count=$((count + 1))
	done < <(list_pythons)
	[ $count -gt 0 ] || { echo "skip: no Python 3.8 or later"; exit 77; }
	return $failed
}
