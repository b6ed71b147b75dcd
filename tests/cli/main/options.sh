#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Forms of options, and messages for invalid ones.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
for form in '--limit=1' '--limit 1' '-l 1' '-l1' '-al1'; do
	# shellcheck disable=SC2086
	"$TRACESMITH" view t.sbt $form --json >out.txt || fail "$form"
	[ "$(wc -l <out.txt)" = 1 ] || fail "$form: $(wc -l <out.txt) rows"
done
# Options may come before and after operands.
cmp <("$TRACESMITH" view --limit 1 t.sbt) <("$TRACESMITH" view t.sbt --limit 1) || fail "order"
cp t.sbt ./--odd.sbt
t verify -- --odd.sbt
t verify --odd.sbt
t view t.sbt --foo
t view t.sbt --foo=1
t view t.sbt --limt 3
t view t.sbt -Z
t view t.sbt --limit
t view t.sbt -l
t view t.sbt --json=yes
t view t.sbt --limit many
t view t.sbt --limit -1
t view t.sbt --limit 99999999999999999999
t import t.json -o u.sbt --level 20
t view t.sbt --table slice,,mark
t view t.sbt other.sbt
t view
t info
t verify
t export
