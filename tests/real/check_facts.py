# SPDX-License-Identifier: Apache-2.0
"""check_facts.py FOLDER: compares traces of tests/data/real with FOLDER/facts.json, which the
recorded programs wrote.

Each fact is known without the trace: from the program (what it copied and launched), from PyTorch's
allocator, or from torch.profiler's own table; "counted" is what Python's json read right after the
recording. A fact that no check uses is an error. Prints a line per trace; exits with 1 on a
difference.
"""
import gzip
import json
import os
import sys
from collections import Counter

import tool

DEVICE = ("kernel", "gpu_memcpy", "gpu_memset", "cuda_sync")
PAGE = 512  # granularity of PyTorch's allocator


class Trace:
    """The tool's view of one trace."""

    def __init__(self, path):
        self.path = path
        tool.run("import", "-q", path, "-o", "t.sbt")
        self.tables = {table: [json.loads(line) for line in tool.run("view", "t.sbt", "--json", "--table", table).splitlines()]
                       for table in ("slice", "api_call", "gpu_op", "allocation")}

    def analyze(self, name, *options):
        return json.loads(tool.run("analyze", "t.sbt", name, "--json", *options))

    def calls(self, name):
        return sum(row["name"] == name for row in self.tables["api_call"])

    def commands(self, kind):
        rows = [json.loads(line) for line in tool.run("view", "t.sbt", "--commands", "--json").splitlines()]
        return sum(row["kind"] == kind for row in rows)


# ---- one function per kind of fact ----

def check_counted(faults, trace, counted):
    rows = [row for table in ("slice", "api_call", "gpu_op") for row in trace.tables[table]]
    faults.equal("slices", len(rows), counted["slices"])
    faults.counters("categories", Counter(row["category"] for row in rows if "category" in row), Counter(counted["categories"]))
    kernels = {row["name"] for row in trace.tables["gpu_op"] if row.get("category") == "kernel"}
    faults.equal("kernel names", len(kernels), counted["kernel_names"])


def check_torch_table(faults, trace, table):
    """torch.profiler counts synchronisations among the device's rows, if they were recorded."""
    rows = [row for row in trace.tables["gpu_op"] + trace.tables["slice"] if row.get("category") in DEVICE]
    faults.equal("torch's table: commands", len(rows), table["commands"])
    faults.equal("torch's table: names", len({row["name"] for row in rows}), table["names"])
    faults.equal("torch's table: device time", sum(row["duration"] for row in rows), round(table["device_us"] * 1000))
    if not any(row["category"] == "cuda_sync" for row in rows):
        kernels = trace.analyze("kernels", "--all")["kernels"]
        faults.equal("analyze kernels: commands", sum(row["count"] for row in kernels), table["commands"])
        faults.equal("analyze kernels: device time", round(sum(row["sum_us"] for row in kernels), 3), table["device_us"])


def check_steps(faults, trace, steps):
    if "jax" in trace.path:
        faults.equal("steps", len(trace.analyze("steps", "--all", "--step-span", "train")["steps"]), steps)
    else:
        faults.equal("steps", len(trace.analyze("steps", "--all")["steps"]), steps)


def copies_of(name):
    def check(faults, trace, copied):
        found = {row["name"]: row for row in trace.analyze("bandwidth", "--all")}.get(name, {})
        faults.equal(name, {key: found.get(key) for key in copied}, copied)
    return check


def memory_of(trace):
    """The row of the device's memory; without profile_memory there is none."""
    rows = [row for row in trace.analyze("memory")["summary"] if row["pool"] in (None, "torch") and "0" in row["device"]]
    return rows[0] if rows else None


def check_max_allocated(faults, trace, peak):
    row = memory_of(trace)
    if row and row["pool"] == "torch":
        # A snapshot has the requested sizes, the allocator's statistics the allocated ones.
        given, in_use, peak_given = {}, 0, 0
        for change in trace.tables["allocation"]:
            if change["pool"] == "torch" and change["kind"] == "alloc":
                given[change["address"]] = -(-change["bytes"] // PAGE) * PAGE
                in_use += given[change["address"]]
            elif change["pool"] == "torch":
                in_use -= given.pop(change["address"])
            peak_given = max(peak_given, in_use)
        faults.equal("peak of memory, as given", peak_given, peak)
        faults.check(peak - PAGE * len(trace.tables["allocation"]) < row["peak_bytes"] <= peak, f"peak of memory: {row['peak_bytes']}, at most {peak}")
    elif row:
        faults.equal("peak of memory", row["peak_bytes"], peak)


def check_max_reserved(faults, trace, peak):
    row = memory_of(trace)
    if row:
        faults.equal("peak of reserved memory", row["reserved_peak_bytes"], peak)


def memory_column(column):
    def check(faults, trace, value):
        faults.equal(column, memory_of(trace)[column], value)
    return check


def check_graph_launches(faults, trace, launches):
    faults.equal("launches of graphs", trace.calls("cudaGraphLaunch"), launches)


def commands_of(kind):
    def check(faults, trace, count):
        faults.equal(f"commands {kind}", trace.commands(kind), count)
    return check


def check_event_synchronizations(faults, trace, count):
    faults.equal("synchronisations with events", trace.calls("cudaEventSynchronize"), count)


def check_rank(faults, trace, rank):
    faults.equal("rank", trace.analyze("breakdown")[0]["rank"], rank)


def check_execution_trace(faults, trace, facts):
    with gzip.open(trace.path.replace("_kineto", "_et")) as file:
        execution = json.load(file)
    faults.equal("execution trace", {"schema": execution["schema"], "nodes": len(execution["nodes"])}, facts)


def one_list(shapes):
    """torch's table has [] for an input that is a list of tensors, the trace the shapes of each."""
    return json.dumps([[] if any(isinstance(item, list) for item in shape) else shape for shape in json.loads(shapes or "[]")])


def operators_of(*options):
    """All five numbers of every row of torch's table of operators."""
    def check(faults, trace, table):
        found = {}
        for row in trace.analyze("operators", "--all", *options):
            name = "ProfilerStep*" if row["kind"] == "step" else row["name"]
            values = [row["calls"], row["total_us"], row["self_us"], row["total_host_bytes"], row["self_host_bytes"]]
            key = f"{name} {one_list(row['shapes'])}" if options else name
            found[key] = [round(a + b, 3) for a, b in zip(found.get(key, [0] * 5), values)]
        faults.equal("operators: names", sorted(found), sorted(table))
        for name, values in table.items():
            faults.equal(f"operators: {name}", found.get(name), [float(value) for value in values.split()])
    return check


CHECKS = {
    "counted": check_counted, "torch_table": check_torch_table, "steps": check_steps, "host_to_device": copies_of("Memcpy HtoD"),
    "device_to_host": copies_of("Memcpy DtoH"), "max_memory_allocated": check_max_allocated, "max_memory_reserved": check_max_reserved,
    "allocations": memory_column("allocations"), "frees": memory_column("frees"), "graph_launches": check_graph_launches,
    "events_recorded": commands_of("record"), "stream_waits": commands_of("wait"), "event_synchronizations": check_event_synchronizations,
    "rank": check_rank, "execution_trace": check_execution_trace, "key_averages": operators_of(),
    "key_averages_by_shape": operators_of("--by-shape"),
}
# About the recording; stragglers.py checks stragglers.
OTHERS = {"backend", "device", "jax", "mps", "nccl", "ranks", "torch", "straggler", "straggler_sleep_us", "memory_allocated", "memory_reserved"}


def main(folder):
    with open(f"{folder}/facts.json", encoding="utf-8") as file:
        traces = json.load(file)["traces"]
    bad, checked = 0, Counter()
    for name, facts in traces.items():
        faults, trace = tool.Faults(), Trace(f"{folder}/{name}")
        for key, fact in facts.items():
            if key in CHECKS:
                CHECKS[key](faults, trace, fact)
                checked[key] += 1
            else:
                faults.check(key in OTHERS, f"no check uses '{key}'")
        print(f"{name}: {len(faults)} of {len(facts)} facts differ" if faults else f"{name}: holds")
        for fault in faults:
            print(f"    {fault}")
        bad += bool(faults)
    recorded = {os.path.relpath(os.path.join(place, file), folder) for place, _, files in os.walk(folder) for file in files if file.endswith(".gz")}
    without = recorded - set(traces) - {"pairs/mlp_et.json.gz"}
    if without or set(CHECKS) - set(checked):
        print(f"traces without facts: {sorted(without)}; facts that no trace has: {sorted(set(CHECKS) - set(checked))}")
        bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
