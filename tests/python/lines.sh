#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Lines of instructions, as decoded from a code object's table, compared with each Python's own
# answer.
set -euo pipefail
. "$TS_SOURCE/tests/lib/pythons.sh"

compare() { # name, command...
	local name=$1
	shift
	"$@" >table 2>/dev/null || { echo "$name: lines.py ended with $?"; return 1; }
	echo "$name:"
	"$TS_BUILD/tests/targets/python_lines" <table
}
each_python "$TS_SOURCE/tests/python/lines.py" compare
