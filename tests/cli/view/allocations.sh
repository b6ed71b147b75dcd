#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Allocations show their allocator and the memory in use; stacks below a row are complete on a
# narrow terminal.
. "$TS_SOURCE/tests/cli/live.sh"

quietly record -q --stacks native -o t.sbt -- "$TS_BUILD/tests/targets/accelerator_work" memory:2
t view t.sbt --table allocation --columns name
python3 -c 'import pty; pty.openpty()' 2>/dev/null || { echo "skip: no pseudo-terminals"; exit 77; }
# Lines, and which functions are inlined, depend on the build.
PYTHONPATH=$TS_SOURCE/tests/lib PYTHONDONTWRITEBYTECODE=1 NO_COLOR=1 python3 -c '
import sys
import on_terminal
print(on_terminal.run(20, sys.argv[1:]), end="")' "$TRACESMITH" view t.sbt --table allocation --columns name --stacks --limit 1 |
	sed -nE -e 's/accelerator_work(\.c:[0-9]+)?/.../' -e '/^(name|alloc|    main)/p'
