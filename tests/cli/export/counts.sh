#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Stacks of calls, allocations and nested spans, as folded lines and as profiles.
. "$TS_SOURCE/tests/cli/lib.sh"

cat >s.json <<'JSON'
{"tracesmith": {"format": 1, "rows": {
  "source": [{"id": 1, "name": "run"}],
  "process": [{"id": 1, "source": 1, "pid": 7, "name": "python3"}],
  "thread": [{"id": 1, "process": 1, "tid": 7, "name": "MainThread", "chrome": [7, 7]},
             {"id": 2, "process": 1, "tid": 9, "name": "worker", "chrome": [7, 9]}]}},
 "stackFrames": {
  "1": {"name": "<module>", "file": "/app/train.py", "line": 40, "kind": "python"},
  "2": {"name": "step", "file": "/app/train.py", "line": 12, "kind": "python", "parent": "1"}},
 "traceEvents": [
  {"ph": "X", "name": "step;1", "cat": "x", "pid": 7, "tid": 7, "ts": 100, "dur": 100},
  {"ph": "X", "name": "inner", "cat": "x", "pid": 7, "tid": 7, "ts": 100, "dur": 40},
  {"ph": "X", "name": "outlasts", "cat": "x", "pid": 7, "tid": 7, "ts": 190, "dur": 50},
  {"ph": "X", "name": "inner", "cat": "x", "pid": 7, "tid": 7, "ts": 150, "dur": 10},
  {"ph": "X", "name": "cuInit", "cat": "cuda_driver", "pid": 7, "tid": 7, "ts": 151, "dur": 4, "sf": 2},
  {"ph": "X", "name": "cuInit", "cat": "cuda_driver", "pid": 7, "tid": 9, "ts": 155, "dur": 4, "sf": 2},
  {"ph": "X", "name": "cuInit", "cat": "cuda_driver", "pid": 7, "tid": 9, "ts": 165, "dur": 4, "sf": 2},
  {"ph": "X", "name": "cuFree", "cat": "cuda_driver", "pid": 7, "tid": 9, "ts": 171, "dur": 4},
  {"ph": "B", "name": "never ends", "cat": "x", "pid": 7, "tid": 9, "ts": 180},
  {"ph": "X", "name": "within", "cat": "x", "pid": 7, "tid": 9, "ts": 190, "dur": 5},
  {"ph": "b", "name": "request", "cat": "x", "pid": 7, "tid": 7, "id": 1, "ts": 100},
  {"ph": "e", "name": "request", "cat": "x", "pid": 7, "tid": 7, "id": 1, "ts": 300},
  {"ph": "X", "name": "instant", "cat": "x", "pid": 7, "tid": 7, "ts": 110, "dur": 0},
  {"ph": "i", "s": "t", "name": "mark", "pid": 7, "tid": 7, "ts": 10}]}
JSON
quietly import s.json -o s.sbt
for count in spans calls memory; do
	t export s.sbt -f folded --count $count -o -
	t export -q s.sbt -f speedscope --count $count -o -
done
t export -q s.sbt -f folded --count spans --no-threads -o -
t export s.sbt -f folded --count span -o x
t export s.sbt -f timeline --count spans -o x
t export s.sbt -f chrome --count calls -o x
t export s.sbt -f chrome --no-gpu-stages -o x
[ ! -e x ] || fail "an output was made"

# A larger one: rows of many threads in no order, spans that nest and some that do not. An
# independent program counts the same.
python3 - <<'PY'
import json, random
random.seed(5)
events = []
def nest(tid, start, end, depth):
    at = start
    while at < end and depth < 12:
        length = random.randint(1, max(1, (end - at) // 2))
        events.append({"ph": "X", "name": f"f{random.randint(0, 20)}", "cat": "x", "pid": 1, "tid": tid, "ts": at, "dur": length})
        if random.random() < 0.7:
            nest(tid, at, at + length, depth + 1)
        at += length + random.randint(0, 3)
for tid in range(40):
    nest(tid, random.randint(0, 50), 4000, 0)
random.shuffle(events)
json.dump({"traceEvents": events}, open("big.json", "w"))
PY
quietly import big.json -o big.sbt
quietly export big.sbt -f folded --count spans -o big.folded
quietly export big.sbt -f speedscope --count spans -o big.speedscope
python3 - <<'PY'
import collections, json
events = json.load(open("big.json"))["traceEvents"]
threads = collections.defaultdict(list)
for i, event in enumerate(events):
    threads[event["tid"]].append((event["ts"] * 1000, -event["dur"] * 1000, i, event["name"]))
expected = collections.Counter()
for tid, spans in threads.items():
    stack = []  # name, end, time of spans inside, start
    def close():
        name, end, inside, start = stack.pop()
        expected[(tid, *(each[0] for each in stack), name)] += end - start - inside
        if stack:
            stack[-1][2] += end - start
    for start, length, _, name in sorted(spans):
        while stack and stack[-1][1] <= start:
            close()
        end = start - length
        stack.append([name, min(end, stack[-1][1]) if stack else end, 0, start])
    while stack:
        close()
expected = collections.Counter({key: value for key, value in expected.items() if value})
found = collections.Counter()
for line in open("big.folded"):
    path, count = line.rsplit(" ", 1)
    process, thread, *names = path.split(";")
    found[(int(thread.split()[1]), *names)] += int(count)
assert found == expected and len(found) > 500, (len(found), len(expected))

data = json.load(open("big.speedscope"))
frames = [frame["name"] for frame in data["shared"]["frames"]]
assert len(set(frames)) == len(frames) and len(data["profiles"]) == 40
found = collections.Counter()
for profile in data["profiles"]:
    assert profile["type"] == "evented" and profile["unit"] == "nanoseconds" and profile["startValue"] == 0
    tid = int(profile["name"].split()[-1])
    stack, last = [], 0
    for event in profile["events"]:
        assert event["at"] >= last, event
        if stack:
            found[(tid, *(frames[i] for i in stack))] += event["at"] - last
        last = event["at"]
        if event["type"] == "O":
            stack.append(event["frame"])
        else:
            assert event["type"] == "C" and stack.pop() == event["frame"], event
    assert not stack and last == profile["endValue"]
assert +found == expected
PY
