# SPDX-License-Identifier: Apache-2.0
"""Four threads on one stream, each launch with a grid of its own: every kernel must be joined to the very call that launched it. check_joins.py [LAUNCHES A THREAD]"""
import collections, re, sys

from common import *

THREADS = 4
count = int(sys.argv[1]) if len(sys.argv) > 1 else 10000
trace = record("joins", [LAUNCHES, "threads", str(THREADS), str(count)], ["--stacks", "none"])
numbers = {int(tid): int(number) for number, tid in re.findall(r"^thread (\d+) (\d+)$", trace.output, re.M)}
expect(len(numbers) == THREADS, f"threads {numbers}")
check_whole(trace, "joins")
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
finish()
