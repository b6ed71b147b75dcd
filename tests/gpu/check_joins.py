# SPDX-License-Identifier: Apache-2.0
"""Four threads on one stream, each launch with a different grid: every kernel must be joined to the
call that launched it; the same for cooperative and Ex launches. check_joins.py [LAUNCHES PER
THREAD]
"""
import collections, re, sys

from common import *

THREADS = 4
count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
trace = record("joins", [LAUNCHES, "threads", str(THREADS), str(count)], ["--stacks", "none"])
numbers = {int(tid): int(number) for number, tid in re.findall(r"^thread (\d+) (\d+)$", trace.output, re.M)}
expect(len(numbers) == THREADS, f"threads {numbers}")
check_complete(trace, "joins")
op_of = {op["correlation"]: op for op in trace.kernels()}
expect(len(op_of) == THREADS * count, f"{len(op_of)} kernels, not {THREADS * count}")
made, wrong = collections.Counter(), []
for call in sorted(trace.launches(), key=lambda call: call["start"]):
    number = numbers.get(call["tid"])
    if not expect(number is not None, f"a call of thread {call['tid']}"):
        break
    op = op_of.get(call.get("correlation"))
    grid = 1 + made[number] * THREADS + number
    made[number] += 1
    if not op or op.get("grid_x") != grid:
        wrong.append((call["tid"], grid, op and op.get("grid_x")))
expect(all(made[number] == count for number in range(THREADS)), f"calls by thread: {dict(made)}")
expect(not wrong, f"{len(wrong)} wrong joins: {wrong[:3]}")
figures.update(launches=sum(made.values()), wrong=len(wrong))


def check_kinds(count):
    """Launch i of kind k has 1 + 3 i + k blocks."""
    trace = record("kinds", [LAUNCHES, "kinds", str(count)], ["--stacks", "none"])
    check_complete(trace, "kinds")
    op_of = {op["correlation"]: op for op in trace.kernels()}
    calls = sorted(trace.launches(), key=lambda call: call["start"])
    for kind, name in enumerate(("cuLaunchKernel", "cuLaunchCooperativeKernel", "cuLaunchKernelEx")):
        grids = [op_of.get(call.get("correlation"), {}).get("grid_x") for call in calls if call["name"].removesuffix("_ptsz") == name]
        if name == "cuLaunchKernelEx" and not grids and len(calls) == len(op_of) == 2 * count:
            leave_out("cuLaunchKernelEx: the driver has none")
            continue
        expect(grids == [1 + 3 * i + kind for i in range(count)], f"{name}: {len(grids)} calls, not {count}, or joined to others: {grids[:4]}")
        figures[name] = len(grids)


check_kinds(200)
finish()
