#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the import of a PyTorch memory snapshot with its contents according to Python's own
pickle.

usage: check_torch_memory.py TRACESMITH SNAPSHOT.pickle

Reads the file independently (plain data only: classes are refused), and computes sums backwards
from the final state, while the importer goes forwards: counts by action, each address, size,
stream, time and stack in order, peaks of used and of reserved memory. Exit code 0: equal; 1:
prints the first differences.
"""
import collections
import json
import os
import pickle
import subprocess
import sys
import tempfile

differences = []


def check(what, got, expected):
    if got != expected:
        differences.append("%s: %s, expected %s" % (what, str(got)[:300], str(expected)[:300]))


class PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError("class %s.%s in a snapshot" % (module, name))


def frames_of(frames):
    """As `view --json` shows a stack: innermost first."""
    found = []
    for frame in frames or []:
        file = frame.get("filename")
        kind = "python" if file.endswith(".py") or file.startswith("<") else "unknown" if file == "none" else "native"
        found.append((frame.get("name"), file if file not in ("??", "none", "") else None, frame.get("line") or None, kind))
    return found


def shown_stack(row):
    return [(f.get("func"), f.get("file"), f.get("lineno"), f.get("frame_type", "unknown")) for f in row.get("stack", [])]


class Device:
    """The file's data of one device."""

    def __init__(self, number, entries, segments):
        self.number = number
        self.entries = entries
        self.actions = collections.Counter(e["action"] for e in entries)
        self.free = "free_completed" if self.actions["free_completed"] or not self.actions["free_requested"] else "free_requested"
        in_use = ("active_allocated",)
        if not (entries and self.free == "free_requested"):
            in_use += ("active_pending_free", "active_awaiting_free")
        self.live = {}
        self.held = 0
        for segment in segments:
            self.held += segment["total_size"]
            address = segment["address"]
            for block in segment["blocks"]:
                address = block.get("address", address)
                if block["state"] in in_use:
                    size = block.get("requested_size", block["size"])
                    frames = block.get("frames")
                    if "history" in block and block["history"]:
                        size, frames = block["history"][0]["real_size"], block["history"][0].get("frames")
                    self.live[address] = (size, frames)
                address += block["size"]

    def sums(self, plus, minus, end):
        """Values after each entry, computed backwards from the end; and the one before the first
        entry."""
        after, value = [], end
        for entry in reversed(self.entries):
            after.append(value)
            if entry["action"] in plus:
                value -= entry["size"]
            elif entry["action"] in minus:
                value += entry["size"]
        return list(reversed(after)), value


def view(tracesmith, trace, table):
    lines = subprocess.run([tracesmith, "view", "--json", trace, "-t", table], check=True, stdout=subprocess.PIPE).stdout
    return [json.loads(line) for line in lines.splitlines()]


def check_rows(device, rows, totals, reserved, has_times):
    """Entries that become rows of `allocation`, in order."""
    kinds = {"alloc": "alloc", device.free: "free", "segment_alloc": "alloc", "segment_map": "alloc", "segment_free": "free", "segment_unmap": "free"}
    expected, time = [], None
    for place, entry in enumerate(device.entries):
        action = entry["action"]
        # Entries are in the order of the allocator's lock: a decreasing time is replaced by the
        # previous entry's.
        now = entry["time_us"] * 1000 if has_times else place
        time = now if time is None else max(time, now)
        if action not in kinds:
            continue
        is_segment = action.startswith("segment")
        expected.append({
            "start": time, "kind": kinds[action], "bytes": entry["size"], "stream": entry.get("stream"),
            "pool": "torch segments" if is_segment else "torch", "address": entry["addr"], "stack": frames_of(entry.get("frames")),
            "total": None if is_segment else totals[place], "reserved": reserved[place]})
    found = [{
        "start": row["start"], "kind": row["kind"], "bytes": row["bytes"], "stream": row.get("stream"), "pool": row["pool"],
        "address": row.get("address", row.get("args", {}).get("address")), "stack": shown_stack(row), "total": row.get("total_bytes"),
        "reserved": row.get("reserved_bytes")} for row in rows]
    check("device %d: rows of entries" % device.number, len(found), len(expected))
    for place, (row, wanted) in enumerate(zip(found, expected)):
        check("device %d: row %d" % (device.number, place), row, wanted)
        if len(differences) > 10:
            return


def check_before(device, rows, at_start):
    """Memory in use before the first entry, freed later or still in use."""
    taken, expected = set(), {}
    for entry in device.entries:
        if entry["action"] == "alloc":
            taken.add(entry["addr"])
        elif entry["action"] == device.free and entry["addr"] not in taken:
            expected[entry["addr"]] = (entry["size"], [])
            taken.add(entry["addr"])
    for address, (size, frames) in device.live.items():
        if address not in taken:
            expected[address] = (size, frames_of(frames))
    found = {row["address"]: (row["bytes"], shown_stack(row)) for row in rows if row["pool"] == "torch"}
    check("device %d: blocks from before" % device.number, found, expected)
    check("device %d: bytes from before" % device.number, sum(size for size, _ in found.values()), at_start)


def check_device(device, allocations, summary, has_times):
    totals, at_start = device.sums(("alloc",), (device.free,), sum(size for size, _ in device.live.values()))
    reserved, held_at_start = device.sums(("segment_alloc", "segment_map"), ("segment_free", "segment_unmap"), device.held)
    mine = [row for row in allocations if row.get("device") == device.number]
    before = [row for row in mine if row.get("args", {}).get("before_recording")]
    check_rows(device, [row for row in mine if not row.get("args", {}).get("before_recording")], totals, reserved, has_times)
    check_before(device, before, at_start)
    check("device %d: held before" % device.number, sum(row["bytes"] for row in before if row["pool"] == "torch segments"), held_at_start)
    pools = {row["pool"]: row for row in summary if row["device"].endswith(":%d" % device.number)}
    if any(row["pool"] == "torch" for row in mine):
        check("device %d: analyze memory: peak" % device.number, pools["torch"]["peak_bytes"], max(totals + [at_start]))
        check("device %d: analyze memory: at end" % device.number, pools["torch"]["end_bytes"], (totals + [at_start])[-1] if not totals else totals[-1])
        check("device %d: analyze memory: frees of nothing" % device.number, pools["torch"]["unknown_frees"], 0)
    if any(row["pool"] == "torch segments" for row in mine):
        check("device %d: analyze memory: peak of segments" % device.number, pools["torch segments"]["peak_bytes"], max(reserved + [held_at_start]))
    return max(totals + [at_start]), max(reserved + [held_at_start])


def requests_told(device):
    """Free requests that are marks: those that differ from their completion, and those without one."""
    waiting, marks = {}, 0
    for entry in device.entries:
        if entry["action"] == "free_requested":
            marks += entry["addr"] in waiting
            waiting[entry["addr"]] = entry
        elif entry["action"] == "free_completed" and entry["addr"] in waiting:
            request = waiting.pop(entry["addr"])
            marks += ((frames_of(request.get("frames")), request["size"], request.get("stream"), len(request))
                     != (frames_of(entry.get("frames")), entry["size"], entry.get("stream"), len(entry)))
    return marks + len(waiting)


def check_marks(devices, marks):
    """Everything else is a mark."""
    expected = collections.Counter()
    for device in devices:
        for action, count in device.actions.items():
            if action not in ("alloc", device.free, "free_requested", "segment_alloc", "segment_free", "segment_map", "segment_unmap"):
                expected[action] += count
        if device.free != "free_requested":
            expected["free_requested"] += requests_told(device)
    check("marks", collections.Counter(mark["name"] for mark in marks if "device" in mark.get("args", {})), +expected)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    tracesmith, path = sys.argv[1:]
    with open(path, "rb") as file:
        snapshot = PlainUnpickler(file).load()
    if isinstance(snapshot, list):
        snapshot = {"segments": snapshot, "device_traces": []}
    with tempfile.TemporaryDirectory() as folder:
        trace = os.path.join(folder, "snapshot.sbt")
        subprocess.run([tracesmith, "import", "-q", path, "-o", trace], check=True)
        subprocess.run([tracesmith, "verify", trace], check=True, stdout=subprocess.DEVNULL)
        allocations, marks, slices = (view(tracesmith, trace, table) for table in ("allocation", "mark", "slice"))
        summary = json.loads(subprocess.run([tracesmith, "analyze", trace, "memory", "--json"], check=True, stdout=subprocess.PIPE).stdout)["summary"]
    traces = snapshot.get("device_traces", [])
    numbers = set(range(len(traces))) | {s.get("device", 0) for s in snapshot["segments"]}
    devices = [Device(n, traces[n] if n < len(traces) else [], [s for s in snapshot["segments"] if s.get("device", 0) == n]) for n in sorted(numbers)]
    for device in devices:
        has_times = all("time_us" in entry for entry in device.entries)
        peak, held = check_device(device, allocations, summary, has_times)
        if device.entries or device.live:
            print("device %d: %s; peak %d bytes in use, %d reserved" % (
                device.number, ", ".join("%d %s" % (count, action) for action, count in sorted(device.actions.items())) or "no entries", peak, held))
    check_marks(devices, marks)
    notes = snapshot.get("external_annotations", [])
    check("slices of annotations", len(slices), sum(1 for note in notes if note.get("stage") == "START"))
    for difference in differences[:20]:
        print("DIFFERS: " + difference)
    print("%d rows of allocation, %d marks, %d slices: %s" % (len(allocations), len(marks), len(slices), "differs" if differences else "as in the file"))
    sys.exit(1 if differences else 0)


main()
