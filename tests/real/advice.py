# SPDX-License-Identifier: Apache-2.0
"""advice.py FOLDER: what `analyze advice` says of recorded traces whose devices are idle for reasons
that the trace does not have, of a C program, and of a capture of graphs; and whether its numbers
are those of the analyses that it refers to.

The idle time is computed from the commands of the trace, which other tests compare with its file.
"""
import json
import re
import sys

import tool


UNITS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def analyze(name, *paths):
    return json.loads(tool.run("analyze", *paths, name, "--json"))


def advice(*paths):
    return analyze("advice", *paths)


def missing(path):
    """Idle ns of the device, commands without their call, and how much of the idle time ends with
    one of them."""
    tool.run("import", "-q", path, "-o", "t.sbt")
    rows = {table: [json.loads(line) for line in tool.run("view", "t.sbt", "--json", "--table", table).splitlines()]
            for table in ("gpu_op", "api_call")}
    calls = {row["correlation"] for row in rows["api_call"]}
    commands = sorted((row["start"], row["start"] + row["duration"], row.get("correlation") in calls) for row in rows["gpu_op"])
    idle = unexplained = 0
    until = commands[0][0]
    for start, end, has_call in commands:
        idle += max(start - until, 0)
        unexplained += 0 if has_call else max(start - until, 0)
        until = max(until, end)
    return idle, unexplained, sum(not has_call for _, _, has_call in commands), len(commands)


def check_missing(faults, folder, name, what_to_record):
    """Several devices would need a sum of each; these traces have one."""
    idle, unexplained, without, commands = missing(f"{folder}/{name}")
    found = [row for row in advice(f"{folder}/{name}") if "does not say why" in row["finding"]]
    faults.equal(f"{name}: findings", len(found), 1)
    if not found:
        return
    # Less, if the launch of another command is in progress meanwhile.
    number, unit = re.match(r"idle for (\S+) (\S+),", found[0]["evidence"]).groups()
    share = float(number) * UNITS[unit] / unexplained
    faults.check((0.999 if without == commands else 0.95) < share <= 1.001, f"{name}: {number} {unit} are {share} of the idle time")
    faults.equal(f"{name}: saving of unknown cause", found[0]["saves_us"], None)
    faults.check(f"{without:,} of {commands:,} commands" in found[0]["evidence"], f"{name}: {found[0]['evidence']}")
    faults.check(what_to_record in found[0]["finding"], f"{name}: {found[0]['finding']}")
    print(f"{name}: {unexplained / 1e9:.3f} of {idle / 1e9:.3f} s")


def check_same_time(faults, what, text, ns):
    """The text has four digits."""
    number, unit = text.split()
    faults.check(abs(float(number) * UNITS[unit] / ns - 1) < 0.001, f"{what}: {text}, not {ns / 1e6} ms")


def check_idle(faults, folder, name):
    """Devices with one stream: each of its gaps is one of the device."""
    evidence = next(row["evidence"] for row in advice(f"{folder}/{name}") if "launches work too slowly" in row["finding"])
    time, gaps = re.match(r"idle for (\S+ \S+) in (\S+) gaps", evidence).groups()
    idle = analyze("idle", f"{folder}/{name}")
    shown = sum(row["time_us"] for row in idle["causes"] if row["stream"] is None and row["cause"] == "host_bound")
    check_same_time(faults, f"{name}: idle", time, shown * 1000)
    faults.equal(f"{name}: gaps", int(gaps.replace(",", "")), sum(row["count"] for row in idle["gaps"] if row["category"] == "host_wait"))


def check_ranks(faults, paths):
    evidence = next(row["evidence"] for row in advice(*paths) if "ranks wait for each other" in row["finding"])
    lost, rank, times = re.match(r"(\S+ \S+) were lost .*; rank (\d+) came last in (\d+) of them", evidence).groups()
    ranks = analyze("stragglers", *paths)["ranks"]
    check_same_time(faults, "lost", lost, sum(row["lost_by_others_us"] for row in ranks) * 1000)
    faults.equal("times last", int(times), next(row["times_last"] for row in ranks if row["rank"] == int(rank)))


def check_words(faults, folder, name, absent, present=()):
    text = " ".join(row["finding"] for row in advice(f"{folder}/{name}"))
    for word in absent:
        faults.check(word not in text, f"{name}: '{word}' in: {text}")
    for word in present:
        faults.check(word in text, f"{name}: no '{word}' in: {text}")


def main(folder):
    faults = tool.Faults()
    check_missing(faults, folder, "rocprof/rocprofv3_908_results.json.gz", "rocprofv3 --sys-trace")
    check_missing(faults, folder, "kineto/mtia_rank0.json.gz", "record all calls of the runtime")
    check_words(faults, folder, "nsys/saxpy-mpi-cuda.sqlite.gz", (".item()", "pin_memory", "torch"), ("cudaMallocHost",))
    check_words(faults, folder, "kineto/vllm_graph_capture.json.gz", ("CUDA graphs",), ("graphs are captured",))
    check_words(faults, folder, "kineto/h100_qwen.json.gz", (), (".item()", "torch.compile"))
    check_words(faults, folder, "kineto/rank_non_gpu.json.gz", ("device is idle",), ("operator",))
    check_idle(faults, folder, "kineto/resnet50_v100.json.gz")
    check_idle(faults, folder, "kineto/h100_owlv2.json.gz")
    check_ranks(faults, [f"{folder}/pairs/megatron_tp8_r{rank}_kineto.json.gz" for rank in range(4)])
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
