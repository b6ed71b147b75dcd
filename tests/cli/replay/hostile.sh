#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Names and reasons of a trace cannot control the terminal.
. "$TS_SOURCE/tests/cli/lib.sh"

"$TS_BUILD/tests/targets/make_stream" hostile.sbt hostile
shows() { # expected exit code, word that is shown, verb, option...
	local code=0
	"$TRACESMITH" "${@:3}" >shown.txt 2>&1 || code=$?
	[ $code -eq "$1" ] || { cat -v shown.txt; fail "$3: exit code $code"; }
	grep -qF "$2" shown.txt || { cat -v shown.txt; fail "$3: it does not show $2"; }
	! LC_ALL=C grep -q '[^[:print:]]' shown.txt || { cat -v shown.txt; fail "$3: control characters"; }
}
shows 3 owned replay hostile.sbt
shows 0 owned replay hostile.sbt --list
shows 0 owned replay hostile.sbt --list --json
shows 0 owned info hostile.sbt
shows 0 owned info --json hostile.sbt
"$TRACESMITH" replay hostile.sbt --check none --from 2 --to 3 >device.txt 2>&1 || skip_without_device device.txt
shows 0 owned replay hostile.sbt --skip-unsupported
