#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The end of a recording says what of it cannot be replayed and why, `info` says the same, and the
# list shows the arguments of a launch by name. What it says is true: a replay agrees.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

program=$targets/opencl_features
hold=$targets/opencl_hold

# Records with notes, in `notes`.
record_notes() { # record's option..., --, program...
	rm -f t.sbt t.sbt.*
	timeout 600 "$TRACESMITH" record -o t.sbt --replayable "$@" >printed 2>notes </dev/null || fail "record $*: $(cat notes printed)"
}
noted() { grep -qF -- "$1" notes || fail "record does not say '$1': $(cat notes)"; }
not_noted() { ! grep -qF -- "$1" notes || fail "record says '$1': $(cat notes)"; }
# The facts of `info`, as Python sees them.
fact() { "$TRACESMITH" info --json t.sbt | python3 -c "import json, sys; r = json.load(sys.stdin)['replay']; print($1)"; }

# All is well: one line, and it is true.
record_notes -- "$pipeline" --steps 1 --work 2 --size 1024
noted "tracesmith replay t.sbt"
not_noted "cannot be replayed"
not_noted "captured as"
[ "$(grep -c '^  ' notes)" -eq 1 ] || fail "more than one line: $(cat notes)"
[ "$(fact '[w["complete"] for w in r["windows"]]')" = "[True]" ] || fail "not complete: $(fact r)"
replays "all is well" t.sbt
# Each launch has a recorded time, to compare with.
[ "$(report '[(k["kernel"], k["launches"] == k["recorded_launches"] > 0, k["recorded_ns"] > 0) for k in r["kernels"] if k["kernel"] == "blend"]')" = "[('blend', True, True)]" ] || fail "times by kernel: $(report 'r["kernels"]')"
"$TRACESMITH" replay t.sbt --list --json >list.json
python3 - <<'PY'
import json
rows = [json.loads(line) for line in open("list.json")]
launches = {row["kernel"]: row for row in rows if row["kind"] == "launch"}
args = {arg["name"]: arg for arg in launches["blend"]["args"]}
assert list(args) == ["scratch", "history", "output", "work"], args
assert args["work"]["type"] == "uint" and args["work"]["value"] == 2, args
assert args["output"]["access"] == "both" and args["scratch"]["access"] == "read", args
created = [row["memory"] for row in rows if row["kind"] == "alloc"]
assert args["output"]["memory"] in created and rows[-1]["pid"] == rows[0]["pid"], rows
assert all(row["call"] == "clCreateBuffer" for row in rows if row["kind"] == "alloc"), rows
PY

# One number for a command: `view --commands` joins device times to the same numbers.
"$TRACESMITH" view t.sbt --commands --json >commands.json
python3 - <<'PY'
import json
load = lambda name: [json.loads(line) for line in open(name)]
listed = {row["correlation"]: row for row in load("list.json") if "correlation" in row}
rows = [row for row in load("commands.json") if row["kind"] in ("launch", "copy", "fill")]
assert len(rows) > 10, rows
for row in rows:
    one = listed[row["correlation"]]
    assert row["sequence"] == one["sequence"] and row["stream"] == one["stream"], (row, one)
    assert row["kind"] != "launch" or row["name"] == one["kernel"], (row, one)
assert all("sequence" not in row for row in load("commands.json") if row.get("correlation") not in listed)
PY

# Commands that cannot be replayed, each with its reason, and programs that are bound to the device.
record_notes -- "$program" copies native binaries
noted "1 command cannot be replayed, nor can what needs its result"
noted "1 clEnqueueNativeKernel: it runs a host function (command "
noted "captured as a binary only, and can be replayed on this device and driver only: kernels f, g"
at=$(fact 'r["windows"][0]["unreplayable"][0]["first_command"]')
expect 3 replay t.sbt
says "command $at, clEnqueueNativeKernel"
"$TRACESMITH" replay t.sbt --list -q | grep -q "^ *$at .*clEnqueueNativeKernel.*: cannot be replayed" || fail "the list does not mark command $at"

# Images and samplers are arguments, too.
if "$targets/opencl_images" samplers >alone 2>&1; then
	record_notes -- "$targets/opencl_images" samplers
	"$TRACESMITH" replay t.sbt --list -q >list
	grep -q 'clCreateImage(.*image=2d ' list || fail "no image in the list: $(head -c 2000 list)"
	# Regions are in pixels, as in the call.
	grep -q 'clEnqueueWriteImage(.*, region=\[21, 13, 5\], to_origin=\[0, 0, 0\], data=' list || fail "no region in pixels: $(grep Image list)"
	grep -q 'clEnqueueNDRangeKernel(.*sampler \[' list || fail "no sampler in the list: $(head -c 2000 list)"
else
	echo "left out: images (this device has none)"
fi

# Of several processes the proposed replay selects one, and warnings name theirs.
record_notes -- bash -c '"$1" copies; "$1" native binaries' both "$program"
noted "tracesmith replay t.sbt --process $(fact 'r["windows"][0]["pid"]')"
noted "warning: window 1 of process $(fact 'r["windows"][1]["pid"]') ("

# Nothing was captured: why.
record_notes -- true
noted "no process was seen to use CUDA or to create an OpenCL context"
not_noted "tracesmith replay t.sbt"
record_notes --window steps:1000-1001 -- "$hold" --steps 3
noted "the window never opened"
noted "OpenCL was used, but no window was open"
not_noted "tracesmith replay t.sbt"
"$TRACESMITH" info t.sbt | grep -q "OpenCL was used, but no window was open" || fail "info says nothing"
# A window that could not be opened, and one that could.
record_notes --window steps:3-5 --snapshot-limit 1M -- "$hold" --steps 8 --bytes 4000000
noted "window 1 cannot be replayed: "
not_noted "tracesmith replay t.sbt"
[ "$(fact '[w["replayable"] for w in r["windows"]]')" = "[False]" ] || fail "$(fact r)"
echo "$checks replays"
