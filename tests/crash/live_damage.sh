#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A killed recorder's journal and trace are damaged: flipped bits, a cut end. What `recover` finds
# is what was emitted, it says if something is missing, and no number that it gives is too high.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"
mkdir -m 700 none

# Damages t.sbt or t.sbt.journal and prints how. With a type: a block of that type.
damage() { # number, type of block or nothing
	python3 - "$@" <<'END'
import os, random, struct, sys

number, kinds = int(sys.argv[1]), sys.argv[2:]
# Any damage in the long form, the same each time otherwise.
chance = random.SystemRandom() if os.environ.get("TS_LONG") else random.Random(number)


def change(path, how):
    data = bytearray(open(path, "rb").read())
    print(path, how(data))
    open(path, "wb").write(data)


def blocks(journal):
    at = 0
    while at + 64 <= len(journal):
        _, kind, _, size = struct.unpack_from("<IHHI", journal, at)
        yield at, kind, 64 + (size + 7) // 8 * 8
        at += 64 + (size + 7) // 8 * 8


def flip_block(journal):
    # Without OPEN there is no journal.
    found = [block for block in list(blocks(journal))[1:] if not kinds or str(block[1]) in kinds]
    at, kind, size = chance.choice(found)
    byte = at + chance.randrange(size)
    journal[byte] ^= 1 << chance.randrange(8)
    return f"byte {byte} of a block of type {kind}"


def flip(data):
    byte = chance.randrange(64, len(data))
    data[byte] ^= 1 << chance.randrange(8)
    return f"byte {byte} of {len(data)}"


def cut(data, least):
    # Behind an entire block nobody could see that there was more.
    end = chance.randrange(least, len(data))
    del data[end:]
    return f"cut at byte {end}"


case = 0 if kinds else number % 6
if case < 3:
    change("t.sbt.journal", flip_block)
elif case == 3:
    ends = {at for at, _, _ in blocks(open("t.sbt.journal", "rb").read())}
    change("t.sbt.journal", lambda data: cut(data, sorted(ends)[1] + 1))
elif case == 4:
    change("t.sbt", flip)
else:
    change("t.sbt", lambda data: cut(data, 0))
END
}

is_saved() { [ -s t.sbt ] && [ "$("$TRACESMITH" view t.sbt --json 2>/dev/null | wc -l)" -gt 1000 ]; }

# A recorder that is killed after a checkpoint, and programs that end later.
kill_recorder() { # option of the emitter...
	fresh
	rm -rf killed "${TRACESMITH_LIVE_DIR:?}"/*
	"$TRACESMITH" record -q -o t.sbt --autosave 100ms -- "$emitter" --oracle "$oracle" --seconds 0 --count 3000 --rate 6000 "$@" >log 2>&1 &
	recorder=$!
	await_begin
	wait_until 120 is_saved || fail "nothing is saved: $(cat log)"
	nap_ms "$(random 150)"
	kill_hard $recorder
	reap $recorder
	local slots=$(($(oracle_word 8 4) * $(oracle_word 12 4))) i
	for ((i = 0; i < slots; i++)); do
		await_done $i
		await_gone "$(oracle_pid $i)"
	done
	mkdir killed
	mv t.sbt t.sbt.journal killed
}

# Areas are live, or gone.
recover_damaged() { # folder of live areas, argument of damage...
	local areas=$1 how
	shift
	rm -f t.sbt* good.sbt*
	cp killed/* .
	how=$(damage "$@")
	TRACESMITH_LIVE_DIR=$areas expect 0 recover -q t.sbt -o good.sbt
	check "$how, areas in $areas" good.sbt --damaged
}

rounds=1 each=6
[ -z "${TS_LONG:-}" ] || rounds=20 each=30
state=10
for ((round = 0; round < rounds; round++)); do
	options=(--processes $((1 + round % 3)) --threads 2 --mode mixed)
	[ $((round % 2)) -eq 0 ] || options=(--processes 2 --threads 3 --mode begin --churn 304)
	kill_recorder "${options[@]}"
	for ((i = 0; i < each; i++)); do
		recover_damaged "$TRACESMITH_LIVE_DIR" $i
		[ $((i % 2)) -ne 0 ] || recover_damaged "$PWD/none" $((i / 2))
	done
	# The state of a checkpoint says which events are in the trace.
	for ((i = 0; i < 4; i++)); do
		recover_damaged "$TRACESMITH_LIVE_DIR" $i $state
	done
done
summary
