# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of the emulator for bench/run: commands per second on one core, and its error."""
import glob
import os
import subprocess

COMMANDS = 2_000_000
# The trace to replicate, and the number of events.
REPLICATED = ("kineto/ns_resolution.json.gz", 5_000_000)


def recorded(bench):
    """Imported traces of other programs; skips those without commands."""
    for path in sorted(glob.glob(os.path.join(bench.real, "kineto", "*.json.gz")) +
                       glob.glob(os.path.join(bench.real, "pairs", "*_kineto.json.gz"))):
        name = os.path.basename(path).split(".")[0]
        trace = bench.path(f"emulator-{name}.sbt")
        subprocess.run([bench.tool, "import", "-q", path, "-o", trace], check=True)
        figures = bench.program("emulator", trace, "--rounds", "1")
        os.unlink(trace)
        if figures["commands"]:
            yield name, figures


def replicated(bench):
    """A recorded program, replicated to the size of a long run."""
    source, events = REPLICATED
    small, large = bench.path("emulator-small.sbt"), bench.path("emulator-large.sbt")
    subprocess.run([bench.tool, "import", "-q", os.path.join(bench.real, source), "-o", small], check=True)
    bench.program("replicate", small, large, "--events", str(events))
    figures = bench.program("emulator", large)
    os.unlink(small)
    os.unlink(large)
    return figures


def measure_emulator(bench):
    figures = bench.program("emulator", "--commands", str(COMMANDS))
    bench.add("emulator: simulation of 8 streams", figures["run_commands_per_s"] / 1e6, "M cmds/s", ">= 2")
    bench.add("emulator: with the making of its model", figures["with_model_commands_per_s"] / 1e6, "M cmds/s", None)
    if not os.path.isdir(bench.real):
        bench.skip("emulator: recorded traces", f"there are none in '{bench.real}'")
        return
    figures = replicated(bench)
    bench.add("emulator: ns_resolution, replicated", figures["run_commands_per_s"] / 1e6, "M cmds/s", ">= 2")
    spans, starts = {}, {}
    for name, figures in recorded(bench):
        spans[name] = abs(figures["span_error"]) * 100
        starts[name] = figures["start_error_p95"] * 100
    for what, errors, target in (("span", spans, "<= 2"), ("95 % of starts", starts, "<= 5")):
        worst = max(errors, key=errors.get)
        bench.add(f"emulator: error of {what}, worst: {worst}", errors[worst], "% of span", target)
