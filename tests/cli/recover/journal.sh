#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A killed recorder left a trace and a journal: damage in either of them is reported and costs only
# what was there, and a journal that is not the trace's own is not used.
. "$TS_SOURCE/tests/cli/live.sh"
export TRACESMITH_BACKENDS=none

# 100 events are in the trace, 50 more only in the journal and in the program's live area.
setsid "$TRACESMITH" record -q -o t.sbt --autosave 10ms -- "$emit" instants:100 make:ready await:go instants:50 make:ended &
recorder=$!
await [ -e ready ]
is_saved() { [ "$(rows t.sbt -n tick)" = 100 ]; }
await is_saved
kill -9 $recorder
wait $recorder 2>/dev/null || true
touch go
await [ -e ended ]
mkdir killed && mv t.sbt t.sbt.journal killed
again() { rm -rf t.sbt* good.sbt && cp -r killed/* .; }

again
t recover t.sbt -o good.sbt
echo "a damaged chunk"
damage_chunk t.sbt 20
t record --resume t.sbt | numbers
t recover t.sbt -o good.sbt | numbers
t verify good.sbt
rows good.sbt -n tick
"$TRACESMITH" view good.sbt --json --table loss | grep -o '"what":"[^"]*"'
echo "a damaged file header"
again
flip_byte t.sbt 20
t recover t.sbt -o good.sbt
t verify good.sbt
echo "a damaged journal"
again
flip_byte t.sbt.journal 107
t record --resume t.sbt
t recover t.sbt -o good.sbt | numbers
t verify good.sbt
rows good.sbt -n tick
"$TRACESMITH" view good.sbt --json --table loss | grep -o '"what":"[^"]*"'
echo "a damaged block: the live area has what was in it"
# offsets TYPE ...: where the blocks of these types are in the journal.
offsets() {
	python3 - "$@" <<'EOF'
import struct, sys
journal = open('t.sbt.journal', 'rb').read()
at = 0
while at + 64 <= len(journal):
    _, kind, _, size = struct.unpack_from('<IHHI', journal, at)
    if str(kind) in sys.argv[1:]:
        print(at)
    at += 64 + (size + 7) // 8 * 8
EOF
}
again
area=2 dictionary=3 state=10
for at in $(offsets $area $dictionary $state); do
	again
	flip_byte t.sbt.journal $((at + 70))
	cp t.sbt.journal damaged
	t record --resume t.sbt >resume.txt
	cmp t.sbt.journal damaged
	quietly recover t.sbt -o good.sbt
	t verify good.sbt >verify.txt
	[ "$(rows good.sbt -n tick)" = 150 ] || fail "byte $at: $(rows good.sbt -n tick) events"
	# Without the state nobody knows whether more was there; but none that is there is lost.
	"$TRACESMITH" view good.sbt --json --table loss | grep '"what":"events"' >lost.txt || true
	! grep '"count":' lost.txt || fail "byte $at: events are lost"
done
cat resume.txt verify.txt
echo "the journal of another trace"
again
make_trace other
cp t.sbt.journal other.sbt.journal
t recover other.sbt -o good.sbt | numbers
cmp <("$TRACESMITH" view --json other.sbt) <("$TRACESMITH" view --json good.sbt)
# Only root can give it to somebody else.
if [ "$(id -u)" = 0 ]; then
	again
	chown 65534 t.sbt.journal
	"$TRACESMITH" recover t.sbt -o good.sbt 2>err.txt
	grep -q "journal 't.sbt.journal' belongs to user 65534, and the trace to user 0:" err.txt || fail "$(cat err.txt)"
	[ "$(rows good.sbt -n tick)" = 100 ] || fail "the journal of another user was read"
fi
echo "no file"
ln -sf t.sbt.journal other.sbt.journal
t recover other.sbt -o good.sbt | numbers
rm other.sbt.journal
mkfifo other.sbt.journal
t recover other.sbt -o good.sbt | numbers

echo "the live area is gone"
again
mkdir -m 700 none
TRACESMITH_LIVE_DIR=$PWD/none t recover t.sbt -o good.sbt | numbers
TRACESMITH_LIVE_DIR=$PWD/none t record --resume t.sbt | summary
"$TRACESMITH" info t.sbt | grep '^loss  *[a-z]*:'

echo "nothing at all"
rm t.sbt*
: >t.sbt
t record --resume t.sbt | numbers
t recover t.sbt -o good.sbt | numbers
rm live/*
t recover t.sbt -o good.sbt
