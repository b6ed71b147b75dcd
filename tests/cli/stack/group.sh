#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Groups processes of a job with the same stack: by rank, as text and as JSON; descendants.
. "$TS_SOURCE/tests/cli/stack.sh"

cat >job.py <<'PY'
import os, threading

here, there = os.pipe()

def helper():
    os.read(here, 1)

def all_reduce():
    os.mkdir(os.environ["READY"]) or os.read(here, 1)

def load():
    os.mkdir(os.environ["READY"]) or os.read(here, 1)

def step():
    if os.environ.get("RANK") == "2":
        load()
    all_reduce()

def train():
    threading.Thread(target=helper, name="helper").start()
    step()

train()
PY
pids=
for rank in 0 1 2 3 4; do
	RANK=$rank WORLD_SIZE=5 start ready.$rank job.py
	pids+=,$program
	eval "rank_$rank=$program"
done
await all_wait -p ${pids#,}
# Pids become R0 to R4.
ranks() {
	# shellcheck disable=SC2154
	still | sed -E -e "s/$rank_0-$rank_4/PIDS/" -e "s/\b$rank_0\b/R0/g; s/\b$rank_1\b/R1/g; s/\b$rank_2\b/R2/g; s/\b$rank_3\b/R3/g; s/\b$rank_4\b/R4/g" -e 's/pids [-R0-9,]+/pids .../'
}
t stack --group -p ${pids#,} | ranks
echo "== JSON"
"$TRACESMITH" stack --group --json -p ${pids#,} | python3 -c '
import json, sys
for line in sys.stdin:
    group = json.loads(line)
    print(group["main"], group["processes"], group["of"], group["common"], [thread["rank"] for thread in group["threads"]], [(frame["func"], frame["lineno"]) for frame in group["frames"] if frame["file"].endswith("job.py")])'
echo "== ranks"
t stack "$rank_2" | ranks | sed -n 3p

echo "== descendants"
cat >parent.py <<'PY'
import os, subprocess, sys

here, there = os.pipe()

def watch():
    os.mkdir(os.environ["READY"]) or os.read(here, 1)

for rank in "012":
    subprocess.Popen([sys.executable, os.path.abspath("job.py")], env=dict(os.environ, RANK=rank, READY="child." + rank))
subprocess.Popen(["sleep", "1000"])
watch()
PY
start parent parent.py
await [ -d child.0 ] && await [ -d child.1 ] && await [ -d child.2 ]
mapfile -t children < <(pgrep -P $program)
remember "${children[@]}"
await all_wait --children $program
t stack --children --group -p $program | sed -E -e "s/\b$program\b/PID/g" -e 's/pids? [0-9,-]+/pids .../' | still
