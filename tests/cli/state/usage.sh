#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage errors, and traces without states.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/cli/state.sh"

state_json >t.json
t state
t state t.json --json --csv
t state t.json --intervals --commands
t state t.json --edges --commands
t state t.json --why 1 --csv
t state t.json --stream seven
t state t.json --from later
t state t.json --from 5
t state missing.json --from 2us --to 2us
t state missing.json
echo '[{"ph": "X", "cat": "cpu_op", "name": "add", "pid": 1, "tid": 1, "ts": 1, "dur": 2}]' >cpu.json
t state cpu.json
t state cpu.json --json
t state cpu.json --intervals --csv
t state --help | tail -n 20
