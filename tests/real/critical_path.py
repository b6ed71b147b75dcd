# SPDX-License-Identifier: Apache-2.0
"""critical_path.py FOLDER FILE...: critical paths of recorded traces.

With `--rounding hta`, compares with HTA's numbers (oracles/, expected/, and those of HTA's own
test of simple_add). Where a launch and a start of a kernel fall into one microsecond of one
stream, HTA's choice between "launch delay" and "kernel-kernel delay" depends on an unstable
sort: the sum of the two is compared exactly, each of them within the number of affected kernels,
which is counted here.

Without it, checks the invariants of every path: it partitions its window, shares add up, faster
work never makes the window longer, and every command of it is one of the file's.
"""
import collections
import decimal
import gzip
import json
import math
import os
import sys

import tool

ORACLES = {
    "event_sync": "kineto/critical_path/cuda_event_sync/event_sync_trace.json.gz",
    "dlrm8": "pairs/dlrm_r0_kineto.json.gz",
    "megatron_tp8": "pairs/megatron_tp8_r0_kineto.json.gz",
    "h100_qwen": "kineto/h100_qwen.json.gz",
    "nccl_data": "kineto/nccl_data.json.gz",
    "ns_resolution": "kineto/ns_resolution.json.gz",
    "mi300_resnet": "kineto/mi300_resnet.json.gz",
    # Our own.
    "mlp_train": "kineto/mlp_train.json.gz",
    "transformer_train": "kineto/transformer_train.json.gz",
    "cuda_graph": "kineto/cuda_graph.json.gz",
    "two_streams": "kineto/two_streams.json.gz",
    "compiled": "kineto/compiled.json.gz",
    "mlp_pair": "pairs/mlp_kineto.json.gz",
    "nccl_ranks": "kineto/nccl_ranks/rank0.json.gz",
    "gloo_ranks": "kineto/gloo_ranks/rank0.json.gz",
}
SIMPLE_ADD = "kineto/critical_path/end_to_end/simple_add/input/trace.json.gz"
ALEXNET_FORWARD = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
QUEUED = {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx", "cudaMemcpyAsync",
          "cudaMemsetAsync", "hipLaunchKernel", "hipExtModuleLaunchKernel", "hipMemsetAsync", "hipMemcpyAsync",
          "hipMemcpyWithStream"}
COMMANDS = ("kernel", "gpu_memcpy", "gpu_memset", "memcpy", "memset", "mtia_ccp_events")
CATEGORIES = ["compute", "communication", "memory", "other", "launch", "host", "gap", "unknown"]


def analyze(*arguments):
    return json.loads(tool.run("analyze", *arguments, "--json"))


def load(path):
    with open(path, "rb") as stream:
        data = stream.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    found = json.loads(data, parse_float=decimal.Decimal)
    return found["traceEvents"] if isinstance(found, dict) else found


# ---- HTA's construction ----

def ambiguous_kernels(path):
    """Kernels that start, or are launched, in the same microsecond as another's launch or start in
    their stream."""
    events = [event for event in load(path) if "dur" in event and "cat" in event]
    kernels = [event for event in events if "correlation" in event.get("args", {}) and "stream" in event["args"]]
    stream_of = {event["args"]["correlation"]: event["args"]["stream"] for event in kernels}
    points = collections.defaultdict(lambda: (set(), set()))
    for event in events:
        correlation = event.get("args", {}).get("correlation")
        if correlation not in stream_of:
            continue
        launch = event["name"] in QUEUED
        if launch or "stream" in event["args"]:
            points[stream_of[correlation], math.ceil(event["ts"])][launch].add(correlation)
    return len(set().union(*(starts | launches for starts, launches in points.values() if starts and launches)))


def check_oracle(faults, folder, name, file):
    oracle = tool.hta_numbers(folder, name).get("critical_path_ProfilerStep_0")
    if not isinstance(oracle, dict) or not oracle.get("ok"):
        return
    row = analyze(f"{folder}/{file}", "critical-path", "--rounding", "hta", "--annotation", "ProfilerStep",
                  "--instance", "0")[0]
    types, bounds = collections.Counter(oracle["edge_types"]), oracle["bound_pct"]
    for key, expected in {"ok": True, "nodes": oracle["nodes"], "edges": oracle["edges"],
                          "path_nodes": oracle["cp_nodes"], "path_edges": oracle["cp_nodes"] - 1,
                          "path_weight_us": oracle["cp_weight_us"],
                          "operator_kernel_edges": types["OPERATOR_KERNEL"],
                          "dependency_edges": types["DEPENDENCY"],
                          "sync_dependency_edges": types["SYNC_DEPENDENCY"]}.items():
        faults.equal(f"{name}: {key}", row[key], expected)
    launch, kernel = row["kernel_launch_delay_edges"], row["kernel_kernel_delay_edges"]
    faults.equal(f"{name}: delays", launch + kernel, types["KERNEL_LAUNCH_DELAY"] + types["KERNEL_KERNEL_DELAY"])
    difference, most = abs(launch - types["KERNEL_LAUNCH_DELAY"]), ambiguous_kernels(f"{folder}/{file}")
    faults.check(difference <= most, f"{name}: launch delays: {launch}, expected {types['KERNEL_LAUNCH_DELAY']}, "
                                     f"which {most} kernels in one microsecond do not explain")
    for bound in ("cpu_bound", "gpu_compute_bound", "gpu_communication_bound", "gpu_kernel_kernel_overhead",
                  "gpu_kernel_launch_overhead"):
        found, expected = row[f"{bound}_pct"], bounds.get(bound, 0)
        faults.check(math.isclose(found, expected, abs_tol=1e-9), f"{name}: {bound}: {found}, expected {expected}")


def check_simple_add(faults, folder):
    """The assertions of HTA's own test."""
    row = analyze(f"{folder}/{SIMPLE_ADD}", "critical-path", "--rounding", "hta", "--annotation", ALEXNET_FORWARD,
                  "--instance", "1")[0]
    for key, expected in {"ok": True, "path_nodes": 315, "path_edges": 314, "events_on_path": 159,
                          "sync_dependency_edges": 2}.items():
        faults.equal(f"simple_add: {key}", row[key], expected)


# ---- ours ----

def ns(us):
    return round(us * 1000)


def check_partition(faults, what, window, path):
    at = window["window_start_ns"]
    for segment in path:
        faults.check(segment["start_ns"] == at and ns(segment["duration_us"]) > 0,
                     f"{what}: a segment at {segment['start_ns']} of {segment['duration_us']} us, expected at {at}")
        at = segment["start_ns"] + ns(segment["duration_us"])
        if len(faults) > 20:
            return
    faults.equal(f"{what}: end of the path", at - window["window_start_ns"], ns(window["window_us"]))


def check_shares(faults, what, window, names, path):
    sums = collections.Counter()
    for segment in path:
        sums[segment["category"]] += ns(segment["duration_us"])
    for category in CATEGORIES:
        faults.equal(f"{what}: {category}", ns(window[f"{category}_us"]), sums[category])
    by_name = collections.Counter()
    for segment in path:
        by_name[segment["category"], segment["name"]] += ns(segment["duration_us"])
    faults.equal(f"{what}: names", {(row["category"], row["name"]): ns(row["path_us"]) for row in names}, by_name)
    faults.equal(f"{what}: segments", window["segments"], len(path))


def check_what_if(faults, what, window, answers):
    best = {}
    for row in answers:
        faults.check(0 <= ns(row["shorter_us"]) <= ns(window["window_us"]), f"{what}: {row}")
        faults.equal(f"{what}: {row['name']}: window", ns(row["window_us"]) + ns(row["shorter_us"]),
                     ns(window["window_us"]))
        best.setdefault((row["name"], row["category"]), {})[row["change"]] = row["shorter_us"]
    for key, changes in best.items():
        faults.check(changes["free"] >= changes.get("2x faster", 0), f"{what}: {key}: free saves less than 2x faster")


def check_commands(faults, what, path, events):
    """Commands and calls of the path are those of the file, at their times."""
    known = collections.Counter()
    for event in events:
        if event.get("ph") == "X" and "dur" in event:
            known[event["name"], ns(event["dur"])] += 1
    for segment in path[1:-1]:
        if segment["via"] is None and segment["category"] in ("compute", "memory"):
            faults.check(known[segment["name"], ns(segment["duration_us"])],
                         f"{what}: {segment['name']} of {segment['duration_us']} us is not in the file")


def check_path(faults, what, result, events=None):
    path = result["path"]
    for window in result["summary"]:
        if len(result["summary"]) > 1:
            return
        check_partition(faults, what, window, path)
        check_shares(faults, what, window, result["names"], path)
        check_what_if(faults, what, window, result["what_if"])
    if events is not None:
        check_commands(faults, what, path, events)


def check_file(faults, file):
    what = os.path.basename(file)
    events = load(file)
    result = analyze(file, "critical-path")
    check_path(faults, what, result, events)
    has_commands = any(str(event.get("cat")).lower() in COMMANDS and "dur" in event
                       for event in events)
    faults.equal(f"{what}: windows", len(result["summary"]), 1 if has_commands else 0)
    if any(str(event.get("name", "")).startswith("ProfilerStep") and event.get("cat") == "user_annotation"
           for event in events) and has_commands:
        check_path(faults, f"{what}, first step",
                   analyze(file, "critical-path", "--annotation", "ProfilerStep", "--all"), events)


def check_known(faults, folder):
    """Obvious facts of these traces."""
    file = f"{folder}/kineto/h100_owlv2.json.gz"
    if os.path.exists(file):
        names = analyze(file, "critical-path")["names"]
        loader = [row for row in names if row["name"].startswith("enumerate(DataLoader)")]
        faults.check(loader and loader[0]["path_pct"] > 40, "h100_owlv2: the data loader is half of the path")
    file = f"{folder}/kineto/critical_path/cuda_event_sync/event_sync_trace.json.gz"
    if os.path.exists(file):
        result = analyze(file, "critical-path", "--all")
        faults.equal("event_sync: windows", len(result["summary"]), 1)


def main():
    faults = tool.Faults()
    folder, files = sys.argv[1], set(sys.argv[2:])
    for name, file in ORACLES.items():
        if f"{folder}/{file}" in files:
            check_oracle(faults, folder, name, file)
    if f"{folder}/{SIMPLE_ADD}" in files:
        check_simple_add(faults, folder)
    for file in sorted(files):
        if "overlaid" not in file:
            check_file(faults, file)
    for job in ("pairs/megatron_tp8_r{}_kineto.json.gz", "kineto/nccl_ranks/rank{}.json.gz"):
        ranks = [f"{folder}/{job.format(rank)}" for rank in range(4)]
        if files.issuperset(ranks):
            result = analyze(*ranks, "critical-path")
            faults.equal(f"{job}: windows", len(result["summary"]), 1)
            check_path(faults, f"{job}, four ranks", result)
    check_known(faults, folder)
    for fault in faults:
        print(fault)
    print(f"{len(files)} files, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
