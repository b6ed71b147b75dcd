# SPDX-License-Identifier: Apache-2.0
"""Emits calls through the agent in this process, from many call sites, and logs its own stack at
each to LOG, for stacks.sh to compare.
"""
import ctypes
import functools
import json
import re
import sys
import threading


class Site(ctypes.Structure):
    _fields_ = [("header", ctypes.c_uint64), ("name", ctypes.c_char_p), ("category", ctypes.c_char_p),
                ("fields", ctypes.c_void_p), ("line", ctypes.c_uint32), ("kind", ctypes.c_uint8), ("flags", ctypes.c_uint8),
                ("leading_words", ctypes.c_uint8), ("field_count", ctypes.c_uint8), ("strings", ctypes.c_uint8)]


agent = ctypes.CDLL(None)
agent.ts_now.restype = ctypes.c_uint64
log = open(sys.argv[1], "a")
lock = threading.Lock()
site = Site(0, b"launch", b"test", None, 0, 7, 1, 3, 0, 0)
number = 0


def launch():
    """Both stacks are of the same line but for the innermost frame's."""
    global number
    frames = []
    frame = sys._getframe(1)
    while frame:
        frames.append([frame.f_code.co_name, frame.f_lineno])
        frame = frame.f_back
    with lock:
        number += 1
        mine = number
        log.write(json.dumps({"correlation": mine, "stack": frames}) + "\n")
    agent.ts_accelerator_call(ctypes.byref(site), ctypes.c_uint64(agent.ts_now()), ctypes.c_uint64(mine), ctypes.c_int64(0))


def recurse(depth):
    if depth:
        return recurse(depth - 1)
    launch()
    return depth


def generator(count):
    for i in range(count):
        launch()
        yield i


@functools.total_ordering
class Ordered:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        launch()
        return self.value < other.value

    def __eq__(self, other):
        return self.value == other.value

    def __del__(self):
        launch()


class Failing:
    def __getattr__(self, name):
        launch()
        raise AttributeError(name)

    def __enter__(self):
        return self

    def __exit__(self, *why):
        launch()
        return True


def all_of_it(depth):
    launch()
    recurse(depth)
    list(generator(3))
    sorted([Ordered(i * 7 % 5) for i in range(4)])
    [launch() for _ in range(2)]
    list(map(lambda _: launch(), range(2)))
    re.sub("[ab]", lambda match: (launch(), match.group(0))[1], "abc")
    functools.reduce(lambda a, b: (launch(), a + b)[1], range(3))
    hasattr(Failing(), "missing")
    with Failing():
        raise ValueError
    exec(compile("launch()\nrecurse(2)", "<made>", "exec"), globals())


for i in range(10):
    all_of_it(i)
threads = [threading.Thread(target=all_of_it, args=(i,)) for i in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
log.close()
