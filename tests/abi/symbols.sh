#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Both libraries export exactly what the public headers declare, each its own, under one version;
# they share no symbol, since one program may load both.
set -euo pipefail
fail() { echo "FAILED: $*"; exit 1; }

list() { # library: NAME@VERSION of what it defines
	nm -D --defined-only --with-symbol-versions "$1" | awk '$2 != "A" { sub("@@", "@", $3); print $3 }' | sort
}

python3 "$TS_SOURCE/tests/abi/public_symbols.py" --map "$TS_SOURCE" >map
diff map "$TS_SOURCE/cmake/libtracesmith.map" ||
	fail "write it anew: python3 tests/abi/public_symbols.py --map . >cmake/libtracesmith.map"
python3 "$TS_SOURCE/tests/abi/public_symbols.py" "$TS_SOURCE" | sed 's/$/@TRACESMITH_0/' | sort >declared
[ "$(wc -l <declared)" -gt 100 ] || fail "the headers declare almost nothing"
list "$TS_BUILD/libtracesmith.so" >exported
diff declared exported || fail "libtracesmith.so does not export what the headers declare (<: declared)"

python3 "$TS_SOURCE/tests/abi/public_symbols.py" --agent "$TS_SOURCE" | sort >declared
[ "$(wc -l <declared)" -gt 50 ] || fail "the agent's headers declare almost nothing"
# Besides: OpenCL's entry points of a layer, and what libtracesmith-opencl.so calls.
list "$TS_BUILD/libtracesmith-agent.so" | grep -vxE 'clGetLayerInfo|clInitLayer|ts_opencl_preload' >agent
diff declared agent || fail "libtracesmith-agent.so does not export what the headers declare (<: declared)"
sed 's/@.*//' exported | sort | comm -12 - agent >both
[ ! -s both ] || fail "both libraries export: $(tr '\n' ' ' <both)"

# The library neither prints nor exits, starts no shell, and leaves the process as it is.
nm -D --undefined-only "$TS_BUILD/libtracesmith.so" | awk '{ sub("@.*", "", $2); print $2 }' >needs
! grep -xE 'exit|abort|printf|fprintf|vprintf|vfprintf|puts|putchar|fputs|perror|stdout|stderr|signal|system|popen|setlocale|setenv|unsetenv|putenv|chdir|umask' needs ||
	fail "libtracesmith.so uses these functions"
