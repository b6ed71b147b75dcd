# SPDX-License-Identifier: Apache-2.0
"""Instruction samples of a short run of the transformer: at least 10,000; the hottest kernel can be
shown, with its launch stacks and their shares; the work is not stopped meanwhile; serialized
samples are exact.
"""
import collections, json, os, statistics, subprocess, sys

from common import *

module_or_skip("torch")


def sampled(name, option):
    out = os.path.join(WORK, name + ".json")
    trace = record(name, [*WORKLOADS, "transformer", "--repeat", "3", "--out", out], [option] if option else ["--no-symbols"], seconds=150)
    if not option:
        return trace, [], 0
    rows = [row for row in trace.rows("sample", "start,stack,weight,state,name") if any(frame.get("frame_type") == "instruction" for frame in row.get("stack", []))]
    return trace, rows, sum(row.get("weight") or 1 for row in rows)


def step_ns(name):
    """Of one repetition, the median."""
    out = os.path.join(WORK, name + ".json")
    repetitions = [json.loads(line).get("repetitions", []) for line in open(out)] if os.path.exists(out) else []
    times = [row["end_ns"] - row["begin_ns"] for found in repetitions for row in found]
    return statistics.median(times) if times else 0


def check_launches(trace, function, kind):
    """Its launches: each with a stack and its share."""
    shown = run([TOOL, "view", trace.path, "--hot", function, "--json"], 60, stderr=subprocess.PIPE)
    try:
        hot = json.loads(shown.stdout)
    except ValueError:
        expect(False, f"view --hot --json: exit code {shown.returncode}, no JSON")
        return
    launches = hot.get("launches", [])
    share = sum(row.get("share_pct", 0) for row in launches)
    with_stack = sum(row.get("share_pct", 0) for row in launches if len(row.get("stack") or []) >= 3)
    expect((hot.get("launches_are") or "").startswith(kind), f"launches are {hot.get('launches_are')}, not {kind}")
    expect(hot.get("samples", 0) > 0 and hot.get("instructions"), f"{hot.get('samples')} samples of {len(hot.get('instructions', []))} instructions")
    expect(launches and 0 < share <= 101, f"{len(launches)} launches with a share of {share:.1f} %")
    expect(with_stack >= 0.99 * share, f"{with_stack:.1f} of {share:.1f} % have a host stack")
    figures[kind + "_stacks"] = len(launches)


def show_hottest(trace, rows, kind):
    weights = collections.Counter()
    for row in rows:
        weights[row["stack"][0].get("func") or ""] += row.get("weight") or 1
    (function, weight), = weights.most_common(1) or [("", 0)]
    print("hottest:", function, weight)
    shown = run([TOOL, "view", trace.path, "--hot", function], 60)
    expect(shown.returncode == 0 and len(shown.stdout.splitlines()) > 3, f"view --hot: exit code {shown.returncode}")
    check_launches(trace, function, kind)
    return shown.stdout


trace, rows, total = sampled("sampling", "--pc-sampling")
expect(total >= 10000, f"{total} samples")
states = {row.get("state") for row in rows}
expect(len(states - {None}) >= 3, f"stall reasons {states}")
losses = [row for row in trace.losses() if row["what"] != "sample"]
expect(not losses, f"lost: {losses[:3]}")
text = show_hottest(trace, rows, "candidates") if rows else ""
expect("candidate" in text, "view --hot does not say that launches are candidates")
figures.update(samples=total, rows=len(rows), stall_reasons=len(states))
sampled("unsampled", None)
without_ns, with_ns = step_ns("unsampled"), step_ns("sampling")
if expect(without_ns and with_ns, "no times of the steps"):
    figures["step_ratio"] = round(with_ns / without_ns, 3)
    # Serialized kernels, or a stop at each sample, would cost far more.
    expect(with_ns < 5 * without_ns, f"a step takes {with_ns / without_ns:.2f} times as long as without samples")
if "--quick" not in sys.argv:
    trace, rows, total = sampled("sampling-serialized", "--pc-sampling=14,serialized")
    expect(total > 0, "serialized: no samples")
    expect("exact" in (show_hottest(trace, rows, "exact") if rows else ""), "view --hot does not say that launches are exact")
    figures["serialized_samples"] = total
finish()
