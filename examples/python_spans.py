# SPDX-License-Identifier: Apache-2.0
"""A server that emits its own spans, records itself, and asks where the time went.

    PYTHONPATH=build/python python3 examples/python_spans.py t.sbt    # or: pip install tracesmith
    tracesmith view t.sbt
"""
import asyncio
import sys

import tracesmith


@tracesmith.traced
async def fetch(n):
    await asyncio.sleep(0.002 * (n % 3))


@tracesmith.traced("infer", "model", device="cpu")
def infer(n):
    return sum(i * i for i in range(20_000 * (n % 4 + 1)))


async def request(n):
    # Tasks take turns on the thread; each has a track of its own.
    with tracesmith.span("request", "server", n=n):
        await fetch(n)
        infer(n)


async def serve(requests):
    for first in range(0, requests, 4):
        tracesmith.step(first // 4)
        tracesmith.counter("queue", waiting=requests - first)
        await asyncio.gather(*(request(n) for n in range(first, first + 4)))


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else "t.sbt"
    with tracesmith.record(path) as recording:
        asyncio.run(serve(40))
    print(recording.summary)
    with tracesmith.open(path) as trace:
        print(trace.analyze("operators"))
        slowest = max(trace.slice(args=True), key=lambda row: row.duration)
        print(f"the longest span: {slowest.name} {slowest.args}, {slowest.duration / 1e6:.1f} ms")


if __name__ == "__main__":
    main()
