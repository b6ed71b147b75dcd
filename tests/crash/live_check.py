# SPDX-License-Identifier: Apache-2.0
"""live_check.py ORACLE[,ORACLE] TRACE... [--option...]: checks that everything emitted by live_oracle
is in the traces or counted as lost.

Every event whose emit returned is stored once, or counted in `loss`; none is torn. The event that a
thread of a killed process was emitting may be stored or not. Prints the result; exit code 1 on a
violation.

  --none-lost       there must be no losses
  --some-lost       there must be losses, otherwise the test is pointless
  --some-stored     likewise (by default nothing at all may be stored)
  --gaps            there are events before and after a loss
  --all-done        no process was killed
  --flight          not recorded from the start: old events may have been overwritten; otherwise not
  --windows N       each thread has its events in N ranges (fewer if it had none in a window, more if
                    a ring was full), and those outside were not to be recorded
  --ranges A-B,C-D  every thread has exactly these sequences, last ones included
  --damaged         journal or trace were damaged: losses may be unknown, but no known one is too high
  --json            print the result as JSON
"""
import argparse
import json
import os
import struct
import subprocess
import sys

HEADER = struct.Struct("<8s5I36x")
SLOT = struct.Struct("<QQIIQ32x")
# What a loss row counts.
EVENTS = ("event", "events")


def read_oracle(path):
    with open(path, "rb") as file:
        data = file.read()
    magic, processes, threads, mode, signals, first = HEADER.unpack_from(data)
    if magic != b"ORACLE1\0":
        sys.exit(f"{path}: no oracle")
    lanes = threads * (2 if signals else 1)
    slots = {}
    for process in range(processes):
        for thread in range(lanes):
            place = HEADER.size + (process * lanes + thread) * SLOT.size
            returned, steps, pid, tid, done = SLOT.unpack_from(data, place)
            slots[first + process, thread] = {"returned": returned, "steps": steps, "pid": pid, "tid": tid, "done": done}
    return mode, slots


def scan(mode, traces):
    program = os.path.join(os.environ["TS_BUILD"], "tests", "targets", "live_scan")
    done = subprocess.run([program, str(mode), *traces], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"live_scan {' '.join(traces)}: exit code {done.returncode}")
    return json.loads(done.stdout)


class Check:
    def __init__(self, options):
        self.options = options
        self.faults = []
        self.slots = {}
        self.unknown = False
        for path in options.oracle.split(","):
            self.mode, slots = read_oracle(path)
            self.slots.update(slots)
        self.found = scan(self.mode, options.traces)
        self.lanes = {(lane["p"], lane["t"]): lane for lane in self.found["lanes"]}

    def expect(self, holds, text):
        if not holds:
            self.faults.append(text)

    def rows(self):
        """Invariants of each row, whatever was lost."""
        # Names, threads and the arguments that number an event may be in a damaged chunk.
        is_torn = self.options.damaged and any(row["what"].startswith("bytes of the trace") for row in self.found["losses"])
        if not is_torn:
            self.expect(self.found["torn"] == 0, f"{self.found['torn']} torn, the first: {self.found['torn_example']}")
            self.expect(not self.found["damage"], self.found["damage"])
            # "metrics" is a message of the recorder about one of its sources.
            strange = set(self.found["others"]) - {"step", "metrics"}
            self.expect(not strange, f"rows that were never emitted: {sorted(strange)[:5]}")
        for key, lane in self.lanes.items():
            slot = self.slots.get(key)
            if slot is None:
                self.faults.append(f"{key}: no such thread")
                continue
            self.expect(lane["doubles"] == 0, f"{key}: {lane['doubles']} are there twice")
            self.expect(lane["disorder"] == 0, f"{key}: {lane['disorder']} are older than those before them")
            pids = [pid for pid in lane["pids"] if pid != -1 or not is_torn]
            self.expect(pids == [slot["pid"]] or (is_torn and not pids), f"{key}: is of process {pids}, not {slot['pid']}")

    def losses(self):
        """Events lost, by process id."""
        lost = {}
        for row in self.found["losses"]:
            self.unknown |= row["count"] is None or row["what"].startswith(("bytes of", "blocks of"))
            if row["what"] not in EVENTS:
                continue
            # A recorded program drops its newest events when there is no room, and never overwrites
            # older ones.
            self.expect("overwritten" not in row["reason"] or self.options.flight, f"overwritten: {row}")
            if row["count"] is None and self.options.damaged:
                continue
            if row["count"] is None:
                self.faults.append(f"an unknown number of events is lost: {row['reason']}")
            else:
                lost[row["pid"]] = lost.get(row["pid"], 0) + row["count"]
        return lost

    def thread(self, key):
        """Missing events of a thread, and how many more may be counted as lost."""
        slot, lane = self.slots[key], self.lanes.get(key)
        returned = slot["returned"]
        if lane is None:
            return returned, 0 if slot["done"] else 1
        in_flight = lane["highest"] == returned
        self.expect(lane["highest"] < returned or (in_flight and not slot["done"]),
                    f"{key}: {lane['highest']} is there, but only {returned} were emitted")
        missing = returned - (lane["stored"] - in_flight)
        return missing, 0 if slot["done"] or in_flight else 1

    def processes(self):
        lost = self.losses()
        steps = self.found["others"].get("step", 0)
        by_pid = {}
        for key, slot in self.slots.items():
            self.expect(slot["done"] or not self.options.all_done, f"{key}: did not end by itself")
            missing, more = self.thread(key)
            pid = by_pid.setdefault(slot["pid"], {"missing": 0, "more": 0})
            pid["missing"] += missing + slot["steps"]
            pid["more"] += more
        for pid, sums in by_pid.items():
            if steps:
                self.expect(len(by_pid) == 1, "steps of several processes cannot be distinguished")
                sums["missing"] -= steps
            counted = lost.pop(pid, 0)
            most = sums["missing"] + sums["more"]
            least = 0 if self.unknown and self.options.damaged else sums["missing"]
            self.expect(least <= counted <= most,
                        f"process {pid}: {sums['missing']} are missing, {counted} are counted as lost, at most {most} may be")
        # Without its AREA block nobody knows whose a loss is.
        self.expect(not lost or (self.options.damaged and set(lost) == {-1}), f"losses of unknown processes: {lost}")

    def windows(self, count):
        # On a busy machine a ring can be full in a window, which divides a range.
        full = sum(row["reason"].startswith("ring full") for row in self.found["losses"])
        for key, lane in self.lanes.items():
            self.expect(lane["range_count"] <= count + full,
                        f"{key}: {lane['range_count']} ranges {lane['ranges'][:6]} in {count} windows, ring full {full} times")
            self.expect(lane["highest"] <= self.slots[key]["returned"], f"{key}: {lane['highest']} was never emitted")

    def ranges(self, text):
        expected = [[int(part.split("-")[0]), int(part.split("-")[1]) + 1] for part in text.split(",")]
        for key in self.slots:
            found = self.lanes.get(key, {"ranges": []})["ranges"]
            self.expect(found == expected, f"{key}: {found} are there, expected {expected}")

    def run(self):
        self.rows()
        if self.options.ranges:
            self.ranges(self.options.ranges)
        if self.options.windows is not None:
            self.windows(self.options.windows)
        elif not self.options.ranges:
            self.processes()
        stored = sum(lane["stored"] for lane in self.lanes.values())
        lost = sum(row["count"] or 0 for row in self.found["losses"] if row["what"] in EVENTS)
        emitted = sum(slot["returned"] for slot in self.slots.values())
        self.expect(lost == 0 or not self.options.none_lost, f"{lost} are counted as lost")
        self.expect(lost > 0 or not self.options.some_lost, "nothing was lost")
        self.expect(stored > 0 or not self.options.some_stored, "nothing is stored")
        self.expect(not self.options.gaps or any(lane["range_count"] > 1 for lane in self.lanes.values()),
                    "nothing is stored from after a loss")
        return {"emitted": emitted, "stored": stored, "lost": lost}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("oracle")
    parser.add_argument("traces", nargs="+")
    for flag in ("none-lost", "some-lost", "some-stored", "gaps", "all-done", "flight", "damaged", "json"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("--windows", type=int)
    parser.add_argument("--ranges")
    check = Check(parser.parse_args())
    totals = check.run()
    if check.options.json:
        print(json.dumps({**totals, "lanes": check.found["lanes"], "losses": check.found["losses"], "faults": check.faults}))
    else:
        print(" ".join(f"{name} {value}" for name, value in totals.items()))
    for fault in check.faults[:20]:
        print(fault, file=sys.stderr)
    if check.faults:
        for row in check.found["losses"][:10]:
            print(f"  loss: {row}", file=sys.stderr)
    return 1 if check.faults else 0


if __name__ == "__main__":
    sys.exit(main())
