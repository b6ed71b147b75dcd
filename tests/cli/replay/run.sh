#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# On a device: verdicts, selections, dumps, JSON, and a replay as a trace.
. "$TS_SOURCE/tests/cli/lib.sh"

make_stream="$TS_BUILD/tests/targets/make_stream"
$make_stream plain.sbt plain
"$TRACESMITH" replay plain.sbt >first.txt 2>&1 || {
	skip_without_device first.txt
	cat first.txt
	exit 1
}
for kind in killed wrong two native unsupported contexts; do $make_stream $kind.sbt $kind; done

# Removes the device's name and times, and the times of kernels.
r() { t replay "$@" | sed -E -e 's/ on opencl:.*/ on a device/' -e 's/(last end: ).*/\1N/' -e '/^  kernel /,/^exit/{/^exit/!d}'; }
r plain.sbt
r plain.sbt --check each --repeat 3
r plain.sbt --check none
r killed.sbt
r wrong.sbt
r two.sbt --window 2
r plain.sbt --kernel 'mix*' --check each
r plain.sbt --stream 1
r plain.sbt --from 5 --to 6
# Memory of another context is out of reach of a kernel, but can be shown after it.
r contexts.sbt --check each --repeat 2
r contexts.sbt --at 3 --dump 22 --as u32 --limit 4 -q
# Kernels that do not build, or cannot run, and what depends on them.
on_device() { sed -E -e "s/(does not build on|on) '[^']*'(: .*)?/\1 DEVICE/" -e '/^1 error generated/d'; }
r unsupported.sbt --skip-unsupported --check each --repeat 2 | on_device
{ "$TRACESMITH" replay unsupported.sbt 2>&1 || true; } | grep -o "broken.*does not build\|('--skip[^)]*without it)"
"$TRACESMITH" replay unsupported.sbt --skip-unsupported --json >unsupported.json 2>/dev/null
r native.sbt --skip-unsupported
# No check is left.
r unsupported.sbt --skip-unsupported --repeat 2 --from 3 --to 6 | on_device
r unsupported.sbt --skip-unsupported --kernel broken | on_device
# On a narrow terminal, what it included is wrapped.
PYTHONPATH=$TS_SOURCE/tests/lib python3 - "$TRACESMITH" replay plain.sbt --from 5 --to 6 <<'PY'
import on_terminal, sys
lines = on_terminal.run(40, sys.argv[1:]).splitlines()
at = next(i for i, line in enumerate(lines) if line.startswith("  included "))
print(lines[at], lines[at + 1], sep="\n")
PY
r plain.sbt --at 3 --dump 10 --as u32 --limit 12 -q
r plain.sbt --at 3 --dump 10 --as f64 --limit 3 -q
r plain.sbt --at 3 --dump 10 --limit 40 -q
# With a title.
"$TRACESMITH" replay plain.sbt --at 3 --dump 10 --limit 16 2>&1 | grep -v " on \|first start"

cat >new.cl <<'CL'
kernel void step_(global uint *v) { size_t i = get_global_id(0); v[i] = v[i] * 3 + (i == 9 ? 2 : 1); }
kernel void mix_(global uint *to, global const uint *from, uint by) { size_t i = get_global_id(0); to[i] ^= from[i] + by; }
CL
r plain.sbt --replace-kernel step_=new.cl --check each --as u32
r plain.sbt --replace-kernel step_=new.cl --check each --as u32 --kernel step_ --to 4 --tolerance ulp=1
echo 'kernel void step_(global uint *v) { this is no C }' >broken.cl
"$TRACESMITH" replay plain.sbt --replace-kernel step_=broken.cl >/dev/null 2>broken.txt && fail "it built"
grep -q "broken.cl" broken.txt || { cat broken.txt; fail "the file is not named"; }

"$TRACESMITH" replay plain.sbt --check each --json --hashes >whole.json
"$TRACESMITH" replay wrong.sbt --check each --json >wrong.json && fail "it is wrong"
"$TRACESMITH" replay plain.sbt --repeat 2 -o again.sbt >/dev/null
# Times by kernel; those of a recording with times: of the replay itself.
"$TRACESMITH" replay plain.sbt --repeat 3 | sed -n '/^  kernel /,$p' | awk '{ print $1, $2, NF }' | sort
"$TRACESMITH" replay plain.sbt --repeat 3 --replace-kernel step_=new.cl --check none --json >times.json
"$TRACESMITH" verify again.sbt
"$TRACESMITH" view again.sbt --table gpu_op --json >again.json
"$TRACESMITH" view again.sbt --table command --json >checks.json
"$TRACESMITH" state again.sbt >/dev/null
"$TRACESMITH" replay again.sbt --target emulator >/dev/null
for ((from = 2; from <= 6; from++)); do
	for to in $((from + 1)) 7; do
		"$TRACESMITH" replay plain.sbt --from $from --to $to --check each --json --hashes >cut-$from-$to.json
	done
done
python3 - <<'PY'
import glob, json
whole = json.load(open("whole.json"))
assert whole["verdict"] == "no difference in 1 run, equals recording" and whole["equal"] is True, whole
assert whole["commands"] == 5 and whole["runs"] == 1 and whole["checks"] == 4, whole
key = lambda h: (h["command"], h["buffer"], h["offset"], h["bytes"])
hashes = {key(h): h["hash"] for h in whole["hashes"] if h["command"]}
cuts = glob.glob("cut-*.json")
assert len(cuts) == 9, cuts
for name in cuts:
    cut = json.load(open(name))
    assert cut["equal"], cut
    for h in cut["hashes"]:
        if h["command"]:
            assert hashes[key(h)] == h["hash"], (name, h)
part = json.load(open("unsupported.json"))
assert part["skipped"] == 3 and part["dependent"] == 1 and part["checks_not_compared"] == 3, part
assert [c["command"] for c in part["skipped_commands"]] == [3, 9, 10] and part["equal"], part
wrong = json.load(open("wrong.json"))
assert wrong["verdict"] == "differs from recording" and wrong["equal"] is False, wrong
assert wrong["command"] == 6 and wrong["kernel"] is None and wrong["buffer"] == "memory 11", wrong
assert wrong["first_byte"] is None and wrong["bytes_differing"] is None, wrong
times = json.load(open("times.json"))["kernels"]
assert [(k["kernel"], k["launches"], k["replaced"]) for k in times] == [("step_", 2, True), ("mix_", 1, False)], times
assert all(k["recorded_ns"] is None and k["recorded_launches"] == 0 for k in times), times
assert all(0 <= k["fastest_ns"] <= k["median_ns"] and k["before_ns"] >= 0 for k in times), times
assert whole["kernels"][0]["before_ns"] is None and len(whole["kernels"]) == 2, whole
checks = [json.loads(line) for line in open("checks.json")]
assert {c["sequence"] for c in checks} >= {3, 6} and all(c["kind"] == "check" for c in checks), checks
rows = [json.loads(line) for line in open("again.json")] if open("again.json").read(1) == "{" else json.load(open("again.json"))
assert [row["name"] for row in rows if row.get("kind") == "kernel"] == ["step_", "mix_", "step_"], rows
PY
