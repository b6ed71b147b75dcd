#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables, spans and graphs of recorded traces, each read by an independent program and compared.

CSV: Python's csv module reads what `view --json` shows. Spans: the self times of a thread add up to
the time in which any of its spans ran; folded and speedscope agree, and speedscope's begins and
ends nest. Graph: Graphviz draws it, if installed.
"""
import collections
import csv
import json
import os
import shutil
import subprocess
import sys

csv.field_size_limit(sys.maxsize)
TOOL = os.environ["TRACESMITH"]
TABLES = ["slice", "api_call", "gpu_op", "counter", "mark", "flow"]


def export(*arguments):
    subprocess.run([TOOL, "export", "-q", *arguments], check=True, stderr=subprocess.DEVNULL)


def canonical(value):
    return json.dumps(value, sort_keys=True)


def rows_of_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, strict=True))


def compare_table(table):
    path = f"tables/{table}.csv"
    if not os.path.exists(path):
        return 0
    rows = rows_of_csv(path)
    found = sorted((int(row["start"]), row.get("duration", ""), row["name"], row["category"],
                    canonical(json.loads(row["args"] or "{}"))) for row in rows)
    view = subprocess.run([TOOL, "view", "--json", "-t", table, "t.sbt"], check=True, capture_output=True).stdout
    expected = []
    for line in view.splitlines():
        row = json.loads(line)
        duration = row.get("duration", 0)
        text = "" if table not in ("slice", "api_call", "gpu_op") or duration == -1 else str(duration)
        expected.append((row["start"], text, row.get("name", ""), row.get("category", ""), canonical(row.get("args", {}))))
    assert found == sorted(expected), next((a, b) for a, b in zip(found, sorted(expected)) if a != b)
    return len(rows)


def spans_of_threads():
    threads = collections.defaultdict(list)
    last = 0
    for table in "slice", "api_call":
        if not os.path.exists(f"tables/{table}.csv"):
            continue
        for row in rows_of_csv(f"tables/{table}.csv"):
            if row.get("kind", "nested") != "nested":
                continue
            start = int(row["start"])
            end = start + int(row["duration"]) if row["duration"] else None
            threads[row["thread"]].append((start, end))
            last = max(last, start if end is None else end)
    return {thread: sorted((start, last if end is None else end) for start, end in spans) for thread, spans in threads.items()}


def covered(spans):
    total, until = 0, None
    for start, end in spans:
        if until is None or start > until:
            total += end - start
            until = end
        elif end > until:
            total += end - until
            until = end
    return total


def nested_time(spans):
    """Like covered(), but cut at the end of the outermost span in which it began."""
    total, until = 0, None
    for start, end in sorted(spans, key=lambda span: (span[0], -span[1])):
        if until is None or start >= until:
            total += end - start
            until = end
    return total


def check_spans():
    threads = spans_of_threads()
    expected = sum(nested_time(spans) for spans in threads.values())
    assert expected <= sum(covered(spans) for spans in threads.values())
    export("t.sbt", "-f", "folded", "--count", "spans", "-o", "spans.folded")
    with open("spans.folded", encoding="utf-8") as file:
        total = sum(int(line.rsplit(" ", 1)[1]) for line in file)
    assert total == expected, (total, expected)
    export("t.sbt", "-f", "speedscope", "--count", "spans", "-o", "spans.json")
    with open("spans.json", encoding="utf-8") as file:
        profiles = json.load(file)["profiles"]
    assert len(profiles) == len(threads)
    busy = 0
    for profile in profiles:
        stack, last = [], 0
        for event in profile["events"]:
            assert event["at"] >= last
            busy += event["at"] - last if stack else 0
            last = event["at"]
            if event["type"] == "O":
                stack.append(event["frame"])
            else:
                assert stack.pop() == event["frame"]
        assert not stack
    assert busy == expected, (busy, expected)


def check_graph():
    export("t.sbt", "-f", "dot", "--limit", "40", "-o", "graph.dot")
    if shutil.which("dot"):
        said = subprocess.run(["dot", "-Tcanon", "graph.dot", "-o", "graph.canon"], check=True, capture_output=True)
        assert not said.stderr, said.stderr


checked = 0
for path in sys.argv[1:]:
    if subprocess.run([TOOL, "import", "-q", path, "-o", "t.sbt"], stderr=subprocess.DEVNULL, check=False).returncode:
        print(f"{os.path.basename(path)}: cannot be imported completely, left out")
        continue
    export("t.sbt", "-f", "csv", "-o", "tables/")
    count = sum(compare_table(table) for table in TABLES)
    check_spans()
    check_graph()
    print(f"{os.path.basename(path)}: {count} rows")
    checked += 1
    shutil.rmtree("tables")
assert checked, "no trace was looked at"
