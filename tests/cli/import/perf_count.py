# SPDX-License-Identifier: Apache-2.0
"""Counts the samples of perf script's output with regular expressions, and compares them with a
trace of the same text.

perf_count.py TEXT INFO.json FOLDED: number of samples, of threads, and how often each stack of
functions was seen.
"""
import collections
import json
import re
import sys

HEAD = re.compile(
    r"^\s*(?P<comm>.+?)\s+(?:(?P<pid>-?\d+)/)?(?P<tid>-?\d+)\s+(?:\[\d+\]\s+)?(?:[A-Za-z]+\s+)?\d+\.(?:\d{6}|\d{9}):\s+(?P<rest>.*)$")
EVENT = re.compile(r"^(?:\d+\s+)?(?P<event>\S+):(?:\s+|$)(?P<rest>.*)$")
FRAME = re.compile(r"^\s*[0-9a-f]+ (?P<symbol>.*?)(?:\+0x[0-9a-f]+)?(?: \((?P<dso>.*)\))?$")


def symbol_of(text):
    name = FRAME.match(text).group("symbol")
    return name[4:].split(":")[0] if name.startswith("py::") and ":" in name[4:] else name


def read(path):
    """(tid, event, [functions, outermost first]) of each sample, and the number of other records."""
    samples, stack, records = [], None, 0
    for line in open(path, encoding="utf-8", errors="replace"):
        line = line.rstrip("\n")
        if not line or line.startswith("#"):
            continue
        if line.startswith("\t"):
            stack.insert(0, symbol_of(line.strip()))
            continue
        head = HEAD.match(line)
        if not head:
            continue  # the source line of a frame
        if head["rest"].startswith("PERF_RECORD_"):
            records += 1
            continue
        stack = []
        event = EVENT.match(head["rest"])
        rest = event["rest"].strip()
        # An address may precede the frame: the last "hexadecimal name (file)" counts.
        places = re.findall(r"(?:^|\s)([0-9a-f]+ \S.*? \([^()]*(?:\([^()]*\)[^()]*)*\))(?=\s|$)", rest)
        if places:
            stack.append(symbol_of(re.sub(r"^[0-9a-f]+\s+(?=[0-9a-f]{5,} )", "", places[-1])))
        samples.append((head["tid"], event["event"], stack))
    return samples, records


def main():
    samples, records = read(sys.argv[1])
    info = json.load(open(sys.argv[2]))
    assert samples, "there are no samples in the text"
    found = info["tables"]["sample"]
    assert found == len(samples), f"samples: the text has {len(samples)}, the trace {found}"
    threads = len({tid for tid, _, _ in samples})
    # Records of threads that were never sampled.
    assert info["threads"] == threads or (records and info["threads"] > threads), f"threads: {threads}, {info['threads']}"
    expected = collections.Counter()
    # If some events are time-based, the others have no weight.
    clocks = {event for _, event, _ in samples if event.startswith("cpu-clock")}
    for _, event, stack in samples:
        if clocks and event not in clocks:
            continue
        # Frames without a name show their address, which is not compared.
        if stack:
            expected[tuple("?" if s == "[unknown]" else s for s in stack)] += 1
    seen = collections.Counter()
    for line in open(sys.argv[3], encoding="utf-8"):
        path, count = line.rstrip("\n").rsplit(" ", 1)
        words = path.split(";")[2:]
        # "function (file)"; an address is not a name.
        words = [re.sub(r" \([^()]*(?:\([^()]*\)[^()]*)*\)$", "", w) for w in words]
        seen[tuple("?" if re.search(r"(^|\+)0x[0-9a-f]+$", w) else w for w in words)] += int(count)
    missing, more = expected - seen, seen - expected
    assert not missing and not more, f"stacks differ: text {missing.most_common(3)}, trace {more.most_common(3)}"


main()
