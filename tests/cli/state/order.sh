#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The order of rows in a file does not matter.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/cli/state.sh"

state_json >t.json
for question in "" --intervals --commands; do
	"$TRACESMITH" state t.json $question --json >expected
	for order in tac "sort -r" "sort -k9" "shuf --random-source=t.json"; do
		# shellcheck disable=SC2086
		state_json $order >other.json
		# shellcheck disable=SC2086
		"$TRACESMITH" state other.json $question --json >found
		cmp expected found || fail "rows by '$order' give another result"
	done
done
