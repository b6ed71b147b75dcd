#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Valid, damaged, truncated, empty, not a trace, missing: messages and exit codes.
. "$TS_SOURCE/tests/cli/lib.sh"

make_trace t
t verify t.sbt
t verify -q t.sbt
t verify --json t.sbt
size=$(stat -c %s t.sbt)
# A payload.
cp t.sbt payload.sbt
damage_chunk payload.sbt 11
t verify payload.sbt | numbers
"$TRACESMITH" verify payload.sbt >out.txt || true
grep -Eq "^trace 'payload.sbt': chunk [0-9]+ at byte [0-9]+: checksum differs" out.txt || fail "no chunk and byte"
t verify -q payload.sbt
# Right checksums, wrong content: recovering it again and again would not help.
"$TS_BUILD/tests/targets/make_stream" wrong.sbt bad-hash
t verify wrong.sbt | numbers
quietly recover wrong.sbt -o again.sbt
t verify again.sbt | numbers
damage_chunk wrong.sbt 1
t verify wrong.sbt | tail -n 2
# Truncated anywhere.
for bytes in 64 65 200 $((size / 2)) $((size - 1)); do
	head -c "$bytes" t.sbt >cut.sbt
	code=0
	"$TRACESMITH" verify cut.sbt >out.txt 2>err.txt || code=$?
	[ $code -eq 1 ] || fail "$bytes bytes: exit $code"
	grep -q "tracesmith recover cut.sbt -o good.sbt" out.txt || fail "$bytes bytes: no advice"
	[ ! -s err.txt ] || fail "$bytes bytes: $(cat err.txt)"
done
# With less than its header there is nothing to recover.
: >empty.sbt
t verify empty.sbt
head -c 63 t.sbt >cut.sbt
t verify cut.sbt
# The file header.
for at in 0 8 20; do
	cp t.sbt header.sbt
	flip_byte header.sbt $at
	t verify header.sbt
done
t verify t.json
t verify missing.sbt
t verify .
t verify t.sbt payload.sbt missing.sbt | numbers
code=0
"$TRACESMITH" verify --json t.sbt payload.sbt t.json missing.sbt >out.txt 2>/dev/null || code=$?
echo "exit $code"
python3 - <<'PY'
import json
for line in open("out.txt"):
    verdict = json.loads(line)
    print(verdict["file"], verdict["whole"], len(verdict["findings"]) > 0)
PY
