#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Usage errors are found before anything is written.
. "$TS_SOURCE/tests/cli/lib.sh"

kineto_json 0 >a.json
t import
t import a.json
t import a.json b.json
t import -o out.sbt
t import a.json missing.json -o out.sbt
[ ! -e out.sbt ] || fail "an output was made"
# The output is an input: by name, by another name, by a link.
cp a.json same.json
ln same.json hard.json
ln -s same.json soft.json
t import same.json -o same.json
t import a.json same.json -o ./same.json
t import hard.json -o same.json
t import same.json -o soft.json
t import - -o same.json <same.json
cmp a.json same.json || fail "the input was changed"
mkdir folder
t import a.json -o folder/none/out.sbt
t import a.json -o folder
echo precious >notes.txt
t import a.json -o notes.txt
cat notes.txt
# A trace, an empty file and a device may be replaced.
quietly import a.json -o over.sbt
quietly import a.json -o over.sbt
: >empty.sbt
quietly import a.json -o empty.sbt
t import folder -o out.sbt
t import a.json -o -
[ ! -e out.sbt ] || fail "an output was made"
