#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The binary interface of libtracesmith.so against tests/abi/libtracesmith.abi.xml: nothing may be
# removed or changed. What was added is listed; it becomes part of the promise with
#	TS_ABI_UPDATE=1 scripts/run-test-script tests/abi/baseline.sh
set -euo pipefail
baseline=$TS_SOURCE/tests/abi/libtracesmith.abi.xml
library=$TS_BUILD/libtracesmith.so

if ! command -v abidw >/dev/null || ! command -v abidiff >/dev/null; then
	echo "skip: abidw and abidiff are not installed (Debian: abigail-tools)"
	exit 77
fi
if grep -q '^TRACESMITH_SANITIZE:[^=]*=.' "$TS_BUILD/CMakeCache.txt"; then
	echo "skip: a library with sanitizers has other symbols"
	exit 77
fi
if ! grep -q '^CMAKE_C_COMPILER:[^=]*=\(.*/\)\?\(gcc\|cc\)$' "$TS_BUILD/CMakeCache.txt"; then
	echo "skip: the baseline is that of gcc; other compilers describe types differently"
	exit 77
fi

describe() { # output
	abidw --exported-interfaces-only --headers-dir "$TS_SOURCE/include" --drop-private-types --drop-undefined-syms \
		--suppressions "$TS_SOURCE/tests/abi/suppressions.ini" --no-elf-needed --no-architecture \
		--no-write-default-sizes --no-parameter-names --no-corpus-path --no-comp-dir-path --no-show-locs \
		--out-file "$1" "$library"
}

describe now.xml
if [ -n "${TS_ABI_UPDATE:-}" ]; then
	cp now.xml "$baseline"
	exit
fi
# abidiff: 4 means a change, 8 an incompatible one, 1 and 2 that it could not compare.
code=0
abidiff --no-architecture "$baseline" now.xml >changes || code=$?
if [ $code -eq 0 ]; then
	exit
fi
cat changes
# Additions alone are no failure, but they must be promised before a release.
if [ $((code & 11)) -eq 0 ] && grep -q 'Functions changes summary: 0 Removed, 0 Changed' changes &&
	grep -q 'Variables changes summary: 0 Removed, 0 Changed' changes; then
	exit
fi
echo "FAILED: the binary interface changed (CONTRIBUTING.md, \"The library's interface\")"
exit 1
