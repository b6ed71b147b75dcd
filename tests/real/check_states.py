# SPDX-License-Identifier: Apache-2.0
"""check_states.py FILE...: checks the states of recorded traces. Intervals partition each lane's
window, which is the same for all lanes of a rank; totals are their sums. The running time of
each stream and device is the union of the source's device slices, and that of each command its
own time, computed here from the JSON.
"""
import gzip
import json
import sys
from collections import defaultdict
from decimal import Decimal

import tool

DEVICE_WORK = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events", "hpu_op"}
STATES = ("running", "wait", "dispatch_pending", "idle")


def load(path):
    with open(path, "rb") as file:
        opener = gzip.open if file.read(2) == b"\x1f\x8b" else open
    with opener(path, "rb") as file:
        return json.loads(file.read().decode(errors="replace"), parse_float=Decimal, strict=False)


def ns(us):
    return int(Decimal(us) * 1000)


def union(spans):
    """Length of the union of half-open intervals."""
    total, at = 0, None
    for start, end in sorted(spans):
        if at is None or start > at:
            total, at = total + end - start, end
        elif end > at:
            total, at = total + end - at, end
    return total


def device_slices(trace):
    """Intervals of device work by (device, stream)."""
    slices = defaultdict(list)
    for event in trace["traceEvents"] if isinstance(trace, dict) else trace:
        if event.get("ph") != "X" or event.get("cat") not in DEVICE_WORK:
            continue
        args = event.get("args", {})
        start = ns(event["ts"])
        place = int(args.get("device", event["pid"])), int(args.get("stream", event["tid"]))
        slices[place].append((start, start + max(ns(event.get("dur", 0)), 0)))
    return slices


def check_lanes(faults, lanes, slices):
    devices = defaultdict(list)
    for (device, _), spans in slices.items():
        devices[device] += spans
    found = {(lane["device"], lane["stream"]): lane for lane in lanes}
    for place, spans in list(slices.items()) + [((device, None), spans) for device, spans in devices.items()]:
        faults.check(place in found, f"no lane {place}")
        if place in found:
            faults.equal(f"commands of {place}", found[place]["commands"], len(spans))
            faults.equal(f"running of {place}", ns(found[place]["running_us"]), union(spans))
    for place, lane in found.items():
        faults.equal(f"states of {place}", sum(ns(lane[f"{state}_us"]) for state in STATES), ns(lane["window_us"]))
        for state in "wait", "idle":
            parts = sum(ns(value) for key, value in lane.items() if key.startswith(f"{state}_") and key != f"{state}_us")
            faults.equal(f"reasons of {state} of {place}", parts, ns(lane[f"{state}_us"]))


def check_partition(faults, rows, lanes):
    at, first, totals = {}, {}, defaultdict(int)
    for row in rows:
        place, length = (row["device"], row["stream"]), ns(row["duration_us"])
        faults.check(length > 0, f"an empty interval of {place}: {row}")
        faults.check(at.get(place, row["start_ns"]) == row["start_ns"], f"a gap or an overlap in {place}: {row}")
        first.setdefault(place, row["start_ns"])
        at[place] = row["start_ns"] + length
        totals[place, row["state"]] += length
    faults.check(len({(first[place], at[place]) for place in at}) <= 1, "lanes have different windows")
    for lane in lanes:
        for state in STATES:
            place = lane["device"], lane["stream"]
            faults.equal(f"{state} of {place}", ns(lane[f"{state}_us"]), totals[place, state])


def check_commands(faults, rows, slices):
    order, last, running = {"dispatch_pending": 0, "wait": 1, "running": 2}, {}, defaultdict(int)
    for row in rows:
        place = row["device"], row["stream"]
        if row["state"] == "running":
            running[place] += ns(row["duration_us"])
        key = place, row["correlation"], row["name"]
        if key in last and last[key][0] == row["start_ns"]:
            faults.check(last[key][1] <= order[row["state"]], f"states out of order: {row}")
        last[key] = row["start_ns"] + ns(row["duration_us"]), order[row["state"]]
    for place, spans in slices.items():
        faults.equal(f"time of commands of {place}", running[place], sum(end - start for start, end in spans))


def check_file(path):
    faults = tool.Faults()
    slices = device_slices(load(path))

    def ask(*arguments):
        return json.loads(tool.run("state", path, "--json", *arguments), parse_float=Decimal)

    lanes = ask()["lanes"]
    check_lanes(faults, lanes, slices)
    check_partition(faults, ask("--intervals"), lanes)
    check_commands(faults, ask("--commands"), slices)
    return faults


def main():
    bad = 0
    for path in sys.argv[1:]:
        faults = check_file(path)
        print(f"{path}: {len(faults)} faults" if faults else f"{path}: holds")
        for fault in faults[:10]:
            print(f"  {fault}")
        bad += bool(faults)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
