# SPDX-License-Identifier: Apache-2.0
"""A C program with a million launches by the driver alone: all are there with their times, as in a
separate run with CUPTI alone. check_launches.py [N]
"""
import sys

from common import *

BYTES_BAR = 12
count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000000


def mean_ns(kernels):
    return sum(kernel["duration"] for kernel in kernels) / max(1, len(kernels))


def counted_ns(counted):
    return sum(entry[1] for entry in counted.values()) / max(1, sum(entry[0] for entry in counted.values()))


def again():
    """A fifth is enough for a mean."""
    command = [LAUNCHES, "count", str(count // 5)]
    theirs = oracle(command, name="launches-again")
    return mean_ns(record("launches-again", command, ["--stacks", "none"]).kernels()), counted_ns(theirs or {})


counted = oracle([LAUNCHES, "count", str(count)], name="launches")
trace = record("launches", [LAUNCHES, "count", str(count)], ["--stacks", "none"])
kernels = trace.kernels()
expect(len(trace.launches()) == count, f"{len(trace.launches())} calls, not {count}")
expect(len(kernels) == count, f"{len(kernels)} kernels, not {count}")
expect({kernel["name"] for kernel in kernels} == {"empty"}, f"names: {sorted({kernel['name'] for kernel in kernels})[:5]}")
figures["uncertainty_ns"] = check_complete(trace, "launches")
figures["launches"] = len(kernels)
figures["bytes_a_launch"] = round(trace.bytes() / count, 2)
if counted:
    compare_counts({"empty": len(kernels)}, {name: entry[0] for name, entry in counted.items()}, "launches")
    figures["time_percent"] = settle_times([(mean_ns(kernels), counted_ns(counted))], again, "launches")
with_stacks = record("launches-stacks", [LAUNCHES, "count", str(count // 10)], ["--stacks", "all"])
expect(len(with_stacks.kernels()) == count // 10, f"with stacks: {len(with_stacks.kernels())} kernels, not {count // 10}")
check_complete(with_stacks, "with stacks")
figures["bytes_a_launch_with_stacks"] = round(with_stacks.bytes() / (count // 10), 2)
# Fixed costs of a trace weigh on a short one.
if count >= 1000000:
    for name in ("bytes_a_launch", "bytes_a_launch_with_stacks"):
        expect(figures[name] <= BYTES_BAR, f"{name}: {figures[name]}, not <= {BYTES_BAR}")
finish()
