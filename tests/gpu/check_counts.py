# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs: kernels are counted and named exactly as in a separate run under
torch.profiler, device time is within 2 %, nothing is lost. All programs run in one process after
each other, because startup takes seconds; parts of the trace are separated by time.
check_counts.py [NAME...]
"""
import collections, json, os, statistics, sys

from common import *

module_or_skip("torch")
import workloads

PLAIN = ("mlp", "transformer", "graph", "streams", "copies")  # must run wherever PyTorch does
errors = {}
ROUNDS_AT_MOST = 3  # of both, while the times differ too much: a GPU's clock changes


def run_all(names, round_number, is_profiled):
    """Rows of workloads.py by name, and the trace of a recorded run."""
    out = os.path.join(WORK, f"counts-{'profiled' if is_profiled else 'recorded'}-{round_number}.json")
    command = [*WORKLOADS, ",".join(names), "--out", out, *(["--profile"] if is_profiled else [])]
    trace = None
    if is_profiled:
        run(command, 180)
    else:
        trace = record(f"counts-{round_number}", command, ["--stacks", "none"], seconds=180)
    rows = [json.loads(line) for line in open(out)] if os.path.exists(out) else []
    errors.update({row["name"]: row["error"] for row in rows if "error" in row})
    for row in rows:
        expect(is_profiled or "error" not in row, f"{row['name']}: {row.get('error')}")
    return {row["name"]: row["repetitions"] for row in rows if "repetitions" in row}, trace


def last_line(text):
    return ((text or "").strip().splitlines() or ["no reason was given"])[-1][-150:]


def recorded_kernels(trace, repetition):
    """[(name, ns)] of one repetition."""
    return [(op["name"], op["duration"]) for op in trace.kernels() if repetition["begin_ns"] <= op["start"] <= repetition["end_ns"]]


def compare_names(name, ours, theirs):
    for mine, other in zip(ours, theirs):
        compare_counts(collections.Counter(kernel for kernel, _ in mine), {kernel: entry[0] for kernel, entry in other["kernels"].items()}, name)
    expect(ours[0] or name == "copies", f"{name}: no kernels")
    figures[name + "_kernels"] = len(ours[0])


def compare_others(name, trace, repetitions, theirs):
    """Copies and fills, by kind."""
    for mine, other in zip(repetitions, theirs):
        found = collections.Counter(op["kind"] for op in trace.ops() if mine["begin_ns"] <= op["start"] <= mine["end_ns"])
        counted = {kind: other["others"].get(words, [0])[0] for kind, words in (("copy", "gpu_memcpy"), ("fill", "gpu_memset"))}
        expect(all(found[kind] == counted[kind] for kind in counted), f"{name}: {dict(found)}, counted {counted}")


def main():
    names = sys.argv[1:] or list(workloads.WORKLOADS)
    ours_ns, theirs_ns = collections.defaultdict(list), collections.defaultdict(list)
    pending = names
    for number in range(ROUNDS_AT_MOST):
        profiled, _ = run_all(pending, number, True)
        # Workloads that fail without us, too, are left out and reported, but never the basic ones.
        for name in pending:
            if name not in profiled and expect(name not in PLAIN, f"{name}: did not run alone: {last_line(errors.get(name))}"):
                leave_out(f"{name}: does not run without us, neither: {last_line(errors.get(name))}")
        pending = [name for name in pending if name in profiled]
        if not pending:
            break
        recorded, trace = run_all(pending, number, False)
        figures["uncertainty_ns"] = check_complete(trace, f"round {number}")
        for name in pending:
            if not expect(name in recorded, f"{name}: did not run"):
                continue
            kernels = [recorded_kernels(trace, repetition) for repetition in recorded[name]]
            if number == 0:
                compare_names(name, kernels, profiled[name])
                compare_others(name, trace, recorded[name], profiled[name])
            ours_ns[name] += [sum(ns for _, ns in found) for found in kernels]
            theirs_ns[name] += [sum(entry[1] for entry in found["kernels"].values()) for found in profiled[name]]
        medians = {name: (statistics.median(ours_ns[name]), statistics.median(theirs_ns[name])) for name in pending if ours_ns[name]}
        pending = [name for name, (ours, theirs) in medians.items() if theirs and abs(ours / theirs - 1) > 0.02]
        if not pending:
            break
    for name in ours_ns:
        figures[name + "_time_percent"] = round(compare_times(statistics.median(ours_ns[name]), statistics.median(theirs_ns[name]), name), 2)
    finish()


main()
