#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the forward operators of `view --stacks` with the fwdbwd arrows of the same traces.

An arrow goes from the start of the operator that created a node to the start of the node's
execution. We join by sequence numbers and ignore arrows, so both must agree wherever there is an
arrow.
"""
import bisect
import gzip
import json
import os
import subprocess
import sys
import tempfile

TOOL = os.environ["TRACESMITH"]


def load(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt", errors="replace") as file:
        data = json.load(file)
    return data["traceEvents"] if isinstance(data, dict) else data


def numbered(events):
    return any("Sequence number" in (e.get("args") or {}) for e in events)


def nested(events):
    """Operators of each thread in order, with the enclosing one of each."""
    threads = {}
    for event in events:
        if event.get("ph") == "X" and event.get("cat") in ("cpu_op", "Operator", "user_annotation"):
            threads.setdefault((event["pid"], event["tid"]), []).append(event)
    for ops in threads.values():
        ops.sort(key=lambda e: (e["ts"], -e["dur"]))
        stack = []
        for op in ops:
            while stack and stack[-1]["ts"] + stack[-1]["dur"] <= op["ts"]:
                stack.pop()
            op["parent"] = stack[-1] if stack else None
            stack.append(op)
    return threads


def arrows(events, threads):
    """Backward operator (by lane and start) to the forward one."""
    begins = {}
    for place, ops in threads.items():
        for op in ops:
            begins.setdefault((place, op["ts"]), []).append(op)
    starts, joined = {}, {}
    for event in events:
        if event.get("cat") == "fwdbwd" and event["ph"] == "s":
            starts[event["id"]] = ((event["pid"], event["tid"]), event["ts"])
    for event in events:
        if event.get("cat") == "fwdbwd" and event["ph"] == "f" and event["id"] in starts:
            source = begins.get(starts[event["id"]])
            if source:
                joined[((event["pid"], event["tid"]), event["ts"])] = {op["name"] for op in source}
    return joined


def expected(events):
    """Correlation of a launch to the possible names of its forward operator."""
    threads = nested(events)
    joined = arrows(events, threads)
    begins = {place: [op["ts"] for op in ops] for place, ops in threads.items()}
    result = {}
    for event in events:
        correlation = (event.get("args") or {}).get("correlation")
        if event.get("cat") not in ("cuda_runtime", "cuda_driver", "Runtime") or not correlation:
            continue
        place = (event["pid"], event["tid"])
        ops = threads.get(place, [])
        last = bisect.bisect_right(begins[place], event["ts"]) if ops else 0
        inside = ops[last - 1] if last else None
        while inside and inside["ts"] + inside["dur"] <= event["ts"]:
            inside = inside["parent"]
        while inside and (place, inside["ts"]) not in joined:
            inside = inside["parent"]
        if inside:
            result[correlation] = joined[(place, inside["ts"])]
    return result


def told(path):
    """Correlation to our answer, and whether there is such a command."""
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "t.sbt")
        subprocess.run([TOOL, "import", path, "-o", trace], check=True, capture_output=True)
        rows = subprocess.run([TOOL, "view", trace, "--table", "gpu_op", "--stacks", "--json"], check=True,
                              capture_output=True, text=True).stdout
    found = {}
    for line in rows.splitlines():
        row = json.loads(line)
        found[row.get("correlation")] = row.get("forward", "").split(" > ")[-1]
    return found


def main():
    checked = 0
    for path in sys.argv[1:]:
        if os.path.getsize(path) > 2 << 20:
            continue
        try:
            events = load(path)
        except (ValueError, KeyError, UnicodeDecodeError):
            continue
        events = [e for e in events if isinstance(e, dict)]
        if not numbered(events) or not any(e.get("cat") == "fwdbwd" for e in events):
            continue
        want, have = expected(events), told(path)
        pairs = [(c, names, have[c]) for c, names in want.items() if c in have]
        wrong = [(c, names, name) for c, names, name in pairs if name not in names]
        print(f"{os.path.basename(path)}: {len(pairs)} launches of the backward pass, {len(wrong)} differ")
        for correlation, names, name in wrong[:5]:
            print(f"  correlation {correlation}: '{name}', the arrow is from {sorted(names)}")
        if wrong:
            sys.exit(1)
        checked += len(pairs)
    if not checked:
        print("skip: no trace here has both numbers and arrows")
        sys.exit(77)


if __name__ == "__main__":
    main()
