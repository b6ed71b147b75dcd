# SPDX-License-Identifier: Apache-2.0
"""Emits marks through the agent in this process, and logs its own stack at each, for triggers.sh to
compare.
"""
import ctypes
import json
import os
import subprocess
import sys
import threading

agent = ctypes.CDLL(None)
agent.ts_tracer_process.restype = ctypes.c_void_p
tracer = ctypes.c_void_p(agent.ts_tracer_process())
own_thread = ctypes.c_int64(-(2**63))
log = open(sys.argv[1], "a")
lock = threading.Lock()
counts = {}


def mark(name):
    frames = []
    frame = sys._getframe(1)
    while frame:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), frame.f_lineno])
        frame = frame.f_back
    with lock:
        number = counts[name] = counts.get(name, 0) + 1
        name = "%s %d %d" % (name, number, os.getpid())
        log.write(json.dumps({"name": name, "stack": frames}) + "\n")
        log.flush()
    agent.ts_tracer_instant(tracer, name.encode(), b"test", own_thread, None, 0)


def plain(depth, name):
    if depth:
        return plain(depth - 1,
                     name)
    mark(name)


def generator(name):
    for i in range(3):
        mark(name)
        yield i


class Things:
    def method(self):
        return [i for i in generator("generator")]

    @staticmethod
    def static():
        (lambda: mark("lambda"))()

    def __del__(self):
        mark("end")


async def coroutine():
    mark("coroutine")


def drive(routine):
    try:
        routine.send(None)
    except StopIteration:
        pass


def configure(setting):
    subprocess.run([os.environ["TRACESMITH"], "config", str(os.getpid()), setting], check=True,
                   stdout=subprocess.DEVNULL)


def made(count):
    # Code objects that come and go: each at the address of one before, perhaps.
    for i in range(count):
        space = {"mark": mark}
        exec(compile("\n" * (i % 7) + "def made_%d():\n  mark('made')\nmade_%d()" % (i % 3, i % 3), "<made>", "exec"),
             space)


def many(threads):
    def work():
        for i in range(50):
            plain(i % 9, "thread")

    started = [threading.Thread(target=work) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


for depth in range(40):
    plain(depth, "plain")
Things().method()
Things.static()
drive(coroutine())
made(2000)
many(4)
child = os.fork()
if child == 0:
    plain(3, "child")
    made(10)
    os._exit(0)
os.waitpid(child, 0)
configure("python_marks=off")
agent.ts_tracer_instant(tracer, b"without", b"test", own_thread, None, 0)
configure("python_marks=on")
plain(1, "on again")
sys.setrecursionlimit(10000)
threading.stack_size(256 << 20)
deep = threading.Thread(target=plain, args=(5000, "deep"))
deep.start()
deep.join()
