# SPDX-License-Identifier: Apache-2.0
"""A program to inspect from outside: a simulated training loop, and a thread that loads its data.

    python3 examples/python_steps.py [SECONDS]
    tracesmith stack -p PID
    tracesmith record --backends python -o t.sbt -- python3 examples/python_steps.py 5
"""
import queue
import sys
import threading
import time


def forward(batch):
    return sum(value * value for value in batch)


def backward(loss, batch):
    return [loss - value for value in sorted(batch)]


def step(batch):
    return backward(forward(batch), batch)


def load(batches):
    number = 0
    while True:
        number += 1
        batches.put([(number * value) % 1009 for value in range(5000)])


def train(seconds):
    batches = queue.Queue(maxsize=4)
    threading.Thread(target=load, args=(batches,), name="loader", daemon=True).start()
    end, steps = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        step(batches.get())
        steps += 1
    print(f"{steps} steps")


if __name__ == "__main__":
    train(float(sys.argv[1]) if len(sys.argv) > 1 else 5)
