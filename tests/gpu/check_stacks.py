# SPDX-License-Identifier: Apache-2.0
"""Host stacks of PyTorch launches: Python and native frames in one stack, up to the start of the
thread, resolved; kernels of a graph have the stacks of their capture and of their launch; with
--stacks none there are none.
"""
import collections, os, sys

from common import *

module_or_skip("torch")


def stack_rows(trace, table, *options):
    return trace.rows(table, "thread,name,correlation,stack" if table == "api_call" else "name,correlation,process,stack", *options)


def is_own(frame):
    """A function of the program itself."""
    return frame.get("frame_type") == "python" and (frame.get("file") or "").endswith("workloads.py") and frame.get("func") != "<module>"


def is_first_module(path):
    """The end of a complete stack: in the C library, where threads begin, or in the program itself."""
    name = os.path.basename(path or "")
    return name.startswith(("libc.so", "libc-", "python"))


def check_mlp():
    trace = record("stacks-mlp", [*WORKLOADS, "mlp", "--repeat", "1", "--out", "/dev/null"], ["--stacks", "all"])
    check_complete(trace, "mlp")
    rows = [row for row in stack_rows(trace, "api_call") if is_launch(row["name"])]
    main = [row for row in rows if row["pid"] == row["tid"]]
    python = [row for row in main if sum(is_own(frame) for frame in row.get("stack", [])) >= 3]
    native = [row for row in rows if any(frame.get("frame_type") == "native" for frame in row.get("stack", []))]
    share = 100 * len(python) / max(1, len(main))
    expect(main and share >= 99, f"{share:.2f} % of {len(main)} launches of the main thread show the program's functions")
    expect(len(native) >= 0.99 * len(rows), f"{len(native)} of {len(rows)} launches have native frames")
    ends = collections.Counter((row["stack"][-1].get("func"), row["stack"][-1].get("module")) for row in rows if row.get("stack"))
    reached = sum(count for (_, module), count in ends.items() if is_first_module(module))
    expect(reached >= 0.99 * len(rows), f"outermost frames: {ends.most_common(4)}")
    frames = [frame for row in rows[-200:] for frame in row.get("stack", []) if frame.get("frame_type") == "native"]
    named = sum(1 for frame in frames if frame.get("func") and "+0x" not in frame["func"])
    # Stripped libraries only have the names of their exports.
    expect(frames and named >= 0.5 * len(frames), f"{named} of {len(frames)} native frames have a name")
    depth = sorted(len(row.get("stack", [])) for row in rows)
    figures.update(launches=len(rows), python_percent=round(share, 2), named_percent=round(100 * named / max(1, len(frames)), 1),
                   median_depth=depth[len(depth) // 2] if depth else 0, bytes_a_launch=round(trace.bytes() / max(1, len(rows)), 1))
    print("a stack:", [(frame.get("func"), frame.get("frame_type")) for frame in (main[-1].get("stack", []) if main else [])])


def check_graph():
    trace = record("stacks-graph", [*WORKLOADS, "graph", "--repeat", "1", "--out", "/dev/null"], ["--stacks", "all"])
    check_complete(trace, "graph")
    launch_of = {row["correlation"]: row for row in stack_rows(trace, "api_call") if row["name"].startswith("cuGraphLaunch")}
    kernels = [row for row in stack_rows(trace, "gpu_op") if row.get("correlation") in launch_of]
    captured = [row for row in kernels if any("capture_graph" in (frame.get("func") or "") for frame in row.get("stack", []))]
    launched = [row for row in kernels if any("replay_graph" in (frame.get("func") or "") for frame in launch_of[row["correlation"]].get("stack", []))]
    expect(kernels, "no kernels of the graph")
    expect(len(captured) >= 0.99 * len(kernels), f"{len(captured)} of {len(kernels)} kernels of the graph have the stack of their capture")
    expect(len(launched) >= 0.99 * len(kernels), f"{len(launched)} of {len(kernels)} have the stack of their launch")
    figures["graph_kernels"] = len(kernels)


def check_kinds():
    """What --stacks requests, and no more."""
    for kind, wanted in (("none", set()), ("native", {"native"}), ("python", {"python"})):
        trace = record("stacks-" + kind, [*WORKLOADS, "streams", "--repeat", "1", "--out", "/dev/null"], ["--stacks", kind])
        kinds = {frame.get("frame_type") for row in stack_rows(trace, "api_call") for frame in row.get("stack", [])}
        expect(kinds - {"unknown"} == wanted, f"--stacks {kind}: frames are {kinds}")


check_mlp()
check_graph()
if "--quick" not in sys.argv:
    check_kinds()
finish()
