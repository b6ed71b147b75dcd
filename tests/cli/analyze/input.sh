#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Inputs: traces, files imported on the fly, pipes; damaged, empty and invalid files.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
gzip -k t.json
mkdir temporary
export TMPDIR=$PWD/temporary
"$TRACESMITH" analyze t.sbt breakdown >want.txt
"$TRACESMITH" analyze t.json breakdown | diff want.txt -
"$TRACESMITH" analyze t.json.gz breakdown | diff want.txt -
"$TRACESMITH" analyze - breakdown <t.json.gz | diff want.txt -
"$TRACESMITH" analyze <(cat t.json) breakdown | diff want.txt -
[ -z "$(ls temporary)" ] || fail "files remain"
# Not even if it is killed halfway.
mkfifo pipe
exec 3<>pipe
head -c 500 t.json >&3
"$TRACESMITH" analyze - breakdown <pipe >killed.txt 2>&1 3>&- &
tool=$!
until find /proc/$tool/fd -lname "$PWD/temporary/*(deleted)" 2>/dev/null | grep -q .; do
	kill -0 $tool || fail "it ended"
	sleep 0.01
done
[ -z "$(ls temporary)" ] || fail "a file has a name"
kill -9 $tool
wait $tool 2>/dev/null || true
[ -z "$(ls temporary)" ] || fail "files remain after a kill"
exec 3>&-
TMPDIR=$PWD/gone
t analyze - breakdown <t.json | sed "s|$PWD|PWD|"
TMPDIR=$PWD/temporary

# No device activity.
echo '[]' >empty.json
quietly import empty.json -o empty.sbt
for name in empty.json empty.sbt; do
	"$TRACESMITH" analyze $name breakdown --json 2>notes.txt
	[ -s notes.txt ] || fail "$name: no note"
	"$TRACESMITH" analyze $name all >all.txt 2>&1 || fail "$name: all"
	"$TRACESMITH" analyze $name all --json >all.json 2>notes.txt || fail "$name: all as JSON"
	python3 -m json.tool all.json >/dev/null
done

: >nothing
echo hello >text
head -c 30 t.sbt >stub.sbt
cp t.sbt broken.sbt
flip_byte broken.sbt 20
for name in nothing text stub.sbt broken.sbt .; do
	t analyze $name breakdown
done

# The intact part is used.
size=$(stat -c %s t.sbt)
head -c $((size - 10)) t.sbt >unfinished.sbt
"$TRACESMITH" analyze unfinished.sbt breakdown 2>warning.txt | diff want.txt -
numbers <warning.txt
python3 - <<'PY'
text = open("t.json").read()
open("cut.json", "w").write(text[:text.index('"name": "Memcpy')])
PY
"$TRACESMITH" analyze cut.json breakdown --json 2>warning.txt | grep -o '"compute_us": [0-9.]*'
sed 's/byte [0-9]*/byte N/; s/line [0-9]*/line N/' warning.txt
# Columns of commands that do not decode.
python3 - <<'PY'
data = bytearray(open("t.sbt", "rb").read())
number = lambda at, size: int.from_bytes(data[at:at + size], "little")
at = 64
while number(at + 32, 2) != 11:  # gpu_op
    at += number(at + 16, 8)
for i in range(at + number(at + 8, 4), at + number(at + 16, 8)):
    data[i] ^= 1
open("damaged.sbt", "wb").write(data)
PY
t analyze damaged.sbt breakdown | sed 's/ at byte [0-9]*/ at byte N/'
