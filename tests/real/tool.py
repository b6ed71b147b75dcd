# SPDX-License-Identifier: Apache-2.0
"""Runs the tool and collects failures."""
import json
import os
import subprocess

from chrome_model import read_json, to_ns

TOOL = os.environ.get("TRACESMITH", "tracesmith")
# Strings, shapes and stacks are shown where they are used; their own ids do not matter.
OWN_TABLES = {"string", "shape", "frame", "stack"}


def hta_numbers(folder, name, rounded=True):
    """HTA's results for a set of traces, or None: ours are in expected/, those of others in
    oracles/."""
    for subfolder in ("expected", "oracles"):
        path = f"{folder}/{subfolder}/{name}{'' if rounded else '.noround'}.json"
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return json.load(file)
    return None


def part_of(oracle, files, rounded=True):
    """Our options for the part of a trace that HTA's numbers cover. HTA's last step begins with
    the last span of a step on the device; ours does so only with HTA's rounding."""
    if oracle.get("all_steps"):
        return ["--all"]
    spans = [] if rounded else [start for path in files for start in device_steps(path)]
    return ["--to", f"@{max(spans) - 1}"] if len(spans) > 1 else []


def device_steps(path):
    """Starts of the device's spans of steps, in trace time."""
    trace = read_json(path)
    return [to_ns(event["ts"]) + trace.get("baseTimeNanoseconds", 0) for event in trace["traceEvents"]
            if event.get("cat") == "gpu_user_annotation" and event["name"].startswith("ProfilerStep#")]


class Faults(list):
    def check(self, holds, *what):
        if not holds:
            self.append(" ".join(str(part) for part in what))

    def equal(self, what, found, expected):
        self.check(found == expected, f"{what}: {found!r}, expected {expected!r}")

    def counters(self, what, found, expected, show=3):
        """Compares two multisets, and shows a few elements that only one has."""
        if found == expected:
            return
        missing, extra = list((expected - found).elements()), list((found - expected).elements())
        self.append(f"{what}: {len(missing)} missing, {len(extra)} too many")
        for name, rows in (("missing", missing), ("too many", extra)):
            for row in sorted(rows, key=repr)[:show]:
                self.append(f"  {name}: {row!r}"[:1200])


def run(*arguments, expected=0, **options):
    done = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options)
    if done.returncode != expected:
        raise RuntimeError(f"tracesmith {' '.join(arguments)}: exit code {done.returncode}, expected {expected}: "
                           f"{done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def info(trace):
    return json.loads(run("info", trace, "--json"))


def frames(trace):
    rows = [json.loads(line) for line in run("view", trace, "--json", "--table", "frame").splitlines()]
    return {row.pop("id"): json.dumps(row) for row in rows}


def table_lines(trace, table):
    """The rows of a table as the tool prints them, in an order that does not depend on chunks."""
    lines = run("view", trace, "--json", "--table", table).splitlines()
    if table == "symbol":
        # Ids of frames may differ; their contents may not.
        known = frames(trace)
        rows = [json.loads(line) for line in lines]
        lines = [json.dumps({**row, "frame": known.get(row.get("frame"))}).encode() for row in rows]
    return sorted(lines)


def compare_tables(faults, one, other, what):
    tables = {}
    for trace in (one, other):
        tables[trace] = {name: rows for name, rows in info(trace)["tables"].items() if name not in OWN_TABLES}
    for name in sorted(tables[one].keys() | tables[other].keys()):
        first = table_lines(one, name) if name in tables[one] else []
        second = table_lines(other, name) if name in tables[other] else []
        if first == second:
            continue
        faults.append(f"{what}: table {name} differs: {len(first)} rows, then {len(second)}")
        ones, others = set(first), set(second)
        for sign, lines in (("-", [line for line in first if line not in others]),
                            ("+", [line for line in second if line not in ones])):
            for line in lines[:3]:
                faults.append(f"  {sign} {line.decode(errors='replace')[:1000]}")
