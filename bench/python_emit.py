#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cost of a span in Python, beside torch.profiler's and VizTracer's in the same process.

    PYTHONPATH=build/python python3 bench/python_emit.py [--rounds N] [--asyncio] [--json FILE]

Rounds interleave all of them; each round measures many short loops and takes the fastest, less an
empty loop of the same length, since the machine may be busy with other work. The table shows medians
over the rounds with a 95 % interval, in ns. `with lock` is what the interpreter itself needs for the
cheapest context manager that it has. Peers that are not installed are left out, with a line.
"""
import argparse
import json
import os
import statistics
import sys
import tempfile
import threading
import time

import tracesmith
from tracesmith import _emit

LOOPS, LENGTH = 60, 1000


def empty(n):
    for _ in range(n):
        pass


def span(n):
    span = tracesmith.span
    for _ in range(n):
        with span("forward", "train"):
            pass


def span_with_argument(n):
    span = tracesmith.span
    for i in range(n):
        with span("forward", "train", layer=i):
            pass


@tracesmith.traced("traced")
def traced():
    pass


def plain():
    pass


def call_traced(n):
    for _ in range(n):
        traced()


def call_plain(n):
    for _ in range(n):
        plain()


def instant(n):
    instant = tracesmith.instant
    for _ in range(n):
        instant("mark", "train")


def counter(n):
    counter = tracesmith.counter
    for i in range(n):
        counter("memory", "gpu", used=i)


def lock(n, lock=threading.Lock()):
    for _ in range(n):
        with lock:
            pass


def fastest(function):
    """ns an iteration: the fastest of many loops, less an empty one."""
    best = {}
    for one in (function, empty):
        times = []
        for _ in range(LOOPS):
            start = time.perf_counter_ns()
            one(LENGTH)
            times.append(time.perf_counter_ns() - start)
        best[one] = min(times)
    return (best[function] - best[empty]) / LENGTH


class Ours:
    """Our calls, with nothing recording, in flight mode, and into a file."""

    def measure(self, add):
        calls = (span, span_with_argument, instant, counter)
        for call in calls:
            add(f"{call.__name__}, off", fastest(call))
        add("traced function, off", fastest(call_traced) - fastest(call_plain))
        if _emit.start(None)[0]:
            sys.exit("cannot start flight mode: is this process recorded already?")
        for call in calls:
            add(f"{call.__name__}, on", fastest(call))
        add("traced function, on", fastest(call_traced) - fastest(call_plain))
        _emit.stop()


class Torch:
    name = "torch.profiler.record_function"

    def __init__(self):
        import torch
        from torch.profiler import ProfilerActivity, profile, record_function

        self.profile = lambda: profile(activities=[ProfilerActivity.CPU])
        self.record_function = record_function
        self.version = torch.__version__

    def measure(self, add):
        def loop(n, record_function=self.record_function):
            for _ in range(n):
                with record_function("forward"):
                    pass

        add("record_function, no profiler", fastest(loop))
        with self.profile():
            add("record_function, profiler active", fastest(loop))


class VizTracer:
    name = "VizTracer"

    def __init__(self):
        import viztracer

        self.tracer_of = lambda: viztracer.VizTracer(
            tracer_entries=10_000_000, verbose=0, log_sparse=True
        )
        self.functions_of = lambda: viztracer.VizTracer(tracer_entries=10_000_000, verbose=0)
        self.version = viztracer.__version__

    def measure(self, add):
        tracer = self.tracer_of()

        def loop(n):
            for _ in range(n):
                with tracer.log_event("forward"):
                    pass

        tracer.start()
        add("VizTracer.log_event", fastest(loop))
        tracer.stop()
        tracer.clear()
        functions = self.functions_of()
        base = fastest(call_plain)
        functions.start()
        add("VizTracer, a traced function", fastest(call_plain) - base)
        functions.stop()
        functions.clear()


def interval(values):
    """95 % of the median, by the order of the values (binomial)."""
    values = sorted(values)
    count = len(values)
    margin = int(0.98 * count**0.5) + 1
    low, high = max(count // 2 - margin, 0), min(count // 2 + margin, count - 1)
    return values[low], values[high]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument(
        "--asyncio", action="store_true", help="import asyncio first, as torch does"
    )
    parser.add_argument("--json", help="also write the figures to this file")
    options = parser.parse_args()
    peers = [Ours()]
    versions = {"Python": sys.version.split()[0], "_emit": os.path.basename(_emit.__file__)}
    for kind in (Torch, VizTracer):
        try:
            peers.append(kind())
            versions[kind.name] = peers[-1].version
        except ImportError as error:
            print(f"left out: {kind.name}: {error}")
    if options.asyncio:
        __import__("asyncio")
    # Spans ask for the running task then.
    versions["asyncio"] = "imported" if "_asyncio" in sys.modules else "not imported"
    figures = {}
    for _ in range(options.rounds):
        figures.setdefault("with lock", []).append(fastest(lock))
        for peer in peers:
            peer.measure(lambda name, ns: figures.setdefault(name, []).append(ns))
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    print("| what | ns | 95 % interval |\n|---|---|---|")
    for name, values in figures.items():
        low, high = interval(values)
        print(f"| {name} | {statistics.median(values):.1f} | {low:.1f} .. {high:.1f} |")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"versions": versions, "ns": figures}, file, indent=1)


if __name__ == "__main__":
    # Live areas of the measurement, away from those of other programs.
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        os.environ.setdefault("TRACESMITH_LIVE_DIR", folder)
        main()
