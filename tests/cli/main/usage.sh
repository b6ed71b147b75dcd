#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Output without a verb, with an unknown one, and of --help.
. "$TS_SOURCE/tests/cli/lib.sh"

t
t --help
t help
t veiw t.sbt
t infos
t frobnicate
t --frobnicate
t help veiw
t help one two
"$TRACESMITH" --version | grep -Eqx 'tracesmith [0-9]+\.[0-9]+\.[0-9]+' || fail "--version"
cmp <("$TRACESMITH" help) <("$TRACESMITH" --help) || fail "help differs from --help"
