#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The list of analyses: as text, as JSON, on the man page and in docs/analyze.md.
. "$TS_SOURCE/tests/cli/lib.sh"

"$TRACESMITH" analyze --list >list.txt
awk '{ print $1 }' list.txt
! grep -nE '^.{81,}$' list.txt || fail "a line is too long"
"$TRACESMITH" analyze --list --json | python3 -c '
import json, sys
rows = json.load(sys.stdin)
lines = [line.split(maxsplit=1) for line in open("list.txt")]
text = lambda r: r["summary"] + (" (alias: %s)" % r["alias"] if "alias" in r else "")
assert [[r["name"], text(r)] for r in rows] == [[n, s.strip()] for n, s in lines], rows
for r in rows:
	if "alias" in r:
		print(r["alias"], "->", r["name"])'
"$TRACESMITH" analyze --help | sed -n '/^analyses:/,/^$/p' | awk '/^  [a-z]/ { print $1 }' |
	cmp - <(awk '{ print $1 }' list.txt) || fail "--help lists other analyses"
for name in $(awk '{ print $1 }' list.txt); do
	grep -q "^## $name\$" "$TS_SOURCE/docs/analyze.md" || fail "$name: not in docs/analyze.md"
	grep -qF ".B ${name//-/\\-}" "$TS_SOURCE/docs/man/tracesmith-analyze.1" || fail "$name: not on the man page"
done
