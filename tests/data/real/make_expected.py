#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_expected.py FOLDER [NAME...]: writes the results of HolisticTraceAnalysis (HTA) for the
Kineto traces of FOLDER to FOLDER/expected/NAME.json.

HTA is not part of this project: clone it, and run with PYTHONPATH=CLONE HTA_COMMIT=$(git -C
CLONE rev-parse HEAD), pandas 1.5.3 and numpy 1. NAME.json has HTA's default results, with times
rounded to microseconds. NAME.noround.json has all steps, with rounding off. An analysis in which
HTA fails is {"ERROR": ...}. Critical paths are of the first recorded step.

Removes what HTA misinterprets from its input. Triton's operators on the host name a stream: HTA
counts them as device work. Synchronisations name one, too: they are removed without rounding,
but kept with it, since HTA needs them for critical paths. Its diff counts the device's
annotation spans as host work.
"""
import gzip
import json
import math
import os
import subprocess
import sys
import tempfile

SETS = {
    "mlp_train": ["kineto/mlp_train.json.gz"],
    "transformer_train": ["kineto/transformer_train.json.gz"],
    "cuda_graph": ["kineto/cuda_graph.json.gz"],
    "two_streams": ["kineto/two_streams.json.gz"],
    "compiled": ["kineto/compiled.json.gz"],
    "mlp_pair": ["pairs/mlp_kineto.json.gz"],
    "nccl_ranks": [f"kineto/nccl_ranks/rank{rank}.json.gz" for rank in range(4)],
    "gloo_ranks": [f"kineto/gloo_ranks/rank{rank}.json.gz" for rank in range(2)],
}
# Two files, and the step that is compared.
DIFFS = {"diff_gloo_nccl": ("kineto/gloo_ranks/rank0.json.gz", "kineto/nccl_ranks/rank0.json.gz", 3)}


def plain(value):
    """As in JSON: no numpy types, NaN is null."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 12)
    return value


def rows(frame):
    """Joins columns of two levels, as describe() makes them, and indices."""
    if frame is None:
        return None
    frame = frame.copy()
    if frame.columns.nlevels > 1:
        frame.columns = ["_".join(str(part) for part in column if part != "") for column in frame.columns]
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    return [plain({str(key): one for key, one in row.items()}) for row in frame.to_dict("records")]


def attempt(function, *arguments, **options):
    try:
        return function(*arguments, **options)
    except Exception as error:  # any failure of HTA is a result
        return {"ERROR": f"{type(error).__name__}: {error}"}


def launches(analysis, ranks):
    result = {}
    for rank, frame in analysis.get_cuda_kernel_launch_stats(ranks=ranks, visualize=False).items():
        cpu, gpu, delay = frame["cpu_duration"], frame["gpu_duration"], frame["launch_delay"]
        result[rank] = {"rows": len(frame), "sum_cpu": cpu.sum(), "sum_gpu": gpu.sum(), "sum_launch_delay": delay.sum(),
                        "gpu_lt_cpu": (gpu < cpu).sum(), "cpu_gt_50": (cpu > 50).sum(), "delay_gt_100": (delay > 100).sum(),
                        "first5": rows(frame.head(5))}
    return plain(result)


def kernel_breakdown(analysis):
    types, kernels = analysis.get_gpu_kernel_breakdown(visualize=False, num_kernels=10)
    return {"kernel_type": rows(types), "kernels": rows(kernels)}


def idle_breakdown(analysis, ranks):
    breakdown, stats = analysis.get_idle_time_breakdown(ranks=ranks, consecutive_kernel_delay=30, show_idle_interval_stats=True, visualize=False)
    return {"breakdown": rows(breakdown), "stats": rows(stats)}


def annotations(analysis, on_device):
    return rows(analysis.get_gpu_user_annotation_breakdown(use_gpu_annotation=on_device, visualize=False, num_kernels=1000))


def critical_path(analysis):
    graph, ok = analysis.critical_path_analysis(rank=0, annotation="ProfilerStep", instance_id=0)
    if not ok:
        return {"ok": False}
    edges = [graph.edges[edge]["object"] for edge in graph.edges]
    types = {}
    for edge in edges:
        types[edge.type.name] = types.get(edge.type.name, 0) + 1
    bounds = graph.get_critical_path_breakdown().groupby("bound_by")["duration"].sum()
    total = bounds.sum()
    return plain({"ok": True, "nodes": len(graph.nodes), "edges": len(edges), "cp_nodes": len(graph.critical_path_nodes),
                  "cp_weight_us": sum(edge.weight for edge in graph.critical_path_edges_set), "edge_types": types,
                  "bound_pct": {key: 100 * value / total for key, value in bounds.items()}})


def prepare(source, target, without):
    """A copy without these categories."""
    with gzip.open(source) as file:
        trace = json.load(file)
    for event in trace["traceEvents"]:
        if event.get("cat") == "cpu_op":
            event["args"].pop("stream", None)
    trace["traceEvents"] = [event for event in trace["traceEvents"] if event.get("cat") not in without]
    with gzip.open(target, "wt") as file:
        json.dump(trace, file)


def measure(folder, name, rounded):
    import pandas
    from hta.trace_analysis import TraceAnalysis
    files, prepared = dict(enumerate(SETS[name])), {}
    scratch = tempfile.TemporaryDirectory()
    for rank, path in files.items():
        prepared[rank] = f"{scratch.name}/{rank}.json.gz"
        prepare(f"{folder}/{path}", prepared[rank], () if rounded else ("cuda_sync",))
    analysis = TraceAnalysis(trace_files=prepared, trace_dir=scratch.name, include_last_profiler_step=not rounded)
    ranks = list(files)
    frames = {rank: analysis.t.get_trace(rank) for rank in ranks}
    return {
        "dataset": name, "files": plain(files), "ns_rounding": rounded, "all_steps": not rounded, "hta_commit": os.environ["HTA_COMMIT"],
        "pandas": pandas.__version__,
        "rows_after_parse": plain({rank: len(frame) for rank, frame in frames.items()}),
        "gpu_rows_stream_ne_-1": plain({rank: (frame["stream"] != -1).sum() for rank, frame in frames.items()}),
        "temporal_breakdown": attempt(lambda: rows(analysis.get_temporal_breakdown(visualize=False))),
        "gpu_kernel_breakdown": attempt(kernel_breakdown, analysis),
        "comm_comp_overlap": attempt(lambda: rows(analysis.get_comm_comp_overlap(visualize=False))),
        "idle_time_breakdown_delay30": attempt(idle_breakdown, analysis, ranks),
        "queue_length_summary": attempt(lambda: rows(analysis.get_queue_length_summary(ranks=ranks))),
        "memory_bw_summary": attempt(lambda: rows(analysis.get_memory_bw_summary(ranks=ranks))),
        "cuda_kernel_launch_stats": attempt(launches, analysis, ranks),
        "gpu_user_annotation_breakdown": attempt(annotations, analysis, True),
        "cpu_user_annotation_breakdown": attempt(annotations, analysis, False),
        "critical_path_ProfilerStep_0": attempt(critical_path, analysis),
    }


def compare(folder, name):
    """How many names occur more often, less often, and equally often in a step of the second file."""
    from hta.common.trace import Trace
    from hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
    scratch, sides = tempfile.TemporaryDirectory(), []
    for label, path in zip("ab", DIFFS[name]):
        prepare(f"{folder}/{path}", f"{scratch.name}/{label}.json.gz", ("gpu_user_annotation",))
        trace = Trace(trace_files={0: f"{scratch.name}/{label}.json.gz"}, trace_dir=scratch.name)
        trace.parse_traces()
        trace.decode_symbol_ids()
        sides.append(LabeledTrace(t=trace, label=label))
    step = DIFFS[name][2]
    result = {"dataset": name, "files": DIFFS[name][:2], "step": step, "hta_commit": os.environ["HTA_COMMIT"]}
    for key, device in (("cpu", DeviceType.CPU), ("gpu", DeviceType.GPU)):
        frame = TraceDiff.compare_traces(*sides, 0, 0, step, step, device)
        changes = frame["counts_change_categories"].value_counts()
        result[key] = plain({"changes": {sign: changes.get(sign, 0) for sign in "+-="}, "a": frame["a_counts"].sum(), "b": frame["b_counts"].sum()})
    return result


def main(arguments):
    if arguments[0] == "--one":
        folder, name, rounding = arguments[1:]
        path = f"{folder}/expected/{name}{'' if rounding == 'rounded' else '.noround'}.json"
        result = compare(folder, name) if name in DIFFS else measure(folder, name, rounding == "rounded")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")
        print(path, [key for key, value in result.items() if isinstance(value, dict) and "ERROR" in value])
        return 0
    folder = os.path.abspath(arguments[0])
    for name in arguments[1:] or [*SETS, *DIFFS]:
        for rounding in ("rounded",) if name in DIFFS else ("rounded", "exact"):
            # HTA reads the variable once, when it is imported.
            environment = {**os.environ, "HTA_DISABLE_NS_ROUNDING": "0" if rounding == "rounded" else "1"}
            subprocess.run([sys.executable, __file__, "--one", folder, name, rounding], env=environment, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
