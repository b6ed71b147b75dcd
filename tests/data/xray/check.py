#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py whole|end VIEW LIST [YAML]: compares the sequence of entries and exits of each thread,
rebuilt from VIEW (tracesmith view --json), with LIST, which the program counted itself, and with
YAML (llvm-xray convert --output-format=yaml --symbolize). end: VIEW only has the end of LIST.

Records with equal times are ordered by entry_order, exit_order and order; other rows have no
such neighbours.
"""
import collections
import json
import re
import sys


def rebuild(path):
    steps = collections.defaultdict(list)
    for line in open(path):
        row = json.loads(line)
        if row["table"] not in ("slice", "mark"):
            continue
        args, thread = row["args"], steps[row["tid"]]
        if row["table"] == "mark":
            assert row["category"] == "exit without entry", row
            thread.append((row["start"], args["order"], "X", row["name"]))
            continue
        thread.append((row["start"], args.get("entry_order", -1), "E", row["name"]))
        if row["duration"] >= 0 and "no_exit" not in args:
            end = row["start"] + row["duration"]
            thread.append((end, args.get("exit_order", -1), "T" if args.get("tail_exit") else "X", row["name"]))
    for tid, thread in steps.items():
        thread.sort(key=lambda step: step[:2])
        for a, b in zip(thread, thread[1:]):
            assert a[:2] != b[:2] and (a[0] != b[0] or a[1] >= 0), ("order is not known", tid, a, b)
    return steps


def read_list(path):
    steps = collections.defaultdict(list)
    for line in open(path):
        tid, kind, name = line.split()
        steps[int(tid)].append((kind, name))
    return steps


KINDS = {"enter": "E", "enter-arg": "E", "exit": "X", "tail-exit": "T"}


def read_yaml(path):
    steps = collections.defaultdict(list)
    for match in re.finditer(r"function: '?(.*?)'?, cpu: \d+, thread: (\d+), .*kind: function-([a-z-]+), tsc: (\d+)", open(path).read()):
        steps[int(match[2])].append((KINDS[match[3]], match[1]))
    return steps


def compare(what, ours, theirs):
    assert set(ours) <= set(theirs) and ours, (what, sorted(ours), sorted(theirs))
    for tid, steps in ours.items():
        if steps != theirs[tid]:
            at = next((i for i, (a, b) in enumerate(zip(steps, theirs[tid])) if a != b), min(len(steps), len(theirs[tid])))
            sys.exit("%s: thread %d, step %d of %d and %d: %s, %s" %
                     (what, tid, at, len(steps), len(theirs[tid]), steps[at:at + 3], theirs[tid][at:at + 3]))


def plain(steps):
    """Some versions of the runtime write tail exits as exits."""
    return [("X" if kind == "T" else kind, name) for kind, name in steps]


def main():
    kind, view, listed = sys.argv[1:4]
    ours = {tid: [step[2:] for step in steps] for tid, steps in rebuild(view).items()}
    counted = {tid: plain(steps) for tid, steps in read_list(listed).items()}
    if kind == "end":
        counted = {tid: counted[tid][-len(steps):] for tid, steps in ours.items()}
        assert sum(map(len, counted.values())) < sum(map(len, read_list(listed).values())), "nothing is missing"
    else:
        assert set(ours) == set(counted), (sorted(ours), sorted(counted))
    compare("the program", {tid: plain(steps) for tid, steps in ours.items()}, counted)
    if len(sys.argv) > 4:
        compare("llvm-xray", ours, read_yaml(sys.argv[4]))
    print("%d threads: every entry and exit in order" % len(ours) if kind == "whole" else "the end: every entry and exit in order")


main()
