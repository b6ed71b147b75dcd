#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cuts.py TOOL TRACE: replays ranges [X, Y) of a recording, where X and Y are commands other than
bookkeeping, and compares all hashes of a range with those of the full replay: after the same
command, of the same memory. Every thirteenth range; TS_LONG=1: all of them. Prints the number of ranges
and hashes.
"""
import concurrent.futures
import json
import os
import subprocess
import sys

TOOL, TRACE = sys.argv[1:3]


def replay(*options):
    done = subprocess.run([TOOL, "replay", TRACE, "--check", "each", "--json", "--hashes", *options],
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"replay {' '.join(options)}: exit code {done.returncode}: {done.stdout}{done.stderr}"
    return json.loads(done.stdout)


def hashes(report):
    return {(h["command"], h["buffer"], h["offset"], h["bytes"], h["why"]): h["hash"]
            for h in report["hashes"] if h["command"] is not None}


def sequences():
    lines = subprocess.run([TOOL, "view", TRACE, "--json", "--table", "command"], check=True, capture_output=True,
                           text=True).stdout.splitlines()
    rows = map(json.loads, lines)
    return sorted({row["sequence"] for row in rows
                   if row["kind"] not in ("open", "close", "check", "alloc", "free", "load")})


def check_part(part):
    report = replay("--from", str(part[0]), "--to", str(part[1] + 1))
    assert report["verdict"].startswith(("no difference in 1 run", "ran once")), f"{part}: {report['verdict']}"
    found = hashes(report)
    for key, value in found.items():
        assert WHOLE.get(key) == value, f"{part}: {key}: {value}, in the whole replay {WHOLE.get(key)}"
    return len(found)


WHOLE = hashes(replay())
NUMBERS = sequences()
assert len(NUMBERS) > 10 and len(WHOLE) > 10, f"only {len(NUMBERS)} commands, {len(WHOLE)} hashes"
PARTS = [(first, last) for first in NUMBERS for last in NUMBERS if first <= last]
if not os.environ.get("TS_LONG"):
    PARTS = PARTS[::13]
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    COUNTS = list(pool.map(check_part, PARTS))
print(f"{len(PARTS)} parts, {sum(COUNTS)} hashes")
