#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Every verb has help with usage, an example and exit codes, and a man page with every option. Help
# and lists fit into 80 columns.
. "$TS_SOURCE/tests/cli/lib.sh"

# fits ARGUMENT...: no line of the output is wider than a terminal
fits() {
	"$TRACESMITH" "$@" >fits.txt 2>&1 || fail "$*: exit code"
	! grep -nE '^.{81,}$' fits.txt || fail "$*: a line is longer than 80 columns"
}

fits --help
fits help
fits import --list
fits export --list
fits analyze --list
fits record --detached --help
verbs=$("$TRACESMITH" --help | sed -n '/^verbs:/,/^$/s/^  \([a-z]*\) .*/\1/p')
for verb in $verbs; do
	"$TRACESMITH" "$verb" --help >help.txt 2>err.txt || fail "$verb --help: exit code"
	[ ! -s err.txt ] || fail "$verb --help writes to stderr"
	cmp help.txt <("$TRACESMITH" help "$verb") || fail "help $verb differs from $verb --help"
	cmp help.txt <("$TRACESMITH" "$verb" -h) || fail "$verb -h differs from $verb --help"
	grep -q "^usage: tracesmith $verb" help.txt || fail "$verb: no usage"
	grep -q "^  tracesmith $verb" help.txt || fail "$verb: no example"
	grep -q '^exit codes:' help.txt || fail "$verb: no exit codes"
	fits "$verb" --help
	page=$TS_SOURCE/docs/man/tracesmith-$verb.1
	[ -f "$page" ] || fail "$verb: no man page"
	grep -q '^\.SH EXAMPLES' "$page" || fail "$verb: man page without examples"
	# A line that begins with a period is a request: text there is lost.
	! grep -nE '^[.][^A-Za-z\\"]' "$page" || fail "$verb: a line of its man page is not shown"
	# In a man page a dash is written \-.
	for option in $(sed -n 's/^  .*--\([a-z]*\).*/\1/p' help.txt | sort -u); do
		[ "$option" = help ] || grep -q -- "\\\\-\\\\-$option" "$page" ||
			fail "$verb: --$option is not in its man page"
	done
	grep -q "tracesmith..$verb (1)" "$TS_SOURCE/docs/man/tracesmith.1" || fail "$verb: not in tracesmith.1"
	echo "$verb"
done
