# SPDX-License-Identifier: Apache-2.0
"""analyze_breakdowns.py FOLDER FILE...: breakdown, overlap, kernels and idle of recorded traces.

1. With `--rounding hta` the results must equal HTA's numbers (NAME.json in FOLDER/oracles or
   FOLDER/expected), and without it those of HTA with its rounding off (NAME.noround.json). HTA then
   computes in doubles of microseconds since 1970, which lose up to 1/8 us each.
2. For every listed file, compares with an exact count in Python: integers of nanoseconds, sets of
   time as sorted boundaries.

Prints a line for each comparison; exits with 1 if anything differs.
"""
import json
import math
import os
import re
import statistics
import sys
from collections import Counter, defaultdict

import tool
from chrome_model import API_CALL, GPU_OP, read_json, to_ns

# HTA's type names, by ours.
TYPES = {"compute": "COMPUTATION", "communication": "COMMUNICATION", "memory": "MEMORY", "overlapping": "overlapping"}

# The files that HTA's numbers belong to. The oracle's simple_add is end_to_end/simple_add.
ORACLES = {
    "nccl_data": ["kineto/nccl_data.json.gz"],
    "ns_resolution": ["kineto/ns_resolution.json.gz"],
    "h100_qwen": ["kineto/h100_qwen.json.gz"],
    "mi300_resnet": ["kineto/mi300_resnet.json.gz"],
    "event_sync": ["kineto/critical_path/cuda_event_sync/event_sync_trace.json.gz"],
    "simple_add": ["kineto/critical_path/end_to_end/simple_add/input/trace.json.gz"],
    "megatron_tp8": [f"pairs/megatron_tp8_r{rank}_kineto.json.gz" for rank in range(4)],
    "dlrm8": [f"pairs/dlrm_r{rank}_kineto.json.gz" for rank in range(3)],
    # Our own.
    "mlp_train": ["kineto/mlp_train.json.gz"],
    "transformer_train": ["kineto/transformer_train.json.gz"],
    "cuda_graph": ["kineto/cuda_graph.json.gz"],
    "two_streams": ["kineto/two_streams.json.gz"],
    "compiled": ["kineto/compiled.json.gz"],
    "mlp_pair": ["pairs/mlp_kineto.json.gz"],
    "nccl_ranks": [f"kineto/nccl_ranks/rank{rank}.json.gz" for rank in range(4)],
    "gloo_ranks": [f"kineto/gloo_ranks/rank{rank}.json.gz" for rank in range(2)],
}


def analyze(files, *options):
    """All four, by name. Ranks are compared one by one: moving their clocks would only shift each
    of them."""
    return json.loads(tool.run("analyze", *files, "breakdown,overlap,kernels,idle", "--json", *options))


class Check(tool.Faults):
    """Errors of one file, reported together."""

    def __init__(self, what):
        super().__init__()
        self.what, self.count = what, 0

    def near(self, what, found, expected, tolerance):
        self.count += 1
        if found is None or expected is None:
            self.check(found is None and expected is None, f"{what}: {found}, expected {expected}")
            return
        self.check(abs(found - expected) <= tolerance, f"{what}: {found}, expected {expected} +- {tolerance}")

    def same(self, what, found, expected):
        self.count += 1
        self.equal(what, found, expected)

    def finish(self):
        for fault in self[:20]:
            print(f"{self.what}: {fault}")
        print(f"{'bad' if self else 'ok'}: {self.what}: {self.count} numbers, {len(self)} differ")
        return not self


# ---- HTA's numbers ----


def is_missing(part):
    """HTA failed on it, or was not run."""
    return part is None or "ERROR" in part


def check_hta_breakdown(check, oracle, found, slack):
    if is_missing(oracle):
        return
    check.same("breakdown: ranks", [row["rank"] for row in found], [row["rank"] for row in oracle])
    for ours, theirs in zip(found, oracle):
        for key in ("idle", "compute", "non_compute"):
            check.near(f"{key}_us", ours[f"{key}_us"], theirs[f"{key}_time(us)"], slack)
            check.near(f"{key}_pct", ours[f"{key}_pct"], theirs[f"{key}_time_pctg"], 0.00501)
        check.near("kernel_time_us", ours["kernel_time_us"], theirs["kernel_time(us)"], slack)


def check_hta_overlap(check, oracle, found):
    if is_missing(oracle):
        return
    check.same("overlap: ranks", [row["rank"] for row in found], [row["rank"] for row in oracle])
    for ours, theirs in zip(found, oracle):
        check.near("overlap_pct", ours["overlap_pct"], theirs["comp_comm_overlap_pctg"], 0.00501)


def hta_type(text):
    return " ".join(TYPES[word] for word in text.split())


def check_hta_types(check, oracle, found):
    ours = {hta_type(row["type"]): row for row in found}
    # HTA also lists a type for which rounding leaves no time.
    check.same("types", set(ours), {row["kernel_type"] for row in oracle if row["sum"]})
    for theirs in oracle:
        if theirs["kernel_type"] in ours:
            row = ours[theirs["kernel_type"]]
            check.near(f"types: {theirs['kernel_type']}", row["sum_us"], theirs["sum"], 0)
            check.near(f"types: {theirs['kernel_type']} %", row["percentage"], theirs["percentage"], 0.0501)


def check_hta_kernels(check, oracle, found):
    theirs = {(row["rank"], TYPES[kind], row["name"]): row for row in oracle
              for kind in TYPES if TYPES[kind] == row["kernel_type"]}
    ours = {(row["rank"], hta_type(row["type"]), row["name"]): row for row in found}
    # Among names with equal sums, an unstable sort in HTA decides which is the last one before
    # "others".
    check.same("kernels: names", sorted((*key[:2], ours[key]["sum_us"]) for key in ours.keys() - theirs.keys()),
               sorted((*key[:2], theirs[key]["sum (us)"]) for key in theirs.keys() - ours.keys()))
    for key in ours.keys() & theirs.keys():
        for mine, hta in (("sum_us", "sum (us)"), ("max_us", "max (us)"), ("min_us", "min (us)"),
                          ("mean_us", "mean (us)"), ("std_us", "stddev")):
            check.near(f"kernels: {key} {mine}", ours[key][mine], theirs[key][hta], 0.000501)


def check_kernels_noround(check, oracle, kernels):
    """HTA lists ten names of a type: those sums must equal ours, and its others must be the rest."""
    rest = defaultdict(float)
    for row in kernels:
        rest[row["rank"], hta_type(row["type"])] += row["sum_us"]
    ours = {(row["rank"], row["name"]): row for row in kernels}
    many = {(row["rank"], row["kernel_type"]) for row in oracle if row["name"] == "others"}
    for row in oracle:
        key = row["rank"], row["kernel_type"]
        if row["name"] == "others":
            continue
        found = ours.get((row["rank"], row["name"]), {"sum_us": math.nan})
        check.near(f"kernels: {row['name'][:40]}", found["sum_us"], row["sum (us)"], 0.001)
        rest[key] -= row["sum (us)"]
        if key not in many:
            # Only for this file HTA's other numbers count commands.
            for mine, hta in (("max_us", "max (us)"), ("min_us", "min (us)"), ("mean_us", "mean (us)"), ("std_us", "stddev")):
                check.near(f"kernels: {row['name'][:40]} {mine}", found[mine] or 0, row[hta], 0.001)
    for row in oracle:
        if row["name"] == "others":
            check.near("kernels: others", rest[row["rank"], row["kernel_type"]], row["sum (us)"], 0.01)


def check_hta_gaps(check, oracle, found, slack):
    ours = {(row["rank"], row["stream"], row["category"]): row for row in found}
    theirs = {(row["rank"], row["stream"], row["idle_category"]): row for row in oracle["breakdown"]}
    stats = {(row["rank"], row["stream"], row["idle_category"]): row for row in oracle["stats"]}
    if slack:
        # HTA has a row for the first command of a stream, which follows no gap.
        theirs = {key: row for key, row in theirs.items() if stats[key]["count"]}
    check.same("idle: rows", set(ours), set(theirs))
    for key in ours.keys() & theirs.keys():
        # HTA prints two decimals.
        check.near(f"idle: {key}", ours[key]["idle_us"], theirs[key]["idle_time"], slack + 0.00501)
        check.near(f"idle: {key} ratio", ours[key]["ratio"], theirs[key]["idle_time_ratio"], 0.00501)
        check.near(f"idle: {key} count", ours[key]["count"], stats[key]["count"], 0)
        for mine, hta in (("mean_us", "mean"), ("std_us", "std"), ("min_us", "min"), ("p25_us", "25%"),
                          ("p50_us", "50%"), ("p75_us", "75%"), ("max_us", "max")):
            check.near(f"idle: {key} {mine}", ours[key][mine], stats[key][hta], slack + 0.00551)


def double_us(ns):
    """As a reader with times as doubles of us."""
    return float(f"{ns // 1000}.{ns % 1000:03d}")


def misjudged_gaps(path, all_steps):
    """Gaps that HTA puts into the wrong category: {(stream, right, HTA's): [us]}.

    It uses doubles of us, which near 1.7e15 are 1/4 us apart (it subtracts the start of the
    trace too late), and treats a command whose launch is not in the trace as launched by the
    first event of the file: row 0 stands for "no launch", and is then looked up.
    """
    events = read_json(path)["traceEvents"]
    first = to_ns(events[0]["ts"])
    zero = double_us(min(to_ns(event["ts"]) for event in events if "dur" in event and event.get("cat") != "Trace"))
    moved, lanes = defaultdict(list), defaultdict(list)
    everything, part = commands_of(path, as_hta=True)
    for command in sorted(everything if all_steps else part, key=lambda command: command.start):
        lanes[command.lane].append(command)
    for lane, own in lanes.items():
        for before, command in zip(own, own[1:]):
            gap = command.start - before.end
            right = category_of(gap, before.end, command.issued)
            issued = double_us(first if command.issued is None else command.issued) - zero
            end = double_us(before.start) - zero + double_us(before.duration)
            gap_us = double_us(command.start) - zero - end
            hta = "host_wait" if issued > end else "kernel_wait" if gap_us < 30 else "other"
            if right != hta:
                moved[lane[1], right, hta].append(gap)
    return moved


def check_gaps_noround(check, oracle, found, path, all_steps):
    """Equal to HTA where it is right; otherwise its corrected sums and counts must equal ours."""
    moved = misjudged_gaps(path, all_steps)
    if not moved:
        check_hta_gaps(check, oracle, found, 0.1)
        return
    stats = {(row["stream"], row["idle_category"]): row["count"] for row in oracle["stats"]}
    sums = {(row["stream"], row["idle_category"]): row["idle_time"] for row in oracle["breakdown"]}
    for (stream, right, hta), gaps in moved.items():
        stats[stream, right] += len(gaps)
        stats[stream, hta] -= len(gaps)
        sums[stream, right] += sum(gaps) / 1000
        sums[stream, hta] -= sum(gaps) / 1000
    check.same("idle: counts", {(row["stream"], row["category"]): row["count"] for row in found},
               {key: count for key, count in stats.items() if count})
    check.near("idle: in all", sum(row["idle_us"] for row in found), sum(sums.values()), 0.1)
    # Each of HTA's gaps is up to 1/4 us off, which mostly, but not always, evens out in the sum of
    # a category.
    for row in found:
        check.near(f"idle: {row['category']}", row["idle_us"], sums[row["stream"], row["category"]], 1)


def check_oracle(oracle, name, files):
    check = Check(f"{name} as HTA has it")
    found = analyze(files, "--rounding", "hta", *tool.part_of(oracle, files))
    check_hta_breakdown(check, oracle["temporal_breakdown"], found["breakdown"], 0)
    check_hta_overlap(check, oracle["comm_comp_overlap"], found["overlap"])
    kernels = oracle.get("gpu_kernel_breakdown")
    if not is_missing(kernels):
        check_hta_types(check, kernels["kernel_type"], found["kernels"]["types"])
        check_hta_kernels(check, kernels["kernels"], found["kernels"]["kernels"])
    gaps = oracle["idle_time_breakdown_delay30"]
    if not is_missing(gaps):
        check_hta_gaps(check, gaps, found["idle"]["gaps"], 0)
    return check.finish()


def check_noround(oracle, name, files):
    check = Check(f"{name} exact")
    part = tool.part_of(oracle, files, rounded=False)
    if "--to" in part:
        # Like HTA, a part by steps ignores what was issued before the trace began; one by time does
        # not.
        part += ["--steps", "0-1000000"]
    found = analyze(files, *part)
    check_hta_breakdown(check, oracle["temporal_breakdown"], found["breakdown"], 0.1)
    check_hta_overlap(check, oracle["comm_comp_overlap"], found["overlap"])
    # Types are not compared: HTA truncates each interval to whole us even here, and loses up to 2 %
    # of it.
    check_kernels_noround(check, oracle["gpu_kernel_breakdown"]["kernels"], found["kernels"]["kernels"])
    check_gaps_noround(check, oracle["idle_time_breakdown_delay30"], found["idle"]["gaps"], files[0],
                       oracle.get("all_steps"))
    return check.finish()


def check_hta_tests(folder):
    """The assertions of HTA's own tests for an MTIA trace: they compare shares of time to 0.01 %."""
    check = Check("mtia_rank0 as HTA's tests have it")
    found = analyze([f"{folder}/kineto/mtia_rank0.json.gz"], "--rounding", "hta")
    row, types, kernels = found["breakdown"][0], found["kernels"]["types"], found["kernels"]["kernels"]
    for key, us in (("idle_pct", 5648827), ("compute_pct", 7305596), ("non_compute_pct", 373924)):
        check.near(key, row[key], 100 * us / 13328347, 0.0151)
    check.same("types", (types[0]["type"], types[0]["sum_us"]), ("compute", 7305597))
    for at, kind, us in ((0, "compute", 77283), (11, "memory", 400892)):
        check.same(f"kernels: row {at}", [kernels[at][key] for key in ("type", "sum_us")], [kind, us])
    gaps = found["idle"]["gaps"]
    check.same("streams", {row["stream"] for row in gaps}, {1, 102})
    check.same("host_wait of stream 1", [row["idle_us"] for row in gaps
                                         if row["stream"] == 1 and row["category"] == "host_wait"], [417937])
    return check.finish()


# ---- independent counts ----

COMMUNICATION = re.compile(r"^(nccl|rccl|hccl)|ncclKernel|ncclDevKernel|cross_device_reduce|nvshmem")
HOLDS_OTHERS = re.compile(r"^(job_exe|packet|pe_exe|cpum_exe_subgraph|collective_subgraph_execution|runFunction)")


def class_of(event):
    if "mem" in event["cat"].lower():
        return "memory"
    if COMMUNICATION.search(event["name"]):
        return "communication"
    if event["name"].startswith("dma"):
        return "memory"
    return "other" if HOLDS_OTHERS.search(event["name"]) else "compute"


class Command:
    def __init__(self, event):
        args = event.get("args") or {}
        self.start = to_ns(event["ts"])
        self.end = self.start + to_ns(event["dur"])
        self.name, self.kind = event["name"], class_of(event)
        self.correlation = args.get("correlation")
        # Events without a stream have their thread's row.
        self.lane = args.get("device"), args.get("stream", event["tid"])
        self.issued = None

    @property
    def duration(self):
        return self.end - self.start


def commands_of(path, as_hta=False):
    """Device work, and the part before the last step, by the calls that issued it; all of it if
    there is at most one step. Steps begin on the host; HTA also counts their spans on the device.
    """
    events = read_json(path)
    events = [event for event in (events["traceEvents"] if isinstance(events, dict) else events)
              if event.get("ph") == "X" and "cat" in event and to_ns(event.get("dur")) is not None]
    calls = {}
    for event in events:
        if event["cat"] in API_CALL and "correlation" in (event.get("args") or {}):
            calls.setdefault(event["args"]["correlation"], to_ns(event["ts"]))
    commands = [Command(event) for event in events if event["cat"] in GPU_OP]
    for command in commands:
        command.issued = calls.get(command.correlation)
    part = commands
    steps = [event for event in events if re.match(r"ProfilerStep\s*#", event["name"]) and
             (as_hta or event["cat"] != "gpu_user_annotation")]
    if len({event["name"] for event in steps}) > 1:
        last = max(to_ns(event["ts"]) for event in steps)
        part = [command for command in commands
                if (command.start if command.correlation is None else command.issued or last) < last]
    return commands, part


def boundaries(commands):
    """How many of each class run between two instants: (from, to, {class: how many})."""
    changes = sorted([(command.start, 1, command.kind) for command in commands] +
                     [(command.end, -1, command.kind) for command in commands])
    running = Counter()
    for (time, change, kind), following in zip(changes, changes[1:] + changes[-1:]):
        running[kind] += change
        yield time, following[0], running


def time_by_classes(commands):
    """ns in which exactly this set of classes ran."""
    total = Counter()
    for start, end, running in boundaries(commands):
        if end > start:
            total[frozenset(kind for kind in running if running[kind])] += end - start
    return total


def check_counted_breakdown(check, commands, row, total):
    def has(kind):
        return sum(ns for kinds, ns in total.items() if kind in kinds)

    window = max(command.end for command in commands) - min(command.start for command in commands)
    idle = window - sum(ns for kinds, ns in total.items() if kinds)
    expected = {"idle": idle, "compute": has("compute"), "kernel_time": window,
                "non_compute": window - idle - has("compute"), "busy": window - idle}
    for kind in ("communication", "memory", "other"):
        expected[kind] = has(kind)
    for kind in ("compute", "communication", "memory", "other"):
        expected[f"{kind}_exclusive"] = total[frozenset([kind])]
        expected[f"{kind}_overlapped"] = has(kind) - total[frozenset([kind])]
    for key, ns in expected.items():
        check.same(f"breakdown: {key}", row[f"{key}_us"], ns / 1000)
    check.same("breakdown: commands", row["commands"], len(commands))


def check_counted_overlap(check, row, total):
    shared = sum(ns for kinds, ns in total.items() if {"compute", "communication"} <= kinds)
    communication = sum(ns for kinds, ns in total.items() if "communication" in kinds)
    check.same("overlap: shared", row["shared_us"], shared / 1000)
    check.same("overlap: exposed", row["exposed_us"], (communication - shared) / 1000)
    check.near("overlap", row["overlap_pct"], 100 * shared / communication if communication else None, 1e-9)


def check_counted_types(check, rows, total):
    order = ["compute", "communication", "memory", "other"]
    expected = {" overlapping ".join(kind for kind in order if kind in kinds): ns / 1000
                for kinds, ns in total.items() if kinds}
    check.same("types", {row["type"]: row["sum_us"] for row in rows}, expected)
    if rows:
        check.near("types: sum of %", sum(row["percentage"] for row in rows), 100, 1e-6)


def quantile(values, q):
    place = q * (len(values) - 1)
    below = math.floor(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (place - below)


def check_counted_kernels(check, commands, rows):
    groups = defaultdict(list)
    for command in commands:
        groups[command.name, command.kind].append(command.duration)
    check.same("kernels: names", {(row["name"], row["type"]) for row in rows}, set(groups))
    check.same("kernels: rows", len(rows), len(groups))
    everything = sum(sum(values) for values in groups.values())
    for row in rows:
        values = sorted(groups.get((row["name"], row["type"]), [0]))
        expected = {"count": len(values), "sum_us": sum(values) / 1000, "min_us": values[0] / 1000,
                    "max_us": values[-1] / 1000}
        check.same(f"kernels: {row['name'][:40]}", {key: row[key] for key in expected}, expected)
        deviation = statistics.stdev(values) / 1000 if len(values) > 1 else None
        for key, value in (("mean_us", sum(values) / len(values) / 1000), ("std_us", deviation),
                           ("p50_us", quantile(values, 0.5) / 1000), ("p90_us", quantile(values, 0.9) / 1000),
                           ("p99_us", quantile(values, 0.99) / 1000)):
            check.near(f"kernels: {row['name'][:40]} {key}", row[key], value, 0.000501)
        check.near("kernels: share", row["share_pct"], 100 * sum(values) / everything if everything else None, 1e-6)
    sums = [row["sum_us"] for row in rows]
    check.check(sums == sorted(sums, reverse=True), "kernels: not in order of their sums")


def category_of(gap, since, issued):
    if issued is not None and issued > since:
        return "host_wait"
    return "kernel_wait" if gap < 30000 else "other"


def check_counted_gaps(check, commands, rows):
    lanes, expected = defaultdict(list), defaultdict(list)
    for command in sorted(commands, key=lambda command: command.start):
        lanes[command.lane].append(command)
    for lane, own in lanes.items():
        reach = own[0].end
        for command in own[1:]:
            gap = command.start - reach
            if gap > 0:
                expected[lane[1], category_of(gap, reach, command.issued)].append(gap)
            reach = max(reach, command.end)
    found = {(row["stream"], row["category"]): (row["idle_us"], row["count"], row["min_us"], row["max_us"])
             for row in rows}
    check.same("idle", found, {key: (sum(gaps) / 1000, len(gaps), min(gaps) / 1000, max(gaps) / 1000)
                               for key, gaps in expected.items()})


def check_causes(check, rows, everything, commands):
    """For any cause: no time is negative, and a device does not run unless one of its commands
    does, selected or not."""
    for row in rows:
        check.check(row["time_us"] >= 0, f"causes: negative: {row}")
    shares = Counter()
    for row in rows:
        shares[row["device"], row["stream"]] += row["share_pct"]
    for lane, share in shares.items():
        check.near(f"causes: shares of {lane}", share, 100, 1e-6)
    whole = sum(row["time_us"] for row in rows if row["stream"] is None)
    first, last = min(command.start for command in commands), max(command.end for command in commands)
    idle = sum(end - start for start, end, running in boundaries(everything)
               if not any(running.values()) and start >= first and end <= last) / 1000
    check.check(whole >= idle - 0.001, f"causes: {whole} us, idle {idle} us")


def check_counted(path):
    check = Check(f"{os.path.basename(path)} counted")
    everything, commands = commands_of(path)
    found = analyze([path])
    breakdown, overlap, kernels, idle = (found[name] for name in ("breakdown", "overlap", "kernels", "idle"))
    if not commands:
        check.same("host alone", [breakdown, overlap, kernels, idle],
                   [[], [], {"types": [], "kernels": []}, {"gaps": [], "causes": []}])
        return check.finish()
    total = time_by_classes(commands)
    check_counted_breakdown(check, commands, breakdown[0], total)
    check_counted_overlap(check, overlap[0], total)
    check_counted_types(check, kernels["types"], total)
    check_counted_kernels(check, commands, kernels["kernels"])
    check_counted_gaps(check, commands, idle["gaps"])
    check_causes(check, idle["causes"], everything, commands)
    return check.finish()


def main(folder, paths):
    good = True
    for name, files in ORACLES.items():
        files = [f"{folder}/{file}" for file in files]
        if not set(files) <= set(paths):
            if tool.hta_numbers(folder, name):
                print(f"left out: {name}: not all of its files are there")
            continue
        good &= check_oracle(tool.hta_numbers(folder, name), name, files)
        exact = tool.hta_numbers(folder, name, rounded=False)
        if exact:
            good &= check_noround(exact, name, files)
    if f"{folder}/kineto/mtia_rank0.json.gz" in paths:
        good &= check_hta_tests(folder)
    for path in paths:
        good &= check_counted(path)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
