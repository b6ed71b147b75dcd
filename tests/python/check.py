#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check.py --log LOG [options] STACKS: checks that sampled stacks of oracle.py are possible.

STACKS has one JSON object per line, as printed by `tracesmith view --json --table sample` ("-":
standard input): start, tid, stack: a list, innermost first, of func, file, lineno. A line with an
"id" and no stack repeats that of an earlier line. Lines with "rejected" count stacks that were not
accepted, "cpu_us_a_sweep" is the cost of one sweep.

  --log LOG        log of oracle.py
  --strict         apply the limits below; otherwise ten times as many, and always a few: short runs
                   on a busy machine prove less
  --least N        fail with fewer moving stacks than this, or if hardly any is at a known instant
  --name NAME      name of the printed row
  --rejected N     number of stacks that the sampler did not accept
  --cpu-us N       cost of a sweep
  --row FILE       append the row to a table, too
  --json FILE      write the numbers as JSON
  --headline       print the head of the table, and nothing else

A stack is impossible if it has an unknown function or line, if a function does not call the one
inside it, or if it does not begin where a thread begins: at most one in 100,000 accepted stacks.
Its line is wrong if the function makes that call, but not from that line: at most one in 10,000,
one in 1,000 before 3.11. Stacks at known instants must equal the logged ones, without exception.
"""
import json
import os
import re
import sys

MARGIN_NS = 10_000_000  # uncertainty of a sample's time if the reader is interrupted
IMPOSSIBLE = 1 / 100_000
WRONG_LINE, WRONG_LINE_BEFORE_3_11 = 1 / 10_000, 1 / 1_000
SHOWN = 6
HEAD = ("interpreter", "stacks", "that moved", "different", "at instants", "wrong there", "impossible", "wrong line", "rejected", "us a sweep")


def last_name(name):
    """Without its qualifiers: f.<locals>.<lambda> is <lambda>."""
    return name.rsplit(".", 1)[-1]


class Graph:
    """Allowed callees in the oracle."""

    def __init__(self, log):
        self.log = log
        self.files = {log["file"], "<made>"}
        self.lines, self.calls, self.entries = {}, {}, {"<module>"}
        for function in log["functions"]:
            key = (function["file"], last_name(function["name"]))
            self.lines.setdefault(key, set()).update(function["lines"])
        for function, line, callees in log["made_calls"]:
            self.calls[("<made>", function, line)] = set(callees)
        with open(os.environ.get("ORACLE", os.path.join(os.path.dirname(os.path.abspath(__file__)), "oracle.py")), encoding="utf-8") as file:
            self.read_comments(file.read().split("\n"))
        # Qualified names, where available, must be right, too.
        self.names = {(function["file"], function["name"]) for function in log["functions"]}

    def read_comments(self, source):
        for number, line in enumerate(source, 1):
            called = re.search(r"# -> (.*)$", line)
            if called:
                self.calls[(self.log["file"], None, number)] = set(called.group(1).replace(" ", "").split(","))
            entry = re.search(r"def (\w+)\(.*# entry$", line)
            if entry:
                self.entries.add(entry.group(1))

    def callees(self, frame):
        name, file, line = frame
        return self.calls.get((file, last_name(name), line)) or self.calls.get((file, None, line)) or set()

    def callees_of_all_lines(self, frame):
        name, file, _ = frame
        lines = self.lines.get((file, last_name(name)), ())
        return set().union(*(self.callees((name, file, line)) for line in lines))

    def fault_of(self, stack):
        """None, or (whether only a line differs, message). `stack`: innermost first, tuples of
        name, file, line."""
        caller, odd_line = None, None
        for frame in reversed(stack):
            why = self.why_frame(frame, caller)
            if why and caller is not None and caller[1] in self.files and self.is_called(caller, frame):
                odd_line = odd_line or (True, why)
            elif why:
                return False, why
            caller = frame
        return odd_line

    def is_called(self, caller, frame):
        """From some line; the frame's own line is checked separately."""
        ours = frame[1] in self.files
        fits = not ours or ((frame[1], frame[0]) in self.names and frame[2] in self.lines[(frame[1], last_name(frame[0]))])
        return fits and (last_name(frame[0]) if ours else "*") in self.callees_of_all_lines(caller)

    def why_frame(self, frame, caller):
        name, file, line = frame
        ours = file in self.files
        if ours and (file, name) not in self.names:
            return f"there is no function '{name}' in {file}"
        if ours and line not in self.lines[(file, last_name(name))]:
            return f"{name} has no line {line}"
        if caller is None:
            return f"a thread does not begin in {name}" if ours and (name != "<module>" or file == "<made>") else None
        return self.why_call(caller, frame)

    def why_call(self, caller, frame):
        caller_is_ours, ours = caller[1] in self.files, frame[1] in self.files
        if caller[0] == "<module>" and frame[1].startswith("<frozen importlib"):
            return None  # an import
        if caller_is_ours:
            wanted = last_name(frame[0]) if ours else "*"
            if wanted in self.callees(caller):
                return None
            return f"{caller[0]}:{caller[2]} does not call {frame[0]} ({frame[1]}:{frame[2]})"
        if ours and last_name(frame[0]) not in self.entries:
            return f"{caller[0]} ({caller[1]}:{caller[2]}) does not call {frame[0]}"
        return None


class Instants:
    """When the oracle stood still, and with which stack."""

    def __init__(self, log):
        self.holds = sorted(log["holds"], key=lambda hold: hold["begin_ns"])
        self.offset = log["realtime_ns"] - log["monotonic_ns"]
        self.next = {}

    def stack_at(self, time_ns, tid):
        """The logged hold of that thread at that time, or None. Times that are too large for the
        clock since boot are times of day."""
        if time_ns > self.offset // 2 > 0:
            time_ns -= self.offset
        for hold in self.candidates(time_ns):
            if hold["tid"] == tid and hold["begin_ns"] + MARGIN_NS < time_ns < hold["end_ns"] - MARGIN_NS:
                return hold
        return None

    def candidates(self, time_ns):
        low, high = 0, len(self.holds)
        while low < high:
            middle = (low + high) // 2
            if self.holds[middle]["begin_ns"] <= time_ns:
                low = middle + 1
            else:
                high = middle
        return self.holds[max(low - 2, 0):low]


class Checker:
    def __init__(self, log):
        self.graph, self.instants = Graph(log), Instants(log)
        self.stacks = self.impossible = self.wrong_lines = self.at_instants = self.wrong = self.rejected = 0
        self.cpu_us = None
        self.moved, self.last = 0, {}
        self.known, self.by_id, self.reasons, self.seen_holds = {}, {}, {}, set()

    def take(self, row):
        self.rejected += row.get("rejected", 0)
        self.cpu_us = row.get("cpu_us_a_sweep", self.cpu_us)
        if "start" not in row:
            return
        stack = self.stack_of(row)
        thread = row.get("thread_id", row.get("tid"))  # tids of 3.8 to 3.10 are not always known
        has_moved = thread is None or self.last.get(thread) != stack
        self.last[thread] = stack
        self.moved += has_moved
        self.stacks += bool(stack)  # a thread that begins or ends has none
        if stack not in self.known:
            self.known[stack] = self.graph.fault_of(stack)
        if self.known[stack] and has_moved:
            only_line, why = self.known[stack]
            self.wrong_lines += only_line
            self.impossible += not only_line
            self.remember(("wrong line: " if only_line else "impossible: ") + why, stack)
        self.compare(row, stack)

    def stack_of(self, row):
        if "stack" not in row:
            return self.by_id.get(row.get("id"), ())
        stack = tuple((frame["func"], frame.get("file", ""), frame.get("lineno", 0)) for frame in row["stack"]
                      if frame.get("frame_type", "python") == "python")
        self.by_id[row.get("id")] = stack
        return stack

    def compare(self, row, stack):
        hold = self.instants.stack_at(row["start"], row.get("tid", 0))
        if hold is None:
            return
        self.at_instants += 1
        self.seen_holds.add(hold["where"])
        logged = tuple(tuple(frame) for frame in hold["stack"])
        if stack != logged:
            self.wrong += 1
            self.remember(f"not what was logged: {hold['where']}", stack, logged)

    def remember(self, what, stack, logged=None):
        """One example of each reason, and the counts."""
        self.reasons.setdefault(what, [0, stack, logged])[0] += 1

    def show(self):
        """The most frequent reasons."""
        for what, (count, stack, logged) in sorted(self.reasons.items(), key=lambda item: -item[1][0])[:SHOWN]:
            print(f"  {count} x {what}")
            for name, one in (("sampled", stack), ("logged", logged)):
                if one:
                    print(f"      {name}:", " < ".join(f"{frame[0]}:{frame[2]}" for frame in one[:12]), "..." if len(one) > 12 else "")

    def faults(self, least, is_strict):
        old = tuple(int(part) for part in self.graph.log["version"].split(".")[:2]) < (3, 11)
        missing = {hold["where"] for hold in self.instants.holds} - self.seen_holds
        if self.stacks < least:
            yield f"only {self.stacks} stacks, not {least}"
        for count, what, share in ((self.impossible, "impossible stacks", IMPOSSIBLE),
                                   (self.wrong_lines, "stacks with a wrong line", WRONG_LINE_BEFORE_3_11 if old else WRONG_LINE)):
            if count > (max(1, self.stacks * share) if is_strict else max(5, self.stacks * share * 10)):
                yield f"{count} {what} of {self.stacks}"
        if self.wrong:
            yield f"{self.wrong} of {self.at_instants} stacks at known instants are wrong"
        if least and self.instants.holds and len(missing) > len(self.seen_holds):
            yield f"hardly any stack at a known instant; none in: {', '.join(sorted(missing))}"


def row_text(cells):
    return f"{cells[0]:<32}" + "".join(f"{cell:>13}" for cell in cells[1:])


def options(arguments):
    values, rest = {}, []
    while arguments:
        word = arguments.pop(0)
        if word.startswith("--"):
            values[word[2:]] = arguments.pop(0) if word not in ("--headline", "--strict") else True
        else:
            rest.append(word)
    return values, rest


def main():
    values, files = options(sys.argv[1:])
    if "headline" in values:
        print(row_text(HEAD))
        return 0
    if len(files) != 1 or "log" not in values:
        print(__doc__, file=sys.stderr)
        return 2
    with open(values["log"], encoding="utf-8") as file:
        checker = Checker(json.load(file))
    with sys.stdin if files[0] == "-" else open(files[0], encoding="utf-8", errors="replace") as lines:
        for line in lines:
            checker.take(json.loads(line))
    checker.rejected += int(values.get("rejected", 0))
    cpu_us = values.get("cpu-us") or checker.cpu_us
    row = row_text((values.get("name", checker.graph.log["version"]), checker.stacks, checker.moved, len(checker.known), checker.at_instants, checker.wrong,
                    checker.impossible, checker.wrong_lines, checker.rejected, f"{float(cpu_us):.1f}" if cpu_us else "-"))
    print(row)
    checker.show()
    if "json" in values:
        with open(values["json"], "w", encoding="utf-8") as file:
            json.dump({"stacks": checker.stacks, "moved": checker.moved, "impossible": checker.impossible, "wrong_lines": checker.wrong_lines, "at_instants": checker.at_instants, "wrong": checker.wrong}, file)
    if "row" in values:
        with open(values["row"], "a", encoding="utf-8") as file:
            print(row, file=file)
    faults = list(checker.faults(int(values.get("least", 0)), "strict" in values))
    for fault in faults:
        print(f"check: {checker.graph.log['version']}: {fault}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
