# SPDX-License-Identifier: Apache-2.0
"""live_area.py DIRECTORY|FILE...: reads live areas, implemented from docs/live.md alone, to check
the C code independently.

Anything that the document does not allow is an error that names the byte. Without --check it prints
one JSON object per area; `--check EXPRESSION` evaluates Python on `areas` (a list of Area) and
fails unless the result is true.
"""
import argparse
import json
import os
import struct
import sys

ABSENT = -(1 << 63)
SPAN, BEGIN, END, INSTANT, COUNTER, STEP = range(1, 7)
PAD, THREAD, WINDOW, THREAD_NAME, DEVICE = range(16, 21)
TICKS, START, TRACK, SIDE, SUBJECT = 1, 2, 4, 8, 16
KINDS = {SPAN: "span", BEGIN: "begin", END: "end", INSTANT: "instant", COUNTER: "counter", STEP: "step"}
INT, DOUBLE, STRING, BOOL = range(1, 5)
DIRECTORY, DICTIONARY, POOL = 0x1000, 0x101000, 0x201000

# Name, offset, struct format: section 2.1.
CONTROL = [
    ("magic", 0, "8s"), ("version", 8, "I"), ("control_bytes", 12, "I"), ("boot_id", 16, "16s"), ("pid_namespace", 32, "Q"),
    ("pid", 40, "I"), ("uid", 44, "I"), ("start_time", 48, "Q"), ("area_id", 56, "Q"), ("image", 64, "Q"), ("session", 72, "Q"),
    ("clock", 80, "I"), ("parent", 84, "I"), ("counter_hz", 88, "Q"), ("created", 96, "Q"), ("latest", 120, "Q"),
    ("ring_limit", 144, "I"), ("ring_bytes", 148, "I"), ("directory", 152, "Q"), ("dictionary", 160, "Q"), ("pool", 168, "Q"),
    ("budget", 176, "Q"), ("rings", 256, "I"), ("target_state", 260, "I"), ("dictionary_used", 264, "Q"),
    ("allocated", 272, "Q"), ("lost_nested", 280, "Q"), ("lost_no_ring", 288, "Q"), ("strings_cut", 296, "Q"),
    ("flush_request", 304, "Q"), ("step", 312, "q"), ("steps", 320, "Q"), ("window_steps", 328, "Q"), ("window_seen", 336, "Q"),
    ("lost_first", 344, "Q"), ("enabled", 512, "I"), ("mode", 516, "I"), ("redact", 520, "I"), ("window_serial", 524, "I"),
    ("step_open", 528, "q"), ("step_close", 536, "q"), ("max_steps", 544, "q"), ("name", 1024, "64s"), ("output", 1088, "1024s"),
    ("command", 2112, "1536s"), ("message", 3648, "256s"),
]


# A record's first word; a complete record with one number.
HEAD, QUICK = struct.Struct("<HBBI"), struct.Struct("<QQq")


class Damaged(Exception):
    pass


class Event:
    """One event, with the thread it belongs to and the values of its arguments in a dict."""

    name = category = ""
    duration = start = track = number = subject = None
    ticks = False

    def __init__(self, kind, counter, tid, serial, is_side):
        self.kind, self.counter, self.tid, self.serial, self.is_side = KINDS[kind], counter, tid, serial, is_side
        self.args = {}

    def as_dict(self):
        return {key: value for key, value in vars(self).items() if value not in (None, "", {}, False)}


class Words:
    """The words of one record, read one after another."""

    def __init__(self, data, where):
        self.data, self.at, self.where = data, 0, where

    def take(self, code):
        size = struct.calcsize(code)
        if self.at + size > len(self.data):
            raise Damaged(f"{self.where}: record ends early")
        self.at += size
        return struct.unpack_from("<" + code, self.data, self.at - size)[0]

    def string(self):
        length = self.take("I")
        if length > 8192 or self.at + length > len(self.data):
            raise Damaged(f"{self.where}: string of {length} bytes")
        text = self.data[self.at:self.at + length]
        padded = (self.at + length + 7) // 8 * 8
        if any(self.data[self.at + length:padded]):
            raise Damaged(f"{self.where}: padding of a string is not zero")
        self.at = padded
        return text.decode("utf-8", "surrogateescape")

    def value(self, kind):
        if kind == STRING:
            return self.string()
        if kind == DOUBLE:
            return self.take("d")
        if kind not in (INT, BOOL):
            raise Damaged(f"{self.where}: argument of type {kind}")
        value = self.take("q")
        if kind == BOOL and value not in (0, 1):
            raise Damaged(f"{self.where}: boolean {value}")
        return bool(value) if kind == BOOL else value


class Area:
    def __init__(self, path):
        self.path = path
        with open(path, "rb") as file:
            self.data = file.read()
        self.file_bytes = os.stat(path).st_blocks * 512
        if len(self.data) < 4096:
            raise Damaged(f"{path}: {len(self.data)} bytes")
        for name, offset, code in CONTROL:
            value = struct.unpack_from("<" + code, self.data, offset)[0]
            if name in ("name", "output", "message"):
                value = value.split(b"\0")[0].decode("utf-8", "replace")
            setattr(self, name, value)
        self.command = [part.decode("utf-8", "replace") for part in self.command.rstrip(b"\0").split(b"\0")]
        self.check_control()
        self.base = os.path.basename(path)
        self.sites = self.read_dictionary()
        # Records with one number, the most common in tests, for speed.
        self.numeric = {(site[0], index): (site[1], site[2], site[3][0][0]) for index, site in enumerate(self.sites, 1)
                        if site[0] in (BEGIN, INSTANT, COUNTER) and [code for _, code in site[3]] == [INT]}
        self.windows, self.thread_names, self.threads, self.rings_read, self.devices = [], [], [], [], []
        self.events = []
        self.dropped = self.overwritten = 0
        for index in range(self.rings):
            self.read_ring(index)
        self.stored = len(self.events)

    def fail(self, what):
        raise Damaged(f"{os.path.basename(self.path)}: {what}")

    def check_control(self):
        constants = {"magic": b"TSLIVE\r\n", "version": 1, "control_bytes": 4096, "ring_bytes": 256, "ring_limit": 4096,
                     "directory": DIRECTORY, "dictionary": DICTIONARY, "pool": POOL}
        for name, expected in constants.items():
            if getattr(self, name) != expected:
                self.fail(f"{name} is {getattr(self, name)}")
        name = f"{self.pid}-{self.start_time}-{self.area_id:016x}"
        if os.path.basename(self.path) != name or self.area_id == 0:
            self.fail(f"its control block says {name}")
        if self.target_state not in (1, 2, 3) or self.clock not in (1, 2) or self.rings > 4096 or self.mode > 1:
            self.fail(f"state {self.target_state}, clock {self.clock}, {self.rings} rings, mode {self.mode}")
        if self.allocated > self.budget:
            self.fail(f"{self.allocated} bytes of a budget of {self.budget}")

    def read_dictionary(self):
        sites, at, end = [], DICTIONARY, DICTIONARY + self.dictionary_used
        if end > POOL:
            self.fail("dictionary is too large")
        while at < end:
            size, kind, fields, name, category, reserved, line = struct.unpack_from("<IBBHHHI", self.data, at)
            if size % 8 or not 24 <= size <= 16384 or at + size > end or fields > 32 or reserved or kind not in KINDS:
                self.fail(f"dictionary entry at byte {at} is wrong")
            keys = [struct.unpack_from("<HH", self.data, at + 16 + 4 * i) for i in range(fields)]
            text = at + 16 + 4 * fields
            parts = []
            for length in [name, category] + [key for key, _ in keys]:
                parts.append(self.data[text:text + length].decode("utf-8", "surrogateescape"))
                text += length
            if text > at + size or any(self.data[text:at + size]):
                self.fail(f"dictionary entry at byte {at} is wrong at its end")
            sites.append((kind, parts[0], parts[1], list(zip(parts[2:], [code for _, code in keys])), line))
            at += size
        return sites

    def read_ring(self, index):
        at = DIRECTORY + 256 * index
        head, dropped, first, _, turn, state, tid, offset, size = struct.unpack_from("<QQQQQIIQQ", self.data, at)
        slot = at + (192 if turn & 1 else 64)
        oldest, oldest_events, slot_tid, slot_serial = struct.unpack_from("<QQII", self.data, slot)
        consumed, consumed_events = struct.unpack_from("<QQ", self.data, at + 128)
        self.rings_read.append({"head": head, "dropped": dropped, "state": state, "tid": tid, "bytes": size, "oldest": oldest})
        if size & (size - 1) or not 4096 <= size <= 64 << 20 or offset < POOL or offset + size > len(self.data):
            self.fail(f"ring {index}: {size} bytes at {offset}")
        if (state > 2 or (dropped and not first) or max(oldest, consumed) > head or head % 8 or
                head - max(oldest, consumed) > size):
            self.fail(f"ring {index}: state {state}, {dropped} dropped since {first}, [{oldest}, {head})")
        self.dropped += dropped
        begin, events = max((oldest, oldest_events), (consumed, consumed_events))
        self.overwritten += events
        if begin == consumed and consumed > oldest:
            slot_tid, slot_serial = struct.unpack_from("<II", self.data, at + 144)
        owner = (slot_tid, slot_serial, False) if slot_tid else None
        ring, before = self.data[offset:offset + size], len(self.events)
        while begin < head:
            begin, owner = self.read_record(index, ring, begin, head, owner)
        self.rings_read[-1] |= {"owner": owner, "events": events + len(self.events) - before}

    def read_record(self, index, ring, position, head, owner):
        start = position % len(ring)
        words, kind, flags, site = HEAD.unpack_from(ring, start)
        size = words * 8
        if words == 3 and owner and not flags and (kind, site) in self.numeric and position + size <= head:
            _, counter, value = QUICK.unpack_from(ring, start)
            if self.created - (1 << 40) < counter < 1 << 63:
                event = Event(kind, counter, *owner)
                event.name, event.category, key = self.numeric[kind, site]
                event.args[key] = value
                self.events.append(event)
                return position + size, owner
        where = f"{self.base}: ring {index}, position {position}"
        if not size or size > 16384 or start + size > len(ring) or position + size > head:
            raise Damaged(f"{where}: record of {words} words")
        if kind == PAD:
            return position + size, owner
        record = Words(ring[start + 8:start + size], where)
        counter = record.take("Q")
        if not self.created - (1 << 40) < counter < 1 << 63:
            raise Damaged(f"{where}: counter {counter}")
        if kind == THREAD:
            tid, serial = record.take("I"), record.take("I")
            owner = (tid, serial, bool(flags & SIDE))
            self.threads.append({"tid": tid, "serial": serial, "side": bool(flags & SIDE), "ring": index,
                                 "previous": record.take("I"), "position": (record.take("I"), record.take("Q"))[1],
                                 "dropped": record.take("Q"), "name": record.take("16s").split(b"\0")[0].decode()})
            if not tid or not serial:
                raise Damaged(f"{where}: thread {tid}, serial {serial}")
        elif kind == WINDOW:
            self.windows.append({"action": record.take("I"), "cause": record.take("I"), "step": record.take("q")})
        elif kind == THREAD_NAME:
            self.thread_names.append(record.string())
        elif kind == DEVICE:
            self.devices.append((record.take("Q"), record.take("q")) + tuple(record.string() for _ in range(4)))
            if self.devices[-1][0] >> 24:
                raise Damaged(f"{where}: device {self.devices[-1][0]}")
        elif kind in KINDS:
            if owner is None:
                raise Damaged(f"{where}: an event of no thread")
            self.events.append(self.read_event(record, Event(kind, counter, *owner), kind, flags, site))
        else:
            raise Damaged(f"{where}: kind {kind}")
        if record.at != len(record.data):
            raise Damaged(f"{where}: {len(record.data) - record.at} bytes too many")
        return position + size, owner

    def read_event(self, record, event, kind, flags, site):
        if kind == SPAN:
            event.duration, event.ticks = record.take("Q"), bool(flags & TICKS)
            if flags & START:
                event.start = record.take("q")
        if kind == COUNTER and flags & SUBJECT:
            word, start_time = record.take("Q"), record.take("Q")
            event.subject = (word >> 56, word >> 32 & 0xffffff, word & 0xffffffff, start_time)
            if not 1 <= event.subject[0] <= 4:
                raise Damaged(f"{record.where}: subject of kind {event.subject[0]}")
        if kind == STEP:
            event.number = record.take("q")
            return event
        if flags & TRACK:
            event.track = record.take("q")
        if site == 0:
            event.name, event.category = record.string(), record.string()
            count = record.take("Q")
            if count > 32:
                raise Damaged(f"{record.where}: {count} arguments")
            for _ in range(count):
                code = record.take("Q")
                key = record.string()
                event.args[key] = record.value(code)
            return event
        if site > len(self.sites) or self.sites[site - 1][0] != kind:
            raise Damaged(f"{record.where}: site {site} of {len(self.sites)}")
        _, event.name, event.category, fields, _ = self.sites[site - 1]
        for key, code in fields:
            event.args[key] = record.value(code)
        return event

    @property
    def lost(self):
        return self.dropped + self.lost_nested + self.lost_no_ring + self.overwritten

    @property
    def thread_ids(self):
        return {event.serial for event in self.events}

    @property
    def fits(self):
        """It does not use more memory than it says. (Between two instructions of the target it
        may.)"""
        return self.file_bytes <= self.allocated

    @property
    def total(self):
        return self.stored + self.lost

    def numbers(self, name="e", key="n"):
        """Values of one argument of the events of this name, by thread serial, in their order."""
        found = {}
        for event in self.events:
            if event.name == name:
                found.setdefault(event.serial, []).append(event.args[key])
        return found

    def summary(self):
        keys = ("pid", "session", "mode", "enabled", "target_state", "rings", "allocated", "budget", "stored", "dropped",
                "overwritten", "lost_nested", "lost_no_ring", "strings_cut", "steps", "windows", "thread_names", "message")
        return {key: getattr(self, key) for key in keys} | {"threads": len({thread["serial"] for thread in self.threads})}


TEXT = "The quick brown fox jumps over the lazy dog, and over another one."


def check_copy(path):
    """A copy that agent_stepper made between two instructions: every event whose emit had returned
    is there, and none is torn."""
    _, returned, begun = (int(part) for part in os.path.basename(path).split("-"))
    area, numbers = read_all([path])[0], []
    for event in area.events:
        number = event.number if event.kind == "step" else event.args["n"]
        if event.name == "t" and (event.args["m"] != number or event.args["s"] != TEXT[number % 7 * 9:]):
            area.fail(f"event {number} is torn")
        numbers.append(number)
    numbers.sort()
    if not returned <= area.total <= begun:
        area.fail(f"{area.total} events; {returned} had returned, {begun} had begun")
    if not area.dropped and numbers != list(range(area.overwritten, area.total)):
        area.fail(f"{area.overwritten} were overwritten, then come {numbers}")
    if len(set(numbers)) != len(numbers):
        area.fail("an event is there twice")


def check_counts(areas, path):
    """A file of lines "PID COUNT": how many events each process says it emitted. Several lines of
    one process add up."""
    said, found = {}, {}
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            pid, count = line.split()
            said[int(pid)] = said.get(int(pid), 0) + int(count)
    for area in areas:
        found[area.pid] = found.get(area.pid, 0) + area.total
    for pid in said.keys() | found.keys():
        if said.get(pid, 0) != found.get(pid, 0):
            raise Damaged(f"process {pid} emitted {said.get(pid)}, there are {found.get(pid)}")
    for area in areas:
        for serial, numbers in area.numbers().items():
            if numbers != sorted(set(numbers)):
                area.fail(f"thread {serial}: events are out of order or there twice")
        if not area.fits:
            area.fail(f"{area.file_bytes} bytes of memory, it says {area.allocated}")


def take(area, mode):
    """Acts as the recorder: marks everything as consumed; and sets the mode."""
    with open(area.path, "r+b") as file:
        for index, ring in enumerate(area.rings_read):
            tid, serial, _ = ring["owner"]
            check = ~(ring["head"] + ring["events"] + (serial << 32 | tid)) & (1 << 64) - 1
            file.seek(DIRECTORY + 256 * index + 128)
            file.write(struct.pack("<QQII16sQ", ring["head"], ring["events"], tid, serial, b"taken", check))
        file.seek(516)
        file.write(struct.pack("<I", mode))
    return True


def read_all(paths):
    files = []
    for path in paths:
        if os.path.isdir(path):
            files += [os.path.join(path, name) for name in sorted(os.listdir(path)) if not name.endswith(".new")]
        else:
            files.append(path)
    return [Area(path) for path in files]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--check")
    parser.add_argument("--copies", action="store_true", help="paths are folders of copies that agent_stepper made")
    parser.add_argument("--counts", help="file of lines PID COUNT: what was emitted")
    parser.add_argument("--events", action="store_true")
    arguments = parser.parse_args()
    try:
        if arguments.copies:
            copies = [os.path.join(path, name) for path in arguments.paths for name in os.listdir(path)]
            for copy in copies:
                check_copy(copy)
            print(len(copies))
            return 0
        areas = read_all(arguments.paths)
        if arguments.counts:
            check_counts(areas, arguments.counts)
    except Damaged as error:
        print(f"live_area: {copy + ': ' if arguments.copies else ''}{error}", file=sys.stderr)
        return 1
    if arguments.check:
        by_pid = {area.pid: area for area in areas}
        total = sum(area.total for area in areas)
        one = areas[0] if len(areas) == 1 else None
        scope = globals() | {"areas": areas, "by_pid": by_pid, "total": total, "one": one}
        result = eval(arguments.check, scope)  # pylint: disable=eval-used
        if not result:
            print(f"live_area: {arguments.check}: {result!r}", file=sys.stderr)
            for area in areas:
                print(json.dumps(area.summary()), file=sys.stderr)
            return 1
    for area in [] if arguments.check or arguments.counts else areas:
        print(json.dumps(area.summary()))
        for event in area.events if arguments.events else []:
            print("  " + json.dumps(event.as_dict()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
