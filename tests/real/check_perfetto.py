# SPDX-License-Identifier: Apache-2.0
"""check_perfetto.py PYTHON|- FILE...: imports each recorded trace, exports it as Perfetto protobuf
and imports that again: all tables must be the same.

PYTHON has the package perfetto (scripts/perfetto-peer): with it, the export is also read with
Perfetto's own schema and counted. Prints a line per file; exits with 1 on a difference.
"""
import os
import subprocess
import sys
import tempfile
from collections import Counter

import tool

HIDDEN = {"string", "shape", "index"}
SPANS = ("slice", "api_call", "gpu_op", "window")


def rows(trace):
    tables = {}
    for table in tool.info(trace)["tables"]:
        if table not in HIDDEN:
            tables[table] = Counter(tool.run("view", trace, "--json", "--args", "--table", table).splitlines())
    return tables


def say(problems, text):
    problems.append(text[:400])


def compare(before, after, problems):
    for table in sorted(before.keys() | after.keys()):
        left, right = before.get(table, Counter()), after.get(table, Counter())
        if left != right:
            say(problems, f"{table}: {sum((left - right).values())} rows went, {sum((right - left).values())} came")
            for row in list((left - right))[:1] + list((right - left))[:1]:
                say(problems, row.decode(errors="replace"))


def check_schema(python, export, tables, problems):
    checker = os.path.join(os.environ["TS_SOURCE"], "scripts", "perfetto-check")
    done = subprocess.run([python, checker, export], capture_output=True, text=True, check=False)
    if done.returncode:
        say(problems, done.stdout + done.stderr)
        return
    said = dict(line.rsplit(": ", 1) for line in done.stdout.splitlines())
    count = {table: sum(lines.values()) for table, lines in tables.items()}
    spans = sum(count.get(table, 0) for table in SPANS)
    if int(said.get("begins", 0)) != spans:
        say(problems, f"{said.get('begins')} spans in the export, {spans} in the trace")
    if int(said.get("ends", 0)) + int(said["open spans"]) != spans:
        say(problems, f"{said.get('ends')} ends and {said['open spans']} open spans of {spans}")
    stages = sum(b'"duration":-1' not in line for line in tables.get("gpu_op", Counter()).elements())
    if int(said.get("GPU stages", 0)) != stages:
        say(problems, f"{said.get('GPU stages')} GPU stages of {stages}")


def check(python, path, folder):
    trace, again, export = (os.path.join(folder, name) for name in ("a.sbt", "b.sbt", "a.pftrace"))
    problems = []
    tool.run("import", path, "-o", trace)
    tool.run("export", trace, "-f", "perfetto", "-o", export)
    tool.run("import", export, "-o", again)
    tool.run("verify", again)
    before = rows(trace)
    compare(before, rows(again), problems)
    if python != "-":
        check_schema(python, export, before, problems)
    total = sum(sum(lines.values()) for lines in before.values())
    print(f"{os.path.basename(path)}: {total} rows, {os.path.getsize(export)} bytes: {'differs' if problems else 'the same'}", flush=True)
    for problem in problems:
        print("   ", problem)
    return not problems


def main():
    python, good = sys.argv[1], True
    for path in sys.argv[2:]:
        with tempfile.TemporaryDirectory() as folder:
            good = check(python, path, folder) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
