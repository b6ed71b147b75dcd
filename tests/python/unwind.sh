#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Native stacks taken inside CPython, and inside PyTorch if installed (TORCH_PYTHON: a Python that
# has it), compared frame by frame with _Unwind_Backtrace().
set -euo pipefail
. "$TS_SOURCE/tests/lib/python.sh"
python=${python:?}

library=$TS_BUILD/tests/lib/libunwind_compare.so
is_sanitized && { echo "skip: libraries of a sanitizer build cannot be preloaded into Python"; exit 77; }

compare() { # least, interpreter, arguments...
	local least=$1 compared differing marked deepest mean ours theirs
	shift
	rm -f compared
	UNWIND_COMPARE=$PWD/compared LD_PRELOAD=$library "$@" >/dev/null || fail "'$*' fails"
	# The first process is the longest; its children have few.
	read -r compared differing marked deepest mean ours theirs < <(sort -rn compared)
	echo "$2: $compared stacks, $differing differ, $marked incomplete, $mean frames each, at most $deepest; ns: $ours, theirs $theirs"
	[ "$differing" = 0 ] || fail "stacks differ"
	# Some libraries have code without unwind tables, where both end.
	[ $((marked * 500)) -lt "$compared" ] || fail "stacks are incomplete"
	[ "$compared" -ge "$least" ] || fail "only $compared stacks"
}

cat >work.py <<'PY'
import functools, json, re, threading


class Ordered:
    def __init__(self, value):
        self.value = value

    def __lt__(self, other):
        return self.value + len([0] * 600) < other.value + len([1] * 600)

    def __repr__(self):
        return "Ordered(%r)" % [self.value] * 3


def generator(count):
    for i in range(count):
        yield [Ordered(j) for j in range(i % 100)]


def recurse(depth):
    return len([depth] * 700) + (recurse(depth - 1) if depth else 0)


def work():
    for i in range(20):
        things = [Ordered(j * 7919 % 1000) for j in range(300)]
        things.sort()
        sorted(things, key=functools.cmp_to_key(lambda a, b: b.value - a.value))
        json.loads(json.dumps([{"a": [j, str(j) * 200]} for j in range(200)]))
        re.sub(r"(\w+)", lambda match: match.group(0) * 50, "a b c d e f g " * 20)
        for made in generator(50):
            repr(made)
        recurse(80)


threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads:
    thread.start()
work()
for thread in threads:
    thread.join()
PY
compare 3000 "$python" work.py

torch_python=${TORCH_PYTHON:-$python}
if ! "$torch_python" -c 'import torch' 2>/dev/null; then
	echo "torch: left out: $torch_python has none"
	exit 0
fi
cat >train.py <<'PY'
import torch

torch.manual_seed(0)
torch.set_num_threads(2)
model = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True), 2)
optimizer = torch.optim.AdamW(model.parameters())
for i in range(20):
    optimizer.zero_grad()
    model(torch.rand(4, 16, 64)).square().mean().backward()
    optimizer.step()
PY
compare 5000 "$torch_python" train.py
