#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A trace that is still being written: reading waits for a recorder that is about to finish, and
# names one that is not.
. "$TS_SOURCE/tests/cli/live.sh"
export TRACESMITH_RECORDER=$TRACESMITH

# Right after the program: the recorder has yet to finish the trace.
for i in 1 2 3; do
	TRACESMITH_OUT=q$i.sbt "$emit" instants:100
	"$TRACESMITH" view q$i.sbt --json >rows 2>said
	[ "$(wc -l <rows)" -eq 100 ] || fail "$(wc -l <rows) rows: $(cat said)"
	[ ! -s said ] || fail "$(cat said)"
	[ ! -e q$i.sbt.journal ] || fail "the recorder has not finished"
done
# A person is told. (Here a tool changes the trace, and ends.)
python3 - "$TRACESMITH" view q1.sbt --limit 1 <<'END'
import fcntl, os, pty, sys
lock = open("q1.sbt", "r+b")
fcntl.flock(lock, fcntl.LOCK_EX)
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
said = b""
while b"waiting" not in said:
    said += os.read(terminal, 4096)
lock.close()
while os.waitpid(pid, os.WNOHANG) == (0, 0):
    try:
        said += os.read(terminal, 4096)
    except OSError:
        pass
print(said.decode().splitlines()[0])
END
# While the program runs.
"$TRACESMITH" record -q --autosave 10ms -o r.sbt -- "$emit" instants:10 make:a await:b &
recorder=$!
await [ -e a ]
can_be_read() { "$TRACESMITH" info r.sbt >out 2>said; }
await can_be_read
sed "s/$recorder/RECORDER/" said | grep "still being written"
touch b
wait $recorder
t verify r.sbt
