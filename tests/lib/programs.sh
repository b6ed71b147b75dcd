#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# For tests/programs/*.sh: a program that others wrote runs alone, then recorded, and gives the
# right answer both times; then its recording is replayed without difference.
#
#	. "$TS_SOURCE/tests/lib/programs.sh"         a small program
#	. "$TS_SOURCE/tests/lib/programs.sh" long    one that takes long, or whose packages are large
if [ "${1:-}" = long ] && [ -z "${TS_LONG:-}" ]; then
	echo "skip: runs at full length only (TS_LONG=1)"
	exit 77
fi
. "$TS_SOURCE/tests/lib/opencl.sh"

# Programs from PyPI, installed by scripts/programs-venv.
venv=${TRACESMITH_PROGRAMS_VENV:-$TS_SOURCE/build/programs-venv}
# What programs compile, they keep here, as PoCL does: only the first run of a build is slow.
programs_cache=$TS_BUILD/tests/programs-cache
mkdir -p "$programs_cache"
export XDG_CACHE_HOME=$programs_cache PYTHONDONTWRITEBYTECODE=1

compile_quickly

! is_sanitized || skip "programs of others are recorded by builds without sanitizers only"

needs_command() { # command, Debian package
	command -v "$1" >/dev/null || skip "no $1 (Debian: $2)"
}
needs_header() { # header, Debian package
	local compiler=${CC:-cc} language=c
	case $1 in *.hpp) compiler=${CXX:-c++} language=c++ ;; esac
	echo "#include <$1>" | "$compiler" -x $language -E - >/dev/null 2>&1 ||
		skip "no $1 (Debian: $2)"
}
# Finds a Python that has the module, that of the venv or Debian's; sets `python`.
# shellcheck disable=SC2034 # for those who source this
needs_python() { # module, package
	local candidate
	for candidate in "$venv/bin/python" /usr/bin/python3 python3; do
		! "$candidate" -c "import $1" 2>/dev/null || { python=$candidate; return; }
	done
	skip "no Python module $1 ($2)"
}

# Compiles a source of this folder, unless that was done since it changed; sets `program`.
compile() { # file, option...
	local source=$TS_SOURCE/tests/programs/$1 compiler=${CC:-cc}
	case $1 in *.cpp) compiler=${CXX:-c++} ;; esac
	program=$programs_cache/${1%.*}
	if [ ! "$program" -nt "$source" ]; then
		"$compiler" -O1 -w -o "$program.new" "$source" "${@:2}" 2>compiler.log ||
			fail "'$source' does not compile: $(head -n 5 compiler.log)"
		mv "$program.new" "$program"
	fi
}

# By default a program checks its results itself and fails if they are wrong. A script can define
# this to look at what it printed, and list in `outputs` the files that it writes, which must be
# equal to the byte.
check_answer() { :; } # file with what it printed
outputs=()
replayable=--replayable

# Runs alone, recorded, and replayed.
check_program() { # name, replay's option..., --, command...
	local name=$1 code=0 options=() commands output
	shift
	while [ "$1" != -- ]; do
		options+=("$1")
		shift
	done
	shift
	timeout 600 "$@" >alone 2>alone.log </dev/null || code=$?
	[ $code -eq 0 ] || fail "$name fails alone: exit code $code: $(tail -n 5 alone alone.log)"
	check_answer alone
	rm -rf outputs && mkdir outputs
	[ ${#outputs[@]} -eq 0 ] || mv "${outputs[@]}" outputs/
	record t.sbt "$replayable" -- "$@"
	check_answer printed
	for output in "${outputs[@]}"; do
		cmp "$output" "outputs/${output##*/}" ||
			fail "$name: '$output' is another when recorded"
	done
	replays "$name" t.sbt --check each --repeat 2 "${options[@]}"
	commands=$(report 'r["commands"]')
	check_parts "$name" "$commands" "${options[@]}"
	echo "$name: $commands commands"
}

# A part with what it needs, a list of all, and a simulation.
check_parts() { # name, number of commands, replay's option...
	local middle=$(($2 / 2))
	agrees "$1, from $middle on" t.sbt --from $middle --check each "${@:3}"
	expect 0 replay t.sbt --list --json
	expect 0 replay t.sbt --target emulator
}
