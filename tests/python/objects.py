# SPDX-License-Identifier: Apache-2.0
"""Creates values of many kinds, prints their addresses and expected texts, and waits until its
standard input ends. tests/targets/python_objects.c starts it and compares. Lines, separated by tabs:

version MINOR IS_DEBUG RUNTIME_ADDRESS RELEASE_LEVEL
repr ADDRESS TEXT           text ADDRESS UTF8_IN_HEX
find DICT KEY ADDRESS       attribute OBJECT NAME ADDRESS
each DICT PAIRS             locals FRAME CODE JSON
limited FRAME CODE LIMIT    (its locals must be truncated)
modules ADDRESS             thread IDENTIFIER NATIVE_ID IS_MAIN NAME
task THREAD_STATE TEXT      code FUNCTION_CODE NAME FILE FIRST_LINE
end"""
import asyncio
import collections
import ctypes
import dataclasses
import decimal
import enum
import json
import os
import sys
import threading

KEEP = []  # keeps objects alive


def tell(*words):
    sys.stdout.write("\t".join(str(word) for word in words) + "\n")


def at(value):
    KEEP.append(value)
    return "%x" % id(value)


def tell_repr(value, text):
    tell("repr", at(value), text)


# ---- values ----

class Thing:
    def method(self):
        pass


class Slots:
    __slots__ = ("a", "b")


class Text(str):
    pass


class Whole(int):
    pass


class Real(float):
    pass


class Many(list):
    pass


class Names(dict):
    pass


class Failure(ValueError):
    pass


Point = collections.namedtuple("Point", "x y")
Single = collections.namedtuple("Single", "x")


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Record:
    number: int = 1


def instance(value):
    return "<%s.%s object at 0x%x>" % (type(value).__module__, type(value).__name__, id(value))


def tell_numbers():
    for value in [0, 1, -1, 255, -5, 256, 2**30 - 1, 2**30, -2**30, 2**31, 2**60, 2**63, -2**63, 2**64, 10**18, 10**30,
                  -10**100, 3**400, True, False, None, ...]:
        tell_repr(value, repr(value))
    tell_repr(10**1000, "<int of about 1002 decimals>")
    tell_repr(-10**1000, "<negative int of about 1002 decimals>")
    for value in [0.0, -0.0, 1.5, -2.25, 1e300, 1e-7, 0.1, 5.0, float("inf"), float("-inf"), float("nan"), 3.141592653589793]:
        tell_repr(value, repr(value))
    tell_repr(Whole(7), "Whole(7)")
    tell_repr(Level.HIGH, "Level(3)")
    tell_repr(Real(0.5), "Real(0.5)")
    tell_repr(range(2, 20, 3), "range(2, 20, 3)")


def tell_texts():
    for value in ["", "a", "hello", "it's", 'say "a"', "it's \"b\"", "tab\tline\nback\\", "\x00\x1b\x7f", "\u00e9t\u00e9", "\u20ac5",
                  "\U0001f600!", "z\u00fc\u4e2d\U00010348"]:
        expected = repr(value)
        tell_repr(value, expected)
        tell("text", at(value), value.encode().hex() or "-")
        derived = Text(value)
        tell_repr(derived, "Text(%s)" % expected)
        tell("text", at(derived), value.encode().hex() or "-")
    for value in ["x" * 96, "y" * 40 + "\u00e9" * 28, "\u4e2d" * 32]:
        tell_repr(value, repr(value))
    tell_repr("x" * 1000, "'%s'... 1000 characters" % ("x" * 96))
    tell_repr("\u00e9" * 1000, "'%s'... 1000 characters" % ("\u00e9" * 48))
    tell_repr("\u4e2d" * 1000, "'%s'... 1000 characters" % ("\u4e2d" * 32))
    tell("text", at("a\ud800b"), "a\ufffdb".encode().hex())
    for value in [b"", b"abc", b"it's", b"\x00\xff\n\\", bytes(range(30, 60))]:
        tell_repr(value, repr(value))
    tell_repr(b"x" * 500, "b'%s'... 500 bytes" % ("x" * 48))


def tell_containers():
    for value in [[], [1], [1, "a", None], (), (1,), (1, 2.5, b"x"), {}, {"a": 1, 2: [3]}, {(1, 2): {"x": True}}, {5},
                  list(range(8)), Point(1, 2)._asdict()]:
        tell_repr(value, repr(value))
    tell_repr(set(), "{}")
    tell_repr(frozenset({7}), "frozenset({7})")
    tell_repr(list(range(1000)), "[0, 1, 2, 3, 4, 5, 6, 7, ... 1000 items]")
    tell_repr(tuple(range(9)), "(0, 1, 2, 3, 4, 5, 6, 7, ... 9 items)")
    tell_repr({i: i for i in range(300)}, "{0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5, 6: 6, 7: 7, ... 300 items}")
    tell_repr({3, 3000000}, repr({3, 3000000}))
    members = set(range(100))
    members -= set(range(50))
    tell_repr(members, "{50, 51, 52, 53, 54, 55, 56, 57, ... 50 items}")
    tell_repr([[[1]], {"a": {1: 2}}], "[[[...]], {'a': {...}}]")
    cycle = []
    cycle.append(cycle)
    tell_repr(cycle, "[[[...]]]")
    tell_repr(Many([1]), "Many([1])")
    tell_repr(Names(a=1), "Names({'a': 1})")
    tell_repr(Point(1, 2), "Point(1, 2)")
    tell_repr(Single(1), "Single(1)")
    tell_repr(collections.defaultdict(int, {"k": 4}), "collections.defaultdict({'k': 4})")
    tell_repr(["x" * 100], "['%s'... 100 characters]" % ("x" * 48))


def generate():
    yield 1


async def wait_for_ever():
    pass


def tell_others():
    thing = Thing()
    for value in [thing, Slots(), Record(), object(), threading.Lock(), lambda: 1]:
        if type(value).__name__ == "function":
            tell_repr(value, "<function tell_others.<locals>.<lambda>>")
        elif type(value) is object:
            tell_repr(value, "<object object at 0x%x>" % id(value))
        elif type(value).__module__ == "__main__":
            tell_repr(value, instance(value))
        else:
            tell_repr(value, "<%s.%s object at 0x%x>" % (type(value).__module__, type(value).__name__, id(value)))
    number = decimal.Decimal(3)
    tell_repr(number, instance(number))
    method = thing.method
    tell_repr(method, "<bound method Thing.method>")
    tell_repr(Thing.method, "<function Thing.method>")
    tell_repr(len, "<built-in len>")
    tell_repr([].append, "<built-in append>")
    tell_repr(os, "<module os>")
    tell_repr(Thing, "<class '__main__.Thing'>")
    tell_repr(int, "<class 'int'>")
    tell_repr(collections.OrderedDict, "<class 'collections.OrderedDict'>")
    tell_repr(generate(), "<generator generate>")
    coroutine = wait_for_ever()
    tell_repr(coroutine, "<coroutine wait_for_ever>")
    coroutine.close()
    tell_repr(ValueError("bad", 3), "ValueError('bad', 3)")
    tell_repr(Failure("worse"), "Failure('worse')")
    tell_repr(KeyError(), "KeyError()")


# ---- dicts and attributes ----

def tell_dicts():
    for size in [0, 1, 5, 8, 100, 200, 256, 1000, 50000]:
        whole = {"key%d" % i: i + 1000 for i in range(size)}
        tell("each", at(whole), len(whole))
        tell("find", at(whole), "missing", 0)
        for i in {0, 1, size // 2, size - 1}:
            if 0 <= i < size:
                tell("find", at(whole), "key%d" % i, at(whole["key%d" % i]))
        if size < 5:
            continue
        holed, general = dict(whole), dict(whole)
        del holed["key0"], holed["key%d" % (size - 1)]
        general[1] = "not of str alone"
        tell("each", at(holed), size - 2)
        tell("find", at(holed), "key0", 0)
        tell("find", at(holed), "key1", at(holed["key1"]))
        tell("each", at(general), size + 1)
        tell("find", at(general), "key1", at(general["key1"]))
    tell("find", at(vars(threading)), "_active", at(threading._active))
    tell("find", at(sys.modules), "threading", at(threading))


def tell_attribute(value, name):
    tell("attribute", at(value), name, at(getattr(value, name)) if hasattr(value, name) else 0)


class Base:
    def __init__(self, a):
        self.a = a
        self.name = "name%s" % a


class Deep(Base):
    pass


class WithSlot(Base):
    __slots__ = ("slot",)


class Error(Exception):
    pass


def tell_attributes():
    for kind in [Base, Deep, WithSlot]:
        things = [kind(i) for i in range(3)]
        things[1].extra = [1]
        for thing in things:
            for name in ["a", "name", "extra", "nothing"]:
                tell_attribute(thing, name)
    asked, changed, emptied, late = Base(1), Base(2), Base(3), Base(4)
    KEEP.append(asked.__dict__)
    tell_attribute(asked, "name")
    tell("find", at(asked.__dict__), "name", at(asked.name))
    tell("each", at(asked.__dict__), 2)
    changed.__dict__ = {"name": "other", 3: 4}
    tell_attribute(changed, "name")
    tell_attribute(changed, "a")
    del emptied.a
    tell_attribute(emptied, "a")
    tell_attribute(emptied, "name")
    for i in range(100):
        setattr(late, "attribute%d" % i, [i])
    for name in ["a", "attribute0", "attribute50", "attribute99", "attribute100"]:
        tell_attribute(late, name)
    error = Error("x")
    error.note = "noted"
    tell_attribute(error, "note")
    tell_attribute(Thing.method, "nothing")
    names = Names()
    names.attribute = [1]
    tell_attribute(names, "attribute")


# ---- threads, frames, tasks ----

def tell_threads(stop):
    started = threading.Barrier(4)

    def run():
        started.wait()
        stop.wait()

    for name in ["worker", "\u00e9 thread", "x" * 50]:
        threading.Thread(target=run, name=name, daemon=True).start()
    started.wait()
    tell("modules", at(sys.modules))
    for thread in threading.enumerate():
        tell("thread", thread.ident, thread.native_id, int(thread is threading.main_thread()), thread.name)


def tell_locals(frame, expected):
    KEEP.append(frame)
    tell("locals", "%x" % id(frame), at(frame.f_code), json.dumps(expected, ensure_ascii=False, separators=(",", ":")))


def plain(number, text="t", *rest, **named):
    local = [1, 2]
    unset = 1
    del unset
    tell_locals(sys._getframe(), {"number": "3", "text": "'t'", "rest": "(4, 5)", "named": "{'k': None}",
                                  "local": "[1, 2]"})


def closures(outer):
    shared = {"a": 1}
    empty = None

    def inner(argument):
        own = shared
        tell_locals(sys._getframe(), {"argument": "'\u00e9'", "own": "{'a': 1}", "outer": "5",
                                      "shared": "{'a': 1}"})
        return outer, own

    def never():
        return empty

    del never
    inner("\u00e9")


def generator(first):
    second = first + 1
    yield second
    tell_locals(sys._getframe(), {"first": "1", "second": "2"})
    yield first


def looped():
    for i in range(1000, 1002):
        items = [str(j) for j in range(3)]
    tell_locals(sys._getframe(), {"i": "1001", "items": "['0', '1', '2']"})


def big():
    a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = "x" * 90
    a8 = a9 = {i: "y" * 90 for i in range(9)}
    KEEP.append(sys._getframe())
    tell("limited", "%x" % id(sys._getframe()), at(sys._getframe().f_code), 600)


def thread_state():
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    return get()


async def fetch(number):
    await asyncio.sleep(0)
    name = asyncio.current_task().get_name()
    tell("task", "%x" % thread_state(), "%s (fetch)" % name)
    tell_locals(sys._getframe(), {"number": "6", "name": "'%s'" % name})
    tell("end")
    sys.stdout.flush()
    sys.stdin.read()  # nothing changes meanwhile


async def main_task():
    await asyncio.gather(asyncio.sleep(0), asyncio.ensure_future(fetch(6)))


def code_target():
    return 1


def main():
    runtime = 0
    if sys.version_info >= (3, 13):
        runtime = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
    tell("version", sys.version_info[1], int(hasattr(sys, "gettotalrefcount")), "%x" % runtime, sys.version_info[3])
    tell("code", at(code_target.__code__), "code_target", __file__, code_target.__code__.co_firstlineno)
    tell("code", at(Thing.method.__code__), "Thing.method" if sys.version_info >= (3, 11) else "method", __file__,
         Thing.method.__code__.co_firstlineno)
    tell_numbers()
    tell_texts()
    tell_containers()
    tell_others()
    tell_dicts()
    tell_attributes()
    stop = threading.Event()
    tell_threads(stop)
    plain(3, "t", 4, 5, k=None)
    closures(5)
    for _ in generator(1):
        pass
    looped()
    big()
    if len(sys.argv) > 1:
        tell_arrays()
    asyncio.run(main_task())


def tell_arrays():
    import numpy
    import torch
    for value, text in [
            (torch.zeros(8, 128), "<Tensor (8, 128) float32 cpu>"),
            (torch.tensor(5), "<Tensor () int64 cpu>"),
            (torch.zeros(3, dtype=torch.bfloat16), "<Tensor (3,) bfloat16 cpu>"),
            (torch.zeros(1, 2, 3, 4, 5, 6, dtype=torch.uint8), "<Tensor (1, 2, 3, 4, 5, 6) uint8 cpu>"),
            (torch.zeros(4, 4, 4).transpose(0, 1)[1:], "<Tensor (3, 4, 4) float32 cpu>"),
            (torch.zeros(0, 7), "<Tensor (0, 7) float32 cpu>"),
            (torch.zeros(2, 3, device="meta"), "<Tensor (2, 3) float32 meta>"),
            (torch.zeros(2, dtype=torch.bool), "<Tensor (2,) bool cpu>"),
            (torch.zeros(2, dtype=torch.complex64), "<Tensor (2,) complex64 cpu>"),
            (torch.zeros(2, dtype=torch.float8_e4m3fn), "<Tensor (2,) float8_e4m3fn cpu>"),
            (torch.nn.Parameter(torch.zeros(5, 2)), "<Parameter (5, 2) float32 cpu>"),
            (torch.nn.Linear(5, 2).weight, "<Parameter (2, 5) float32 cpu>"),
            ([torch.zeros(2), 1], "[<Tensor (2,) float32 cpu>, 1]"),
            (numpy.zeros((3, 4)), "<ndarray (3, 4) float64>"),
            (numpy.arange(5, dtype="int32"), "<ndarray (5,) int32>"),
            (numpy.array(1), "<ndarray () int64>"),
            (numpy.zeros(2, dtype="float16"), "<ndarray (2,) float16>"),
            (numpy.array(["a"]), "<ndarray (1,) str>"),
            (numpy.float64(1.5), "numpy.float64(1.5)"),
    ]:
        tell_repr(value, text)


main()
