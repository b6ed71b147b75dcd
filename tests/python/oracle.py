# SPDX-License-Identifier: Apache-2.0
"""oracle.py --log FILE [--seconds N] [--hold SECONDS] [--parts NAME,...] [--witness FILE]:
a program whose every possible stack is known.

check.py checks stacks sampled from it. It runs on CPython 3.8 to 3.15 and needs only the standard
library.

This file states its call graph: a comment "-> a, b" at the end of a line says that the line can
call a or b, "-> *" that it can call the standard library; nothing else may follow a frame at that
line. A generator function is called where its generator is made, and again where a value is
requested. "entry" after a def says that the standard library may call it. Each call is on one line.
Function names are unique, for 3.10, which has no qualified names.

From time to time the main thread stands still in hold(), in every kind of function, and logs its
own stack and the time: a stack sampled then must equal it. The other threads do as much as they can
with the same few bytes of stack, so that a reader that copies while they run gets halves of two
stacks, and must notice. The log, written at the end, also lists the lines of each function.

It ends after --seconds, or when a file with the name of the log plus ".stop" exists. With --witness
it writes its stack at every call, as Python itself sees it, to check the comments.
"""
import asyncio
import contextlib
import dis
import functools
import gc
import json
import os
import sys
import threading
import time

HOLDS = []
STOP = [False]
HOLD_SECONDS = [0.1]
FEW = range(200)
NOW = time.monotonic_ns


# ---- standing still ----

def whole_stack():
    """The caller's stack: name, file, line of each frame, innermost first."""
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        frames.append([getattr(code, "co_qualname", code.co_name), code.co_filename, frame.f_lineno])
        frame = frame.f_back
    return frames


def hold(where):
    stack = whole_stack()  # -> whole_stack
    # All on one line, so that the innermost line is known, too.
    stack[0][2] = sys._getframe().f_lineno; begin = NOW(); time.sleep(HOLD_SECONDS[0]); end = NOW()  # noqa: E702
    HOLDS.append({"where": where, "tid": threading.get_native_id(), "thread": threading.current_thread().name,  # -> *
                  "begin_ns": begin, "end_ns": end, "stack": stack})
    return 1


def hold_plain():
    return hold("function")  # -> hold


def hold_deep(depth):
    if depth == 0:
        return hold("recursion")  # -> hold
    return hold_deep(depth - 1) + 1  # -> hold_deep


def hold_inner_generator():
    yield hold("generator")  # -> hold
    yield 2


def hold_generator():
    yield 0
    yield from hold_inner_generator()  # -> hold_inner_generator


def hold_generators():
    total = 0
    for value in hold_generator():  # -> hold_generator
        total += value
    return total


def hold_comprehension():
    return [hold("comprehension") for _ in range(1)]  # -> hold, <listcomp>


def hold_expression():
    return sum(hold("generator expression") for _ in range(1))  # -> hold, <genexpr>


def hold_lambda():
    return (lambda: hold("lambda"))()  # -> hold, <lambda>


def hold_key(value):
    return value + hold("sort key")  # -> hold


def hold_sort():
    return sorted([1], key=hold_key)  # -> hold_key


def hold_partial():
    return functools.partial(hold, "partial")()  # -> hold


class Held:
    def __init__(self):
        self.value = hold("initialiser")  # -> hold

    @property
    def held_property(self):
        return hold("property")  # -> hold

    def __add__(self, other):
        return hold("operator")  # -> hold

    @classmethod
    def held_class_method(cls):
        return cls.held_static_method()  # -> held_static_method

    @staticmethod
    def held_static_method():
        return hold("static method")  # -> hold

    def __del__(self):
        hold("finaliser")  # -> hold


def hold_class():
    held = Held()  # -> __init__
    total = held.held_property  # -> held_property
    total += held + 1  # -> __add__
    total += Held.held_class_method()  # -> held_class_method
    del held  # -> __del__
    return total


def hold_handler():
    try:
        raise ValueError(1)
    except ValueError:
        return hold("except")  # -> hold
    finally:
        hold("finally")  # -> hold


@contextlib.contextmanager
def hold_manager():  # entry
    hold("enter")  # -> hold
    yield 1


def hold_with():
    with hold_manager() as value:  # -> *
        return value  # -> *


async def hold_leaf_coroutine():
    return hold("coroutine")  # -> hold


async def hold_async_generator():
    yield hold("asynchronous generator")  # -> hold


async def hold_coroutine():  # entry
    total = await hold_leaf_coroutine()  # -> hold_leaf_coroutine
    async for value in hold_async_generator():  # -> hold_async_generator, *
        total += value  # -> *
    return total


def hold_async():
    return asyncio.run(hold_coroutine())  # -> *, hold_coroutine


def hold_lines():
    # The line number decreases, and increases again.
    return max(
        hold("first of many lines"),  # -> hold
        0,
        hold("last of many lines"),  # -> hold
    )


def hold_everywhere():
    hold_plain()  # -> hold_plain
    hold_deep(300)  # -> hold_deep
    hold_generators()  # -> hold_generators
    hold_comprehension()  # -> hold_comprehension
    hold_expression()  # -> hold_expression
    hold_lambda()  # -> hold_lambda
    hold_sort()  # -> hold_sort
    hold_partial()  # -> hold_partial
    hold_class()  # -> hold_class
    hold_handler()  # -> hold_handler
    hold_with()  # -> hold_with
    hold_async()  # -> hold_async
    hold_lines()  # -> hold_lines


# ---- the same few bytes of stack, over and over ----

def left_leaf():
    return 1


def right_leaf():
    return 2


def left_middle():
    return left_leaf()  # -> left_leaf


def right_middle():
    return right_leaf()  # -> right_leaf


def left():
    return left_middle()  # -> left_middle


def right():
    return right_middle()  # -> right_middle


def left_then_right():
    one = left_leaf()  # -> left_leaf
    two = right_leaf()  # -> right_leaf
    return one + two


def right_then_left():
    one = right_leaf()  # -> right_leaf
    two = left_leaf()  # -> left_leaf
    return one + two


def storm():  # entry
    while not STOP[0]:
        for _ in FEW:
            left()  # -> left
            right()  # -> right
            left_then_right()  # -> left_then_right
            right_then_left()  # -> right_then_left
            left_leaf()  # -> left_leaf
            right()  # -> right
            left()  # -> left


# ---- deep and shallow in turn ----

def descend(depth):
    if depth == 0:
        return 0
    return descend(depth - 1) + 1  # -> descend


def other_descend(depth, unused_a=1, unused_b=2):
    if depth == 0:
        return 0
    return other_descend(depth - 1) + 1  # -> other_descend


def waves():  # entry
    while not STOP[0]:
        for depth in FEW:
            descend(depth)  # -> descend
            other_descend(depth // 2)  # -> other_descend
            descend(2)  # -> descend


# ---- generators ----

def inner_numbers(count):
    for number in range(count):
        yield number


def outer_numbers(count):
    yield from inner_numbers(count)  # -> inner_numbers
    yield from inner_numbers(2)  # -> inner_numbers


def squares(numbers):
    for number in numbers:  # -> outer_numbers, <genexpr>
        yield number * number


def generators():  # entry
    while not STOP[0]:
        for _ in squares(outer_numbers(20)):  # -> squares, outer_numbers
            left_leaf()  # -> left_leaf
        for _ in squares(right_leaf() for _ in FEW):  # -> squares, right_leaf, <genexpr>
            pass


# ---- coroutines ----

async def leaf_step(number):
    right_leaf()  # -> right_leaf
    if number % 8 == 0:
        await asyncio.sleep(0)  # -> *
    return number


async def middle_step(number):
    return await leaf_step(number)  # -> leaf_step


async def counting(count):
    for number in range(count):
        yield await middle_step(number)  # -> middle_step


async def task_one():  # entry
    total = 0
    async for number in counting(50):  # -> counting, *
        total += number  # -> *
    return total


async def task_two():  # entry
    return await middle_step(1) + await leaf_step(8)  # -> middle_step, leaf_step


async def all_tasks():  # entry
    while not STOP[0]:
        await asyncio.gather(task_one(), task_two(), task_one())  # -> *, task_one, task_two


def coroutines():  # entry
    asyncio.run(all_tasks())  # -> *, all_tasks


# ---- callbacks of C functions, and classes ----

def sort_key(value):
    return -value


def compare(one, two):
    return one - two


def map_one(value):
    return left_middle() + value  # -> left_middle


@functools.lru_cache(maxsize=4)
def cached(value):
    return right_middle() + value  # -> right_middle


class Base:
    def __init__(self, value):
        self.base_value = value

    def base_method(self):
        return self.base_value


class Derived(Base):
    def __init__(self, value):
        super().__init__(value)  # -> __init__
        self.other = right_leaf()  # -> right_leaf

    @property
    def base_property(self):
        return self.base_method()  # -> base_method

    def __getattr__(self, name):
        return left_leaf()  # -> left_leaf

    def __call__(self, value):
        return self.base_property + value  # -> base_property

    def __eq__(self, other):
        return left_leaf() == other  # -> left_leaf

    __hash__ = None


def fails(depth):
    if depth == 0:
        raise KeyError(depth)
    fails(depth - 1)  # -> fails


def catches():
    try:
        fails(5)  # -> fails
    except KeyError:
        return left_leaf()  # -> left_leaf
    finally:
        right_leaf()  # -> right_leaf


def callbacks():  # entry
    values = list(range(16))
    while not STOP[0]:
        sorted(values, key=sort_key)  # -> sort_key
        sorted(values, key=functools.cmp_to_key(compare))  # -> compare
        list(map(map_one, values))  # -> map_one
        functools.reduce(lambda a, b: a + left_leaf() + b, values)  # -> <lambda>, left_leaf
        [cached(value) for value in values]  # -> <listcomp>, cached
        {value: right_leaf() for value in values}  # -> <dictcomp>, right_leaf
        derived = Derived(3)  # -> __init__
        derived(4)  # -> __call__
        derived.missing  # -> __getattr__
        derived == 1  # -> __eq__
        catches()  # -> catches


# ---- code that comes and goes at the same addresses ----

MADE = """
def made_%(side)s(tick):
    total = 0
    for _ in range(20):
        total += tick()
%(gap)s
    total += tick()
    return total
"""


def tick_left():
    return 1


def tick_right():
    return 2


def made_code(side):
    return compile(MADE % {"side": side, "gap": "\n" * (300 if side == "left" else 3)}, "<made>", "exec")


def make(side):
    names = {}
    exec(made_code(side), names)  # -> made_code, <module>
    return names["made_" + side]


def call_left(function):
    return function(tick_left)  # -> made_left


def call_right(function):
    return function(tick_right)  # -> made_right


def makes():  # entry
    while not STOP[0]:
        call_left(make("left"))  # -> make, call_left
        call_right(make("right"))  # -> make, call_right


# Code made by exec() has no such comments: function, line, callees.
MADE_CALLS = [["made_left", 5, ["tick_left"]], ["made_left", 307, ["tick_left"]],
              ["made_right", 5, ["tick_right"]], ["made_right", 10, ["tick_right"]]]


# ---- what Python itself sees ----

WITNESSED = {}


def witness(frame, event, _):
    if event != "call":
        return
    stack, codes = [], frame
    while codes is not None:
        code = codes.f_code
        stack.append((getattr(code, "co_qualname", code.co_name), code.co_filename, codes.f_lineno))
        codes = codes.f_back
    WITNESSED.setdefault(tuple(stack), (NOW(), threading.get_native_id()))


def write_witnessed(path):
    sys.setprofile(None)
    with open(path, "w", encoding="utf-8") as file:
        for stack, (start, tid) in WITNESSED.items():
            frames = [{"func": frame[0], "file": frame[1], "lineno": frame[2]} for frame in stack]  # -> <listcomp>
            print(json.dumps({"start": start, "tid": tid, "stack": frames}), file=file)  # -> *


# ---- the log, and main ----

def codes_below(code):
    yield code
    for constant in code.co_consts:
        if hasattr(constant, "co_code"):
            yield from codes_below(constant)  # -> codes_below


def describe_code(code):
    lines = sorted({line for _, line in dis.findlinestarts(code) if line is not None} | {code.co_firstlineno})  # -> *
    return {"name": getattr(code, "co_qualname", code.co_name), "file": code.co_filename, "first_line": code.co_firstlineno, "lines": lines}


def describe_all():
    with open(__file__, encoding="utf-8") as file:
        source = file.read()
    codes = list(codes_below(compile(source, __file__, "exec")))  # -> codes_below, *
    codes += list(codes_below(made_code("left"))) + list(codes_below(made_code("right")))  # -> made_code, codes_below
    return [describe_code(code) for code in codes]  # -> <listcomp>, describe_code


def clock_pair():
    """(since boot, time of day) of one instant. The system may suspend the program between two
    readings: the closest of many."""
    pairs = []
    for _ in FEW:
        before = NOW()
        now = time.time_ns()
        pairs.append((NOW() - before, before, now))
    return min(pairs)[1:]


def write_log(path, functions):
    monotonic_ns, realtime_ns = clock_pair()  # -> clock_pair
    log = {"version": sys.version.split()[0], "pid": os.getpid(), "file": __file__, "functions": functions, "made_calls": MADE_CALLS,
           "monotonic_ns": monotonic_ns, "realtime_ns": realtime_ns, "holds": HOLDS}
    with open(path + ".part", "w", encoding="utf-8") as file:
        json.dump(log, file)  # -> *
    os.rename(path + ".part", path)


PARTS = {"storm": storm, "waves": waves, "generators": generators, "coroutines": coroutines, "callbacks": callbacks, "makes": makes}


def argument(name, default):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def run(parts, seconds):
    threads = [threading.Thread(target=PARTS[part], name="oracle-" + part) for part in parts if part in PARTS]  # -> *, <listcomp>
    for thread in threads:
        thread.start()  # -> *
    print("ready", os.getpid(), flush=True)
    until = time.monotonic() + seconds
    while time.monotonic() < until and not os.path.exists(argument("--log", "oracle.json") + ".stop"):  # -> argument, *
        if "hold" in parts:
            hold_everywhere()  # -> hold_everywhere
        else:
            time.sleep(0.05)
    STOP[0] = True
    for thread in threads:
        thread.join()  # -> *


def main():
    HOLD_SECONDS[0] = float(argument("--hold", "0.1"))  # -> argument
    parts = argument("--parts", ",".join(["hold"] + list(PARTS))).split(",")  # -> argument
    # Finalisers run where they are expected, not wherever a collection happens to start.
    gc.disable()
    functions = describe_all()  # -> describe_all
    if "--witness" in sys.argv:
        threading.setprofile(witness)  # -> *
        sys.setprofile(witness)
    run(parts, float(argument("--seconds", "10")))  # -> run, argument, *
    if "--witness" in sys.argv:
        write_witnessed(argument("--witness", "witnessed.jsonl"))  # -> argument, write_witnessed
    write_log(argument("--log", "oracle.json"), functions)  # -> write_log, argument


if __name__ == "__main__":
    main()  # -> main
