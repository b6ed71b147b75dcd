# SPDX-License-Identifier: Apache-2.0
"""analyze_launches.py [--small] FOLDER: compares launch-latency, queue, bandwidth, annotations,
steps and memory with HTA's numbers.

If HTA's numbers depend on how its sort orders equal times, ours must be within the bounds of all
orders, which are computed here from the file itself. Numbers that HTA does not have are counted
here.
"""
import bisect
import collections
import decimal
import functools
import gzip
import json
import math
import os
import statistics
import sys

import tool

# Oracle, files of its ranks. The small ones first: --small uses only those.
SETS = [
    ("mlp_train", ["kineto/mlp_train.json.gz"]),
    ("transformer_train", ["kineto/transformer_train.json.gz"]),
    ("cuda_graph", ["kineto/cuda_graph.json.gz"]),
    ("two_streams", ["kineto/two_streams.json.gz"]),
    ("compiled", ["kineto/compiled.json.gz"]),
    ("mlp_pair", ["pairs/mlp_kineto.json.gz"]),
    ("nccl_ranks", [f"kineto/nccl_ranks/rank{rank}.json.gz" for rank in range(4)]),
    ("gloo_ranks", [f"kineto/gloo_ranks/rank{rank}.json.gz" for rank in range(2)]),
    ("event_sync", ["kineto/critical_path/cuda_event_sync/event_sync_trace.json.gz"]),
    ("simple_add", ["kineto/critical_path/end_to_end/simple_add/input/trace.json.gz"]),
    ("dlrm8", [f"pairs/dlrm_r{rank}_kineto.json.gz" for rank in range(3)]),
    ("megatron_tp8", [f"pairs/megatron_tp8_r{rank}_kineto.json.gz" for rank in range(4)]),
    ("h100_qwen", ["kineto/h100_qwen.json.gz"]),
    ("nccl_data", ["kineto/nccl_data.json.gz"]),
    ("ns_resolution", ["kineto/ns_resolution.json.gz"]),
    ("mi300_resnet", ["kineto/mi300_resnet.json.gz"]),
]
SMALL = 11
OWN = 8  # of them are ours
MEMORY = ["h100_qwen", "resnet50_v100", "vllm_graph_capture", "h100_owlv2"]

LAUNCHES = ["cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync",
            "runFunction - job_prep_and_submit_for_execution"]
QUEUED = LAUNCHES + ["cuLaunchKernel", "cuLaunchKernelEx", "hipLaunchKernel", "hipExtModuleLaunchKernel",
                     "hipMemsetAsync", "hipMemcpyAsync", "hipMemcpyWithStream"]
DESCRIPTION = ["mean", "std", "min", "25%", "50%", "75%", "max"]
POINTS = ["point_mean", "point_std", "point_min", "point_q25", "point_median", "point_q75", "point_max"]
RATES = ["gbps_mean", "gbps_std", "gbps_min", "gbps_q25", "gbps_median", "gbps_q75", "gbps_max"]


def analyze(files, name, *options):
    return json.loads(tool.run("analyze", *files, name, "--json", *options))


def is_near(found, expected, tolerance):
    if found is None or expected is None:
        return found is expected
    return math.isclose(found, expected, rel_tol=1e-9, abs_tol=tolerance)


class Mode:
    """How a set is analyzed: with HTA's rounding or exactly; all of it, or the default part."""

    def __init__(self, oracle, paths, rounded):
        self.rounded, self.all_steps = rounded, bool(oracle.get("all_steps"))
        self.options = [*(["--rounding", "hta"] if rounded else []), *tool.part_of(oracle, paths, rounded)]

    def rows(self, path, exact):
        """HTA's view of a file, with exact times or its own."""
        return Rows(path, self.rounded, exact and not self.rounded, self.all_steps)


class Check(tool.Faults):
    def near(self, what, found, expected, tolerance=1e-6):
        self.check(is_near(found, expected, tolerance), f"{what}: {found!r}, expected {expected!r}")


# ---- launch ----

def check_launch(faults, folder, files, oracle, mode):
    rounded = mode.rounded
    result = analyze([f"{folder}/{file}" for file in files], "launch", *mode.options)
    for rank, expected in oracle.items():
        rows = [row for row in result["launches"] if row["rank"] == int(rank) and row["call"] in LAUNCHES]
        what = f"launch, rank {rank}"
        model = mode.rows(f"{folder}/{files[int(rank)]}", True)
        # Exactly the file's values; where HTA does not round, its doubles of 1.7e15 us have a
        # resolution of a quarter us.
        faults.equal(f"{what}: all", {row["correlation"]: (row["cpu_duration_us"], row["gpu_duration_us"],
                                                           row["launch_delay_us"]) for row in rows},
                     {key: tuple(float(time) for time in times) for key, times in model.launches().items()})
        grain = 0 if rounded else model.grain()
        faults.equal(f"{what}: rows", len(rows), expected["rows"])
        for key, column in (("sum_cpu", "cpu_duration_us"), ("sum_gpu", "gpu_duration_us"),
                            ("sum_launch_delay", "launch_delay_us")):
            tolerance = 1e-6 if rounded else max(0.1, 5 * grain * math.sqrt(len(rows)))
            faults.near(f"{what}: {key}", sum(row[column] for row in rows), expected[key], tolerance)
        faults.equal(f"{what}: gpu_lt_cpu", sum(row["gpu_duration_us"] < row["cpu_duration_us"] for row in rows),
                     expected["gpu_lt_cpu"])
        faults.equal(f"{what}: cpu_gt_50", sum(row["cpu_duration_us"] > 50 for row in rows), expected["cpu_gt_50"])
        faults.equal(f"{what}: delay_gt_100", sum(row["launch_delay_us"] > 100 for row in rows),
                     expected["delay_gt_100"])
        by_correlation = {row["correlation"]: row for row in rows}
        for one in expected["first5"]:
            found = by_correlation.get(one["correlation"], {})
            for key in ("cpu_duration", "gpu_duration", "launch_delay"):
                faults.near(f"{what}: {key} of {one['correlation']}", found.get(f"{key}_us"), one[key],
                            1e-6 if rounded else max(0.1, 2 * grain))
        if rounded:
            check_launch_summary(faults, what, result, int(rank), expected)
    faults.check([row["launch_delay_us"] for row in result["launches"]] ==
                 sorted((row["launch_delay_us"] for row in result["launches"]), reverse=True),
                 "launch: the longest delay is not first")


def check_launch_summary(faults, what, result, rank, expected):
    rows = [row for row in result["summary"] if row["rank"] == rank]
    if not expected["rows"]:
        faults.equal(f"{what}: summaries", len(rows), 0)
        return
    for key, column in (("rows", "launches"), ("sum_cpu", "cpu_sum_us"), ("sum_gpu", "gpu_sum_us"),
                        ("sum_launch_delay", "delay_sum_us"), ("gpu_lt_cpu", "launch_longer"),
                        ("cpu_gt_50", "slow_calls"), ("delay_gt_100", "long_delays")):
        faults.near(f"{what}: {column}", rows[0][column], expected[key])


def check_mtia(faults, folder):
    launches = analyze([f"{folder}/kineto/mtia_rank0.json.gz"], "launch-latency")["launches"]
    found = [row for row in launches if row["correlation"] == 423]
    faults.equal("MTIA: launches of correlation 423", len(found), 1)
    for row in found:
        faults.equal("MTIA: correlation 423", [row[key] for key in ("cpu_duration_us", "gpu_duration_us",
                                                                    "launch_delay_us")], [435.2, 124.768, 0])


# ---- a model of HTA's input, from the file ----

@functools.lru_cache(maxsize=8)
def read_events(path, exact=False):
    with gzip.open(path) as file:
        return json.load(file, parse_float=decimal.Decimal if exact else float)["traceEvents"]


class Rows:
    """HTA's view of a Kineto file before its analyses. Times are us: its doubles, or exact ones."""

    def __init__(self, path, rounded, exact=False, all_steps=False):
        events = [event for event in read_events(path, exact) if "dur" in event and "cat" in event]
        self.calls, self.commands, self.steps = [], [], []
        for event in events:
            args = event.get("args") or {}
            start, end = event["ts"], event["ts"] + event["dur"]
            if rounded and isinstance(start, float):
                start, end = math.ceil(start), math.floor(end)
            row = (start, end, event["name"], args.get("correlation"), args.get("stream"))
            stream = args.get("stream")
            if isinstance(stream, int) and stream >= 0 and row[3] is not None:
                self.commands.append(row)
            else:
                self.calls.append(row)
            if event["name"].startswith("ProfilerStep#"):
                self.steps.append((start, event["name"]))
        if len({name for _, name in self.steps}) >= 2 and not all_steps:
            last = max(self.steps)[0]
            self.calls = [row for row in self.calls if row[0] < last]

    def launches(self):
        """For each launch: time in the call, time on the device, delay; and the error of its times
        as doubles."""
        calls = {row[3]: row for row in self.calls if row[2] in LAUNCHES}
        launches = {}
        for start, end, _, correlation, _ in self.commands:
            if correlation in calls:
                call = calls[correlation]
                launches[correlation] = (call[1] - call[0], end - start, max(start - call[1], 0))
        return launches

    def grain(self):
        """The distance of two doubles near its times."""
        return math.ulp(float(max(row[0] for row in self.calls)))

    def queues(self, more=()):
        """For each stream: when commands arrive and leave; also those of other calls."""
        calls = {row[3]: row for row in self.calls if row[2] in QUEUED or row[2] in more}
        queues = collections.defaultdict(list)
        for row in self.commands:
            if row[3] in calls:
                queues[row[4]].append((calls[row[3]][0], row[0]))
        return queues


def describe(values):
    values = sorted(values)

    def quantile(part):
        place = part * (len(values) - 1)
        low = math.floor(place)
        return values[low] + (values[min(low + 1, len(values) - 1)] - values[low]) * (place - low)

    return [statistics.fmean(values), statistics.stdev(values), values[0], quantile(0.25), quantile(0.5),
            quantile(0.75), values[-1]]


def lengths(queue, in_first):
    """The length after each change."""
    changes = [(time, 0 if in_first else 1, 1) for time, _ in queue]
    changes += [(time, 1 if in_first else 0, -1) for _, time in queue]
    length, series = 0, []
    for _, _, change in sorted(changes):
        length += change
        series.append(length)
    return series


# ---- queue ----

def check_queue(faults, folder, files, oracle, mode):
    found = analyze([f"{folder}/{file}" for file in files], "queue", *mode.options)
    summary = {(row["rank"], row["stream"]): row for row in found["summary"]}
    # HTA does not know graph launches; we do.
    exact = [mode.rows(f"{folder}/{file}", True).queues(() if mode.rounded else ("cudaGraphLaunch",)) for file in files]
    models = [mode.rows(f"{folder}/{file}", False).queues() for file in files]
    equal = 0
    for expected in oracle:
        rank, stream = expected["rank"], expected["stream"]
        what = f"queue, rank {rank}, stream {stream}"
        row = summary.get((rank, stream))
        if row is None:
            faults.append(f"{what}: missing")
            continue
        faults.equal(f"{what}: points", row["points"], 2 * len(exact[rank][stream]))
        faults.equal(f"{what}: HTA's points", expected["queue_length_count"], 2 * len(models[rank][stream]))
        ours = describe(lengths(exact[rank][stream], True))
        highest = describe(lengths(models[rank][stream], True))
        lowest = describe(lengths(models[rank][stream], False))
        for i, (key, column) in enumerate(zip(DESCRIPTION, POINTS)):
            value = expected[f"queue_length_{key}"]
            # An arrival at the instant of a departure comes first: ours is the maximum over all
            # orders.
            faults.near(f"{what}: {column}", row[column], ours[i], 1e-6)
            if key == "std":
                continue
            # HTA's order of equal times is arbitrary; any order is within these bounds.
            faults.check(lowest[i] - 1e-6 <= value <= highest[i] + 1e-6,
                         f"{what}: HTA's {key} {value} is not in {lowest[i]} ... {highest[i]}")
            equal += is_near(row[column], value, 1e-6)
        check_series(faults, what, row, [one["queue_length"] for one in found["timeline"]
                                         if (one["rank"], one["stream"]) == (rank, stream)])
    return f"{equal} of {6 * len(oracle)} numbers of queues are HTA's to the last digit"


def check_series(faults, what, row, series):
    faults.equal(f"{what}: points of the timeline", len(series), row["points"])
    faults.equal(f"{what}: peak", max(series), row["peak"])
    faults.equal(f"{what}: last length", series[-1], 0)


def check_queue_time(faults, path):
    """Our own numbers are in time order: counted again from the timeline."""
    found = analyze([path], "queue", "--full", "500")
    for row in found["summary"]:
        series = [(one["time_ns"], one["queue_length"]) for one in found["timeline"] if one["stream"] == row["stream"]]
        area = full = 0
        for (time, length), (until, _) in zip(series, series[1:]):
            area += (until - time) * length
            full += (until - time) * (length >= 500)
        faults.near("queue: mean over time", row["time_mean"], area / (series[-1][0] - series[0][0]))
        faults.near("queue: time full", row["full_us"], full / 1000)
        faults.check(full > 0, "queue: never full")


# ---- bandwidth ----

def check_bandwidth(faults, files, oracle, mode, ties):
    found = analyze(files, "bandwidth", *mode.options)
    rows = {(row["rank"], row["name"]): row for row in found}
    for expected in oracle:
        what = f"bandwidth, rank {expected['rank']}, {expected['name']}"
        row = rows.get((expected["rank"], expected["name"]))
        if row is None:
            faults.append(f"{what}: missing")
            continue
        if not ties:
            faults.equal(f"{what}: points", row["points"], expected["memory_bw_gbps_count"])
        for key, column in zip(DESCRIPTION, RATES):
            if not ties or key in ("min", "50%", "max"):
                faults.near(f"{what}: {column}", row[column], expected[f"memory_bw_gbps_{key}"])


def check_bytes(faults, path):
    """Bytes and busy time, counted from the file."""
    kinds = collections.defaultdict(list)
    for event in read_events(path, True):
        if event.get("cat") in ("gpu_memcpy", "gpu_memset"):
            start, length = int(event["ts"] * 1000), int(event["dur"] * 1000)
            kinds[event["name"].partition(" (")[0]].append((start, start + length, event["args"]["bytes"]))
    rows = {row["name"]: row for row in analyze([path], "bandwidth", "--all")}
    faults.equal("bandwidth: kinds", sorted(rows), sorted(kinds))
    for name, copies in kinds.items():
        busy, reach = 0, -math.inf
        for start, end, _ in sorted(copies):
            busy += max(0, end - max(start, reach))
            reach = max(reach, end)
        size = sum(copy[2] for copy in copies)
        faults.equal(f"bandwidth: {name}", [rows[name]["copies"], rows[name]["bytes"]], [len(copies), size])
        faults.near(f"bandwidth: busy time of {name}", rows[name]["busy_us"], busy / 1000, 0.01)
        faults.near(f"bandwidth: {name}", rows[name]["gbps"], size / busy, size / busy / 1000)


# ---- annotations ----

def check_annotations(faults, files, oracle, mode):
    rounded = mode.rounded
    found = analyze(files, "annotations", *mode.options)["annotations"]
    tolerance = 0.0006 if rounded else 0.1  # a mean is rounded to ns
    for side, key in (("host", "cpu_user_annotation_breakdown"), ("device", "gpu_user_annotation_breakdown")):
        expected = oracle[key] or []
        rows = {(row["rank"], row["name"]): row for row in found if row["side"] == side}
        faults.equal(f"{side} annotations", sorted(rows), sorted((row["rank"], row["name"]) for row in expected))
        for one in expected:
            row = rows.get((one["rank"], one["name"]), {})
            for name, column in (("sum (us)", "sum_us"), ("max (us)", "max_us"), ("min (us)", "min_us"),
                                 ("mean (us)", "mean_us"), ("stddev", "std_us")):
                # A single value has no deviation; HTA gives 0.
                value = None if name == "stddev" and row.get("count") == 1 and not rounded else one[name]
                faults.near(f"{side} annotation {one['name']}: {column}", row.get(column), value, tolerance)


def check_attribution(faults, folder):
    """The numbers of HTA's own test: 4876 kernels, 27 of them under the optimizer's annotation on
    the device."""
    found = analyze([f"{folder}/kineto/ns_resolution.json.gz"], "annotations")
    rows = {(row["side"], row["name"]): row for row in found["annotations"]}
    faults.equal("annotations: all commands", [row["kernels"] for row in found["totals"]], [4876])
    faults.equal("annotations: the optimizer's, on the device",
                 [rows["device", "Optimizer.step#SGD.step"][key] for key in ("kernels", "own_kernels")], [27, 27])
    # The host calls it once more: the device's last one begins after the last step does, and is
    # ignored.
    faults.equal("annotations: the optimizer's, on the host",
                 [rows["host", "Optimizer.step#SGD.step"][key] for key in ("kernels", "own_kernels")], [36, 36])
    faults.equal("annotations: around the optimizer's",
                 [rows["host", "## optimizer ##"][key] for key in ("kernels", "own_kernels")], [36, 0])
    own = sum(row["own_kernels"] for row in found["annotations"] if row["side"] == "host")
    faults.equal("annotations: own commands together", own, found["totals"][0]["host_annotated"])


# ---- steps ----

def check_steps(faults, path):
    """Durations, and the commands issued in each step, counted from the file."""
    events = [event for event in read_events(path) if event.get("ph") == "X"]
    steps = sorted((event["ts"], event["dur"], int(event["name"].partition("#")[2])) for event in events
                   if event["cat"] == "user_annotation" and event["name"].startswith("ProfilerStep#"))
    calls = {event["args"]["correlation"]: event["ts"] for event in events
             if event["cat"] in ("cuda_runtime", "cuda_driver") and "correlation" in event.get("args", {})}
    starts = [step[0] for step in steps]
    kernels = collections.Counter()
    for event in events:
        if event["cat"] not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        call = calls.get(event["args"]["correlation"])
        place = bisect.bisect_right(starts, call) - 1 if call is not None else -1
        if place >= 0 and call < steps[place][0] + steps[place][1]:
            kernels[steps[place][2]] += 1
    found = analyze([path], "steps", "--all")
    rows = {row["step"]: row for row in found["steps"]}
    faults.equal("steps", sorted(rows), sorted(step[2] for step in steps))
    for _, duration, number in steps:
        faults.near(f"step {number}: duration", rows[number]["duration_us"], duration, 0.001)
        faults.equal(f"step {number}: commands", rows[number]["kernels"], kernels[number])
        faults.near(f"step {number}: busy and idle", rows[number]["busy_us"] + rows[number]["idle_us"],
                    rows[number]["device_us"])
    durations = [step[1] for step in steps]
    summary = found["summary"][0]
    faults.near("steps: median", summary["median_us"], statistics.median(durations), 0.001)
    faults.near("steps: slowest", summary["slowest_us"], max(durations), 0.001)
    faults.near("steps: fastest", summary["fastest_us"], min(durations), 0.001)
    faults.equal("steps: by default", [row["step"] for row in analyze([path], "steps")["steps"]],
                 [step[2] for step in steps[:-1]] or [steps[0][2]])


# ---- memory ----

KINDS = {0: "cpu", 1: "cuda", 6: "hip"}


class Memory:
    """PyTorch's "[memory]" instants of a device."""

    def __init__(self, events):
        self.events = sorted(events, key=lambda event: event["ts"])
        args = [event["args"] for event in self.events]
        self.sizes = [one["Bytes"] for one in args]
        if "Total Allocated" in args[0]:
            self.totals = [one["Total Allocated"] for one in args]
            self.start = self.totals[0] - self.sizes[0]
        else:
            sums, total = [], 0
            for size in self.sizes:
                total += size
                sums.append(total)
            self.start = max(0, -min(sums))
            self.totals = [total + self.start for total in sums]
        self.peak = self.totals.index(max(self.totals))

    def alive(self, until):
        """Allocations that were not freed by then, by address."""
        alive = {}
        for event in self.events[:until]:
            if event["args"]["Bytes"] > 0:
                alive[event["args"]["Addr"]] = event
            else:
                alive.pop(event["args"]["Addr"], None)
        return alive


def innermost(slices, event):
    """The slice around an instant that began last; of equal starts the shorter one."""
    around = [one for one in slices[event["pid"], event["tid"]] if one["ts"] <= event["ts"] < one["ts"] + one["dur"]]
    return max(around, key=lambda one: (one["ts"], -one["dur"]))["name"] if around else None


def check_memory(faults, path):
    places = collections.defaultdict(list)
    slices = collections.defaultdict(list)
    for event in read_events(path):
        if event.get("name") == "[memory]":
            args = event["args"]
            places[KINDS[args["Device Type"]] + (f":{args['Device Id']}" if args["Device Id"] >= 0 else "")].append(
                event)
        elif event.get("ph") == "X" and event.get("cat") in ("cpu_op", "user_annotation", "Operator"):
            slices[event["pid"], event["tid"]].append(event)
    found = analyze([path], "memory")
    faults.equal("memory: devices", sorted(row["device"] for row in found["summary"]), sorted(places))
    for row in found["summary"]:
        check_place(faults, row, Memory(places[row["device"]]),
                    [one for one in found["peak"] if one["device"] == row["device"]], slices)
        timeline = [one["total_bytes"] for one in found["timeline"] if one["device"] == row["device"]]
        faults.equal(f"memory: {row['device']}: timeline", timeline, Memory(places[row["device"]]).totals)


def check_place(faults, row, memory, peak, slices):
    what = f"memory: {row['device']}"
    faults.equal(f"{what}: allocations", row["allocations"], sum(size > 0 for size in memory.sizes))
    faults.equal(f"{what}: frees", row["frees"], sum(size < 0 for size in memory.sizes))
    faults.equal(f"{what}: start, peak, end", [row["start_bytes"], row["peak_bytes"], row["end_bytes"]],
                 [memory.start, memory.totals[memory.peak], memory.totals[-1]])
    if "Addr" not in memory.events[0]["args"]:
        faults.equal(f"{what}: never freed", row["never_freed"], None)
        return
    faults.equal(f"{what}: reserved", row["reserved_peak_bytes"],
                 max(event["args"]["Total Reserved"] for event in memory.events))
    left = memory.alive(len(memory.events))
    faults.equal(f"{what}: never freed", [row["never_freed"], row["never_freed_bytes"]],
                 [len(left), sum(event["args"]["Bytes"] for event in left.values())])
    alive = sorted(memory.alive(memory.peak + 1).values(), key=lambda event: -event["args"]["Bytes"])
    faults.equal(f"{what}: largest at the peak", [one["bytes"] for one in peak],
                 [event["args"]["Bytes"] for event in alive[:10]])
    by_address = {event["args"]["Addr"]: event for event in alive}
    for one in peak[:4]:
        faults.equal(f"{what}: operator of {one['address']}", one["operator"],
                     innermost(slices, by_address[one["address"]]))


# ---- all ----

def check_cpu_only(faults, path):
    """A trace without devices has no result, and that is no error."""
    faults.equal("CPU only: launch", analyze([path], "launch-latency"), {"summary": [], "launches": []})
    faults.equal("CPU only: queue", analyze([path], "queue"), {"summary": [], "timeline": []})
    faults.equal("CPU only: bandwidth", analyze([path], "bandwidth"), [])
    faults.equal("CPU only: memory", analyze([path], "memory"), {"summary": [], "peak": [], "timeline": []})


def check_set(faults, folder, name, files, rounded):
    oracle = tool.hta_numbers(folder, name, rounded)
    if not oracle:
        return
    paths = [f"{folder}/{file}" for file in files]
    mode = Mode(oracle, paths, rounded)
    found = Check()
    check_launch(found, folder, files, oracle["cuda_kernel_launch_stats"], mode)
    told = check_queue(found, folder, files, oracle["queue_length_summary"], mode)
    # Only here do copies touch after rounding: HTA's order of equal times decides how many points
    # it counts.
    check_bandwidth(found, paths, oracle["memory_bw_summary"] or [], mode, rounded and name == "ns_resolution")
    check_annotations(found, paths, oracle, mode)
    print(f"{name}{' as HTA rounds' if rounded else ''}: {len(found)} differences; {told}")
    faults.extend(f"{name}: {fault}" for fault in found)


def check_files_of_others(faults, folder, small):
    check_cpu_only(faults, f"{folder}/kineto/rank_non_gpu.json.gz")
    if not small:
        check_mtia(faults, folder)
        check_attribution(faults, folder)
        check_queue_time(faults, f"{folder}/kineto/h100_owlv2.json.gz")
        check_bytes(faults, f"{folder}/kineto/h100_owlv2.json.gz")
        check_bytes(faults, f"{folder}/kineto/nccl_data.json.gz")
        check_steps(faults, f"{folder}/kineto/ns_resolution.json.gz")
        check_steps(faults, f"{folder}/kineto/nccl_data.json.gz")
    for name in MEMORY[:1] if small else MEMORY:
        check_memory(faults, f"{folder}/kineto/{name}.json.gz")


def check_own_files(faults, folder):
    check_cpu_only(faults, f"{folder}/kineto/cpu_only.json.gz")
    for name, files in SETS[:OWN]:
        if not tool.hta_numbers(folder, name):
            faults.append(f"{name}: no numbers of HTA")
        check_bytes(faults, f"{folder}/{files[0]}")
        check_steps(faults, f"{folder}/{files[0]}")
    for name in ("mlp_train", "transformer_train"):
        check_memory(faults, f"{folder}/kineto/{name}.json.gz")


def main():
    small = sys.argv[1] == "--small"
    folder, faults = sys.argv[-1], Check()
    for name, files in SETS[:SMALL] if small else SETS:
        for rounded in (True, False):
            check_set(faults, folder, name, files, rounded)
    if os.path.isdir(f"{folder}/expected"):
        check_own_files(faults, folder)
    else:
        check_files_of_others(faults, folder, small)
    for fault in faults[:24]:
        print(f"    {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
