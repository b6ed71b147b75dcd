#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Order and filters over many chunks, compared with a plain sort of all rows.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 - <<'PY'
import json, random
random.seed(7)
for rank in 0, 1:
    events = []
    for i in range(150000):
        ts = random.randrange(10**6)
        kind = random.choice((0, 0, 0, 0, 0, 1, 2, 3))
        dur = random.choice((0, 1, 5, 100, 10**5)) if i % 100 == 0 else random.randrange(20)
        event = {"ph": "X", "pid": 1, "tid": 1, "ts": ts, "dur": dur, "name": "n%d" % (i % 7)}
        if kind == 1:
            event.update(cat="kernel", pid=rank, tid=i % 3, args={"device": rank, "stream": i % 3, "correlation": i})
        elif kind == 2:
            event.update(cat="cuda_runtime", args={"correlation": i})
        elif kind == 3:
            event = {"ph": "C", "pid": 1, "tid": 1, "ts": ts, "name": "c", "args": {"v": i}}
        events.append(event)
    json.dump({"baseTimeNanoseconds": 1000 * rank, "traceEvents": events}, open("rank%d.json" % rank, "w"))
PY
quietly import rank0.json rank1.json -o t.sbt
cat >check.py <<'PY'
import json, os, subprocess

def view(*options):
    command = [os.environ["TRACESMITH"], "view", "t.sbt", "--json", *options]
    return subprocess.run(command, check=True, capture_output=True).stdout.splitlines()

def end(row):
    return row["start"] + row.get("duration", 0)

lines = view()
rows = [json.loads(line) for line in lines]
assert len(rows) == 300000, len(rows)
keys = [(row["start"], -end(row)) for row in rows]
assert keys == sorted(keys), "order"

def expect(test):
    return [line for line, row in zip(lines, rows) if test(row)]

first = rows[0]["start"]
for start, stop in ((0, 0), (123456789, 123456999), (5 * 10**8, 6 * 10**8), (10**9, 2 * 10**9), (-5, -1)):
    wanted = expect(lambda row: row["start"] <= first + stop and end(row) >= first + start)
    assert view("--from", f"{start}ns", "--to", f"{stop}ns") == wanted, (start, stop)
for options, test in (
        (("--device", "1"), lambda row: row.get("device") == 1),
        (("--stream", "2", "--device", "0", "--name", "n3"),
         lambda row: row.get("stream") == 2 and row["device"] == 0 and row["name"] == "n3"),
        (("--table", "counter,api_call"), lambda row: row["table"] in ("counter", "api_call")),
        (("--name", "n[12]", "--category", "cuda*"), lambda row: row["name"] in ("n1", "n2") and
         row.get("category") == "cuda_runtime")):
    assert view(*options) == expect(test), options
for limit in 1, 1000, 100000:
    assert view("--limit", str(limit)) == lines[:limit], limit
longest = view("--sort", "duration")
order = sorted(range(len(rows)), key=lambda i: (-rows[i].get("duration", 0), rows[i]["start"]))
assert [json.loads(line)["start"] for line in longest[:1000]] == [rows[i]["start"] for i in order[:1000]]
assert sorted(longest) == sorted(lines)
assert view("--sort", "duration", "--limit", "500") == longest[:500]
print("same")
PY
python3 check.py
