#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# hashcat finds a password by its MD5, from a list and by trying all of a pattern.
set -euo pipefail
. "$TS_SOURCE/tests/lib/programs.sh" long
needs_command hashcat hashcat

export HOME=$programs_cache/hashcat XDG_DATA_HOME=$programs_cache/hashcat
mkdir -p "$HOME"
printf '%s\n' apple banana horse tracesmith zebra >words
check_answer() { [ "$(cat found)" = "$password" ] || fail "it found '$(cat found)', not '$password'"; rm found; }
attack() { # name, password, argument...
	password=$2
	printf %s "$password" | md5sum | cut -d' ' -f1 >md5
	check_program "$1" -- hashcat --force -D 1 -m 0 --potfile-disable --restore-disable \
		--self-test-disable --outfile-format 2 -o found "${@:3}"
}
attack "hashcat, a list" tracesmith -a 0 md5 words
attack "hashcat, a pattern" dcba -a 3 md5 '?l?l?l?l'
