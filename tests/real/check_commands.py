# SPDX-License-Identifier: Apache-2.0
"""check_commands.py FILE...: compares the command stream of each recorded Kineto trace with an
independent reading of its JSON.

Checks the number of commands of each kind in each stream, which of them did not run, and that each
stream is in submission order. Prints a line per file; exits with 1 on a difference.
"""
import gzip
import json
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict

import tool

DEVICE = {"kernel": "launch", "gpu_memcpy": "copy", "memcpy": "copy", "gpu_memset": "fill", "memset": "fill",
          "mtia_ccp_events": "launch"}
CALLS = {"cuda_runtime", "cuda_driver", "runtime", "mtia_runtime"}
HOST = [("record", r"EventRecord"), ("wait", r"StreamWait(Event|Value)"),
        ("sync", r"(Event|Stream|Device|Thread|Ctx)Synchronize")]
ASKED = [("launch", r"(Graph|Ext|Module|ExtModule|HccModule)?Launch"), ("copy", r"Memcpy|MemPrefetch"), ("fill", r"Memset")]


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    trace = json.loads(data)
    return trace["traceEvents"] if isinstance(trace, dict) else trace


def kind_of_call(name, words):
    if name.startswith("runFunction"):
        return "launch" if words is ASKED else None
    behind = re.match(r"(cuda|cu|hip)(?=[A-Z])(.*)", name)
    if behind:
        for kind, pattern in words:
            if re.match(pattern, behind.group(2)):
                return kind
    return None


def expected(events):
    """Counts of (device, stream, kind), of kinds without a stream, of calls without a command;
    calls by correlation."""
    spans = [e for e in events if e.get("ph") == "X" and "dur" in e]
    device, host, asked = Counter(), Counter(), []
    for event in spans:
        category, args = str(event.get("cat", "")).lower(), event.get("args") or {}
        if category in DEVICE:
            device[args.get("device", event.get("pid")), args.get("stream", event.get("tid")), DEVICE[category]] += 1
        elif category in CALLS:
            kind = kind_of_call(event["name"], HOST)
            if kind:
                host[kind] += 1
            if kind_of_call(event["name"], ASKED):
                asked.append((kind_of_call(event["name"], ASKED), args.get("correlation")))
    done = {(e.get("args") or {}).get("correlation") for e in spans if str(e.get("cat", "")).lower() in DEVICE} - {None}
    missing = Counter()
    for kind, correlation in asked:
        if correlation in done:
            done.discard(correlation)  # another call with this number has none
        else:
            missing[kind] += 1
    return device, host, missing


def check_order(faults, rows):
    streams = defaultdict(list)
    for row in rows:
        if "stream" in row:
            streams[row.get("device"), row["stream"]].append(row)
    for place, listed in streams.items():
        faults.equal(f"sequence of {place}", [row["sequence"] for row in listed], list(range(len(listed))))
        given = [row.get("issued", row.get("start")) for row in listed]
        faults.check(given == sorted(given), f"{place} is not in order")


def check(path, folder):
    faults = tool.Faults()
    trace = os.path.join(folder, "t.sbt")
    tool.run("import", path, "-q", "-o", trace)
    rows = [json.loads(line) for line in tool.run("view", trace, "--commands", "--json").splitlines()]
    device, host, missing = expected(load(path))
    made = [row for row in rows if "missing" not in row]
    of_host = {"record", "wait", "sync"}
    faults.counters("commands of streams",
                    Counter((row.get("device"), row.get("stream"), row["kind"]) for row in made if row["kind"] not in of_host),
                    device)
    faults.counters("of the host", Counter(row["kind"] for row in made if row["kind"] in of_host), host)
    faults.counters("missing", Counter(row["kind"] for row in rows if "missing" in row), missing)
    check_order(faults, rows)
    print(f"{os.path.basename(path)}: {len(rows)} commands" + ("" if not faults else " DIFFER"))
    for fault in faults:
        print("  " + fault)
    return not faults


def main(paths):
    with tempfile.TemporaryDirectory() as folder:
        good = [check(path, folder) for path in paths]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
