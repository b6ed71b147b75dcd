#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The commands that advice names are each on one line, however narrow the terminal and long the
# name, and work as they are.
. "$TS_SOURCE/tests/cli/lib.sh"

folder="runs  of the day, it's long enough for several lines of a terminal"
mkdir "$folder"
cp "$TS_SOURCE/tests/data/real/kineto/mlp_train.json.gz" "$folder/mlp train.json.gz"
"$TRACESMITH" analyze "$folder/mlp train.json.gz" --all --short-names advice --width 60 >advice.txt
grep -A 1 'shown by' advice.txt
# Everything else fits.
grep -v 'shown by' advice.txt | awk 'length > 60 { print; exit 1 }'
tracesmith() { "$TRACESMITH" "$@"; }
sed -n 's/^   shown by: //p' advice.txt | sort -u >commands.txt
[ -s commands.txt ] || fail "no command"
while read -r command; do
	eval "$command" >shown.txt || fail "$command"
	[ -s shown.txt ] || fail "$command: nothing is shown"
done <commands.txt
