#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A Python embedded in a C program through the library: found there; its stacks begin where C called
# it.
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"

config=
for candidate in "$python-config" python3-config /usr/bin/python3-config; do
	! command -v "$candidate" >/dev/null || { config=$candidate; break; }
done
[ -n "$config" ] || { echo "skip: no python3-config (python3-dev)"; exit 77; }
cat >embedded.c <<'C'
#include <Python.h>

int main(void)
{
	Py_Initialize();
	PyRun_SimpleString("import os, time\n"
			   "def inner():\n"
			   "    print('ready', os.getpid(), flush=True)\n"
			   "    while True:\n"
			   "        time.sleep(0.05)\n"
			   "def outer():\n"
			   "    inner()\n");
	return PyRun_SimpleString("outer()\n");
}
C
# shellcheck disable=SC2046,SC2086 # lists of words
cc -o embedded embedded.c $($config --cflags) $($config --ldflags --embed) -Wl,-rpath,"$($config --prefix)/lib" 2>cc.err ||
	{ echo "skip: cannot build a program that embeds Python: $(head -n 1 cc.err)"; exit 77; }
start_python ./embedded
await_stack "any(functions(thread)[-3:] == ['inner', 'outer', '<module>'] for thread in threads)"
stack_holds "any(thread['main'] for thread in threads)" || fail "which thread is the main one? $(cat "$work/stack.json")"
start_recording t.sbt
await_samples t.sbt
stop_python "$pid"
end_recording
trace_holds t.sbt "any(functions(sample)[-3:] == ['inner', 'outer', '<module>'] for sample in samples)"
