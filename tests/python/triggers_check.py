# SPDX-License-Identifier: Apache-2.0
"""Compares the stacks of marks with the log of the program: LOG, rows of `view --json`."""
import json
import sys

rows = {}
for line in open(sys.argv[2]):
    row = json.loads(line)
    rows[row["name"]] = row.get("stack", [])
compared = 0
for line in open(sys.argv[1]):
    logged = json.loads(line)
    if logged["name"] not in rows:
        sys.exit("there is no mark '%s'" % logged["name"])
    found = [[frame["func"], frame.get("lineno", 0)] for frame in rows[logged["name"]]]
    if not found or found[0][0] != "mark":
        sys.exit("mark '%s' has the stack %s" % (logged["name"], found[:5]))
    found = found[1:]
    wanted = logged["stack"]
    if len(wanted) > 1799:
        # The middle is omitted: the outermost 600 and the innermost 1199 remain, one of which is
        # mark() itself.
        left_out = "(%d frames left out)" % (len(wanted) + 1 - 600 - 1199)
        wanted = wanted[:1198] + [[left_out, 0]] + wanted[-600:]
    if found != wanted:
        differ = [pair for pair in zip(found, wanted) if pair[0] != pair[1]][:3]
        sys.exit("mark '%s': %d frames of %d; differ: %s" % (logged["name"], len(found), len(wanted), differ))
    compared += 1
if rows.get("without") != []:
    sys.exit("a mark has a stack although that was switched off: %s" % rows.get("without"))
if compared < 2200:
    sys.exit("only %d were compared" % compared)
print("%d stacks are as the program saw them" % compared)
