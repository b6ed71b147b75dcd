#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Images and samplers (tests/targets/opencl_images.c): the program prints the same when it is
# recorded, and its replay equals the recording: all together, in windows that begin with images,
# parts of it, and each alone (TS_LONG=1). Content that was changed is found.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

program=$targets/opencl_images
[ -x "$program" ] || fail "no '$program'; build it first"
code=0
"$program" >alone 2>alone.log || code=$?
[ $code -ne 77 ] || skip "no OpenCL device that has images"
[ $code -eq 0 ] || fail "opencl_images: exit code $code: $(cat alone.log)"

for mode in --replayable --replayable=checked; do
	record all.sbt $mode -- "$program"
	diff alone printed || fail "recorded with $mode its result differs"
	[ "$(count_of all.sbt loss)" -eq 0 ] || fail "$mode: lost: $(rows_of all.sbt loss)"
	replays "$mode" all.sbt --check each --repeat 2
done

# A window in the middle: images of before are part of its snapshot.
"$program" --steps >alone
record window.sbt --replayable --window steps:3-6 -- "$program" --steps
diff alone printed || fail "recorded in a window, its result differs"
replays "a window" window.sbt --check each --repeat 2
# Parts get the images that they read.
agrees "one kernel" all.sbt --kernel flip --check each --repeat 2
agrees "another kernel" all.sbt --kernel sample --check each

# What is shown: formats, samplers, pictures.
"$TRACESMITH" replay all.sbt --list >list 2>&1
for text in "image=3d 21x13x5 rgba unsigned_int8" "how=sampler \[normalized, repeat, linear\]"; do
	grep -q "$text" list || fail "--list does not show '$text'"
done
"$TS_SOURCE"/tests/opencl/image_pictures.py "$TRACESMITH" all.sbt ${TS_LONG:+--all}
code=0
"$TRACESMITH" replay window.sbt --at 4 --dump 3 --png no.png >stdout 2>stderr || code=$?
[ $code -ne 0 ] && [ ! -e no.png ] || fail "memory that is not an image became a picture"

# Pixels that differ are found.
cat >other.cl <<'END'
kernel void flip(read_only image2d_t from, write_only image2d_t to) {
	int2 at = (int2)(get_global_id(0), get_global_id(1));
	write_imageui(to, at, read_imageui(from, at));
}
END
replay_json 1 window.sbt --kernel flip --replace-kernel flip=other.cl --check each
[ "$(report 'r["kernel"]')" = flip ] || fail "a kernel that writes other pixels: $(cat replay.json)"

# Each alone shows which one fails, and nothing that all together do not.
mapfile -t names < <("$program" --list)
[ -n "${TS_LONG:-}" ] || names=()
for name in "${names[@]}"; do
	record t.sbt --replayable -- "$program" "$name"
	replays "$name" t.sbt --check each
done
echo "$checks replays"
