#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Intervals of lanes and of commands, one by one, as text, CSV and JSON.
. "$TS_SOURCE/tests/cli/lib.sh"
. "$TS_SOURCE/tests/cli/state.sh"

state_json >t.json
t state t.json --intervals
t state t.json --intervals --stream 21 --csv
t state t.json --commands
t state t.json --commands --stream 7 --from 205us --csv
t state t.json --commands --stream 7 --from 205us --json
t state t.json --intervals --from 1s --json
