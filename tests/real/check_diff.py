#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_diff.py TOOL DATA: compares `tracesmith diff` of recorded traces with HTA's numbers and
with counts of the files.
"""
import collections
import gzip
import json
import os
import subprocess
import sys

TOOL, DATA = sys.argv[1], sys.argv[2]
HOST_CATEGORIES = {"cpu_op": "operator", "user_annotation": "annotation", "cuda_runtime": "call", "cuda_driver": "call"}
DEVICE_CATEGORIES = {"kernel": "kernel", "gpu_memcpy": "copy", "gpu_memset": "fill"}


def path_of(name):
    return os.path.join(DATA, name)


def diff(a, b, *options, status=None):
    done = subprocess.run([TOOL, "diff", a, b, "--json", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1) or (status is not None and done.returncode != status):
        sys.exit(f"diff {a} {b} {' '.join(options)}: status {done.returncode}: {done.stderr.decode()}")
    return json.loads(done.stdout)


def expect(what, value, expected):
    if value != expected:
        sys.exit(f"{what}: {value!r}, not {expected!r}")


def counts(result, device):
    row = next(row for row in result["counts"] if row["device"] == device)
    return {"+": row["count_up"], "-": row["count_down"], "=": row["count_same"]}


def check_hta():
    """tests/test_trace_diff.py of HTA: iteration 1010 of two small traces."""
    base, test = path_of("kineto/trace_compare/base/base.json.gz"), path_of("kineto/trace_compare/test/test.json.gz")
    for options in (), ("--short-names",), ("--rounding", "hta"):
        result = diff(base, test, "--steps", "1010", *options, status=1)
        expect("cpu", counts(result, "cpu"), {"+": 3, "-": 1, "=": 5})
        expect("gpu", counts(result, "gpu"), {"+": 0, "-": 1, "=": 0})
        host = collections.defaultdict(set)
        for row in result["changes"]:
            if row["device"] == "cpu":
                host[row["verdict"]].add(row["name"])
        expect("added", host["added"], {"AddmmBackward0", "All2All_Pooled_Req", "CatBackward0"})
        expect("gone", host["gone"], {"nccl:all_reduce"})
        expect("unchanged", host["unchanged"],
               {"step", "aten::as_strided", "aten::empty", "cudaEventQuery", "cudaLaunchKernel"})
        totals = {row["name"]: row["total_a_us"] for row in result["changes"] if row["device"] == "cpu" and row["count_a"]}
        expect("totals", totals, {"step": 122149, "aten::as_strided": 0, "aten::empty": 0, "cudaEventQuery": 4,
                                  "cudaLaunchKernel": 4, "nccl:all_reduce": 67})


def check_last_step():
    """HTA's traces differ in their second and last step only."""
    base, test = path_of("kineto/trace_compare/base/base.json.gz"), path_of("kineto/trace_compare/test/test.json.gz")
    verdicts = collections.Counter(row["verdict"] for row in diff(base, test, status=1)["changes"])
    expect("verdicts", verdicts, {"added": 3, "fewer": 2, "unchanged": 13})


def events_of(path):
    opener = gzip.open if open(path, "rb").read(2) == b"\x1f\x8b" else open
    with opener(path, "rb") as file:
        data = json.load(file)
    return data["traceEvents"] if isinstance(data, dict) else data


def count_names(path):
    """Instances and ns of each name, straight from the file."""
    names = collections.defaultdict(lambda: [0, 0])
    for event in events_of(path):
        kind = {**HOST_CATEGORIES, **DEVICE_CATEGORIES}.get(event.get("cat"))
        if event.get("ph") != "X" or not kind:
            continue
        name = event["name"]
        if kind == "annotation" and name.startswith("ProfilerStep#"):
            kind = name = "step"
        names[kind, name][0] += 1
        names[kind, name][1] += round(event["dur"] * 1000)
    return names


def check_counts(a, b, status=1):
    """All names of two complete traces, counted independently."""
    result = diff(a, b, "--all", status=status)
    sides = count_names(a), count_names(b)
    seen = set()
    for row in result["changes"]:
        key = row["kind"], row["name"]
        if row["kind"] not in {**HOST_CATEGORIES, **DEVICE_CATEGORIES, "": "step"}.values():
            continue
        seen.add(key)
        for letter, side in zip("ab", sides):
            expect(f"{key}, count {letter}", row[f"count_{letter}"], side[key][0] if key in side else 0)
            expect(f"{key}, total {letter}", round(row[f"total_{letter}_us"] * 1000), side[key][1] if key in side else 0)
    expect("names", seen, set(sides[0]) | set(sides[1]))


def check_itself(path):
    """A trace does not differ from itself, with any option. Of no device work nothing can be said."""
    no_device = diff(path, path)["summary"][0]["commands"] == 0
    for options in (), ("--all",), ("--device", "gpu", "--short-names"), ("--python", "--all"):
        if no_device and "gpu" in options:
            expect(f"{path}: no device work", subprocess.run([TOOL, "diff", path, path, *options], stderr=subprocess.PIPE, check=False).returncode, 3)
            continue
        result = diff(path, path, *options, status=0)
        for row in result["changes"]:
            expect(f"{path}: {row['name']}", row["verdict"], "unchanged")
            expect(f"{path}: {row['name']}", row["change_us"], 0)


def check_files_of_others():
    check_hta()
    check_last_step()
    for rank in 1, 2:
        check_counts(path_of("pairs/megatron_tp8_r0_kineto.json.gz"), path_of(f"pairs/megatron_tp8_r{rank}_kineto.json.gz"))
    check_counts(path_of("pairs/dlrm_r0_kineto.json.gz"), path_of("pairs/dlrm_r1_kineto.json.gz"))
    for name in ("kineto/ns_resolution", "kineto/mi250_minitoy", "kineto/rank_non_gpu", "kineto/triton_example",
                 "pairs/megatron_tp8_r3_kineto"):
        check_itself(path_of(f"{name}.json.gz"))


def check_own_files():
    """A step with gloo compared with one with NCCL, as HTA does; then complete traces."""
    with open(path_of("expected/diff_gloo_nccl.json"), encoding="utf-8") as file:
        oracle = json.load(file)
    result = diff(*(path_of(file) for file in oracle["files"]), "--steps", str(oracle["step"]), status=1)
    for device in "cpu", "gpu":
        expect(device, counts(result, device), oracle[device]["changes"])
        for side in "ab":
            found = sum(row[f"count_{side}"] for row in result["changes"] if row["device"] == device)
            expect(f"{device}: instances in {side}", found, oracle[device][side])
    check_counts(*(path_of(file) for file in oracle["files"]))
    check_counts(path_of("pairs/mlp_kineto.json.gz"), path_of("kineto/transformer_train.json.gz"))
    for rank in 1, 2, 3:
        check_counts(path_of("kineto/nccl_ranks/rank0.json.gz"), path_of(f"kineto/nccl_ranks/rank{rank}.json.gz"), None)
    for name in "mlp_train", "cuda_graph", "two_streams", "compiled", "cpu_only":
        check_itself(path_of(f"kineto/{name}.json.gz"))


if os.path.isdir(path_of("expected")):
    check_own_files()
else:
    check_files_of_others()
print("ok")
