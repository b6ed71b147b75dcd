# SPDX-License-Identifier: Apache-2.0
"""check_nsys.py FILE...: compares imports of Nsight Systems exports with the source: counts every
table with rows, and compares calls, kernels, copies, NVTX, samples and stacks row by row.
"""
import gzip
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from collections import Counter

import tool

COPIES = {1: "host_to_device", 2: "device_to_host", 8: "device_to_device"}
FUNCTION = re.compile(r"_v\d{4,}$")
# Become metadata, or only explain others.
FACTS = re.compile(r"^(ENUM_|TARGET_INFO_|EXPORT_META_DATA|META_DATA_|ANALYSIS_DETAILS|ProcessStreams|UnwindMethodType|StringIds|ThreadNames"
                   r"|PROCESSES|\w+_CALLCHAINS)")


class Database:
    def __init__(self, path):
        self.connection = sqlite3.connect(path)
        self.connection.text_factory = lambda text: text.decode(errors="replace")
        self.connection.row_factory = sqlite3.Row
        self.strings = {row["id"]: row["value"] for row in self.rows("StringIds")}
        session = self.rows("TARGET_INFO_SESSION_START_TIME")
        self.base = session[0]["utcEpochNs"] if session else 0

    def tables(self):
        return [row[0] for row in self.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]

    def rows(self, table):
        return self.connection.execute(f'SELECT * FROM "{table}"').fetchall() if table in self.tables() else []

    def stacks(self, table):
        """Innermost first: function and binary."""
        found = {}
        for row in sorted(self.rows(table), key=lambda row: (row["id"], row["stackDepth"])):
            found.setdefault(row["id"], []).append((self.strings[row["symbol"]], self.strings[row["module"]]))
        return {key: tuple(frames) for key, frames in found.items()}


def view(trace, table):
    return [json.loads(line) for line in tool.run("view", trace, "--json", "--table", table).splitlines()]


def stack_of(row):
    return tuple((frame["func"], frame["module"]) for frame in row.get("stack", ()))


def place(row):
    return row["globalTid"] >> 24 & 0xFFFFFF, row["globalTid"] & 0xFFFFFF


def check_kernels(faults, database, ops):
    expected = Counter((database.base + row["start"], row["end"] - row["start"], database.strings[row["demangledName"]], row["deviceId"],
                        row["streamId"], row["correlationId"], row["gridX"], row["gridY"], row["gridZ"], row["blockX"], row["blockY"],
                        row["blockZ"], row["registersPerThread"], row["staticSharedMemory"] + row["dynamicSharedMemory"],
                        row["localMemoryTotal"], row["gridId"])
                       for row in database.rows("CUPTI_ACTIVITY_KIND_KERNEL"))
    found = Counter((op["start"], op["duration"], op["name"], op["device"], op["stream"], op["correlation"], op["grid_x"], op["grid_y"],
                     op["grid_z"], op["block_x"], op["block_y"], op["block_z"], op["registers"], op["shared_bytes"],
                     op["args"]["localMemoryTotal"], op["args"]["gridId"])
                    for op in ops if op["category"] == "kernel")
    faults.counters("kernels", found, expected)


def check_copies(faults, database, ops):
    expected = Counter((database.base + row["start"], row["end"] - row["start"], row["bytes"], COPIES[row["copyKind"]],
                        row["correlationId"]) for row in database.rows("CUPTI_ACTIVITY_KIND_MEMCPY"))
    found = Counter((op["start"], op["duration"], op["bytes"], op["copy_kind"], op["correlation"]) for op in ops if op["kind"] == "copy")
    faults.counters("copies", found, expected)


def check_calls(faults, database, calls):
    stacks = database.stacks("CUDA_CALLCHAINS")
    rows = database.rows("CUPTI_ACTIVITY_KIND_RUNTIME")
    # The chain of a call has a frame of its name: tells whether chains are counted from 0 or by id.
    named = Counter(offset for row in rows for offset in (0, 1) if row["callchainId"] is not None
                    for name, _ in stacks.get(row["callchainId"] + offset, ()) if name == database.strings[row["nameId"]])
    offset = int(named[1] > named[0])
    expected = Counter((database.base + row["start"], row["end"] - row["start"], *place(row),
                        FUNCTION.sub("", database.strings[row["nameId"]]), row["correlationId"], row["returnValue"],
                        () if row["callchainId"] is None else stacks.get(row["callchainId"] + offset, ())) for row in rows)
    found = Counter((call["start"], call["duration"], call["pid"], call["tid"], call["name"], call["correlation"], call["result"],
                     stack_of(call)) for call in calls)
    faults.counters("calls", found, expected)


def check_ranges(faults, database, slices):
    domains = {row["domainId"]: row["text"] for row in database.rows("NVTX_EVENTS") if row["eventType"] == 75}
    expected = Counter((database.base + row["start"], row["end"] - row["start"], *place(row),
                        row["text"] or database.strings.get(row["textId"]),
                        f"nvtx:{domains[row['domainId']]}" if row["domainId"] in domains else "nvtx")
                       for row in database.rows("NVTX_EVENTS") if row["eventType"] in (59, 60))
    found = Counter((row["start"], row["duration"], row["pid"], row["tid"], row["name"], row["category"])
                    for row in slices if row["category"].startswith("nvtx"))
    faults.counters("NVTX ranges", found, expected)


def check_samples(faults, database, samples):
    stacks = database.stacks("SAMPLING_CALLCHAINS")
    expected = Counter((database.base + row["start"], *place(row), row["cpu"], stacks.get(row["id"], ()))
                       for row in database.rows("COMPOSITE_EVENTS"))
    found = Counter((row["start"], row["pid"], row["tid"], row["cpu"], stack_of(row)) for row in samples)
    faults.counters("samples", found, expected)


def check_counts(faults, database, tables):
    """No table with rows is skipped: its name is a category, or it is one of those compared above."""
    compared = {"NVTX_EVENTS", "COMPOSITE_EVENTS", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL",
                "CUPTI_ACTIVITY_KIND_MEMCPY"}
    categories = Counter(row.get("category") for table in ("slice", "mark", "gpu_op", "counter") for row in tables[table])
    for table in database.tables():
        count = len(database.rows(table))
        if count and table not in compared and not FACTS.match(table):
            faults.equal(f"rows of {table}", categories[table], count)
    faults.equal("losses", tables["loss"], [])


def check_figures(faults, trace, tables):
    """Further use: analyses join calls and device work, and an export contains everything."""
    analysis = json.loads(tool.run("analyze", trace, "kernels,launch", "--json"))
    text = json.dumps(analysis)
    faults.check(any(op["name"] in text for op in tables["gpu_op"] if op["category"] == "kernel"), "analyze: no kernel")
    calls = {call["correlation"] for call in tables["api_call"]}
    faults.equal("device work without a call", [op for op in tables["gpu_op"] if op.get("correlation") not in calls], [])
    with tempfile.TemporaryDirectory() as folder:
        exported = os.path.join(folder, "all.json")
        tool.run("export", trace, "-o", exported)
        with open(exported, encoding="utf-8") as file:
            names = Counter(event.get("name") for event in json.load(file)["traceEvents"])
    for op in tables["gpu_op"]:
        faults.check(names[op["name"]], "export: nothing of", op["name"])


def check(path, folder):
    faults = tool.Faults()
    plain, trace = os.path.join(folder, "plain.sqlite"), os.path.join(folder, "trace.sbt")
    with (gzip.open(path) if path.endswith(".gz") else open(path, "rb")) as packed, open(plain, "wb") as out:
        shutil.copyfileobj(packed, out)
    tool.run("import", path, "-o", trace)
    tool.run("verify", trace)
    database = Database(plain)
    tables = {name: view(trace, name) for name in ("gpu_op", "api_call", "slice", "mark", "sample", "counter", "loss")}
    check_kernels(faults, database, tables["gpu_op"])
    check_copies(faults, database, tables["gpu_op"])
    check_calls(faults, database, tables["api_call"])
    check_ranges(faults, database, tables["slice"])
    check_samples(faults, database, tables["sample"])
    check_counts(faults, database, tables)
    check_figures(faults, trace, tables)
    # The plain file, read in place, gives the same; no file is created beside it.
    again = os.path.join(folder, "again.sbt")
    before = sorted(os.listdir(folder))
    tool.run("import", plain, "-o", again)
    faults.equal("files beside the database", sorted(set(os.listdir(folder)) - set(before)), ["again.sbt"])
    for table in ("gpu_op", "api_call", "slice"):
        faults.check(tool.table_lines(trace, table) == tool.table_lines(again, table), "plain and packed differ in", table)
    kernels = [op for op in tables["gpu_op"] if op["category"] == "kernel"]
    print(f"{os.path.basename(path)}: {len(kernels)} kernels ({sum(op['duration'] for op in kernels)} ns), "
          f"{sum(op['kind'] == 'copy' for op in tables['gpu_op'])} copies, {len(tables['api_call'])} calls, {len(tables['sample'])} samples")
    for fault in faults:
        print(f"  {fault}")
    return not faults


def main():
    good = True
    for path in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            good &= check(path, folder)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
