# SPDX-License-Identifier: Apache-2.0
"""Profiles in pprof's format, and an independent decoder for them. Standard library only.

pprof_profiles.py make: writes cpu.pb, heap.pb, counts.pb, shuffled.pb.

pprof_profiles.py compare PROFILE INFO.json FOLDED_TIME FOLDED_COUNT SPEEDSCOPE: compares the
exports of a trace with the profile.
"""
import collections
import gzip
import json
import random
import re
import sys

TIMES = {"nanoseconds": 1, "microseconds": 10**3, "milliseconds": 10**6, "seconds": 10**9}


# ---- writing ----

def varint(n):
    n &= (1 << 64) - 1
    out = b""
    while n >= 128:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, data):
    return varint(field << 3 | 2) + varint(len(data)) + data


class Profile:
    def __init__(self):
        self.texts, self.parts = {"": 0}, []

    def text(self, string):
        return self.texts.setdefault(string, len(self.texts))

    def type(self, name, unit):
        self.parts.append(message(1, number(1, self.text(name)) + number(2, self.text(unit))))

    def sample(self, locations, values, labels=()):
        data = message(1, b"".join(map(varint, locations))) + message(2, b"".join(map(varint, values)))
        for key, value in labels:
            said = number(2, self.text(value)) if isinstance(value, str) else number(3, value)
            data += message(3, number(1, self.text(key)) + said)
        self.parts.append(message(2, data))

    def code(self, inlined, addresses):
        """Ten locations with one function each; every third has one more inlined."""
        self.parts.append(message(3, number(1, 1) + number(2, 0x1000) + number(3, 0x100000) + number(5, self.text("/bin/prog"))))
        for i in range(1, 11):
            lines = [i + 10, i] if inlined and i % 3 == 0 else [i]
            data = number(1, i) + (number(2, 1) + number(3, 0x1000 + 16 * i) if addresses else b"")
            data += b"".join(message(4, number(1, f) + number(2, 10 * f)) for f in lines)
            self.parts.append(message(4, data))
        for i in range(1, 21):
            self.parts.append(message(5, number(1, i) + number(2, self.text(f"function {i}(int)")) + number(4, self.text("a.c"))))

    def write(self, path, rest=b"", shuffled=False):
        texts = [message(6, t.encode()) for t in self.texts]
        parts = self.parts + [rest]
        if shuffled:
            # Strings and types stay in order; everything else may be anywhere.
            types = [p for p in parts if p[:1] == b"\x0a"]
            others = [p for p in parts if p[:1] != b"\x0a"]
            random.Random(1).shuffle(others)
            parts, texts = texts + types + others, []
        open(path, "wb").write(b"".join(parts + texts))


def make():
    draw = random.Random(7)
    stacks = [[draw.randint(1, 10) for _ in range(draw.randint(1, 12))] for _ in range(50)]
    for name, types, inlined, addresses in (
            ("cpu", (("samples", "count"), ("cpu", "microseconds")), True, True),
            ("shuffled", (("samples", "count"), ("cpu", "nanoseconds")), True, False),
            ("heap", (("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")), False, True),
            ("counts", (("goroutine", "count"),), False, False)):
        p = Profile()
        for type_name, unit in types:
            p.type(type_name, unit)
        for stack in stacks:
            values = [draw.choice((0, 1, 7, 5000, 10**6)) for _ in types]
            p.sample(stack, values, [("request", "a b"), ("size", 64)] if draw.random() < 0.5 else [("tid", draw.randint(1, 3))])
        p.code(inlined, addresses)
        p.write(name + ".pb", number(9, 1700000000 * 10**9) + number(10, 10**9), name == "shuffled")


# ---- reading ----

def fields(data):
    at = 0

    def read():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        tag = read()
        if tag & 7 == 0:
            yield tag >> 3, read()
        else:
            assert tag & 7 == 2
            length = read()
            at += length
            yield tag >> 3, data[at - length:at]


def numbers(value):
    if isinstance(value, int):
        return [value]
    out, n, shift = [], 0, 0
    for byte in value:
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            out.append(n)
            n, shift = 0, 0
    return out


def signed(n):
    return n - (1 << 64) if n >> 63 else n


def decode(path):
    """The type used as weight, and (functions, outermost first, value) of each sample."""
    data = open(path, "rb").read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    texts, types, samples, locations, functions, wanted = [], [], [], {}, {}, 0
    for field, value in fields(data):
        if field == 6:
            texts.append(value.decode("utf-8", "replace"))
        elif field == 1:
            types.append(dict(fields(value)))
        elif field == 2:
            samples.append(list(fields(value)))
        elif field == 4:
            one = list(fields(value))
            locations[dict(one)[1]] = [dict(fields(v)).get(1, 0) for f, v in one if f == 4]
        elif field == 5:
            one = dict(fields(value))
            functions[one[1]] = one.get(2, 0)
        elif field == 14:
            wanted = value
    names = [(texts[t.get(1, 0)], texts[t.get(2, 0)]) for t in types]
    chosen = len(names) - 1
    for i, (name, unit) in enumerate(names):
        if name == "cpu" and unit in TIMES:
            chosen = i
    if wanted and texts[wanted] in [n for n, _ in names]:
        chosen = [n for n, _ in names].index(texts[wanted])
    out = []
    for sample in samples:
        stack = []
        for location in [n for f, v in sample if f == 1 for n in numbers(v)]:
            stack += [texts[functions[f]] for f in locations[location]]
        values = [signed(n) for f, v in sample if f == 2 for n in numbers(v)]
        out.append((tuple(reversed(stack)), values[chosen]))
    return names[chosen], out


def folded(path):
    out = collections.Counter()
    for line in open(path, encoding="utf-8"):
        stack, count = line.rstrip("\n").rsplit(" ", 1)
        out[tuple(re.sub(r" \([^()]*\)$", "", w) for w in stack.split(";")[2:])] += int(count)
    return out


def compare(profile, info, time, count, speedscope):
    (_, unit), samples = decode(profile)
    rows = json.load(open(info))["tables"]["sample"]
    assert rows == len(samples), f"samples: {rows}, not {len(samples)}"
    scale, expected = TIMES.get(unit, 1), collections.Counter()
    for stack, value in samples:
        if value > 0:
            expected[stack] += value * scale
    found = folded(time if unit in TIMES else count)
    assert found == expected, f"stacks differ: {list((expected - found).items())[:2]} {list((found - expected).items())[:2]}"
    profiles = json.load(open(speedscope))["profiles"]
    total = sum(sum(p.get("weights", [])) for p in profiles)
    assert abs(total - sum(expected.values())) < 1, f"speedscope adds up to {total}, not {sum(expected.values())}"


if sys.argv[1] == "make":
    make()
else:
    compare(*sys.argv[2:])
