#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stacks of calls, by number: Python frames equal those that the program itself sees, and are placed
# among native ones where the interpreter runs them; on every CPython installed.
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"
python=${python:?}

is_sanitized && { echo "skip: the agent of a sanitizer build cannot be preloaded into Python"; exit 77; }

check_stacks() { # interpreter, native|python|all
	rm -f log t.sbt rows
	"$TRACESMITH" record -q -o t.sbt --backends cuda --stacks "$2" --no-symbols -- \
		"$1" -W ignore "$TS_SOURCE/tests/python/stacks.py" log || fail "'$1' fails when it is recorded"
	"$TRACESMITH" view t.sbt --table api_call --json >rows
	printf '%s: ' "$("$1" -c 'import platform; print(platform.python_version())')"
	python3 "$TS_SOURCE/tests/python/stacks_check.py" log rows "$2" || fail "'$1': see above"
	"$TRACESMITH" verify -q t.sbt
}
check_stacks "$python" native
check_stacks "$python" python
check_stacks "$python" all
for other in "$HOME"/.pyenv/versions/3.*/bin/python3; do
	[ -x "$other" ] || continue
	"$other" -c 'import sys; sys.exit(sys.version_info < (3, 8))' || continue
	check_stacks "$other" all
done
