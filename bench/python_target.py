# SPDX-License-Identifier: Apache-2.0
"""python_target.py MODE: programs with known behavior to be sampled by bench/run --python, for
CPython 3.8 to 3.15.

  deep            5 threads, each 30 frames deep, calling as fast as they can at the innermost frame
  units           for each line of input, does the same work and prints its wall and CPU seconds
  shares SECONDS  functions that measure their own shares of the time, printed as JSON at the end
"""
import json
import os
import random
import sys
import threading
import time

THREADS = 5
DEPTH = 30


def tick():
    return 1


def spin():
    while True:
        tick()


def descend(depth):
    if depth > 1:
        return descend(depth - 1)
    return spin()


def deep():
    """The 30 frames include those of threading, the main thread, spin() and its callees."""
    for _ in range(THREADS - 1):
        threading.Thread(target=descend, args=(DEPTH - 5,), daemon=True).start()
    print("ready", os.getpid(), flush=True)
    descend(DEPTH - 4)


# ---- constant work ----

def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def mean_of(values):
    return sum(value * 0.5 for value in values) / len(values)


def unit():
    values = list(range(200))
    fibonacci(20)
    for _ in range(300):
        mean_of(sorted(values, key=lambda value: -value))


def units():
    print("ready", os.getpid(), flush=True)
    for _ in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        unit()
        print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)


# ---- known shares ----

def one(loops):
    total = 0
    for value in range(loops):
        total += value
    return total


def two(loops):
    total = 1
    for value in range(loops):
        total ^= value
    return total


def three(loops):
    total = 0.0
    for value in range(loops):
        total = total * 0.5 + value
    return total


def four(loops):
    total = 0
    for value in range(loops):
        total -= value & 3
    return total


def shares(seconds):
    """Loops of a few ms each in random order, so that no sampler runs in lockstep with them."""
    spent, loops = {one: 0, two: 0, three: 0, four: 0}, {one: 80000, two: 60000, three: 30000, four: 10000}
    order = random.Random(7)
    print("ready", os.getpid(), flush=True)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        function = order.choice(list(spent))
        start = time.perf_counter()
        function(loops[function])
        spent[function] += time.perf_counter() - start
    total = sum(spent.values())
    print(json.dumps({function.__name__: time_spent / total for function, time_spent in spent.items()}), flush=True)


if __name__ == "__main__":
    {"deep": deep, "units": units, "shares": lambda: shares(float(sys.argv[2]))}[sys.argv[1]]()
