#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tables of recorded traces as Arrow streams, compared with CSV, cell by cell.

Both are read from the same file by different code; `arrow_csv` also checks every batch against its
schema. Pids and tids that are texts in their source are only in CSV.
"""
import csv
import io
import os
import subprocess
import sys

csv.field_size_limit(sys.maxsize)
TOOL = os.environ["TRACESMITH"]
ARROW = os.path.join(os.environ["TS_BUILD"], "tests/targets/arrow_csv")
TABLES = ("source host process thread device stream slice api_call gpu_op allocation flow sample frame stack "
          "mapping symbol counter mark window torch_trace tensor command object clock_sync loss meta").split()


def rows_of(command):
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout.decode()
    return list(csv.DictReader(io.StringIO(output, newline=""), strict=True))


def is_text_number(name, cell):
    return name.endswith(("_pid", "_tid")) and not cell.lstrip("-").isdigit()


def compare(table, time_range=()):
    arguments = ["--from", f"@{time_range[0]}", "--to", f"@{time_range[1]}"] if time_range else []
    expected = rows_of([TOOL, "export", "-q", "-f", "csv", "--table", table, *arguments, "t.sbt", "-o", "-"])
    found = rows_of([ARROW, "t.sbt", table, *map(str, time_range)])
    assert len(found) == len(expected), (table, len(found), len(expected))
    for number, (a, b) in enumerate(zip(found, expected)):
        b = {name: "" if is_text_number(name, cell) else cell for name, cell in b.items()}
        assert a == b, (table, number, {name: (a.get(name), b[name]) for name in b if a.get(name) != b[name]})
    return expected


def check(path):
    subprocess.run([TOOL, "import", "-q", path, "-o", "t.sbt"], check=True)
    rows = 0
    for table in TABLES:
        expected = compare(table)
        rows += len(expected)
        if len(expected) > 10 and table in ("slice", "gpu_op", "counter", "mark"):
            starts = sorted(int(row["start"]) for row in expected)
            compare(table, (starts[len(starts) // 3], starts[len(starts) // 2]))
    return rows


def main():
    rows = sum(check(path) for path in sys.argv[1:])
    assert rows > 1000, rows
    print(f"{len(sys.argv) - 1} traces, {rows} rows")


if __name__ == "__main__":
    main()
