#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Hostile live areas next to a recorded program: garbage, holes, invalid offsets, files that shrink
# while they are read. The recorder neither crashes nor stalls, and all rows of the good program are
# there.
set -euo pipefail
. "$TS_SOURCE/tests/lib/live.sh"

# A fake process with an agent is alive as long as this sleeps.
sleep 3000 &
sleeper=$!

cat >hostile.py <<'END'
"""hostile.py GOOD PID SEED KIND...: puts areas into the live directory that look like GOOD, of another process, and are not."""
import os
import random
import struct
import sys
import time

RING, RINGS, DICTIONARY_USED, DICTIONARY, POOL = 4096, 256, 264, 0x101000, 0x201000
HUGE = 0xfffffffffffffff8


class Area:
    """A copy of a good area that says to be of process `pid`."""

    def __init__(self, good, content, pid):
        self.data = bytearray(content)
        self.start = int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[19])
        self.pid, self.id = pid, random.getrandbits(63) | 1
        self.name = os.path.join(os.path.dirname(good), f"{pid}-{self.start}-{self.id:016x}")
        self.ring = struct.unpack_from("<Q", self.data, RING + 48)[0]
        self.identify()

    def identify(self):
        self.put(40, "I", self.pid)
        self.put(48, "QQ", self.start, self.id)

    def put(self, at, layout, *values):
        struct.pack_into("<" + layout, self.data, at, *values)

    def store(self, content=None):
        with open(self.name + ".new", "wb") as file:
            file.write(self.data if content is None else content)
        os.chmod(self.name + ".new", 0o600)
        os.rename(self.name + ".new", self.name)


def spoil(area, kind):
    """Changes numbers; True where the area is to be stored as it is then."""
    put, choose = area.put, random.choice
    if kind == "version":
        put(8, "I", 99)
    elif kind == "rings":
        put(RINGS, "I", choose([0xffffffff, 4097, 4096]))
    elif kind == "head":
        put(RING, "Q", choose([HUGE, 1, 8, 1 << 40, 1 << 30]))
    elif kind == "ring":
        put(RING + 48, "QQ", choose([0, HUGE, 1 << 50, 4096]), choose([0, 1, 3, 4096, 1 << 62, HUGE]))
    elif kind == "slots":
        put(RING + 32, "Q", choose([0, 1, HUGE]))
        put(RING + 64, "QQII", *choose([(HUGE, HUGE, 1, 1), (1 << 40, 5, 0, 0), (8, HUGE, 7, 7)]))
        put(RING + 192, "QQII", HUGE, 1, 2, 3)
    elif kind == "dictionary":
        put(DICTIONARY_USED, "Q", choose([HUGE, 1 << 20, 24, 1]))
        for _ in range(200):
            put(DICTIONARY + random.randrange(0, 4000), "I", random.getrandbits(32))
    elif kind == "records":
        # Sizes, kinds, sites, string lengths: anything.
        for _ in range(3000):
            put(area.ring + 8 * random.randrange(0, 7000), choose("IQH"), choose([0, 1, 0xffff, 0xfff8]))
    elif kind == "moves":
        # THREAD records that refer to each other's rings, in cycles.
        for i in range(100):
            put(area.ring + 64 * i, "HBBIQIIIIQQ", 8, 17, 0, 0, 1, 5, 6, choose([1, 2, 3, 4096, 0xffffffff]), 0,
                choose([HUGE, 0, 64, 1 << 40]), HUGE)
        put(RING, "Q", 6400)
    elif kind == "noise":
        for _ in range(500):
            at = choose([random.randrange(80, 600), random.randrange(RING, RING + 2048)]) & ~7
            put(at, "Q", random.getrandbits(64))
    else:
        return False
    return True


def shrink(area):
    """Changes under the recorder's hands, for a while."""
    size = len(area.data)
    area.store()
    with open(area.name, "r+b") as file:
        for _ in range(300):
            file.truncate(random.choice([0, 4096, 8192, POOL, POOL + 1000, size]))
            for _ in range(50):
                file.seek(random.randrange(0, size - 8))
                file.write(random.randbytes(8))
                file.seek(RING)
                file.write(struct.pack("<Q", random.getrandbits(random.choice([8, 16, 20, 64])) & ~7))
                file.flush()
            file.seek(0)
            file.write(area.data[:4096])
            file.flush()
            time.sleep(0.002)


def make(area, kind):
    if spoil(area, kind):
        area.store()
    elif kind == "random":
        area.store(random.randbytes(100000))
    elif kind == "empty":
        area.store(b"")
    elif kind == "cut":
        area.store(area.data[:random.choice([7, 100, 4095, 4096, 5000, DICTIONARY + 10, POOL + 100])])
    elif kind == "sparse":
        area.store()
        os.truncate(area.name, 1 << 42)
    elif kind == "fifo":
        os.mkfifo(area.name, 0o600)
    elif kind == "link":
        os.symlink("/etc/passwd", area.name)
    elif kind == "folder":
        os.mkdir(area.name)
    elif kind == "shrinks":
        shrink(area)
    else:
        sys.exit(f"unknown kind {kind}")


def main():
    good, pid = sys.argv[1], int(sys.argv[2])
    random.seed(int(sys.argv[3]))
    with open(good, "rb") as file:
        content = file.read()
    for kind in sys.argv[4:]:
        make(Area(good, content, pid), kind)


main()
END

kinds=(random empty cut version rings head ring slots dictionary records moves noise sparse fifo link folder shrinks)
rounds=1
[ -z "${TS_LONG:-}" ] || rounds=10

attack() { # round
	fresh
	"$TRACESMITH" record -o t.sbt -- "$emitter" --oracle "$oracle" --threads 2 --mode mixed --rate 20000 --seconds 60 >log 2>&1 &
	recorder=$!
	await_begin
	good=$(ls "$TRACESMITH_LIVE_DIR"/"$(oracle_pid)"-*)
	python3 hostile.py "$good" $sleeper "$1" "${kinds[@]}" &
	# Snapshots, while areas shrink: the recording's other areas are read, too.
	local hostile=$! i
	for ((i = 0; i < 5; i++)); do
		expect 0 info -p "$(oracle_pid)"
	done
	reap $hostile
	[ $code -eq 0 ] || fail "hostile.py failed"
	expect 0 info -p "$(oracle_pid)"
	kill_hard "$(oracle_pid)"
	# A fake process would be waited for.
	kill_hard $sleeper
	reap $sleeper
	wait_until 60 is_gone $recorder || fail "the recorder does not end: $(cat log)"
	reap $recorder
	[ $code -eq 137 ] || fail "exit code $code: $(cat log)"
	# Rows and losses of the others do not matter.
	check_good "$1"
}

# Events of the hostile areas have the same numbers: only those of the good process are compared.
check_good() { # round
	"$TRACESMITH" verify -q t.sbt || fail "the trace is incomplete"
	python3 - "$oracle" t.sbt <<'END' || fail "round $1: rows of the good program are missing, or too many"
import json, os, struct, subprocess, sys
oracle = open(sys.argv[1], "rb").read()
threads = struct.unpack_from("<I", oracle, 12)[0]
pid = struct.unpack_from("<I", oracle, 64 + 16)[0]
returned = sum(struct.unpack_from("<Q", oracle, 64 + 64 * i)[0] for i in range(threads))
ends = sum(len(range(5, struct.unpack_from("<Q", oracle, 64 + 64 * i)[0], 8)) for i in range(threads))
def rows(table):
    out = subprocess.run([os.environ["TRACESMITH"], "view", sys.argv[2], "--json", "--table", table], stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in out.stdout.splitlines()]
seen, closed = set(), 0
for table in ("slice", "mark", "counter"):
    for row in rows(table):
        if row.get("pid") != pid:
            continue
        args = row["args"]
        key = args["t"], args["s"]
        assert key not in seen, f"{key} is there twice"
        seen.add(key)
        closed += row.get("name") == "begin" and row["duration"] >= 0
lost = sum(row["count"] for row in rows("loss") if row.get("pid") == pid and row["what"].startswith("event"))
found = len(seen) + closed + lost
# The event that was being emitted at the kill may be there, too.
assert returned <= found <= returned + threads, f"{len(seen)} rows, {closed} ends, {lost} lost; {returned} were emitted"
END
	checks=$((checks + 1)) stored=$((stored + 1))
}

for ((round = 1; round <= rounds; round++)); do
	attack $round
	rm -rf "${TRACESMITH_LIVE_DIR:?}"/*
	sleep 3000 &
	sleeper=$!
done

# Verbs that read the directory.
for kind in "${kinds[@]}"; do
	[ "$kind" != shrinks ] || continue
	fresh
	TRACESMITH_LIVE=1 "$emitter" --oracle "$oracle" --rate 20000 --seconds 0 --count 200 >log 2>&1
	good=$(ls "$TRACESMITH_LIVE_DIR"/*)
	python3 hostile.py "$good" $sleeper 7 "$kind"
	expect 0 ps
	expect 0 ps --json
	for verb in "recover -q $sleeper -o r.sbt" "record -q -p $sleeper -o p.sbt --duration 50ms" "window $sleeper open" "info -p $sleeper" "view -p $sleeper"; do
		code=0
		# shellcheck disable=SC2086
		timeout 300 "$TRACESMITH" $verb >stdout 2>stderr </dev/null || code=$?
		[ $code -le 4 ] || fail "$kind: $verb: exit code $code: $(cat stderr)"
		for trace in r.sbt p.sbt; do
			[ ! -e $trace ] || [ -e $trace.journal ] || expect 0 verify -q $trace
		done
		rm -f r.sbt* p.sbt*
	done
	rm -rf "${TRACESMITH_LIVE_DIR:?}"/*
done
echo "$rounds rounds of ${#kinds[@]} hostile areas"
