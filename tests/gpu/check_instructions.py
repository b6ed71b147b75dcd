# SPDX-License-Identifier: Apache-2.0
"""Sampled instructions: their code is in the trace, source lines are those of the program, launches
have stacks, and counts match CUPTI. Uses a Triton kernel, which has line information, sampled at
a high rate to keep the run short.
"""
import json, shutil

from common import *

module_or_skip("torch")
module_or_skip("triton")


def hot(trace, kernel):
    shown = run([TOOL, "view", trace.path, "--hot", kernel, "--json"], 120, stderr=subprocess.DEVNULL)
    expect(shown.returncode == 0, f"view --hot {kernel}: exit code {shown.returncode}")
    return json.loads(shown.stdout) if shown.returncode == 0 else None


def check_counts(trace):
    """All samples of the program's kernels are stored, each once."""
    fact = trace.facts().get("pc_samples")
    if not expect(isinstance(fact, dict), f"pc_samples is {fact}, pc_sampling {trace.facts().get('pc_sampling')}"):
        return
    own = fact["samples"] - fact["dropped"] - fact["other_kernels"]
    rows = sum(row.get("weight") or 0 for row in trace.rows("sample", "weight,name") if row.get("name") == "pc")
    share = 100 * fact["stored"] / max(1, own)
    expect(rows == fact["stored"], f"{rows} samples in the trace, {fact['stored']} were stored")
    expect(90 <= share <= 101, f"{fact['stored']} of {own} samples were stored ({share:.1f} %)")
    figures.update(samples=own, stored_percent=round(share, 2), dropped=fact["dropped"])


def check_places(shown):
    """Lines are the kernel's, in its file."""
    inside = [one for one in shown["instructions"] if any(place["file"].endswith("triton_kernels.py") for place in one["source"])]
    expect(not shown["no_lines"], f"no lines: {shown['no_lines']}")
    expect(len(inside) >= 0.8 * len(shown["instructions"]), f"{len(inside)} of {len(shown['instructions'])} instructions are of the kernel's file")
    named = [one for one in shown["instructions"] if one["sass"]]
    is_there = shutil.which("nvdisasm") or shutil.which("cuobjdump") or os.path.exists("/usr/local/cuda/bin/nvdisasm")
    expect(not is_there or not shown["no_sass"], f"a disassembler is there, but: {shown['no_sass']}")
    if not shown["no_sass"]:
        expect(len(named) == len(shown["instructions"]), f"{len(named)} of {len(shown['instructions'])} have code")
    figures.update(with_sass=len(named), no_sass=shown["no_sass"])
    print("hottest:", shown["instructions"][:2])


def check_launches(shown):
    with_stack = [one for one in shown["launches"] if one["stack"]]
    expect(shown["launches"] and len(with_stack) == len(shown["launches"]), f"{len(with_stack)} of {len(shown['launches'])} launches have stacks")
    expect(shown["launches_are"].startswith("candidates"), f"launches are {shown['launches_are']}")


trace = record("instructions", [*WORKLOADS, "triton", "--repeat", "50", "--out", "/dev/null"], ["--pc-sampling=8"], seconds=150)
check_counts(trace)
shown = hot(trace, "add_kernel")
if shown and expect(shown["instructions"], "no instruction was sampled"):
    check_places(shown)
    check_launches(shown)
    figures.update(kernel_samples=shown["samples"], instructions=len(shown["instructions"]))
finish()
