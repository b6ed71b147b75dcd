# SPDX-License-Identifier: Apache-2.0
"""Instruction samples of a short run of the transformer: at least 10,000, with launch stacks by their functions; the hottest kernel can be shown; serialized ones are exact."""
import collections, json, os, sys

from common import *

module_or_skip("torch")


def sampled(name, option):
    out = os.path.join(WORK, name + ".json")
    trace = record(name, [*WORKLOADS, "transformer", "--repeat", "3", "--out", out], [option], seconds=150)
    rows = [row for row in trace.rows("sample", "start,stack,weight,state,name") if any(frame.get("frame_type") == "instruction" for frame in row.get("stack", []))]
    return trace, rows, sum(row.get("weight") or 1 for row in rows)


def show_hottest(trace, rows):
    weights = collections.Counter()
    for row in rows:
        weights[row["stack"][0].get("func") or ""] += row.get("weight") or 1
    (function, weight), = weights.most_common(1) or [("", 0)]
    print("hottest:", function, weight)
    shown = run([TOOL, "view", trace.path, "--hot", function], 60)
    expect(shown.returncode == 0 and len(shown.stdout.splitlines()) > 3, f"view --hot: exit code {shown.returncode}")
    return shown.stdout


trace, rows, total = sampled("sampling", "--pc-sampling")
expect(total >= 10000, f"{total} samples")
states = {row.get("state") for row in rows}
expect(len(states - {None}) >= 3, f"stall reasons {states}")
losses = [row for row in trace.losses() if row["what"] != "sample"]
expect(not losses, f"lost: {losses[:3]}")
text = show_hottest(trace, rows) if rows else ""
expect("candidate" in text, "view --hot does not say that launches are candidates")
figures.update(samples=total, rows=len(rows), stall_reasons=len(states))
if "--quick" not in sys.argv:
    trace, rows, total = sampled("sampling-serialized", "--pc-sampling=14,serialized")
    expect(total > 0, "serialized: no samples")
    expect("exact" in (show_hottest(trace, rows) if rows else ""), "view --hot does not say that launches are exact")
    figures["serialized_samples"] = total
finish()
