#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Control characters in names are escaped; JSON stays valid.
. "$TS_SOURCE/tests/cli/lib.sh"

printf '[{"ph":"X","name":"red \\u001b[31m\\u0007 two\\nlines \\u009b \\u00e9\\ud800","pid":"p\\t1","tid":"t","ts":1,"dur":1,"args":{"k\\u0000":"\\u0001"}}]' >h.json
quietly import h.json -o h.sbt
t view h.sbt --args
t view h.sbt --json
"$TRACESMITH" view h.sbt --json | python3 -m json.tool >/dev/null
# Control characters of Latin-1, and those that turn text around.
printf '[{"ph":"X","name":"a\\u0085b\\u202ec\\u2066d\\u061ce\\u200ff","pid":1,"tid":1,"ts":1,"dur":1,"args":{"k\\u2067":"\\u0090","deep":{"x":["\\u202d"]}}}]' >b.json
quietly import b.json -o b.sbt
t view b.sbt --args
t view b.sbt --json
# Also in messages and in all other texts.
"$TRACESMITH" view "$(printf 'x\302\233\342\200\256.sbt')" 2>&1 || true
for command in info state "analyze kernels" "export -f folded --count spans -o -" "export -f chrome -o -"; do
	read -r verb rest <<<"$command"
	# shellcheck disable=SC2086
	"$TRACESMITH" "$verb" b.sbt $rest >out.txt 2>&1 || true
	python3 - "$command" <<'PY'
import sys
controls = [c for c in open("out.txt", encoding="utf-8").read()
            if "\x80" <= c < "\xa0" or c in "\u061c\u200e\u200f" or "\u2028" <= c <= "\u202e" or "\u2066" <= c <= "\u2069"]
assert not controls, (sys.argv[1], controls)
PY
done
