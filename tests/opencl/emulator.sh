#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The emulator on a program whose kernels the driver compiles when they are launched (PoCL with an
# empty cache): most of its span is compilation, and the simulation has it, too. The bound is wide
# enough for a machine with other load: only delays below a millisecond are averaged.
set -euo pipefail
. "$TS_SOURCE/tests/lib/opencl.sh"

program=$targets/opencl_images
code=0
"$program" samplers >/dev/null 2>alone.log || code=$?
[ $code -ne 77 ] || skip "no OpenCL device that has images"
[ $code -eq 0 ] || fail "opencl_images: exit code $code: $(cat alone.log)"

for option in plain ${TS_LONG:+--replayable}; do
	export POCL_CACHE_DIR=$PWD/cache-$option
	mkdir "$POCL_CACHE_DIR"
	options=()
	[ "$option" = plain ] || options=("$option")
	record cold.sbt "${options[@]}" -- "$program" samplers
	replay_json 0 cold.sbt --target emulator
	python3 - "$option" <<-'END'
	import json, sys
	report = json.load(open("replay.json"))
	print(f"{sys.argv[1]}: {report['commands']} commands, {report['held_commands']} held, "
	      f"error of the span {report['span_error']:+.4f}")
	assert report["held_commands"] > 0 and abs(report["span_error"]) <= 0.1, report
	END
done
