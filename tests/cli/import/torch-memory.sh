#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# PyTorch memory snapshots pickled by Python in all protocols: the same trace as in the file; sums;
# refused and truncated files.
. "$TS_SOURCE/tests/cli/lib.sh"

cat >make.py <<'PY'
import pickle, random, sys

random.seed(4)
frames = [{"filename": "/src/model%d.py" % (i % 5), "line": i, "name": "f%d" % i} if i % 3 else {"filename": "??", "line": 0, "name": "at::op%d" % i} for i in range(30)]


def stack():
    return [random.choice(frames) for _ in range(random.randrange(1, 9))]


def entry(action, addr, size, time, frames, **more):
    return dict({"action": action, "addr": addr, "size": size, "stream": 0, "time_us": time, "frames": frames, "compile_context": "N/A",
                 "user_metadata": "", "pool_id": (0, 0)}, **more)


def device(number, base, count):
    """A device whose recording begins when 20 blocks are in use; every fifth free waits for others."""
    time, trace, waiting = 1700000000000000 + number, [], []
    places = [base + i * 4096 for i in range(64)]
    in_use = {place: (random.randrange(1, 4096), stack()) for place in places[:20]}
    trace.append(entry("segment_alloc", base + (1 << 30), 1 << 20, time, stack()))
    for i in range(count):
        time += random.randrange(3)
        unused = [p for p in places if p not in in_use and p not in [w[0] for w in waiting]]
        if len(waiting) > 3:
            place, size = waiting.pop(0)
            trace.append(entry("free_completed", place, size, time, stack()))
        elif not unused or in_use and random.random() < 0.5:
            place = random.choice(sorted(in_use))
            size, _ = in_use.pop(place)
            where = stack()
            trace.append(entry("free_requested", place, size, time, where))
            if i % 5:
                time += 1
                trace.append(entry("free_completed", place, size, time, where))
            else:
                waiting.append((place, size))
        else:
            place = random.choice(unused)
            in_use[place] = random.randrange(1, 4096), stack()
            trace.append(entry("alloc", place, *in_use[place][:1], time, in_use[place][1], user_metadata="step %d" % (i // 50)))
    trace.append(entry("segment_map", base + (1 << 32), 5 << 21, time, []))
    trace.append(entry("segment_unmap", base + (1 << 32), 2 << 21, time, []))
    trace.append({"action": "oom", "device_free": 77, "size": 1 << 40, "stream": 0, "time_us": time, "frames": stack()})
    trace.append({"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": time})
    blocks = []
    for place in places:
        block = {"address": place, "size": 4096, "requested_size": 0, "state": "inactive", "frames": []}
        if place in in_use:
            block.update(requested_size=in_use[place][0], state="active_allocated", frames=in_use[place][1])
        for waits, size in waiting:
            if waits == place:
                block.update(requested_size=size, state="active_pending_free")
        blocks.append(block)
    segment = {"device": number, "address": base, "total_size": 64 * 4096, "allocated_size": 0, "active_size": 0, "requested_size": 0, "stream": 0,
               "segment_type": "small", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [], "blocks": blocks}
    return trace, [segment, dict(segment, address=base + (1 << 30), total_size=1 << 20, blocks=[]),
                   dict(segment, address=base + (1 << 32), total_size=7 << 21, is_expandable=True, blocks=[])]


traces, segments = zip(*[device(n, (1 << 46) + (n << 40), 500 * (n + 1)) for n in range(2)])
end = 1700000000100000
snapshot = {"segments": sum(segments, []), "device_traces": list(traces) + [[]],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.5, "roundup_power2_divisions": {"1": 0}},
            "external_annotations": [{"name": name, "stage": stage, "device": 0, "time_us": end + i} for i, (name, stage) in enumerate(
                [("step", "START"), ("forward", "START"), ("forward", "END"), ("step", "END")])]}
for protocol in range(6):
    with open("p%d.pickle" % protocol, "wb") as file:
        pickle.dump(snapshot, file, protocol)
with open("slow.pickle", "wb") as file:
    pickle._dump(snapshot, file)
for trace in traces:
    for one in trace:
        del one["time_us"]
with open("untimed.pickle", "wb") as file:
    pickle.dump(snapshot, file)
with open("segments.pickle", "wb") as file:
    pickle.dump(snapshot["segments"], file)
PY
python3 make.py
t import p4.pickle -o p4.sbt | numbers
t verify p4.sbt
"$TRACESMITH" view --json p4.sbt >p4.txt
for file in p0 p1 p2 p3 p5 slow; do
	"$TRACESMITH" import -q $file.pickle -o other.sbt
	cmp p4.txt <("$TRACESMITH" view --json other.sbt) || fail "$file differs"
done
gzip -k p4.pickle
"$TRACESMITH" import -q - -o other.sbt <p4.pickle.gz
cmp p4.txt <("$TRACESMITH" view --json other.sbt) || fail "packed, as standard input"
for file in p4 untimed segments; do
	echo "$file:"
	python3 "$TS_SOURCE/tests/lib/check_torch_memory.py" "$TRACESMITH" $file.pickle 2>/dev/null
done
t view p4.sbt -t slice --columns name,duration,thread
"$TRACESMITH" view p4.sbt -t mark -n oom --columns name,args
# A pickle that would execute code is refused, with no output and no effect.
python3 - <<'PY'
import pickle

class Bad:
    def __reduce__(self):
        import os
        return os.mkdir, ("made",)

for protocol in (0, 2, 4):
    with open("bad%d.pickle" % protocol, "wb") as file:
        pickle.dump({"segments": [], "device_traces": [[Bad()]]}, file, protocol)
with open("other.pickle", "wb") as file:
    pickle.dump({"weights": [1, 2, 3]}, file)
PY
for file in bad0 bad2 bad4 other; do t import -q $file.pickle -o bad.sbt; done
for left in bad.sbt made; do [ ! -e $left ] || fail "$left exists"; done
# Truncated: what came before is kept.
head -c 60000 p4.pickle >cut.pickle
t import -q cut.pickle -o cut.sbt
t verify cut.sbt
"$TRACESMITH" view --json cut.sbt -t allocation | wc -l
