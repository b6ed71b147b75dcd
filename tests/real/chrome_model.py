# SPDX-License-Identifier: Apache-2.0
"""The meaning of a Chrome or Kineto JSON file according to docs/chrome.md, implemented with
Python's json.

read_json() keeps what json drops: the decimal text of times, duplicate keys. Model turns the events
of a file into rows, tuples that can be counted; it is used for a source and for its export.
"""
import gzip
import json
from collections import Counter
from decimal import ROUND_HALF_UP, Decimal

GPU_OP = {"kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset", "mtia_ccp_events", "hpu_op"}
SYNC = {"cuda_sync", "xpu_sync"}
API_CALL = {"cuda_runtime", "cuda_driver", "Runtime", "mtia_runtime", "xpu_runtime", "xpu_driver",
            "privateuse1_runtime", "privateuse1_driver", "glow_runtime"}
INT64_MIN, INT64_MAX = -2**63, 2**63 - 1


class Real(float):
    """A float that keeps its decimal text."""
    __slots__ = ("text",)

    def __new__(cls, text):
        real = float.__new__(cls, text)
        real.text = text
        return real


def pairs_hook(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        # A duplicate key: kept as a list, which is compared entirely.
        return {"\0pairs": [list(pair) for pair in pairs]}
    return members


def loads(text):
    # Bare NaN and Infinity become strings, as in our tables.
    return json.loads(text, parse_float=Real, parse_constant=str, object_pairs_hook=pairs_hook)


def read_json(path):
    with open(path, "rb") as file:
        data = file.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    return loads(data)


def canonical(value):
    """A text that is equal for equal JSON values of equal types, in the same order."""
    return json.dumps(value, separators=(",", ":"))


def to_ns(value):
    """Microseconds in a JSON value as ns, or None."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int):
        ns = value * 1000
    else:
        text = value.text if isinstance(value, Real) else value
        try:
            ns = int((Decimal(text) * 1000).to_integral_value(ROUND_HALF_UP))
        except (ArithmeticError, TypeError, ValueError):
            return None
    return ns if INT64_MIN < ns <= INT64_MAX else None


def to_id(value):
    """A pid or tid: a number if it is one, otherwise text."""
    if isinstance(value, Real):
        return value.text
    if isinstance(value, str):
        body = value[1:] if value.startswith("-") else value
        if body.isascii() and body.isdigit() and INT64_MIN < int(value) <= INT64_MAX:
            return int(value)
        return value
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def name_of(event):
    """An empty name is none."""
    return event.get("name") or None


def is_int(value):
    return isinstance(value, int) and not isinstance(value, bool) and INT64_MIN < value <= INT64_MAX


class Half:
    """A begin or end event."""

    def __init__(self, order, event, model, is_async):
        self.order = order
        self.is_async = is_async
        self.time = model.time(event)
        self.pid, self.tid = model.place(event)
        self.name, self.category = name_of(event), event.get("cat") or None
        self.id = model.id_of(event)
        self.args = model.args_of(event)
        self.beside = model.beside_of(event, ("id",) if self.id is not None else ())


class Model:
    """The rows of one file.

    rows    Counter of tuples (family, start, duration, pid, tid, name, category, kind, id, args,
            beside, more)
    flows   Counter of tuples for s, t and f events
    """
    KNOWN = {"ph", "name", "cat", "ts", "pid", "tid", "args", "tracesmith"}

    def __init__(self, document):
        self.top = document if isinstance(document, dict) else {}
        self.events = document if isinstance(document, list) else document.get("traceEvents", [])
        self.base = self.top.get("baseTimeNanoseconds", 0)
        if not is_int(self.base):
            self.base = 0
        self.rows, self.flows = Counter(), Counter()
        self.tables, self.lost_ends = Counter(), 0
        self.durations = Counter()
        self.places, self.gpu_places = set(), set()
        self.halves = []
        self.stacks = {}
        self.profiles = {}
        self.starts, self.ends = [], []
        for order, event in enumerate(self.events):
            if isinstance(event, dict) and isinstance(event.get("ph"), str):
                self.add_event(order, event)
        self.match_halves()
        for sample in self.top.get("samples", []):
            self.add_sample(sample)

    # ---- parts of events ----

    def time(self, event):
        ns = to_ns(event.get("ts"))
        return None if ns is None else ns + self.base

    @staticmethod
    def place(event):
        return to_id(event.get("pid", 0)), to_id(event.get("tid", 0))

    @staticmethod
    def args_of(event):
        args = event.get("args")
        return canonical(args) if isinstance(args, dict) and args else ""

    @staticmethod
    def id_of(event):
        value = event.get("id")
        if isinstance(value, str) or (isinstance(value, (int, float)) and not isinstance(value, bool)):
            return canonical(value)
        return canonical(event["id2"]) if isinstance(event.get("id2"), dict) else None

    def beside_of(self, event, taken=()):
        """Members without a column, in order. `id` in taken: whichever of id and id2 was used."""
        skip = self.KNOWN | set(taken)
        if "id" in taken and not isinstance(event.get("id"), (str, int, float)):
            skip = (skip - {"id"}) | {"id2"}
        kept = {key: value for key, value in event.items() if key not in skip}
        if "args" in event and not isinstance(event["args"], dict):
            kept["args"] = event["args"]
        if "sf" in kept and self.stack_of(event["sf"]):
            del kept["sf"]
        if isinstance(kept.get("stack"), list):
            del kept["stack"]
        return canonical(kept) if kept else ""

    def stack_of(self, frame):
        """Names from the innermost frame outwards."""
        frames = self.top.get("stackFrames", {})
        key = frame.text if isinstance(frame, Real) else str(frame)
        if key not in self.stacks:
            names, at = [], key
            while at in frames and len(names) < 65536:
                names.append(frames[at].get("name", ""))
                at = str(frames[at]["parent"]) if "parent" in frames[at] else None
            self.stacks[key] = tuple(names)
        return self.stacks[key]

    # ---- rows ----

    def add_row(self, table, family, start, duration, place, name, category, more, args, beside):
        self.rows[(family, start, duration, *place, name, category, more, args, beside)] += 1
        self.tables[table] += 1
        self.places.add(place)
        self.starts.append(start)
        self.ends.append(start + max(duration, 0))
        if family == "X":
            self.durations[(table, category)] += duration

    def add_event(self, order, event):
        phase = event["ph"]
        if phase == "M":
            return
        if phase in ("P", "i", "I", "n", "T", "p") or phase not in "XBEbeSFstfC":
            if self.add_profile(event):
                return
        start = self.time(event)
        if start is None:
            return
        if phase == "X":
            self.add_complete(event, start)
        elif phase in ("B", "E", "b", "e", "S", "F"):
            self.halves.append((phase in "EeF", Half(order, event, self, phase in "beSF")))
        elif phase in ("s", "t", "f"):
            self.add_flow(event, start)
        elif phase == "C":
            identity = self.id_of(event)
            self.add_row("counter", "C", start, 0, self.place(event), name_of(event), event.get("cat") or None,
                         (identity,), self.args_of(event), self.beside_of(event, self.taken(identity)))
        elif phase == "P" and ("sf" in event or "stack" in event):
            self.add_sample(event)
        else:
            self.add_mark(event, start, phase)

    @staticmethod
    def taken(identity):
        return () if identity is None else ("id",)

    def add_complete(self, event, start):
        category, args = event.get("cat") or None, event.get("args")
        args = args if isinstance(args, dict) else {}
        table, more = "slice", ("nested", None)
        duration = max(to_ns(event.get("dur")) or 0, 0)
        place, taken = self.place(event), ["dur"]
        own = event.get("tracesmith", {})
        if category in GPU_OP or (category in SYNC and is_int(args.get("stream"))):
            table = "gpu_op"
        elif category in API_CALL:
            table = "api_call"
        table = own.get("table", table)
        if table == "gpu_op":
            device = args["device"] if is_int(args.get("device")) else place[0]
            stream = args["stream"] if is_int(args.get("stream")) else place[1]
            self.gpu_places.add((device, stream, place))
        if table == "slice":
            more = ("nested", self.id_of(event))
            taken += self.taken(more[1])
        self.add_row(table, "X", start, duration, place, name_of(event), category, more, self.args_of(event),
                     self.beside_of(event, taken))

    def add_flow(self, event, start):
        identity = self.id_of(event)
        encloses = event.get("bp") == "e"
        taken = list(self.taken(identity)) + (["bp"] if encloses else [])
        self.flows[(event["ph"], start, *self.place(event), name_of(event), event.get("cat") or None, identity, encloses,
                    self.args_of(event), self.beside_of(event, taken))] += 1
        self.starts.append(start)
        self.ends.append(start)

    def add_mark(self, event, start, phase):
        identity = self.id_of(event)
        scope = {"t": "thread", "p": "process", "g": "global"}.get(event.get("s"))
        letter = None if phase in "iI" else "n" if phase in "nTp" else phase
        taken = list(self.taken(identity)) + (["s"] if scope else [])
        self.add_row("mark", "i", start, 0, self.place(event), name_of(event), event.get("cat") or None,
                     (scope, letter, identity), self.args_of(event), self.beside_of(event, taken))

    def add_sample(self, event):
        start = self.time(event)
        stack = self.stack_of(event["sf"]) if "sf" in event else ()
        if not stack and isinstance(event.get("stack"), list):
            stack = tuple(reversed(event["stack"]))
        weight, cpu = (to_id(event[key]) if key in event else None for key in ("weight", "cpu"))
        self.add_row("sample", "P", start, 0, self.place(event), name_of(event), None, (stack, weight, cpu),
                     self.args_of(event), self.beside_of(event, ("weight", "cpu", "cat")))

    # ---- V8 profiles ----

    def add_profile(self, event):
        data = event.get("args", {}).get("data") if isinstance(event.get("args"), dict) else None
        if not isinstance(data, dict):
            return False
        inner = data.get("cpuProfile")
        is_start = event["ph"] == "P" and "startTime" in data
        if not isinstance(inner, dict) and not is_start:
            return False
        parts = {**data, **(inner if isinstance(inner, dict) else {})}
        key = (event["pid"], canonical(event.get("id"))) if event["ph"] == "P" else object()
        profile = self.profiles.setdefault(key, {"time": None, "nodes": {}, "place": self.place(event)})
        if profile["time"] is None:
            profile["time"] = to_ns(parts.get("startTime", event.get("ts"))) + self.base
        nodes = profile["nodes"]
        for node in parts.get("nodes", []):
            known = nodes.setdefault(node["id"], {"name": "", "parent": None})
            known["name"] = node["callFrame"]["functionName"]
            known["parent"] = node.get("parent", known["parent"])
            for child in node.get("children", []):
                nodes.setdefault(child, {"name": "", "parent": None})["parent"] = node["id"]
        for node, delta in zip(parts.get("samples", []), parts.get("timeDeltas", [])):
            profile["time"] += to_ns(delta)
            stack, at = [], node
            while at in nodes:
                stack.append(nodes[at]["name"])
                at = nodes[at]["parent"]
            self.add_row("sample", "P", profile["time"], 0, profile["place"], "CpuProfile", None,
                         (tuple(stack), None, None), "", "")
        return True

    # ---- B, E, b, e ----

    @staticmethod
    def merged(begin, end):
        if not end:
            return begin
        both = json.loads(begin or "{}")
        both.update(json.loads(end))
        return canonical(both)

    def close_slice(self, begin, end):
        duration = end.time - begin.time if end else -1
        kind = "async" if begin.is_async else "nested"
        self.add_row("slice", "X", begin.time, duration, (begin.pid, begin.tid), begin.name, begin.category,
                     (kind, begin.id), self.merged(begin.args, end and end.args),
                     self.merged(begin.beside, end and end.beside))

    def match_halves(self):
        lanes = {}
        for is_end, half in sorted(self.halves, key=lambda pair: (pair[1].time, pair[1].order)):
            lane = (half.pid, half.tid)
            if half.is_async:
                scope = json.loads(half.beside or "{}").get("scope")
                is_global = half.id is not None and '"global"' in half.id
                lane = ("async", None if is_global else half.pid, half.category, half.id, scope)
            opened = lanes.setdefault(lane, [])
            if not is_end:
                opened.append(half)
                continue
            if not opened:
                self.lost_ends += 1
                continue
            same = [i for i, begin in enumerate(opened) if half.name is not None and begin.name == half.name]
            self.close_slice(opened.pop(same[-1] if same else -1), half)
        for opened in lanes.values():
            for half in opened:
                self.close_slice(half, None)

    def events_in_all(self):
        return sum(self.tables.values())
