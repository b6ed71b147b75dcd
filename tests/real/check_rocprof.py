# SPDX-License-Identifier: Apache-2.0
"""check_rocprof.py FILE...: imports each JSON file of rocprofv3 and compares every dispatch with
Python's json: name, times, sizes, device, stream, queue, correlation, registers. The same again
with the sections of each process in reverse order. Analyses and exports must have the same
numbers. Prints a line per file; exits with 1 on a difference.
"""
import gzip
import json
import os
import sys
import tempfile
from collections import Counter

import tool


def load(path):
    with open(path, "rb") as file:
        data = file.read()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def expected_rows(document):
    """One tuple per dispatch; sizes are blocks, as in our table."""
    rows = Counter()
    for index, process in enumerate(document["rocprofiler-sdk-tool"]):
        symbols = {symbol["kernel_id"]: symbol for symbol in process["kernel_symbols"]}
        agents = {agent["id"]["handle"]: agent for agent in process["agents"]}
        for record in process["buffer_records"]["kernel_dispatch"]:
            info = record["dispatch_info"]
            symbol = symbols[info["kernel_id"]]
            block = [info["workgroup_size"][axis] for axis in "xyz"]
            grid = [-(-info["grid_size"][axis] // info["workgroup_size"][axis]) for axis in "xyz"]
            rows[(symbol["formatted_kernel_name"], record["start_timestamp"],
                  record["end_timestamp"] - record["start_timestamp"], *grid, *block,
                  agents[info["agent_id"]["handle"]]["logical_node_type_id"], record["stream_id"]["handle"],
                  info["queue_id"]["handle"], record["correlation_id"]["internal"] + (index << 44), info["dispatch_id"],
                  info["group_segment_size"], info["private_segment_size"], symbol["arch_vgpr_count"], record["thread_id"],
                  process["metadata"]["pid"])] += 1
    return rows


def found_rows(trace):
    def table(name):
        return [json.loads(line) for line in tool.run("view", trace, "--json", "--table", name).splitlines()]

    rows = Counter()
    for row in table("gpu_op"):
        args = row["args"]
        rows[(row["name"], row["start"], row["duration"], row["grid_x"], row["grid_y"], row["grid_z"], row["block_x"],
              row["block_y"], row["block_z"], row["device"], row["stream"], args["queue_id"], row["correlation"],
              args["dispatch_id"], row["shared_bytes"], args["private_segment_size"], row["registers"], args["thread_id"],
              row["pid"])] += 1
    return rows


def check_more(trace, rows, faults, folder):
    """Sums of time by name must equal those of the file, also in exports."""
    sums = Counter()
    for row, count in rows.items():
        sums[row[0]] += row[2] * count
    result = json.loads(tool.run("analyze", trace, "kernels,launch,breakdown", "--json", "--top", "100000"))
    faults.check(bool(result), "analyze gave nothing")
    exported = os.path.join(folder, "exported.json")
    tool.run("export", trace, "-f", "chrome", "-o", exported)
    shown = Counter()
    with open(exported, encoding="utf-8") as file:
        for event in json.load(file)["traceEvents"]:
            if event.get("ph") == "X":
                shown[event["name"]] += round(event["dur"] * 1000)
    faults.counters("sums of time in the export", shown, sums)


def check(path, folder):
    faults = tool.Faults()
    document = load(path)
    rows = expected_rows(document)
    trace = os.path.join(folder, "a.sbt")
    tool.run("import", "-o", trace, path)
    faults.counters("dispatches", found_rows(trace), rows)
    check_more(trace, rows, faults, folder)
    turned = {"rocprofiler-sdk-tool": [dict(reversed(list(process.items())))
                                       for process in document["rocprofiler-sdk-tool"]]}
    other = os.path.join(folder, "turned.json")
    with open(other, "w", encoding="utf-8") as file:
        json.dump(turned, file)
    tool.run("import", "-o", trace, other)
    faults.counters("dispatches before their names", found_rows(trace), rows)
    print(f"{os.path.basename(path)}: {sum(rows.values())} dispatches, {len({row[0] for row in rows})} names, "
          f"{len({row[10] for row in rows})} streams" if not faults else f"{path}:\n" + "\n".join(faults))
    return not faults


def main():
    good = True
    for path in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            good = check(path, folder) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
