#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_steps.py OUT [options]: writes a Kineto trace of some training steps, each with the same
kernels and some noise.
"""
import argparse
import json

NOISE = (0.125, -0.25, 0.5, 0.0, -0.375, 0.25, -0.125, 0.375)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--gemm", type=float, default=200, help="us of the kernel gemm")
    parser.add_argument("--new", default=None, help="a kernel more")
    parser.add_argument("--last", default=None, help="a kernel more in the last step")
    parser.add_argument("--no-step-spans", action="store_true")
    parser.add_argument("--without", default=None, help="a kernel less")
    parser.add_argument("--template", default="4, float", help="arguments of the template of gemm")
    options = parser.parse_args()
    kernels = {f"void gemm<{options.template}>(float*)": options.gemm, "softmax": 50, "tanh": 20, options.new: 10}
    events, correlation = [], 0
    for step in range(options.steps):
        start, noise = 1000 * (step + 1), NOISE[step % len(NOISE)]
        host = {"ph": "X", "pid": 10, "tid": 20}
        if not options.no_step_spans:
            events.append(dict(host, cat="user_annotation", name=f"ProfilerStep#{step + 1}", ts=start, dur=900))
        if step == options.steps - 1 and options.last:
            kernels[options.last] = 10
        events.append(dict(host, cat="cpu_op", name="aten::mm", ts=start + 5, dur=100 + noise))
        at = start + 10
        for name, duration in kernels.items():
            if name in (None, options.without):
                continue
            correlation += 1
            arguments = {"device": 0, "stream": 7, "correlation": correlation}
            events.append(dict(host, cat="cuda_runtime", name="cudaLaunchKernel", ts=at, dur=4, args={"correlation": correlation}))
            events.append({"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": at + 10, "dur": duration + noise,
                           "args": arguments})
            at += duration + 5
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump({"schemaVersion": 1, "distributedInfo": {"rank": options.rank, "world_size": 2}, "traceEvents": events}, file)


main()
