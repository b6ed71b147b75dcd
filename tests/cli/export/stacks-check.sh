#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A larger trace of samples: the three formats agree with each other, the speedscope profile is
# valid, and spans of the timeline nest.
. "$TS_SOURCE/tests/cli/lib.sh"

python3 - <<'PY'
import json, random
random.seed(3)
frames, stacks = {}, [0]
for i in range(1, 400):
    frames[str(i)] = {"name": f"f{i % 23}", "file": f"/x/m{i % 7}.py", "line": i % 50, "kind": "python"}
    if i > 5:
        frames[str(i)]["parent"] = str(random.randint(max(1, i - 60), i - 1))
events = []
for i in range(20000):
    pid = random.choice([5, 6])
    tick = i // 8
    if tick % 100 < 10:
        continue  # not compared
    events.append({"ph": "P", "name": "python", "pid": pid, "tid": random.choice([5, 6, 7]), "ts": tick * 1000 + i % 8,
                   "weight": 1000000, "sf": random.randint(1, 399)})
random.shuffle(events)
json.dump({"stackFrames": frames, "traceEvents": events}, open("big.json", "w"))
PY
quietly import big.json -o big.sbt
for format in folded speedscope timeline; do
	quietly export big.sbt -f $format -o big.$format
	quietly export big.sbt -f $format -o again
	cmp big.$format again || fail "$format is not the same twice"
done
python3 - <<'PY'
import collections, json

events = json.load(open("big.json"))["traceEvents"]
frames = json.load(open("big.json"))["stackFrames"]

def words(sf):
    out = []
    while sf:
        frame = frames[sf]
        out.append(f'{frame["name"]} ({frame["file"].split("/")[-1]}:{frame["line"]})')
        sf = frame.get("parent")
    return tuple(reversed(out))

expected = collections.Counter()
for event in events:
    expected[(event["pid"], event["tid"]) + words(str(event["sf"]))] += 1

# folded
folded = collections.Counter()
lines = open("big.folded").read().splitlines()
for line in lines:
    stack, count = line.rsplit(" ", 1)
    process, thread, *rest = stack.split(";")
    folded[(int(process.split()[1]), int(thread.split()[1])) + tuple(rest)] += int(count)
assert folded == expected and len(lines) == len(expected)

# speedscope: the rules of its format
profile = json.load(open("big.speedscope"))
assert profile["$schema"] == "https://www.speedscope.app/file-format-schema.json"
shared = profile["shared"]["frames"]
assert all(isinstance(frame["name"], str) for frame in shared)
assert len({json.dumps(frame) for frame in shared}) == len(shared)
found = collections.Counter()
for part in profile["profiles"]:
    assert part["type"] == "sampled" and part["unit"] == "nanoseconds" and isinstance(part["name"], str), part["name"]
    assert len(part["samples"]) == len(part["weights"]) and all(weight > 0 for weight in part["weights"])
    assert part["endValue"] - part["startValue"] == sum(part["weights"])
    pid, tid = int(part["name"].split()[1]), int(part["name"].split()[3])
    for stack, weight in zip(part["samples"], part["weights"]):
        assert all(isinstance(index, int) and 0 <= index < len(shared) for index in stack)
        names = tuple(f'{shared[i]["name"]} ({shared[i]["file"].split("/")[-1]}:{shared[i]["line"]})' for i in stack)
        assert weight % 1000000 == 0
        found[(pid, tid) + names] += weight // 1000000
assert found == expected
assert len({part["name"] for part in profile["profiles"]}) == len(profile["profiles"]) == 6

# timeline: spans nest, times do not decrease, and at the time of a sample its stack is open
tracks = collections.defaultdict(list)
for event in json.load(open("big.timeline"))["traceEvents"]:
    if event["ph"] in "BE":
        tracks[event["pid"], event["tid"]].append(event)
samples = collections.defaultdict(list)
for event in events:
    samples[event["pid"], event["tid"]].append((event["ts"], tuple(word.split(" (")[0] for word in words(str(event["sf"])))))
spans = 0
for key, track in tracks.items():
    stack, at = [], 0
    last = float("-inf")
    for ts, names in sorted(samples[key], key=lambda sample: sample[0]):
        while at < len(track) and track[at]["ts"] <= ts:
            event = track[at]
            assert event["ts"] >= last, event
            last = event["ts"]
            if event["ph"] == "B":
                assert event["cat"] == "python" and event["args"]["line"] >= 0, event
                stack.append(event["name"])
                spans += 1
            else:
                assert stack.pop() == event["name"], event
            at += 1
        assert tuple(stack) == names, (key, ts, stack, names)
    for event in track[at:]:
        assert event["ph"] == "E" and stack.pop() == event["name"]
    assert not stack
assert set(tracks) == set(samples) and spans > 1000
PY
