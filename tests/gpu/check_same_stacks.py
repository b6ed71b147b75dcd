# SPDX-License-Identifier: Apache-2.0
"""Native stacks of 100,000 PyTorch launches, forward and backward, through Python: equal to those
of _Unwind_Backtrace(), frame by frame; and the cost of both at that depth. check_same_stacks.py
[STACKS]
"""
import json, os, sys

from common import *

module_or_skip("torch")
LIBRARY = os.path.join(BUILD, "gpu", "libstack_compare.so")
LAUNCHES_A_REPETITION = 20 * 36
HERE_NS_BAR = 1000
count = int(sys.argv[1]) if len(sys.argv) > 1 else 100000
if not os.path.exists(LIBRARY):
    skip("stack_compare.c could not be built")
out = os.path.join(WORK, "same-stacks.json")
repeat = -(-count * 6 // (5 * LAUNCHES_A_REPETITION))  # some more: the optimizer may fuse
# Preloaded, too: it has more thread-local memory than a library loaded later may have.
done = run([*WORKLOADS, "mlp", "--repeat", str(repeat), "--out", "/dev/null"], 150,
           {"CUDA_INJECTION64_PATH": LIBRARY, "LD_PRELOAD": LIBRARY, "STACK_COMPARE_OUT": out})
expect(done.returncode == 0 and os.path.exists(out), f"the program gave {done.returncode}")
found = json.load(open(out)) if os.path.exists(out) else {}
figures.update(found)
expect(found.get("stacks", 0) >= count, f"{found.get('stacks')} stacks, not {count}")
expect(found.get("differ") == 0, f"{found.get('differ')} differ")
expect(found.get("depth", 0) > 0, f"frames: {found.get('depth')}")
if found:
    aim(found.get("depth", 0) >= 10, f"frames in the middle: {found.get('depth')}, not >= 10")
    aim(0 < found.get("here_ns", 0) <= HERE_NS_BAR, f"a stack: {found.get('here_ns')} ns, not <= {HERE_NS_BAR}")
finish()
