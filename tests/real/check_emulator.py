#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_emulator.py TOOL FILE...: emulates each recorded trace; see emulator.sh. Prints a table of
the errors."""
import json
import os
import subprocess
import sys

SPAN, STARTS = 0.02, 0.05  # of the span
faults = []


def run(*command, codes=(0,)):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in codes:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}: {done.stderr.decode()}")
    return done.stdout


def check(holds, name, what):
    if not holds:
        faults.append(f"{name}: {what}")


def emulate(tool, trace, *options):
    return json.loads(run(tool, "replay", trace, "--target", "emulator", "--json", *options))


def rows(tool, trace, table):
    """How often each name is in a table."""
    names = {}
    for line in run(tool, "view", trace, "--table", table, "--json", "--limit", "0").decode().splitlines():
        name = json.loads(line).get("name")
        names[name] = names.get(name, 0) + 1
    return names


def check_output(tool, name, trace, result):
    """All commands are there, with all their data, at the reported times."""
    emulate(tool, trace, "-o", result)
    run(tool, "verify", "-q", result)
    check(rows(tool, trace, "gpu_op") == rows(tool, result, "gpu_op"), name, "commands are missing in the result")
    check(rows(tool, trace, "api_call") == rows(tool, result, "api_call"), name, "calls are missing in the result")
    run(tool, "analyze", result, "all", "--json")
    run(tool, "diff", trace, result, codes=(0, 1))


def check_what_if(tool, name, trace, report):
    same = emulate(tool, trace, "--what-if", "device-speed=1x", "--what-if", "host-speed=1x", "--what-if", "latency=1x")
    check(same["span_ns"] == report["span_ns"], name, "1x of everything changes the span")
    check(same["baseline_span_ns"] == report["span_ns"], name, "the baseline is not the simulation without a change")
    for change in ("device-speed=2x", "host-speed=2x", "streams=1", "copy-bandwidth=10GB/s", "policy=priority"):
        changed = emulate(tool, trace, "--what-if", change)
        check(changed["span_ns"] > 0, name, f"{change}: nothing is left")
        check(changed["baseline_span_ns"] == report["span_ns"], name, f"{change}: another baseline")


def check_file(tool, path, number):
    name = os.path.relpath(path, os.path.join(path, "..", ".."))
    trace, result = f"{number}.sbt", f"{number}-emulated.sbt"
    run(tool, "import", "-q", path, "-o", trace)
    if not run(tool, "view", trace, "--table", "gpu_op", "--json", "--limit", "1"):
        run(tool, "replay", trace, "--target", "emulator", codes=(3,))
        return
    report = emulate(tool, trace)
    check(abs(report["span_error"]) <= SPAN, name, f"error of the span: {report['span_error']:.4f}")
    check(report["start_error_p95"] <= STARTS, name, f"error of the starts: {report['start_error_p95']:.4f}")
    check(report["broken_waits"] == 0, name, f"{report['broken_waits']} waits were given up")
    check(emulate(tool, trace) == report, name, "another result the second time")
    print(f"{name:<64} {report['commands']:>7} commands, {report['recorded_span_ns'] / 1e6:>10.3f} ms: span "
          f"{report['span_error']:+.4f}, starts {report['start_error_p50']:.4f} {report['start_error_p95']:.4f} "
          f"{report['start_error_max']:.4f}, {report['guessed_commands']} guessed")
    check_output(tool, name, trace, result)
    check_what_if(tool, name, trace, report)
    os.unlink(trace)
    os.unlink(result)


def main():
    tool = sys.argv[1]
    for number, path in enumerate(sys.argv[2:]):
        try:
            check_file(tool, path, number)
        except RuntimeError as fault:
            faults.append(str(fault))
    print("\n".join(faults))
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
