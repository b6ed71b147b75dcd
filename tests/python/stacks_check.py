# SPDX-License-Identifier: Apache-2.0
"""Compares stacks of calls with the log of the program: LOG, rows of `view --table api_call
--json`, native|python|all.
"""
import json
import sys


def is_python(frame):
    return frame.get("file", "").endswith(".py") or frame.get("file", "").startswith("<")


rows = {}
for line in open(sys.argv[2]):
    row = json.loads(line)
    if row["name"] == "launch":
        rows[int(row["correlation"])] = row.get("stack", [])
mode = sys.argv[3]
compared = between = 0
for line in open(sys.argv[1]):
    logged = json.loads(line)
    stack = rows.get(logged["correlation"])
    if not stack:
        sys.exit("call %d has no stack" % logged["correlation"])
    python = [[frame["func"].split(".")[-1], frame.get("lineno", 0)] for frame in stack if is_python(frame)]
    native = [frame for frame in stack if not is_python(frame)]
    if mode == "native":
        if python or len(native) < 5:
            sys.exit("call %d: %d frames of Python, %d of native code" % (logged["correlation"], len(python), len(native)))
    else:
        if not python or python[0][0] != "launch" or python[1:] != logged["stack"]:
            sys.exit("call %d: %s is not %s" % (logged["correlation"], python, logged["stack"]))
    if mode == "python" and native:
        sys.exit("call %d: native frames, which were not requested: %s" % (logged["correlation"], native[:3]))
    if mode == "all":
        # The path from ctypes to the agent is native, and so is the start of the interpreter or its
        # thread.
        if is_python(stack[0]) or is_python(stack[-1]):
            sys.exit("call %d: %s" % (logged["correlation"], [frame.get("func") for frame in stack]))
        kinds = "".join("p" if is_python(frame) else "n" for frame in stack)
        between += "pn" in kinds.rstrip("n")
    compared += 1
if compared < 300:
    sys.exit("only %d were compared" % compared)
if mode == "all" and not between:
    sys.exit("no stack has native code between frames of Python, although functions of C call back")
print("%s: %d stacks are as the program saw them" % (mode, compared))
